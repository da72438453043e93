r"""Lower bounds on the total time of jobs that share switches, from prices of memory and links.

With prices :math:`\mu_k \ge 0` of the rows :math:`\sum_j a_{kj} \lambda_j \le b_k`, the total is at least

.. math::
    \sum_j W_j c_j - \sum_k \mu_k b_k
    + \sum_j \min_{0 < \lambda \le u_j} \Bigl[\frac{W_j g_j}{\lambda} + q_j \lambda\Bigr],
    \qquad q_j = \sum_k \mu_k a_{kj},

whatever the prices are (Lagrangian duality). The minimum is at
:math:`\lambda = \min(u_j, \sqrt{W_j g_j / q_j})`; with buckets at such a root of one of them, or where another becomes
the one that decides. Where job j may fall back it is not above
:math:`W_j g_j / f_j`. Where slots are whole, the job pays for the slots it takes: with r bytes per second for each,
the function of the number of slots is convex, so its minimum is at one of the whole numbers beside that of
:math:`\lambda / r`. Of switches with different payloads only those count whole that give the most for a slot.
"""

import math

import numpy as np

from ddlopt.models.aggregation.slots.arrays import Floats, SlotArrays
from ddlopt.models.tolerances import ROUNDING


def price_bound(arrays: SlotArrays, prices: Floats, whole: bool = True) -> float:
    """The bound of (k,) prices, in weighted seconds; prices below 0 count as 0.

    Parameters
    ----------
    whole : bool
        Whether whole slots, where the instance has them, count as such.
    """
    prices = np.maximum(0.0, np.nan_to_num(prices, posinf=0.0))
    counted = whole and arrays.instance.whole
    least = np.minimum(_least_whole(arrays, prices) if counted else _least(arrays, prices), arrays.lost_back)
    paid = prices * arrays.limits
    terms = [arrays.compute_total_s, *least.tolist(), *(-paid).tolist()]
    return math.fsum(terms) - ROUNDING * math.fsum(map(abs, terms))


def rates_at(arrays: SlotArrays, prices: Floats) -> Floats:
    """(n,) rates that are best for each job at (k,) prices, were slots not whole and nobody fell back."""
    asked: Floats = prices @ arrays.rows
    return arrays.best_rates(asked)


def _least(arrays: SlotArrays, prices: Floats) -> Floats:
    rates = rates_at(arrays, prices)
    return arrays.lost(rates) + (prices @ arrays.rows) * rates


def _least_whole(arrays: SlotArrays, prices: Floats) -> Floats:
    """(n,) least cost with prices for whole slots where the job's slots give the most."""
    most = arrays.per_slot.max(axis=0)
    counted = (arrays.per_slot == most) & (most > 0)
    for_slot = prices[: len(arrays.slots)] @ counted
    other = prices @ arrays.rows - prices[: len(arrays.slots)] @ (arrays.memory * counted)
    unit = np.where(most > 0, most, np.inf)
    wanted = rates_at(arrays, prices) / unit
    found = np.full(arrays.count, np.inf)
    free = arrays.best_rates(np.maximum(other, 0.0))
    for slots in (np.floor(wanted), np.floor(wanted) + 1):
        taken = np.where(most > 0, np.maximum(1.0, slots), 0.0)
        rates = np.where(most > 0, np.minimum(free, taken * most), free)
        found = np.minimum(found, arrays.lost(rates) + np.maximum(other, 0.0) * rates + for_slot * taken)
    return found
