"""From levels at prices to whole levels that keep the budget: greedy by the best ratio, then exchanges."""

import itertools
from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from ddlopt.models.compression import evaluate
from ddlopt.models.compression.levels.arrays import Floats, LevelArrays, Places
from ddlopt.models.compression.levels.instance import LevelInstance, LevelPlan
from ddlopt.models.compression.levels.prices import LevelPrices, PricedLevels
from ddlopt.models.errors import SolutionError
from ddlopt.models.tolerances import ROUNDING, WHOLE_TOL
from ddlopt.solvers.heuristic import Clock

_REACH, _TRIES = 3, 30
"""Steps that an exchange begins with at most, and its tries: with few gradients more steps make up for them."""


class _Steps(NamedTuple):
    """(n, m) of the step from a place of the tables: levels, error, and error for a second (positive).

    Not a number where there is none.
    """

    levels: Floats
    errors: Floats
    ratios: Floats


class Rounding:
    r"""Whole levels near fractional ones.

    A step up takes a gradient to the next level: its error falls by :math:`\Delta E`, and the time grows by no more
    than :math:`\Delta d`, its encoding and sending at the prices of the two lanes. Where the time is minimised, steps
    up that cost the fewest seconds for the error they save, as far as that is missing, *mend* a budget of error that is
    broken, and steps down that save the most seconds for the error they add *fill* what is left of it. Where the error
    is minimised it is the other way round, with the time as it is, not as priced. *Exchanges* then take any one
    gradient a few steps in either direction, and mend and fill with others.

    Without overlap a fractional optimum has at most one fractional gradient, if no two pieces of curves are equally
    steep, so that little is lost.

    Parameters
    ----------
    arrays : LevelArrays
    rows : (n,) array
        Prices of the rows of the timeline.
    clock : Clock
    """

    def __init__(self, arrays: LevelArrays, rows: Floats, clock: Clock) -> None:
        self.arrays, self._clock = arrays, clock
        size = len(arrays.counts)
        self._each = np.arange(size)
        self._by_time = arrays.goal == "time"
        priced = PricedLevels(arrays, rows if rows.sum() > 0 else np.ones(size))
        # A gradient that no price concerns still takes time, which decides between those that cost nothing.
        self._rate: Floats = priced.rate + 1e-6 * (arrays.encode.rate + arrays.wire.rate)
        steps, gains = np.diff(arrays.levels, axis=1), -np.diff(arrays.errors, axis=1)
        ratios = np.full(steps.shape, np.nan)  # padding
        np.divide(gains, self._rate[:, None] * steps, out=ratios, where=steps > 0)
        edge = np.full((size, 1), np.nan)
        self._up = _Steps(*(np.hstack([each, edge]) for each in (steps, -gains, ratios)))
        self._down = _Steps(*(np.hstack([edge, each]) for each in (-steps, gains, ratios)))

    def best(self, starts: Iterable[Places]) -> Places:
        """The best whole levels (their places in the tables) from any of several starts."""
        found = [self._fill(self._mend(start)) for start in starts]
        return self._exchanged(min(found, key=self.objective))

    def starts(self, levels: Floats) -> list[Places]:
        """Places just below (n,) fractional levels, nearest, and just above."""
        below = (self.arrays.levels <= levels[:, None] + WHOLE_TOL).sum(axis=1) - 1
        below = np.clip(below, 0, self.arrays.counts - 1)
        above = np.minimum(below + (self.arrays.levels_at(below) < levels - WHOLE_TOL), self.arrays.counts - 1)
        middle = (self.arrays.levels_at(below) + self.arrays.levels_at(above)) / 2
        return [below, np.where(levels > middle, above, below), above]

    def objective(self, places: Places) -> float:
        """Seconds, or error."""
        return self._measures(places)[0]

    def _measures(self, places: Places) -> tuple[float, float]:
        """What is minimised, and what has a budget."""
        time = self.arrays.time_s(self.arrays.levels_at(places))
        error = float(self.arrays.errors_at(places).sum())
        return (time, error) if self._by_time else (error, time)

    def _mend(self, places: Places, but: int | None = None) -> Places:
        """Steps that lower what has a budget until it fits, or until there are none; ``but`` one stays.

        The first is the one that costs least for what it frees, as far as that is needed.
        """
        places = places.copy()
        table, step = (self._up, 1) if self._by_time else (self._down, -1)
        while not self.arrays.fits(used := self._measures(places)[1]):
            at = self._each, places
            seconds, errors = np.abs(self._rate * table.levels[at]), np.abs(table.errors[at])
            costs, freed = (seconds, errors) if self._by_time else (errors, seconds)
            with np.errstate(divide="ignore", invalid="ignore"):
                costs = costs / np.minimum(freed, used - self.arrays.budget)
            if but is not None:
                costs[but] = np.inf
            costs[np.isnan(costs)] = np.inf
            one = int(costs.argmin())
            if costs[one] == np.inf:  # nothing, or nothing but what frees nothing
                break
            places[one] += step
        return places

    def _fill(self, places: Places, but: int | None = None) -> Places:
        """Steps that fit and lower what is minimised, the best ratio first; ``but`` one stays."""
        places = places.copy()
        table, step = (self._down, -1) if self._by_time else (self._up, 1)
        while True:
            at = self._each, places
            ratios = table.ratios[at] * step
            if but is not None:
                ratios[but] = -np.inf
            if self._by_time:
                after = self.arrays.errors_at(places).sum() + table.errors[at]
            else:
                after = self._times_after(places, table.levels[at])
            ratios[np.isnan(ratios) | ~(after <= self.arrays.budget)] = -np.inf
            one = int(ratios.argmax())
            if ratios[one] == -np.inf:
                return places
            places[one] += step

    def _times_after(self, places: Places, steps: Floats) -> Floats:
        """(n,) the time if one gradient alone takes a step, for each of them."""
        rows = self.arrays.rows_s(self.arrays.levels_at(places))
        encode, wire = self.arrays.encode.rate * steps, self.arrays.wire.rate * steps
        before = np.maximum.accumulate(np.concatenate(([-np.inf], rows[:-1]))) + wire
        later = np.maximum.accumulate(np.concatenate(([-np.inf], rows[:0:-1])))[::-1] + encode
        found: Floats = np.maximum(rows + encode + wire, np.maximum(before, later))
        return found

    def _exchanged(self, places: Places) -> Places:
        """Exchanges while one is better."""
        value, better = self.objective(places), True
        reach = max(_REACH, _TRIES // len(places))
        steps = [step for step in range(-reach, reach + 1) if step]
        while better:
            better = False
            for one, step in itertools.product(range(len(places)), steps):
                if self._clock.expired:
                    return places
                if not 0 <= places[one] + step < self.arrays.counts[one]:
                    continue
                moved = places.copy()
                moved[one] += step
                moved = self._fill(self._mend(moved, one), one)
                reached, used = self._measures(moved)
                if reached < value * (1 - ROUNDING) and self.arrays.fits(used):
                    places, value, better = moved, reached, True
        return places


def places_of(instance: LevelInstance, arrays: LevelArrays, start: LevelPlan) -> Places:
    """Places of an answer's levels in the tables; it may break the budget.

    Raises
    ------
    SolutionError
        If its levels are not those of the instance.
    """
    checked = evaluate(instance, start)
    if checked.objective is None:
        raise SolutionError(f"the levels to start from fail the check: {checked.violations[0]}")
    places: Places = (arrays.levels < np.array(start.levels)[:, None]).sum(axis=1)
    return places


def plan(instance: LevelInstance, arrays: LevelArrays, places: Places) -> LevelPlan:
    """The answer."""
    levels = tuple(int(level) for level in arrays.levels_at(places))
    return LevelPlan(instance=instance.name, instance_digest=instance.digest, levels=levels)


def price_details(goal: str, prices: LevelPrices) -> dict[str, float]:
    """``price_of_error``, seconds for a unit of error; or ``price_of_time``, error for a second."""
    if goal == "time":
        return {"price_of_error": prices.seconds_per_error}
    return {"price_of_time": float(prices.rows.sum()) / prices.error}


def rounding_gap(reached: float, relaxation: float) -> float:
    """What an answer is above the optimum over real levels, relative to the answer."""
    return (reached - relaxation) / reached if reached > 0 else 0.0
