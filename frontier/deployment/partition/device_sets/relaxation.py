"""Column generation for one case."""

import math
from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from ddlopt.certificates.deployment.partition.device_sets.cases import ONE, Case, DeviceSets, Figures, device_sets
from ddlopt.frontier.deployment.partition.device_sets.master import Column, Master, Optimum
from ddlopt.frontier.deployment.partition.device_sets.pricing import Pricing
from ddlopt.frontier.engines.columns import Priced, Smoothing
from ddlopt.models.errors import NotApplicableError
from ddlopt.models.tolerances import SOLVER_TOL
from ddlopt.solvers.heuristic import Clock

Floats = npt.NDArray[np.float64]

_NEAR = 0.002
"""Part of the value up to which the bound is brought before a case is divided."""
_TOLERANCE = 1e-9
"""In limits, by which a set must be worth more than its price."""
_SMOOTHED = 0.5
"""Part that the best prices so far have in those at which sets are sought."""
_LABELS, _MORE_LABELS, _MOST_LABELS = 1000, 4, 1_000_000
"""Of a place, at first; times as many where they find no set and did not see all; and at the most."""


@dataclass
class Relaxed:
    """What column generation found.

    Parameters
    ----------
    bound : float
        On the loads of all accelerators together, in limits.
    closed : bool
        No partition of the case has all loads below the limit.
    prices : (blocks + 2,) array
        Of the bound: that of a group is shared out evenly among its blocks.
    least : (float, float)
        Value of the best sets of accelerators and of processors at these prices, in limits.
    multipliers : list of (float, float)
    columns : list
        Sets of blocks.
    parts : array
        Of each set in the relaxation.
    """

    bound: float = -math.inf
    closed: bool = False
    prices: Floats = field(default_factory=lambda: np.zeros(0))
    least: tuple[float, float] = (0.0, 0.0)
    multipliers: list[tuple[float, float]] = field(default_factory=list)
    columns: list[Column] = field(default_factory=list)
    parts: Floats = field(default_factory=lambda: np.zeros(0))


