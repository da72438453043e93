"""Every group on one device, by list scheduling: HEFT, and Baechi's m-ETF and m-SCT."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from ddlopt.models.deployment import Deployment, DeploymentInstance, GroupPlan
from ddlopt.models.errors import NoSolutionError
from ddlopt.solvers.heuristic import Answer, Clock, Heuristic

Floats = npt.NDArray[np.float64]


class Costs:
    """Times of operators and of what passes between them, on single devices and for the whole batch.

    Parameters
    ----------
    instance : DeploymentInstance
    """

    def __init__(self, instance: DeploymentInstance) -> None:
        self.instance = instance
        types = [instance.device_groups[group].type for group in instance.device_group_of]
        self.time_s: Floats = np.array([[each.times_s[kind][0] for kind in types] for each in instance.operators])
        self.mean_s: Floats = self.time_s.mean(axis=1)
        group_of = instance.device_group_of
        slowness = 1 / np.where(instance.bandwidth_bytes_per_s > 0, instance.bandwidth_bytes_per_s, np.inf)
        np.fill_diagonal(slowness, [1 / group.bandwidth_bytes_per_s for group in instance.device_groups])
        self.s_per_byte: Floats = slowness[np.ix_(group_of, group_of)]
        np.fill_diagonal(self.s_per_byte, 0)
        self.latency_s: Floats = np.where(np.eye(len(group_of), dtype=bool), 0.0, instance.latency_s)

    @cached_property
    def mean_transfer_s(self) -> Floats:
        """(tensors,) seconds that a tensor takes from one device to another, a mean over all pairs of devices."""
        sizes = np.array([tensor.size_bytes for tensor in self.instance.tensors])
        mean_s: Floats = self.s_per_byte.mean() * sizes + np.where(sizes > 0, self.latency_s.mean(), 0.0)
        return mean_s

    @cached_property
    def rank_s(self) -> Floats:
        """(operators,) HEFT's upward rank: mean seconds from the start of an operator to the end of the step."""
        rank = np.zeros(len(self.instance.operators))
        for node in reversed(self.instance.order):
            after = [
                self.mean_transfer_s[place] + rank[reader]
                for place in self.instance.outputs[node]
                for reader in self.instance.tensors[place].consumers
            ]
            rank[node] = self.mean_s[node] + max(after, default=0.0)
        return rank

    @cached_property
    def group_bytes(self) -> Floats:
        """(groups,) what a group keeps and all that its operators make: it needs no more than that at any time."""
        needed = np.zeros(self.instance.groups)
        for operator in self.instance.operators:
            needed[operator.group] += operator.resident_bytes + operator.gradient_bytes
        for tensor in self.instance.tensors:
            for group in {self.instance.operators[node].group for node in (tensor.producer, *tensor.consumers)}:
                needed[group] += tensor.size_bytes
        return needed


class Schedule:
    """A list schedule under construction: one device a group, no waiting for links."""

    def __init__(self, costs: Costs) -> None:
        self.costs, self.instance = costs, costs.instance
        self.device_of = np.full(self.instance.groups, -1)
        self.finish_s = np.full(len(self.instance.operators), np.nan)
        self.free_s = np.zeros(self.instance.devices)
        memory = [self.instance.device_groups[group].memory_bytes for group in self.instance.device_group_of]
        self.left_bytes = np.array(memory, dtype=float)

    def ready_s(self, node: int) -> Floats:
        """(devices,) when all inputs of an operator could be on each device."""
        ready = np.zeros(self.instance.devices)
        for place in self.instance.inputs[node]:
            tensor = self.instance.tensors[place]
            source = self.device_of[self.instance.operators[tensor.producer].group]
            sent = tensor.size_bytes * self.costs.s_per_byte[source]
            if tensor.size_bytes:
                sent = sent + self.costs.latency_s[source]
            ready = np.maximum(ready, self.finish_s[tensor.producer] + sent)
        return ready

    def allowed(self, node: int) -> npt.NDArray[np.bool_]:
        """(devices,) where an operator may run: where its group is, or where memory suffices for the group."""
        group = self.instance.operators[node].group
        if self.device_of[group] >= 0:
            own: npt.NDArray[np.bool_] = np.arange(self.instance.devices) == self.device_of[group]
            return own
        fits: npt.NDArray[np.bool_] = self.left_bytes >= self.costs.group_bytes[group]
        if not fits.any():
            raise NoSolutionError(
                f"no device has the {self.costs.group_bytes[group]:.4g} bytes left that group {group} may need; "
                "what is not split over devices does not fit"
            )
        return fits

    def place(self, node: int, device: int, start_s: float) -> None:
        """Run an operator on a device."""
        group = self.instance.operators[node].group
        if self.device_of[group] < 0:
            self.device_of[group] = device
            self.left_bytes[device] -= self.costs.group_bytes[group]
        self.finish_s[node] = self.free_s[device] = start_s + self.costs.time_s[node, device]

    def deployment(self) -> Deployment:
        """Every group on its device."""
        groups = []
        for group, device in enumerate(self.device_of.tolist()):
            devices = (device,) * len(self.instance.members[group])
            where = (int(self.instance.device_group_of[device]),)
            groups.append(GroupPlan(device_groups=where, mode="model_parallel", devices=devices))
        return Deployment(instance=self.instance.name, groups=tuple(groups))


