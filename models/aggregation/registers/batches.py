"""The batches of a placement in registers as far as they matter: each once, with its floor and its slack."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ddlopt.models.aggregation.registers.instance import RegisterInstance
from ddlopt.models.units import unit_of


@dataclass(frozen=True)
class Merged:
    """Distinct batches that a placement can make dearer than others do.

    Parameters
    ----------
    batches : tuple of tuples of int
        Each once, ascending, in the order in which the instance has them first.
    weights : (T,) array
        Summed over equal batches.
    floors : (T,) array
        Objective of each under the best placement for it alone: packets or pairs.
    constant : float
        Objective of the batches left out, which is the same under every placement.
    """

    batches: tuple[tuple[int, ...], ...]
    weights: npt.NDArray[np.float64]
    floors: npt.NDArray[np.int64]
    constant: float

    @property
    def unit(self) -> float:
        """Weight in which formulations count, a power of two near the largest of those that matter."""
        return unit_of(float(self.weights.max(initial=0.0)), parts=1)

    @property
    def floor(self) -> float:
        """The objective if every batch is at its floor."""
        return self.constant + float(self.weights @ self.floors)


def merged(instance: RegisterInstance) -> Merged:
    """The batches of an instance that matter for its goal."""
    weight_of: dict[tuple[int, ...], float] = {}
    for batch, weight in zip(instance.batches, instance.batch_weights, strict=True):
        key = tuple(sorted(batch))
        weight_of[key] = weight_of.get(key, 0.0) + weight
    room = sorted(capacity for capacity in instance.capacities if capacity)
    kept, floors, constant = [], [], 0.0
    for batch, weight in weight_of.items():
        floor, most = _range(len(batch), room, instance)
        if floor == most:
            constant += weight * floor
        else:
            kept.append(batch)
            floors.append(floor)
    weights = np.array([weight_of[batch] for batch in kept], dtype=np.float64)
    return Merged(tuple(kept), weights, np.array(floors, dtype=np.int64), constant)


def _range(count: int, room: Sequence[int], instance: RegisterInstance) -> tuple[int, int]:
    """The least and the most that a batch of ``count`` parameters can take."""
    spread = spread_counts(count, room)
    packed = packed_counts(count, room)
    if instance.goal == "collisions":
        return sum(map(pairs, spread)), sum(map(pairs, packed))
    least = -(-count // instance.entries)
    return max(least, *spread, 0), max(least, *packed, 0)


def pairs(count: int) -> int:
    """Pairs among ``count`` things."""
    return count * (count - 1) // 2


def spread_counts(count: int, room: Sequence[int]) -> list[int]:
    """How many of ``count`` parameters each array has if they are spread as evenly as capacities ``room`` allow."""
    held, left = [], count
    for place, capacity in enumerate(sorted(room)):
        held.append(min(capacity, left // (len(room) - place)))
        left -= held[-1]
    return held


def packed_counts(count: int, room: Sequence[int]) -> list[int]:
    """The same if the largest arrays are filled one after the other."""
    held, left = [], count
    for capacity in sorted(room, reverse=True):
        held.append(min(capacity, left))
        left -= held[-1]
    return held


def heat(instance: RegisterInstance) -> npt.NDArray[np.float64]:
    """(n,) weight of the batches that touch each parameter."""
    found = np.zeros(instance.parameters)
    for batch, weight in zip(instance.batches, instance.batch_weights, strict=True):
        found[list(batch)] += weight
    return found


def hottest_first(instance: RegisterInstance) -> list[int]:
    """Parameters by heat, descending; equally hot ones by number."""
    order: list[int] = np.argsort(-heat(instance), kind="stable").tolist()
    return order
