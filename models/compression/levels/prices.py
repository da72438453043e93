r"""Lower bounds on problems of levels from prices, and levels at prices.

With prices :math:`\lambda_i \ge 0` of the rows of the timeline and :math:`\mu \ge 0` of the error, the weighted sum of
time and error of every choice of levels is at least

.. math::
    \sum_i \lambda_i R_i + \sum_k \min_l \bigl[ A_k e_k(l) + C_k c_k(l) + \mu E_k(l) \bigr],
    \qquad A_k = \sum_{i \ge k} \lambda_i, \quad C_k = \sum_{i \le k} \lambda_i,

since the time is at least :math:`R_i + \sum_{k \le i} e_k + \sum_{k \ge i} c_k` for every i. What the budget allows is
taken off, and what remains divided by the price of what is minimised: a lower bound whatever the prices are. The
minimum is taken over the levels that are allowed, so that the bound may pass the optimum over all real levels.
"""

import math
from functools import cached_property
from typing import NamedTuple

import numpy as np

from ddlopt.models.compression.levels.arrays import Floats, LevelArrays
from ddlopt.models.tolerances import let_pass_at_most

_LOG4 = math.log(4.0)
_SAFETY = 1e-13
"""Relative margin for the rounding of floats in a sum over all gradients."""


class LevelPrices(NamedTuple):
    """Prices of the rows of the timeline (n,) and of the error; only their ratios matter."""

    rows: Floats
    error: float

    @property
    def seconds_per_error(self) -> float:
        """What a unit of error is worth; infinite where time has no price."""
        time = float(self.rows.sum())
        return self.error / time if time > 0 else math.inf


class Filling(NamedTuple):
    """(n,) levels, whole or not, at which the budget is used up, and the prices at which nobody wants others."""

    levels: Floats
    prices: LevelPrices


