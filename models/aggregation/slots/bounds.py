"""A bound on what jobs that share switches can reach, by one switch or link at a time."""

import numpy as np

from ddlopt.models.aggregation.slots.arrays import SlotArrays
from ddlopt.models.aggregation.slots.instance import SlotsInstance
from ddlopt.models.aggregation.slots.prices import price_bound
from ddlopt.models.aggregation.slots.slowest import least_slowest_s
from ddlopt.models.tolerances import ROUNDING

_MOST = 20
"""Rows that are tried."""
_PARTS = tuple(0.5**k for k in range(8))
"""Fractions of such a price that are tried where jobs send while they compute, which makes rates worth less."""
_ROUNDING = 10 * ROUNDING
"""Relative margin for what floats make of the rows."""


def slots_bound(instance: SlotsInstance) -> float:
    r"""A lower bound on the objective: for goal ``slowest`` the optimum, for ``total`` the best price of a single row.

    If row k were the only constraint, its optimal price would be :math:`(\sum_j \sqrt{W_j g_j a_{kj}} / b_k)^2`, by
    the inequality of Cauchy and Schwarz. That is too high for jobs that send while they compute, so that fractions of
    it are tried for them.
    """
    arrays = SlotArrays(instance)
    if instance.goal == "slowest":
        return least_slowest_s(arrays)[0] * (1 - _ROUNDING)
    sums = np.sqrt(arrays.rows * arrays.cost).sum(axis=1)
    prices = (sums / arrays.limits) ** 2
    found = price_bound(arrays, np.zeros(len(prices)))
    for row in np.argsort(-prices * arrays.limits)[:_MOST]:
        for part in _PARTS if arrays.overlaps else (1.0,):
            single = np.zeros(len(prices))
            single[row] = part * prices[row]
            found = max(found, price_bound(arrays, single))
    return found
