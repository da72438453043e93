"""An interior-point method for rates under shared rows: seconds for thousands of jobs, prices included."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.linalg import cho_factor, cho_solve

from ddlopt.models.aggregation.slots.arrays import Floats

# Interior point methods take some 20 to 40; its prices are a bound whenever it ends.
_STEPS = 150
_GAP = 1e-10
"""Relative gap at which it stops, between the costs of rates and what the prices prove."""
# Part of the way to the boundary that a step goes, and of the largest equal rates that it begins at.
_BACK_OFF, _START = 0.99, 0.9
# Divisors for 0; least curvature against singular systems; step length at which nothing moves any more.
_SMALLEST, _FLATTEST, _STUCK = 1e-300, 1e-14, 1e-12


class Rates(NamedTuple):
    """(n,) rates and (k,) prices of the rows, in the units of what was given."""

    rates: Floats
    prices: Floats


class Costs:
    r"""What jobs lose at rates z in parts of their caps: :math:`\alpha / z`, or its envelope with a way out.

    A job that may fall back at rate :math:`\varphi` (in the same parts) loses at most :math:`\alpha / \varphi`. The
    largest convex function below both is linear from there to the point where it touches :math:`\alpha / z`, which is
    :math:`2 \varphi`, or to 1 if that comes first. So jobs had better send at twice their fallback rate or fall back.
    """

    def __init__(self, alpha: Floats, fallback: Floats) -> None:
        self.alpha = alpha
        self.fallback = fallback
        self.touch: Floats = np.minimum(2 * fallback, 1.0)
        self.touch_or_one: Floats = np.where(fallback > 0, self.touch, 1.0)
        with np.errstate(divide="ignore", invalid="ignore"):
            fall = alpha * (1 / fallback - 1 / self.touch) / self.touch
        self.fall: Floats = np.where(fallback > 0, fall, 0.0)

    def value(self, z: Floats) -> float:
        """The sum over all jobs."""
        linear = self.alpha / self.touch_or_one + self.fall * (self.touch_or_one - z)
        return float(np.where(z < self.touch, linear, self.alpha / np.maximum(z, _SMALLEST)).sum())

    def proven(self, asked: Floats) -> float:
        """The least that jobs lose and pay together where a unit of z costs each what is ``asked``."""
        with np.errstate(divide="ignore"):
            z = np.minimum(1.0, np.sqrt(self.alpha / np.maximum(asked, _SMALLEST)))
            return float(np.minimum(self.alpha / z + asked * z, self.alpha / self.fallback).sum())

    def slope(self, z: Floats) -> Floats:
        """First derivative."""
        return np.where(z < self.touch, -self.fall, -self.alpha / z**2)

    def curvature(self, z: Floats, asked: Floats) -> Floats:
        """Second derivative by the logarithm of z, over z squared, where rows ask ``asked`` for a unit of z.

        At the optimum it is the second derivative. Far from it, it does not take small losses for none.
        """
        return np.where(z < self.touch, 0.0, self.alpha / z**3 + asked / z)


def best_rates(cost: Floats, cap: Floats, rows: Floats, limits: Floats, fallback: Floats) -> Rates:
    r"""Rates that minimise :math:`\sum_j \text{cost}_j / \lambda_j` within rows and caps, by a primal-dual method.

    Parameters
    ----------
    cost, cap, fallback : (n,) arrays
        Fallback rates are below caps; where one is positive, the envelope of :class:`Costs` is minimised.
    rows, limits : (k, n) and (k,) arrays
        Not negative, and positive.

    Returns
    -------
    Rates
        Rates within all limits, whatever became of the iterations; prices that are not negative.
    """
    matrix = rows * cap / limits[:, None]
    unit = float((cost / cap).sum())
    costs = Costs(cost / cap / unit, fallback / cap)
    point = _Point(matrix, costs, fallback > 0)
    best_z, least = point.z, costs.value(point.z)
    best_price, most = np.zeros(len(limits)), costs.proven(np.zeros(len(cap)))
    for _ in range(_STEPS):
        with np.errstate(over="ignore", invalid="ignore"):
            moved = point.step()
        if not moved:
            break
        z = np.clip(point.z, 0.0, 1.0)
        z /= max(1.0, float((matrix @ z).max(initial=0.0)))
        price = np.maximum(point.price, 0.0)
        value, proven = costs.value(z), costs.proven(price @ matrix) - float(price.sum())
        if value < least:
            best_z, least = z, value
        if proven > most:
            best_price, most = price, proven
        if least - most <= _GAP * least:
            break
    return Rates(best_z * cap, best_price * unit / limits)


class _Point:
    """Rates z with slacks of rows and caps, and prices of rows, caps and of not being negative."""

    def __init__(self, matrix: Floats, costs: Costs, low: npt.NDArray[np.bool_]) -> None:
        self._matrix, self._costs = matrix, costs
        self.z: Floats = _START * _rooted(matrix, costs.alpha)
        self._low = low.astype(np.float64)
        self._measure()
        start = float(np.abs(costs.slope(self.z) * self.z).mean())
        self.price: Floats = start / self._spare
        self._upper: Floats = start / self._room
        self._lower: Floats = self._low * start / self.z

    def _measure(self) -> None:
        self._spare: Floats = np.maximum(1.0 - self._matrix @ self.z, _SMALLEST)
        self._room: Floats = np.maximum(1.0 - self.z, _SMALLEST)

    @property
    def gap(self) -> float:
        """What complementarity lacks, in parts of all that is lost with all at their caps."""
        return float(self.price @ self._spare + self._upper @ self._room + self._lower @ self.z)

    def step(self) -> bool:
        """Aim at the optimum, and from what comes of it nearer to the boundary or farther from it; False if stuck."""
        solve = self._solver()
        if solve is None:
            return False
        mean = self.gap / (len(self.price) + len(self.z) + int(self._low.sum()))
        ahead = self._reach(self._move(solve, 0.0))
        move = self._move(solve, mean * max(0.02, (1 - ahead) ** 3))
        # One length for all: rates and prices meet in the slopes, which are not linear.
        length = self._reach(move)
        if not length > _STUCK:
            return False
        self.z = self.z + length * move.z
        self.price = self.price + length * move.price
        self._upper = self._upper + length * move.upper
        self._lower = self._lower + length * move.lower
        self._measure()
        return bool(np.isfinite(self.z).all())

    def _solver(self) -> Callable[[Floats, Floats], tuple[Floats, Floats]] | None:
        """Solves for changes of z and of prices, with a matrix of one row and column for every row of the problem.

        The change of prices is what the matrix gives, not what the change of z would ask for: that is divided by slacks
        which are differences of nearly equal numbers, and where costs are linear the prices alone hold the optimum.
        """
        asked = self._matrix.T @ self.price + self._upper
        diagonal = self._costs.curvature(self.z, asked) + self._upper / self._room + self._lower / self.z
        diagonal = np.maximum(diagonal, _FLATTEST)
        scaled = self._matrix / diagonal
        inner = scaled @ self._matrix.T
        inner[np.diag_indices_from(inner)] += self._spare / np.maximum(self.price, _SMALLEST)
        try:
            factor = cho_factor(inner)
        except (np.linalg.LinAlgError, ValueError):
            return None

        def solve(slope: Floats, slack: Floats) -> tuple[Floats, Floats]:
            price: Floats = cho_solve(factor, scaled @ slope - slack)
            return (slope - self._matrix.T @ price) / diagonal, price

        return solve

    def _move(self, solve: Callable[[Floats, Floats], tuple[Floats, Floats]], aim: float) -> "_Move":
        """Newton's step towards slacks times prices that are all ``aim``."""
        slope = self._costs.slope(self.z)
        rest = -(slope + self._matrix.T @ self.price + self._upper - self._lower)
        upper_pull = aim / self._room - self._upper
        lower_pull = self._low * aim / self.z - self._lower
        dz, price = solve(rest - upper_pull + lower_pull, self._spare - aim / np.maximum(self.price, _SMALLEST))
        return _Move(dz, price, upper_pull + self._upper / self._room * dz, lower_pull - self._lower / self.z * dz)

    def _reach(self, move: "_Move") -> float:
        """How far the step may be taken."""
        pairs = (
            (self.z, move.z), (self._room, -move.z), (self._spare, -(self._matrix @ move.z)),
            (self.price, move.price), (self._upper, move.upper), (self._lower, move.lower),
        )  # fmt: skip
        return min(1.0, _BACK_OFF * min(_until(value, change) for value, change in pairs))


def _rooted(matrix: Floats, alpha: Floats) -> Floats:
    """(n,) the least of the rates that would be best were one row all there is."""
    roots = np.sqrt(matrix * alpha)
    total = roots.sum(axis=1, keepdims=True)
    each = np.divide(alpha, roots * total, out=np.full(matrix.shape, np.inf), where=roots > 0)
    found: Floats = np.minimum(1.0, each.min(axis=0, initial=np.inf))
    return found


class _Move(NamedTuple):
    """Changes of a point."""

    z: Floats
    price: Floats
    upper: Floats
    lower: Floats


def _until(value: Floats, change: Floats) -> float:
    """Largest step with which no value becomes negative."""
    falling = change < 0
    return float((-value[falling] / change[falling]).min(initial=np.inf))