def heft(instance: DeploymentInstance) -> Deployment:
    """Operators by upward rank, each to the device on which it ends first."""
    costs = Costs(instance)
    schedule = Schedule(costs)
    place_in_order = {node: place for place, node in enumerate(instance.order)}
    for node in sorted(instance.order, key=lambda each: (-costs.rank_s[each], place_in_order[each])):
        start = np.maximum(schedule.free_s, schedule.ready_s(node))
        ends = np.where(schedule.allowed(node), start + costs.time_s[node], np.inf)
        device = int(np.argmin(ends))
        schedule.place(node, device, float(start[device]))
    return schedule.deployment()


def earliest_start(instance: DeploymentInstance, favourites: Mapping[int, int] | None = None) -> Deployment:
    """Of all ready operators and devices the pair that can start first; of several the longest way to the end.

    Parameters
    ----------
    favourites : mapping, optional
        The favourite child of operators: after one of these its device is kept free for the child, until the child
        could start on any other device as well.
    """
    costs = Costs(instance)
    schedule = Schedule(costs)
    favourites = favourites or {}
    kept_for = np.full(instance.devices, -1)
    kept_until = np.zeros(instance.devices)
    sent = np.zeros(len(instance.operators))
    np.maximum.at(sent, [tensor.producer for tensor in instance.tensors], costs.mean_transfer_s)
    waits = np.zeros(len(instance.operators), dtype=int)
    for readers in instance.readers:
        waits[list(readers)] += 1
    ready = set(np.flatnonzero(waits == 0).tolist())
    while ready:
        best: tuple[float, float, float, int, int] | None = None
        for node in sorted(ready):
            start = np.maximum(schedule.free_s, schedule.ready_s(node))
            start = np.where(kept_for == node, start, np.maximum(start, kept_until))
            start = np.where(schedule.allowed(node), start, np.inf)
            first = start.min()
            # Several devices can start at once; the fastest of them takes the operator.
            device = int(np.argmin(np.where(start <= first, costs.time_s[node], np.inf)))
            key = (float(first), -costs.rank_s[node], costs.time_s[node, device], node, device)
            best = key if best is None else min(best, key)
        assert best is not None
        start_s, *_, node, device = best
        schedule.place(node, device, start_s)
        kept_for[device] = favourites.get(node, -1)
        kept_until[device] = schedule.finish_s[node] + sent[node] if node in favourites else 0.0
        ready.remove(node)
        for reader in instance.readers[node]:
            waits[reader] -= 1
            if not waits[reader]:
                ready.add(reader)
    return schedule.deployment()


