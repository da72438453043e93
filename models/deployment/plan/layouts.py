"""How the operators of a group may lie on devices, and what moves between two groups at least."""

from itertools import combinations
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from ddlopt.models.deployment.plan.instance import DeploymentInstance
from ddlopt.models.deployment.plan.shares import UNITS, Replica, parts
from ddlopt.models.deployment.plan.solution import Mode, Split
from ddlopt.models.tolerances import BOUND_MARGIN

Floats = npt.NDArray[np.float64]

_ROUNDING = 1 - BOUND_MARGIN
"""Parts within a device group differ by a unit, times by the last digits."""


class Layout(NamedTuple):
    """Where the operators of a group lie: ``parts`` of the batch, or each operator on one device if ``split`` is None.

    It may be any device of ``device_groups`` then, and ``parts`` is empty.
    """

    device_groups: tuple[int, ...]
    split: Split | None
    parts: tuple[Replica, ...]

    @property
    def replicas(self) -> int:
        """How many each operator has."""
        return max(1, len(self.parts))


class Decision(NamedTuple):
    """A mode, and the place of its layout."""

    layout: int
    mode: Mode


class Moved(NamedTuple):
    """What a tensor from one seat to another needs at least, if its producer is not duplicated.

    Seconds are ``fixed`` latencies and ``per_byte`` of the tensor.

    Parameters
    ----------
    delay, delay_fixed : float
        From the end of a producer's replica, for every consumer's replica.
    chain, chain_fixed : float
        From any producer's replica to any consumer's replica that has the same sample of the batch, also where they are
        duplicated.
    busy, busy_fixed : (device groups, device groups) array
        Of the link between two device groups.
    """

    delay: float
    delay_fixed: float
    chain: float
    chain_fixed: float
    busy: Floats
    busy_fixed: Floats


def layouts(instance: DeploymentInstance) -> tuple[Layout, ...]:
    """All of them, each once."""
    known = range(len(instance.device_groups))
    found: dict[tuple[tuple[int, ...], tuple[Replica, ...]], Layout] = {}
    spreads = []
    splits: tuple[Split, ...] = ("even", "speed")
    for chosen in (mask for size in range(1, len(known) + 1) for mask in combinations(known, size)):
        for split in splits:
            replicas = parts(instance, chosen, split)
            found.setdefault((chosen, replicas), Layout(chosen, split, replicas))
        if len(instance.devices_of(chosen)) > 1:
            spreads.append(Layout(chosen, None, ()))
    return (*found.values(), *spreads)


def decisions(known: tuple[Layout, ...]) -> tuple[Decision, ...]:
    """What may be decided for a group: on a single device the modes are the same."""
    found = []
    for place, layout in enumerate(known):
        if layout.split is None:
            found.append(Decision(place, "model_parallel"))
            continue
        found.append(Decision(place, "all_reduce"))
        if layout.replicas > 1:
            found.append(Decision(place, "parameter_server"))
    return tuple(found)


def seats(instance: DeploymentInstance, known: tuple[Layout, ...]) -> tuple[Layout, ...]:
    """What a single operator may have: layouts with parts, then for each device group the whole batch on one device.

    Of a device group only the first device stands for all: two operators may well share theirs.
    """
    first = [instance.devices_of((j,))[0] for j in range(len(instance.device_groups))]
    single = [Layout((j,), None, (Replica(device, 0, UNITS),)) for j, device in enumerate(first)]
    return (*(layout for layout in known if layout.split is not None), *single)


def moved(instance: DeploymentInstance, rate: Floats, one: Layout, other: Layout) -> Moved:
    """From one seat to another; ``rate`` (devices, devices) has the bandwidths."""
    found = _between(instance, rate, one.parts, other.parts)
    disjoint = not set(one.device_groups) & set(other.device_groups)
    return found._replace(chain=_ROUNDING * found.chain if disjoint else 0.0, chain_fixed=float(disjoint))


def _between(instance: DeploymentInstance, rate: Floats, one: tuple[Replica, ...], other: tuple[Replica, ...]) -> Moved:
    source, target = np.array(one), np.array(other)
    low, high = np.maximum(source[:, None, 1], target[None, :, 1]), np.minimum(source[:, None, 2], target[None, :, 2])
    overlap = np.maximum(0, high - low) / UNITS
    seconds = overlap / rate[np.ix_(source[:, 0], target[:, 0])]
    sent = (overlap > 0) & (source[:, None, 0] != target[None, :, 0])
    slowest = np.where(sent, seconds, 0).max(axis=0)
    delayed = bool(sent.any(axis=0).all())
    at, size = instance.device_group_of, len(instance.device_groups)
    busy, busy_fixed = np.zeros((size, size)), np.zeros((size, size))
    for k, place in np.argwhere(sent):
        link = at[source[k, 0]], at[target[place, 0]]
        if link[0] != link[1]:
            busy[link] += seconds[k, place]
            busy_fixed[link] += 1
    # Where the producer is duplicated, a part comes from any of its devices.
    chain = float(overlap[overlap > 0].min() / rate[np.ix_(source[:, 0], target[:, 0])].max())
    delay = _ROUNDING * float(slowest.min()) if delayed else 0.0
    return Moved(delay, float(delayed), chain, 1.0, _ROUNDING * busy, busy_fixed)