class PricedLevels:
    """Gradients that see one price of a second for each lane, and one of the error.

    Parameters
    ----------
    arrays : LevelArrays
    rows : (n,) array
        Prices of the rows of the timeline; scaled so that their sum is 1.
    """

    def __init__(self, arrays: LevelArrays, rows: Floats) -> None:
        self.arrays = arrays
        self.rows = rows / rows.sum()
        self.encode_price: Floats = np.cumsum(self.rows[::-1])[::-1]
        self.wire_price: Floats = np.cumsum(self.rows)
        self.rate: Floats = self.encode_price * arrays.encode.rate + self.wire_price * arrays.wire.rate
        """(n,) seconds, priced, that a level more costs."""

    def seconds(self, levels: Floats) -> float:
        """The prices' part of the time, which is at least this."""
        arrays = self.arrays
        encode, wire = self.encode_price * arrays.encode.at(levels), self.wire_price * arrays.wire.at(levels)
        return float(self.rows @ arrays.ready_s + encode.sum() + wire.sum())

    def fill(self, whole: bool) -> Filling:
        """The levels and the price of error at which the budget is used up exactly, or all of it that is of use.

        At one price of error every gradient takes the level at which a further one would cost more than it gains: in
        closed form on exponential curves, the point at which the slope passes the price on others. The price is found
        by bisection. Where a piece of a curve is as steep as the price, all such gradients move along it together.

        Parameters
        ----------
        whole : bool
            Join the allowed levels of exponential curves by lines too: the linear relaxation over whole levels.
        """
        arrays = self.arrays
        low, high = self._range()
        first, last = self.at(low, whole), self.at(high, whole)
        if arrays.goal == "time" and self._used(first) <= arrays.budget:
            return Filling(first, LevelPrices(self.rows, 0.0))
        if arrays.goal == "error" and self._used(last) <= arrays.budget:
            return Filling(last, LevelPrices(0 * self.rows, 1.0))
        while low < (middle := math.sqrt(low * high)) < high:
            if (self._used(self.at(middle, whole)) > arrays.budget) == (arrays.goal == "time"):
                low = middle
            else:
                high = middle
        levels = self._between(self.at(low, whole), self.at(high, whole))
        return Filling(levels, LevelPrices(self.rows, high))

    def at(self, price: float, whole: bool) -> Floats:
        """(n,) the lowest levels that are best at a price of error, in seconds."""
        arrays = self.arrays
        found = arrays.levels_at((self._critical < price).sum(axis=1))
        curved = np.flatnonzero(arrays.scale > 0)
        if not whole and len(curved):
            with np.errstate(divide="ignore"):
                ideal = np.log(_LOG4 * arrays.scale[curved] * price / self.rate[curved]) / _LOG4
            found[curved] = np.clip(ideal, arrays.lowest[curved], arrays.highest[curved])
        return found

    @cached_property
    def _critical(self) -> Floats:
        """(n, m - 1) prices of error at which the next level is as good."""
        steps, gains = np.diff(self.arrays.levels, axis=1), -np.diff(self.arrays.errors, axis=1)
        found = np.full(gains.shape, np.inf)
        np.divide(self.rate[:, None] * steps, gains, out=found, where=gains > 0)
        return np.maximum.accumulate(found, axis=1) if found.size else found

    def _range(self) -> tuple[float, float]:
        """Prices of error at which everything is at its lowest level, and as high as is of use."""
        arrays = self.arrays
        curved = arrays.scale > 0
        ends = (
            self.rate[curved] / (_LOG4 * arrays.scale[curved]) * np.exp(_LOG4 * each[curved])
            for each in (arrays.lowest, arrays.highest)
        )
        found = np.concatenate([self._critical.ravel(), *ends])
        found = found[(found > 0) & np.isfinite(found)]
        return (found.min() / 2, found.max() * 2) if len(found) else (1.0, 1.0)

    def _used(self, levels: Floats) -> float:
        """Error, or priced seconds where the error is minimised."""
        return float(self.arrays.error_of(levels).sum()) if self.arrays.goal == "time" else self.seconds(levels)

    def _between(self, low: Floats, high: Floats) -> Floats:
        """Levels on the line between two choices where the budget is used up; what is used is affine there."""
        first, last = self._used(low), self._used(high)
        part = (self.arrays.budget - first) / (last - first) if first != last else 1.0
        return low + min(1.0, max(0.0, part)) * (high - low)


def sharpest_prices(arrays: LevelArrays, rows: Floats) -> LevelPrices:
    """The price of error that gives the largest :func:`price_bound` at given prices of the rows."""
    if not rows.sum() > 0:
        return LevelPrices(rows, 1.0)
    return PricedLevels(arrays, rows).fill(whole=True).prices


def price_bound(arrays: LevelArrays, prices: LevelPrices) -> float:
    """Lower bound on the objective of every choice of allowed levels, whatever the (non-negative) prices are.

    The budget is a little larger than it says, as the check of an answer has it.
    """
    rows = np.maximum(0.0, np.nan_to_num(prices.rows))
    error = max(0.0, prices.error) if math.isfinite(prices.error) else 0.0
    divisor = float(rows.sum()) if arrays.goal == "time" else error
    if not divisor > 0:
        return 0.0
    rows, error = rows / divisor, error / divisor
    encode, wire = np.cumsum(rows[::-1])[::-1, None], np.cumsum(rows)[:, None]
    costs = error * arrays.errors
    for price, lane in ((encode, arrays.encode), (wire, arrays.wire)):
        costs = costs + price * (lane.fixed[:, None] + lane.rate[:, None] * arrays.levels)
    allowed = let_pass_at_most(arrays.budget) * (error if arrays.goal == "time" else float(rows.sum()))
    least = [*costs.min(axis=1).tolist(), *(rows * arrays.ready_s).tolist()]
    total = math.fsum([*least, -allowed])
    return max(0.0, total - _SAFETY * (math.fsum(least) + allowed))
