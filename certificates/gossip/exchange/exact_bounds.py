r"""The bound of exchange times in whole numbers: every path of segments at a price for sends, as anybody can recompute.

Points are the fractions that they are, in a common unit, so that squared distances are whole numbers; of a plain norm
the whole part of its square root in units of :math:`2^{-30}` of that unit is taken, which is no more than it.

With a price :math:`\lambda \ge 0` for each send, :math:`F(e) = \min_s F(s) + \lambda [s > 0] + c(s, e)` over all
segments from s to e is the least cost of steps 0…e−1. That is the optimum where sends have a price, and with at most
m sends :math:`F_\lambda(T) - \lambda m` is a bound for any price; floating point only says which price is good. Where
there are few segments the optimum is found for each number of sends instead.
"""

from fractions import Fraction
from itertools import accumulate
from math import floor, isqrt
from typing import Any

import numpy as np
import numpy.typing as npt

from ddlopt.models.errors import NotApplicableError
from ddlopt.models.gossip.exchange.instance import ExchangeInstance, Floats

_MOST_STEPS = 3_000
"""Of a trajectory: there are half as many segments as the square of it, a few seconds."""
_MOST_COUNTED = 5_000_000
"""Segments times sends, up to which there is a row for each number of sends: a second."""
_PRICES = 60
"""Halvings of the range of prices: as many as a double has digits."""
_NORM_BITS = 30
"""Of a plain norm beyond the unit of points."""
_MOST_BITS = 4_096
"""Of a figure: doubles are far from each other only where somebody has written them so."""


def exact_exchange_bound(instance: ExchangeInstance) -> Fraction:
    """Least staleness, and what sends cost, without any rounding.

    Raises
    ------
    NotApplicableError
        If the trajectory is too long, or its figures are too far apart.
    """
    if instance.size > _MOST_STEPS:
        raise NotApplicableError(f"'{instance.name}' has {instance.size} steps; exactly bounded are {_MOST_STEPS}")
    figures = [[Fraction(value) for value in row] for row in instance.points.tolist()]
    unit = max(value.denominator for row in figures for value in row)
    if unit.bit_length() > _MOST_BITS:
        raise NotApplicableError(f"the points of '{instance.name}' are too far apart to be counted in one unit")
    points = np.array([[int(value * unit) for value in row] for row in figures], dtype=object)
    scale = unit << _NORM_BITS if instance.plain else unit * unit
    if instance.send_cost is not None:
        cost = Fraction(instance.send_cost)
        return Fraction(_least(points, instance.plain, floor(cost * scale)), scale)
    sends = instance.most_sends
    if instance.size**2 * (sends + 1) // 2 <= _MOST_COUNTED:
        return Fraction(_least_with(points, instance.plain, sends), scale)
    price = floor(Fraction(_good_price(instance)) * scale)
    return max(Fraction(0), Fraction(_least(points, instance.plain, price) - price * sends, scale))


def _costs_from(points: npt.NDArray[Any], s: int, plain: bool) -> list[int]:
    """Staleness of [s, e) for every later e."""
    squares = ((points[s:] - points[s]) ** 2).sum(axis=1).tolist()
    return list(accumulate(isqrt(square << 2 * _NORM_BITS) if plain else square for square in squares))


def _least_with(points: npt.NDArray[Any], plain: bool, sends: int) -> int:
    """The least staleness by the largest number of sends; row k is for k segments."""
    steps = len(points)
    most = sum(_costs_from(points, 0, plain)) + 1  # more than any path that is worth looking at
    best = np.full((sends + 2, steps + 1), most, dtype=object)
    best[0, 0] = 0
    for s in range(steps):
        costs = np.array(_costs_from(points, s, plain), dtype=object)
        for k in range(min(s, sends) + 1):
            best[k + 1, s + 1 :] = np.minimum(best[k + 1, s + 1 :], best[k, s] + costs)
    return int(min(best[:, steps]))


def _least(points: npt.NDArray[Any], plain: bool, price: int) -> int:
    """F(T) in whole numbers."""
    steps = len(points)
    best: list[Any] = [0] + [None] * steps
    for s in range(steps):
        before = best[s] + (price if s else 0)
        for e, cost in enumerate(_costs_from(points, s, plain), s + 1):
            total = before + cost
            if best[e] is None or total < best[e]:
                best[e] = total
    return int(best[steps])


def _good_price(instance: ExchangeInstance) -> float:
    """The price at which floating point finds the best bound: it is concave, and its slope is sends less m."""
    costs = _segment_costs(instance.points, instance.plain)
    low, high = 0.0, float(costs[0, -1])
    for _ in range(_PRICES):
        price = (low + high) / 2
        sends = _sends_at(costs, price)
        if sends > instance.most_sends:
            low = price
        else:
            high = price
            if sends == instance.most_sends:
                break
    return high


def _segment_costs(points: Floats, plain: bool) -> Floats:
    """(T, T) staleness of [s, e], infinite where e is before s."""
    centred = points - points.mean(axis=0)
    norms = (centred**2).sum(axis=1)
    squares = np.maximum(norms[:, np.newaxis] + norms - 2 * centred @ centred.T, 0.0)
    apart = np.triu(np.sqrt(squares) if plain else squares)
    costs: Floats = np.cumsum(apart, axis=1)
    costs[np.tri(len(points), k=-1, dtype=bool)] = np.inf
    return costs


def _sends_at(costs: Floats, price: float) -> int:
    """How many sends a best path has."""
    steps = len(costs)
    best, before = np.full(steps + 1, np.inf), np.zeros(steps + 1, dtype=np.int64)
    best[0] = -price
    for s in range(steps):
        through = best[s] + price + costs[s, s:]
        better = through < best[s + 1 :]
        best[s + 1 :][better] = through[better]
        before[s + 1 :][better] = s
    place, count = int(before[steps]), 0
    while place:
        place, count = int(before[place]), count + 1
    return count