class Relaxation:
    """The sets of a case, priced until the bound is near the value, or shows that there is no partition."""

    def __init__(self, figures: Figures, case: Case, columns: Iterable[Column], prices: Floats | None) -> None:
        self._figures, self._case, self._groups = figures, case, case.groups
        number = {first: place for place, first in enumerate(self._groups)}
        self._place_of = np.array([number[first] for first in case.group])
        self._size = np.bincount(self._place_of)
        self._devices = figures.accelerators, figures.processors
        self._master = Master(len(self._groups), *self._devices)
        kinds = [self._sets(bool(kind)) if count else None for kind, count in enumerate(self._devices)]
        self._pricing = [None if sets is None else Pricing(sets) for sets in kinds]
        apart = [(number[a], number[b]) for a, b in case.apart]
        never = [{number[each] for each in own} for own in (case.on_processor, case.on_accelerator)]
        for processor, blocks in columns:
            places = self._places(blocks)
            if places and not never[processor].intersection(places) and not any({*pair} <= {*places} for pair in apart):
                self._add(processor, places)
        self.bound = 0.0
        """On the loads of all accelerators together, in limits, so far."""
        self._start: Floats | None = None
        if prices is not None:
            self._start = np.concatenate((np.bincount(self._place_of, prices[:-2]), prices[-2:]))

    def _sets(self, processors: bool) -> DeviceSets:
        found = device_sets(self._figures, self._case, processors)
        if found is None:
            raise NotApplicableError("sets of blocks have too many states")
        return found

    def _places(self, blocks: frozenset[int]) -> tuple[int, ...]:
        """None of them where a group is in it in part."""
        count = np.bincount(self._place_of[list(blocks)], minlength=len(self._groups))
        whole = bool(((count == 0) | (count == self._size)).all())
        return tuple(np.flatnonzero(count).tolist()) if whole else ()

    def _blocks(self, places: tuple[int, ...]) -> frozenset[int]:
        return frozenset(np.flatnonzero(np.isin(self._place_of, places)).tolist())

    def _add(self, processor: bool, places: tuple[int, ...]) -> bool:
        load = load_of(self._figures, self._blocks(places), processor)
        return load <= ONE and self._master.add(processor, places, 0.0 if processor else load / ONE)

    def solve(self, clock: Clock) -> Relaxed | None:
        """The relaxation; None if the time is up.

        Raises
        ------
        NotApplicableError
            If sets have too many labels.
        """
        best, labels, complete = Relaxed(), _LABELS, True
        smoothing = Smoothing(_SMOOTHED, self._start)
        accelerators = self._devices[0]

        def oracle(prices: Floats) -> Priced:
            nonlocal best, complete
            found, new, complete = self._price(prices, labels)
            self.bound = max(self.bound, found.bound)
            if found.bound > best.bound:
                best = found
            return Priced(found.bound, new)

        while not clock.expired:
            optimum = self._master.solve()
            added = smoothing.ask(optimum.prices, oracle)
            if best.bound > accelerators * (1 + SOLVER_TOL) + SOLVER_TOL * (accelerators == 0):
                best.closed = True
                return self._told(best, optimum)
            covered = optimum.missing < SOLVER_TOL
            if covered and optimum.value - best.bound <= _NEAR * optimum.value:
                return self._told(best, optimum)
            if added:
                continue
            if not complete:
                labels *= _MORE_LABELS
                if labels > _MOST_LABELS:
                    raise NotApplicableError("sets of blocks have too many labels")
            elif smoothing.part:
                smoothing.part = 0.0
            elif covered:
                return self._told(best, optimum)
            else:
                self._master.harden()
                best, smoothing = Relaxed(), Smoothing(_SMOOTHED)
        return None

    def _price(self, prices: Floats, labels: int) -> tuple[Relaxed, int, bool]:
        """The bound at some prices, how many sets it added, and whether it saw all."""
        found = Relaxed(float(prices[: len(self._groups)].sum()), prices=prices)
        added, complete, least = 0, True, [0.0, 0.0]
        for kind, pricing in enumerate(self._pricing):
            if pricing is None:
                continue
            device = min(0.0, float(prices[len(self._groups) + kind]))
            priced = pricing.better(prices[: len(self._groups)] * ONE, (device - _TOLERANCE) * ONE, labels)
            complete &= priced.complete
            least[kind] = priced.least / ONE
            found.bound += self._devices[kind] * least[kind]
            added += sum(self._add(bool(kind), places) for places in priced.sets)
        found.least = least[0], least[1]
        found.multipliers = [(0.0, 0.0) if each is None else each.multipliers for each in self._pricing]
        return found, added, complete

    def _told(self, best: Relaxed, optimum: Optimum) -> Relaxed:
        shared = best.prices[: len(self._groups)] / self._size
        best.prices = np.concatenate((shared[self._place_of], best.prices[-2:]))
        best.columns = [(processor, self._blocks(places)) for processor, places in self._master.columns]
        # Sets that were added since have no part.
        best.parts = np.concatenate((optimum.parts, np.zeros(len(best.columns) - len(optimum.parts))))
        return best


def load_of(figures: Figures, blocks: frozenset[int], processor: bool) -> int:
    """In units of 1 / ``ONE``; more than ``ONE`` where the device cannot have the set."""
    times = [(figures.processor if processor else figures.accelerator)[block] for block in blocks]
    load = sum(2 * ONE if time is None else time for time in times)
    if processor:
        return load
    if sum(figures.memory[block] for block in blocks) > ONE:
        return 2 * ONE
    moved = (time for pins, time in figures.outputs if not blocks.isdisjoint(pins) and not blocks.issuperset(pins))
    return load + sum(moved)
