"""Operators of a training step in groups that are placed together, and each group's operators put together."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ddlopt.instances.workloads.networks.network_graphs import Step
from ddlopt.models.deployment.graph_cut import partition

_SLACK = 1.25
"""A group may have so much more than its share of the work, unless it is a single layer."""


def layers_of(step: Step) -> npt.NDArray[np.int64]:
    """(operators,) layer of each operator, forward or backward, counted in the order of the forward pass.

    Layers that share a weight are one, as every device of the one needs the weight of the other.
    """
    names = [each.name.partition("/")[0] for each in step]
    owner = {
        names[read]: names[place] for place, each in enumerate(step) if each.gradient for read in _summands(step, place)
    }
    places: dict[str, int] = {}
    return np.array([places.setdefault(owner.get(name, name), len(places)) for name in names])


def _summands(step: Step, place: int) -> tuple[int, ...]:
    """What a gradient adds up, where it is a sum."""
    return tuple(read for read in step[place].reads if step[read].partial)


def consecutive_groups(
    work: npt.ArrayLike, cut: npt.ArrayLike, groups: int, slack: float = _SLACK
) -> npt.NDArray[np.int64]:
    """(layers,) group of each layer: runs of layers, such that what passes from run to run is least.

    Parameters
    ----------
    work : (layers,) array
        No group of several layers has more than ``slack`` times its share of the sum; if that cannot be, more.
    cut : (layers - 1,) array
        Bytes that pass between the layers up to each and those after it.
    groups : int
        How many; as many as there are layers, if there are fewer.
    slack : float

    Notes
    -----
    A dynamic program over the last layer of each group, quadratic in the layers.
    """
    work, cut = np.asarray(work, dtype=float), np.asarray(cut, dtype=float)
    count = len(work)
    groups = min(groups, count)
    total = np.concatenate([[0.0], np.cumsum(work)])
    while True:
        largest = slack * total[-1] / groups
        best = np.full((groups + 1, count + 1), np.inf)
        first = np.zeros((groups + 1, count + 1), dtype=np.int64)
        best[0, 0] = 0.0
        for group in range(1, groups + 1):
            for end in range(group, count + 1):
                starts = np.arange(group - 1, end)
                allowed = (total[end] - total[starts] <= largest) | (starts == end - 1)
                costs = np.where(allowed, best[group - 1, starts] + (cut[end - 1] if end < count else 0.0), np.inf)
                place = int(np.argmin(costs))
                best[group, end], first[group, end] = costs[place], starts[place]
        if np.isfinite(best[groups, count]):
            break
        slack *= 1.25
    group_of = np.zeros(count, dtype=np.int64)
    end = count
    for group in range(groups, 0, -1):
        start = first[group, end]
        group_of[start:end] = group - 1
        end = start
    return group_of


def cut_groups(
    step: Step, layer_of: npt.NDArray[np.int64], times_s: Sequence[float], batch: int, groups: int
) -> npt.NDArray[np.int64]:
    """(layers,) group of each layer by METIS, numbered without gaps in the order of their first layers.

    A layer weighs 1 and the root of each of its operators' microseconds in whole numbers, an edge the bytes of the
    tensors between two layers, or 4000 where there are none, as in TAG's released code; so is the imbalance allowed.
    """
    weights = np.ones(1 + layer_of.max())
    between: dict[tuple[int, int], float] = {}
    for place, each in enumerate(step):
        weights[layer_of[place]] += int((1e6 * times_s[place]) ** 0.5)
        for read in each.reads:
            pair = int(layer_of[read]), int(layer_of[place])
            between[pair] = between.get(pair, 0.0) + step[read].output_bytes(batch)
    bytes_between = [size or 4000.0 for size in between.values()]
    found = partition(weights.tolist(), list(between), bytes_between, min(groups, len(weights)), imbalance=5.0)
    numbers: dict[int, int] = {}
    return np.array([numbers.setdefault(int(part), len(numbers)) for part in found])


@dataclass(frozen=True)
class Merged:
    """Operators of a group put together to one.

    Parameters
    ----------
    group : int
    places : tuple of int
        In the step.
    """

    group: int
    places: tuple[int, ...]


def merged(step: Step, group_of: Sequence[int], separate_gradients: bool = False) -> tuple[Merged, ...]:
    """Operators of a group put together as far as the graph stays acyclic, in topological order.

    An operator's depth is the largest number of changes of group on any way to it; what has the same group and depth is
    one. Between two of them depth increases, so that no cycle arises. With ``separate_gradients`` the operators that
    compute gradients of parameters, which nothing reads, are put together apart from the others.
    """
    depth = [0] * len(step)
    for place, each in enumerate(step):
        depth[place] = max((depth[read] + (group_of[read] != group_of[place]) for read in each.reads), default=0)
    members: dict[tuple[int, int, bool], list[int]] = {}
    for place, each in enumerate(step):
        apart = separate_gradients and each.gradient > 0
        members.setdefault((depth[place], int(group_of[place]), apart), []).append(place)
    return tuple(Merged(group, tuple(places)) for (_, group, _), places in sorted(members.items()))


def passed_between(step: Step, layer_of: npt.NDArray[np.int64], batch: int) -> npt.NDArray[np.float64]:
    """(layers - 1,) bytes of all tensors with an end among the layers up to each and the other one after it."""
    count = 1 + max(layer_of)
    change = np.zeros(count + 1)
    ends: dict[int, list[int]] = {}
    for place, each in enumerate(step):
        for read in each.reads:
            ends.setdefault(read, [layer_of[read]]).append(layer_of[place])
    for producer, layers in ends.items():
        size = step[producer].output_bytes(batch)
        change[min(layers)] += size
        change[max(layers)] -= size
    return np.cumsum(change)[: count - 1]
