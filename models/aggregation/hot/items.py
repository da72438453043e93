"""Parameters that may be worth a place on a switch, in a row, and placements of them."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from ddlopt.models.aggregation.hot.instance import HotInstance, HotSet, Reals, Whole
from ddlopt.models.aggregation.hot.values import Group

_GAINS = 1e-6
"""Of the highest price: a gain a register that is more than rounding."""


class Items(NamedTuple):
    """Parameters that may be worth a place, in a row: numbers, registers (N,), and values (N, S)."""

    job: Whole
    parameter: Whole
    group: Whole
    width: Whole
    values: Reals

    def answer(self, instance: HotInstance, placed: Whole) -> HotSet:
        """The hot set that has item i on switch ``placed[i]``, or nowhere where that is -1."""
        sets = []
        for s in range(len(instance.switches)):
            own = placed == s
            sets.append(tuple(np.sort(self.parameter[own & (self.job == j)]) for j in range(len(instance.jobs))))
        return HotSet(instance=instance.name, placed=tuple(sets))

    def profits(self, prices: Reals) -> Reals:
        """Value less price of every item on every switch, (N, S); minus infinity where it saves nothing."""
        return np.where(self.values > 0, self.values - np.outer(self.width, prices), -np.inf)

    def orders(self, prices: Reals) -> list[Whole]:
        """Two orders in which items may choose a switch at these prices.

        First: those that gain most a register come first. Second: of those that gain anything, those that lose most on
        the next best switch come first, so that those that are at home on several take what the others leave.
        """
        profits = np.sort(np.concatenate([self.profits(prices), np.full((len(self.width), 1), -np.inf)], axis=1))
        gain, next_best = profits[:, -1] / self.width, profits[:, -2] / self.width
        regret = np.where(gain > _GAINS * prices.max(), gain - next_best, -1.0)
        return [np.argsort(-gain, kind="stable"), np.lexsort((-gain, -regret))]

    def placed_by(self, instance: HotInstance, prices: Reals, order: Whole) -> Whole:
        """Switch of each item, in this order, where it gains most of those with room; what is left may be filled."""
        # Here, as compiling takes a moment that the check of an answer should not.
        from ddlopt.models.aggregation.hot.kernels import place

        placed: Whole = place(order, self.width, self.values, prices, registers_of(instance))
        return placed

    def worth(self, placed: Whole) -> float:
        """What a placement saves in a second."""
        on = placed >= 0
        return float(self.values[on, placed[on]].sum())


def items_of(instance: HotInstance, groups: Sequence[Group]) -> Items:
    """All parameters of the groups."""
    switches, count = len(instance.switches), sum(len(group.parameters) for group in groups)
    values = np.zeros((count, switches))
    job, parameter, number, width = (np.empty(count, np.int64) for _ in range(4))
    start = 0
    for place, group in enumerate(groups):
        own = slice(start, start + len(group.parameters))
        job[own], parameter[own], number[own], width[own] = group.job, group.parameters, place, group.width
        for s, level in enumerate(group.level_of):
            if level >= 0:
                values[own, s] = group.values[level]
        start = own.stop
    return Items(job, parameter, number, width, values)


def registers_of(instance: HotInstance) -> Whole:
    """Of each switch, (S,)."""
    return np.array([switch.registers for switch in instance.switches], dtype=np.int64)
