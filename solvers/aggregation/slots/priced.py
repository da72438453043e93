"""Slots and rates by prices of memory and links, which also certify them."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np

from ddlopt.models.aggregation.slots.arrays import Floats, SlotArrays
from ddlopt.models.aggregation.slots.instance import SlotPlan, SlotsInstance
from ddlopt.models.aggregation.slots.prices import price_bound
from ddlopt.models.aggregation.slots.slowest import least_slowest_s, needed_for
from ddlopt.models.errors import NoSolutionError
from ddlopt.models.tolerances import IMPROVEMENT_TOL
from ddlopt.solvers.aggregation.slots.interior_point import Rates
from ddlopt.solvers.aggregation.slots.rates import Flags, conic, least_lost
from ddlopt.solvers.aggregation.slots.rounding import Rounding
from ddlopt.solvers.certify import MethodOutput
from ddlopt.solvers.contracts import Limits
from ddlopt.solvers.heuristic import CertifiedMethod, Clock
from ddlopt.solvers.names import spelled


@dataclass(frozen=True)
class Effort:
    """What a search spends, and why so much."""

    least: float = 1e-6
    """Part of a job below which it counts as none: solvers leave that much of a zero."""
    most_flips: int = 200
    """Jobs whose choice is turned: each solves a convex program, a bound on the time where jobs are many."""
    priced_rows: int = 40
    """Rows that get a better price, the dearest first: each costs a search over one price."""
    width: float = 0.5
    """Prices are scaled by up to e to this either way: they come from a convex program that was nearly solved."""
    sections: int = 40
    """Golden sections of a search: 0.618 to this power is below any rounding."""


_EFFORT = Effort()


@dataclass(frozen=True)
class PricedSlots(CertifiedMethod, uses=()):
    """The convex relaxation by an interior-point method, its prices as certificate, and the plan rounded from it.

    Without fallback and with slots that need not be whole there is nothing to round, and the gap is that of the
    iterations. Of jobs that the relaxation lets fall back in part, which are no more than there are rows in the way,
    the best number are aggregated, those with the largest rates first; then the choice is turned for one job at a time.
    Whole slots: :class:`~ddlopt.solvers.aggregation.slots.rounding.Rounding`. The bound is that of the prices
    (:func:`~ddlopt.models.aggregation.slots.prices.price_bound`), all scaled together and then each by itself where
    slots are whole or jobs may fall back.

    Details: ``price KEY``, seconds that one more unit of a row would save, of the rows with the dearest totals.

    Parameters
    ----------
    solver : {"interior", "clarabel", "scs"}
        Our method, or CVXPY's program :class:`~ddlopt.models.aggregation.slots.formulations.slot_shares.SlotShares`,
        which is taken in any case where jobs send while they compute.
    """

    solver: str = "interior"

    covers: ClassVar[type[Any]] = SlotsInstance

    @property
    def name(self) -> str:
        """By the solver."""
        return spelled("slot-prices", self, "solver")

    def refuses(self, instance: SlotsInstance) -> str | None:
        """Goal ``slowest``."""
        if instance.goal != "total":
            return "it covers goal 'total'; 'slowest' is solved by bisection"
        return None

    def find(
        self, instance: SlotsInstance, limits: Limits, seed: int, clock: Clock, start: SlotPlan | None
    ) -> MethodOutput:
        """See the class."""
        arrays = SlotArrays(instance)
        relaxed, version = self._relaxed(arrays, clock)
        plan = _Choice(arrays, relaxed, clock).best()
        prices = relaxed.prices
        if instance.whole or (arrays.fallback > 0).any():
            prices = sharpened(arrays, prices, clock)
        bound = price_bound(arrays, prices)
        clock.report(plan.cost + arrays.compute_total_s, bound)
        return MethodOutput(
            arrays.plan(plan.rates, plan.aggregated, plan.slots),
            details=price_details(arrays, relaxed.prices),
            bound=bound,
            versions={"solver": version},
        )

    def _relaxed(self, arrays: SlotArrays, clock: Clock) -> tuple[Rates, str]:
        if self.solver == "interior":
            return relaxation(arrays), "clarabel" if arrays.overlaps else "ddlopt"
        return conic(arrays, self.solver, Limits(clock.part()))


@dataclass(frozen=True)
class SlowestSlots(CertifiedMethod, uses=()):
    """Goal ``slowest``: bisection over the time, which says what rates each job needs; whole slots and fallback too.

    Details: none.
    """

    name: ClassVar[str] = "slot-bisection"
    covers: ClassVar[type[Any]] = SlotsInstance

    def refuses(self, instance: SlotsInstance) -> str | None:
        """Goal ``total``."""
        if instance.goal != "slowest":
            return "it covers goal 'slowest'"
        return None

    def find(
        self, instance: SlotsInstance, limits: Limits, seed: int, clock: Clock, start: SlotPlan | None
    ) -> MethodOutput:
        """See the class; the bound of the instance is the optimum."""
        arrays = SlotArrays(instance)
        needed = needed_for(arrays, least_slowest_s(arrays)[1])
        return MethodOutput(arrays.plan(needed.rates, needed.aggregated))


def relaxation(arrays: SlotArrays) -> Rates:
    """Rates and prices of the relaxation; 0 for jobs whose servers are as fast as switches can be."""
    inside = arrays.fallback < arrays.cap
    rates, prices = np.zeros(arrays.count), np.zeros(len(arrays.limits))
    if inside.any():
        rates[inside], prices = least_lost(arrays.only(inside, arrays.cap, arrays.rows, arrays.limits, arrays.fallback))
    return Rates(rates, prices)


def price_details(arrays: SlotArrays, prices: Floats, most: int = 5) -> dict[str, float]:
    """Prices of the rows whose totals are dearest."""
    totals = prices * arrays.limits
    order = np.argsort(-totals)[:most]
    return {
        f"price of {arrays.row_names[k]}": float(prices[k]) for k in order if totals[k] > _EFFORT.least * totals.max()
    }


def sharpened(arrays: SlotArrays, prices: Floats, clock: Clock) -> Floats:
    """Prices with a better bound: scaled together, then each by itself."""
    best = _scaled(arrays, prices, np.ones(len(prices), dtype=bool))
    for k in np.argsort(-prices * arrays.limits)[: _EFFORT.priced_rows]:
        if clock.expired or prices[k] <= 0:
            break
        best = _scaled(arrays, best, np.arange(len(prices)) == k)
    return best


def _scaled(arrays: SlotArrays, prices: Floats, which: Flags) -> Floats:
    """The best factor for some prices, by golden section, as the bound is concave in it."""

    def at(log: float) -> Floats:
        return np.where(which, prices * math.exp(log), prices)

    return max(
        (at(_peak(lambda log: price_bound(arrays, at(log)))), prices), key=lambda each: price_bound(arrays, each)
    )


def _peak(value: Callable[[float], float]) -> float:
    ratio = (math.sqrt(5) - 1) / 2
    low, high = -_EFFORT.width, _EFFORT.width
    one, two = high - ratio * (high - low), low + ratio * (high - low)
    at_one, at_two = value(one), value(two)
    for _ in range(_EFFORT.sections):
        if at_one < at_two:
            low, one, at_one = one, two, at_two
            two = low + ratio * (high - low)
            at_two = value(two)
        else:
            high, two, at_two = two, one, at_one
            one = high - ratio * (high - low)
            at_one = value(one)
    return (low + high) / 2


class _Plan(NamedTuple):
    cost: float
    rates: Floats
    aggregated: Flags
    slots: Floats | None


class _Choice:
    """Which jobs are aggregated, given the relaxation."""

    def __init__(self, arrays: SlotArrays, relaxed: Rates, clock: Clock) -> None:
        self._arrays, self._relaxed, self._clock = arrays, relaxed, clock
        self._back: Floats = arrays.lost_back

    def best(self) -> _Plan:
        """The best plan found."""
        arrays, rates = self._arrays, self._relaxed.rates
        touch = np.minimum(2 * arrays.fallback, arrays.cap)
        must = (arrays.fallback == 0) | (rates >= touch * (1 - _EFFORT.least))
        share = rates / np.where(touch > 0, touch, 1.0)
        parts = [j for j in np.argsort(-share).tolist() if not must[j] and share[j] > _EFFORT.least]
        plans = []
        for count in sorted({*range(min(len(parts), 8) + 1), len(parts)}):
            chosen = must.copy()
            chosen[parts[:count]] = True
            plans.append(self._plan(chosen, rates if not parts else None))
        known = [plan for plan in plans if plan is not None] or self._fewer(must)
        if not known:
            raise NoSolutionError("no choice of jobs that fall back was found with which the slots suffice")
        best = self._turned(min(known, key=lambda plan: plan.cost))
        if best.slots is None:
            return best
        finished = self._plan(best.aggregated, best.rates, exchange=True)
        return best if finished is None or finished.cost > best.cost else finished

    def _fewer(self, chosen: Flags) -> list[_Plan]:
        """Without the jobs that need slots least, where there are fewer whole slots than jobs."""
        arrays, chosen = self._arrays, chosen.copy()
        worth = np.where(
            arrays.fallback > 0, self._relaxed.rates / np.where(arrays.fallback > 0, arrays.fallback, 1.0), np.inf
        )
        for j in np.argsort(worth).tolist():
            if not np.isfinite(worth[j]):
                break
            crowded = (((arrays.per_slot > 0) & chosen).sum(axis=1) > arrays.slots) & (arrays.per_slot[:, j] > 0)
            chosen[j] = chosen[j] and not crowded.any()
        plan = self._plan(chosen, None)
        return [] if plan is None else [plan]

    def _turned(self, plan: _Plan) -> _Plan:
        """Turn the choice for one job at a time while that helps."""
        may = np.flatnonzero((self._arrays.fallback > 0) & (self._arrays.fallback < self._arrays.cap))
        improved, tried = True, 0
        while improved and len(may):
            improved = False
            for j in may.tolist():
                if self._clock.expired or tried >= _EFFORT.most_flips:
                    return plan
                tried += 1
                chosen = plan.aggregated.copy()
                chosen[j] = not chosen[j]
                other = self._plan(chosen, None)
                if other is not None and other.cost < plan.cost * (1 - IMPROVEMENT_TOL):
                    plan, improved = other, True
        return plan

    def _plan(self, chosen: Flags, rates: Floats | None, exchange: bool = False) -> _Plan | None:
        """The best plan found with a choice."""
        arrays = self._arrays
        prices = self._relaxed.prices
        if rates is None:
            rates = np.zeros(arrays.count)
            if chosen.any():
                rates[chosen], prices = least_lost(arrays.only(chosen, arrays.cap, arrays.rows, arrays.limits))
        slots = None
        if arrays.instance.whole and chosen.any():
            rounded = Rounding(arrays, chosen, prices, self._clock).round(rates, exchange)
            if rounded is None:
                return None
            rates, slots = rounded
        cost = arrays.lost(rates)[chosen].sum() + self._back[~chosen].sum()
        return _Plan(float(cost), rates, chosen, slots)