def favourite_children(instance: DeploymentInstance) -> dict[int, int]:
    r"""Of every operator at most one reader that is to follow it at once on the same device.

    By the linear relaxation of the small-communication-time model: :math:`x_{ij} = 0` if j is the favourite child of i,
    1 if what i hands to j is sent,

    .. math::
        \min w: \quad s_i + p_i + c_{ij} x_{ij} \le s_j, \quad s_i + p_i \le w, \quad
        \sum_{j} x_{ij} \ge |\mathrm{succ}(i)| - 1, \quad \sum_{i} x_{ij} \ge |\mathrm{pred}(j)| - 1,

    with mean times; j is a favourite of i where the relaxation has :math:`x_{ij} < 1/2`.

    Raises
    ------
    NoSolutionError
        If the relaxation is not solved.
    """
    from scipy.optimize import linprog
    from scipy.sparse import coo_array

    costs = Costs(instance)
    sent: dict[tuple[int, int], float] = {}
    for tensor, seconds in zip(instance.tensors, costs.mean_transfer_s.tolist(), strict=True):
        for reader in tensor.consumers:
            sent[tensor.producer, reader] = sent.get((tensor.producer, reader), 0.0) + seconds
    edges = sorted(sent)
    if not edges:
        return {}
    unit = float(costs.mean_s.max()) or 1.0
    nodes, count = len(instance.operators), len(edges)
    largest = nodes + count  # columns: starts, x, w
    entries: list[tuple[int, int, float]] = []
    limits: list[float] = []

    def row(terms: list[tuple[int, float]], limit: float) -> None:
        entries.extend((len(limits), column, value) for column, value in terms)
        limits.append(limit)

    for k, (i, j) in enumerate(edges):
        row([(i, 1.0), (nodes + k, sent[i, j] / unit), (j, -1.0)], -costs.mean_s[i] / unit)
    for i in range(nodes):
        row([(i, 1.0), (largest, -1.0)], -costs.mean_s[i] / unit)
        for end in (0, 1):
            here = [k for k, edge in enumerate(edges) if edge[end] == i]
            if len(here) > 1:
                row([(nodes + k, -1.0) for k in here], 1.0 - len(here))
    rows, columns, values = zip(*entries, strict=True)
    matrix = coo_array((values, (rows, columns)), shape=(len(limits), largest + 1))
    bounds = [(0, None)] * nodes + [(0, 1)] * count + [(0, None)]
    goal = np.zeros(largest + 1)
    goal[largest] = 1
    solved = linprog(goal, A_ub=matrix.tocsr(), b_ub=limits, bounds=bounds, method="highs")
    if solved.x is None:  # figures too far apart for it
        raise NoSolutionError(f"'{instance.name}': the linear program of favourite children: {solved.message}")
    favourites: dict[int, tuple[float, int]] = {}
    for k, (i, j) in enumerate(edges):
        share = float(solved.x[nodes + k])
        if share < 0.5:
            favourites[i] = min(favourites.get(i, (math.inf, -1)), (share, j))
    return {i: j for i, (_, j) in favourites.items()}


_RULES: dict[str, Callable[[DeploymentInstance], Deployment]] = {
    "heft": heft,
    "m-etf": earliest_start,
    "m-sct": lambda instance: earliest_start(instance, favourite_children(instance)),
}


@dataclass(frozen=True)
class ListScheduling(Heuristic, uses=()):
    """Every group on one device, chosen by list scheduling with its memory in mind; the batch is not split.

    ``heft``: operators by upward rank, each where it ends first. ``m-etf``: the ready operator and the device that can
    start first. ``m-sct``: the same, with devices kept free for favourite children, which a linear program chooses
    (:func:`favourite_children`). All operators of a group follow the first one that is placed. Links are taken to be
    free, and a group to need all that it keeps, reads and makes at once.

    Parameters
    ----------
    rule : {"heft", "m-etf", "m-sct"}

    References
    ----------
    H. Topcuoglu, S. Hariri, M. Wu, "Performance-effective and low-complexity task scheduling for heterogeneous
    computing", IEEE TPDS 13(3), 2002. B. Jeon et al., "Baechi: Fast device placement of machine learning graphs",
    SoCC 2020; how long a device is kept free is ours.
    """

    rule: Literal["heft", "m-etf", "m-sct"] = "heft"

    covers = DeploymentInstance

    @property
    def name(self) -> str:
        """The rule's."""
        return self.rule

    def answer(self, instance: DeploymentInstance, seed: int, clock: Clock, start: Any) -> Answer[Deployment]:
        """The schedule's placement."""
        return _RULES[self.rule](instance), {}
