"""Heuristics that put one parameter after the other into a register array."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from ddlopt.models.aggregation.registers.batches import heat, hottest_first
from ddlopt.models.aggregation.registers.instance import Placement, RegisterInstance
from ddlopt.models.contracts import Instance, Solution
from ddlopt.models.tolerances import IMPROVEMENT_TOL
from ddlopt.solvers.heuristic import Answer, Clock, Heuristic
from ddlopt.solvers.names import spelled


@dataclass(frozen=True)
class Block(Heuristic, uses=()):
    """The first parameters in the first array, and so on, as evenly as the capacities allow."""

    name: ClassVar[str] = "block"
    covers: ClassVar[type[Instance]] = RegisterInstance

    def answer(self, instance: RegisterInstance, seed: int, clock: Clock, start: Any) -> Answer[Solution]:
        """One pass."""
        even = dealt(instance, range(instance.parameters), _rounds(instance.arrays))
        return placement(instance, np.sort(even).tolist()), {}


@dataclass(frozen=True)
class RandomArrays(Heuristic, uses=("seed",)):
    """Parameters in random order, dealt round-robin over the arrays."""

    name: ClassVar[str] = "random-arrays"
    covers: ClassVar[type[Instance]] = RegisterInstance

    def answer(self, instance: RegisterInstance, seed: int, clock: Clock, start: Any) -> Answer[Solution]:
        """One draw."""
        order = np.random.default_rng(seed).permutation(instance.parameters).tolist()
        return placement(instance, dealt(instance, order, _rounds(instance.arrays))), {}


@dataclass(frozen=True)
class HeatRoundRobin(Heuristic, uses=()):
    """Parameters by heat, dealt round-robin over the arrays: equally hot ones are in different arrays.

    That is how we read the heat-based placement of Libra (arXiv 2205.05243v1), whose code is not public. Full arrays
    are passed over.

    Parameters
    ----------
    snake : bool
        Deal forth and back, so that no array always has the hotter parameters (method ``snake``).
    """

    snake: bool = False

    covers: ClassVar[type[Instance]] = RegisterInstance

    @property
    def name(self) -> str:
        """``heat-round-robin``, with its option."""
        return spelled("heat-round-robin", self, "snake")

    def answer(self, instance: RegisterInstance, seed: int, clock: Clock, start: Any) -> Answer[Solution]:
        """One pass."""
        return placement(instance, by_heat(instance, self.snake)), {}


@dataclass(frozen=True)
class GreedyCooccurrence(Heuristic, uses=()):
    """Parameters by heat, each into the array with which it shares the fewest batches, then the emptiest."""

    name: ClassVar[str] = "greedy-co-occurrence"
    covers: ClassVar[type[Instance]] = RegisterInstance

    def answer(self, instance: RegisterInstance, seed: int, clock: Clock, start: Any) -> Answer[Solution]:
        """One pass."""
        touches = np.zeros((len(instance.batches), instance.parameters))
        for place, batch in enumerate(instance.batches):
            touches[place, list(batch)] = 1.0
        weighted = touches * np.array(instance.batch_weights)[:, None]
        arrays, held = [0] * instance.parameters, np.zeros(instance.arrays, dtype=np.int64)
        counts = np.zeros((len(instance.batches), instance.arrays))
        room = np.array(instance.capacities)
        for parameter in hottest_first(instance):
            shared = np.where(held < room, weighted[:, parameter] @ counts, np.inf)
            best = np.flatnonzero(shared <= shared.min() + IMPROVEMENT_TOL)
            chosen = int(best[np.argmin(held[best])])
            arrays[parameter] = chosen
            held[chosen] += 1
            counts[:, chosen] += touches[:, parameter]
        return placement(instance, arrays), {}


@dataclass(frozen=True)
class HeatBalance(Heuristic, uses=()):
    r"""Parameters by heat, each into the array with the least heat so far (ours, after longest-processing-time-first).

    If batches touch parameters independently, i with probability :math:`p_i`, the expected collisions are
    :math:`\sum_r \sum_{i<j \in B_r} p_i p_j`, so arrays should have equal heat; and heat is estimated from far fewer
    batches than co-occurrences are.
    """

    name: ClassVar[str] = "heat-balance"
    covers: ClassVar[type[Instance]] = RegisterInstance

    def answer(self, instance: RegisterInstance, seed: int, clock: Clock, start: Any) -> Answer[Solution]:
        """One pass."""
        heats, arrays = heat(instance), [0] * instance.parameters
        load, left = [0.0] * instance.arrays, list(instance.capacities)
        for parameter in hottest_first(instance):
            chosen = min((r for r in range(instance.arrays) if left[r]), key=lambda r: (load[r], -left[r]))
            arrays[parameter] = chosen
            load[chosen] += float(heats[parameter])
            left[chosen] -= 1
        return placement(instance, arrays), {}


def by_heat(instance: RegisterInstance, snake: bool = False) -> list[int]:
    """Array of each parameter; see :class:`HeatRoundRobin`."""
    return dealt(instance, hottest_first(instance), _rounds(instance.arrays, snake))


def dealt(instance: RegisterInstance, order: Iterable[int], arrays: Iterable[int]) -> list[int]:
    """Array of each parameter if parameters in ``order`` get those of the endless ``arrays`` in turn that have room."""
    left, found, turns = list(instance.capacities), [0] * instance.parameters, iter(arrays)
    for parameter in order:
        array = next(turn for turn in turns if left[turn])
        found[parameter] = array
        left[array] -= 1
    return found


def placement(instance: RegisterInstance, arrays: Sequence[int]) -> Placement:
    """An answer."""
    return Placement(instance=instance.name, arrays=tuple(int(array) for array in arrays))


def _rounds(arrays: int, snake: bool = False) -> Iterable[int]:
    while True:
        yield from range(arrays)
        yield from reversed(range(arrays)) if snake else range(arrays)
