r"""Prices of registers: the Lagrangian bound, and the answer that follows prices.

With a price :math:`\lambda_s \ge 0` of a register of switch s, for every answer x,

.. math:: \sum v_{is} x_{is} \le L(\lambda) =
    \sum_s \lambda_s M_s + \sum_i \max\bigl\{0, \max_s (v_{is} - s_i \lambda_s)\bigr\}.

The least L is the bound of the linear relaxation; for one switch it is Dantzig's bound of the knapsack. In a group of
parameters that goes from hot to cold (:class:`~ddlopt.models.aggregation.hot.values.Group`), those that take the best
offer of a switch are consecutive, so L needs a few binary searches a group, however many parameters there are. Switches
where equally many workers of every job pass are one, with all their registers.
"""

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from ddlopt.models.aggregation.hot.instance import HotInstance, Reals
from ddlopt.models.aggregation.hot.values import Group, groups_of
from ddlopt.models.remembered import remembered

_CLOSE = 1e-8
"""Relative distance to the least bound at which the search for prices ends."""
_STEPS = 80
"""Of the search, at most, times the square of the number of prices."""


class Prices(NamedTuple):
    """Prices of a register of every switch, (S,), and the bound that they prove."""

    prices: Reals
    bound: float


class _Offers(NamedTuple):
    """L at some prices, and its subgradient."""

    value: float
    slope: Reals


@dataclass(frozen=True, eq=False)
class Market:
    """Groups of parameters and classes of like switches.

    Parameters
    ----------
    groups : sequence of Group
    registers : (C,) array
        Of all switches of a class.
    first : sequence of int
        A switch of each class.
    """

    groups: Sequence[Group]
    registers: Reals
    first: Sequence[int]

    def offers(self, prices: Reals) -> _Offers:
        """L, and registers less those that the parameters ask for at these prices."""
        value, slope = float(prices @ self.registers), self.registers.copy()
        for group in self.groups:
            for chosen, start, end in self._segments(group, prices):
                level = group.level_of[self.first[chosen]]
                taken = group.width * (end - start)
                value += float(group.sums[level, end] - group.sums[level, start]) - taken * prices[chosen]
                slope[chosen] -= taken
        return _Offers(value, slope)

    def _segments(self, group: Group, prices: Reals) -> list[tuple[int, int, int]]:
        """Class, start and end of the runs of parameters that want to be there, the hottest first."""
        cheapest: dict[int, int] = {}
        for place, switch in enumerate(self.first):
            level = group.level_of[switch]
            if level >= 0 and (level not in cheapest or prices[place] < prices[cheapest[level]]):
                cheapest[level] = place
        # Classes as parameters become hotter; each with the number of those that prefer it to the class before.
        line: list[tuple[int, int, int]] = []
        for level in sorted(cheapest):
            place = cheapest[level]
            while True:
                before = line[-1] if line else None
                rise = float(prices[place] - (prices[before[1]] if before else 0.0)) * group.width
                wanting = _wanting(group, level, before[0] if before else None, rise)
                if before is None or wanting < before[2]:
                    break
                line.pop()
            if wanting:
                line.append((level, place, wanting))
        ends = [end for _, _, end in line]
        return [(line[k][1], (*ends, 0)[k + 1], ends[k]) for k in range(len(line))]


def _wanting(group: Group, level: int, other: int | None, rise: float) -> int:
    """How many parameters, the hottest, gain more than ``rise`` at a level over another one, or over nothing."""
    high = group.values[level]
    if other is None:
        return bisect_right(range(len(high)), -rise, key=lambda k: -high[k])
    low = group.values[other]
    return bisect_right(range(len(high)), -rise, key=lambda k: -(high[k] - low[k]))


@remembered
def best_prices(instance: HotInstance) -> Prices:
    """Prices at which L is about least; found once for an instance."""
    groups = groups_of(instance)
    classes: dict[tuple[int, ...], list[int]] = {}
    for switch, passing in enumerate(instance.passing):
        classes.setdefault(passing, []).append(switch)
    members = list(classes.values())
    registers = np.array([float(sum(instance.switches[s].registers for s in own)) for own in members])
    market = Market(groups, registers, [own[0] for own in members])
    highest = max((float(group.values[:, 0].max()) / group.width for group in groups), default=0.0)
    if highest == 0:
        return Prices(np.zeros(len(instance.switches)), 0.0)
    prices, bound = _bisected(market, highest) if len(members) == 1 else _ellipsoid(market, highest)
    of_switch = np.zeros(len(instance.switches))
    for own, price in zip(members, prices, strict=True):
        of_switch[own] = price
    return Prices(of_switch, float(bound))


def _bisected(market: Market, highest: float) -> tuple[Reals, float]:
    low, high = 0.0, highest
    tried = []
    # Until neighbouring floats, but for a few.
    while high - low > 1e-15 * high:
        price = (low + high) / 2 if low else high / 16
        offers = market.offers(np.array([price]))
        tried.append((offers.value, price))
        if offers.slope[0] >= 0:
            high = price
        else:
            low = price
        # Sixty bits below the highest price: the optimum has no price.
        if price < 1e-18 * highest or offers.slope[0] == 0:
            break
    bound, price = min([*tried, (market.offers(np.zeros(1)).value, 0.0)])
    return np.array([price]), bound


def _ellipsoid(market: Market, highest: float) -> tuple[Reals, float]:
    """The ellipsoid method with deep cuts; prices are below the highest value of a register."""
    n = len(market.registers)
    centre = np.full(n, highest / 2)
    shape = np.eye(n) * n * (highest / 2) ** 2
    best = np.full(n, highest), market.offers(np.full(n, highest)).value
    zero = market.offers(np.zeros(n)).value
    if zero < best[1]:
        best = np.zeros(n), zero
    for _ in range(_STEPS * n * n):
        lowest = int(centre.argmin())
        if centre[lowest] < 0:
            slope, excess = -np.eye(n)[lowest], -centre[lowest]
        else:
            value, slope = market.offers(centre)
            if value < best[1]:
                best = centre.copy(), value
            excess = value - best[1]
        reach = float(np.sqrt(max(0.0, slope @ shape @ slope)))
        if reach <= excess or (centre[lowest] >= 0 and reach <= _CLOSE * best[1]):
            break
        depth, step = excess / reach, shape @ slope / reach
        centre = centre - (1 + n * depth) / (n + 1) * step
        shape = shape - 2 * (1 + n * depth) / ((n + 1) * (1 + depth)) * np.outer(step, step)
        shape *= n * n / (n * n - 1) * (1 - depth * depth)
        shape = (shape + shape.T) / 2
    return best
