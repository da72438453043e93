r"""Numba kernel of the timeline's dual bound: an interior-point method made for this linear program.

In the notation of :mod:`ddlopt.models.compression.timeline_dual` it maximises, over :math:`0 \le B_1 \le \dots \le
B_n`, p and the gradients' values v,

.. math:: \sum_k v_k + \sum_{k<n} (R_k - R_{k+1}) B_k + b\,p \quad\text{s.t.}\quad
   v_k \le f_{ko} - B_{k-1} e_{ko} + B_k c_{ko} + p\,q_{ko} .

Without the values, which are eliminated first, the equations of a Newton step are tridiagonal but for the row of p: a
step takes time linear in the number of options.

References
----------
S. Mehrotra, "On the implementation of a primal-dual interior point method", SIAM J. Optim. 2(4), 1992.
"""

# mypy: disable-error-code="untyped-decorator, no-any-return"

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from numba import njit

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

_STEP = 0.995
"""Part of the way to the boundary that a step may go."""
_MOST_STEPS = 80


class Program(NamedTuple):
    """The linear program.

    ``firsts`` (n + 1,) into the options' ``encode``, ``wire``, ``fixed`` (f) and ``priced`` (q); ``wire`` of the last
    gradient is 0: what belongs there is in f or q. ``ready`` (n,). ``gain``: b. ``free_last``: B_n is p; otherwise it
    is 1, and there is a p only if ``has_price``.
    """

    firsts: Ints
    encode: Floats
    wire: Floats
    fixed: Floats
    priced: Floats
    ready: Floats
    gain: float
    free_last: bool
    has_price: bool


class Point(NamedTuple):
    """An iterate, or a step from one: what the dual chooses, and the primal's multipliers.

    ``values`` (n,); ``prices`` (n + 1,), B_0 to B_n; ``price``: p. ``weights`` of the options; ``waits`` (n,) of
    B_k - B_(k-1) >= 0; ``spare`` of p >= 0.
    """

    values: Floats
    prices: Floats
    price: float
    weights: Floats
    waits: Floats
    spare: float


@njit(cache=True, error_model="numpy")
def _priced(program: Program, prices: Floats, price: float) -> Floats:
    """What each option costs at these prices, less what it costs at none."""
    cost = price * program.priced
    for k in range(len(program.ready)):
        for j in range(program.firsts[k], program.firsts[k + 1]):
            cost[j] += prices[k + 1] * program.wire[j] - prices[k] * program.encode[j]
    return cost


@njit(cache=True, error_model="numpy")
def _least(firsts: Ints, cost: Floats) -> Floats:
    least = np.empty(len(firsts) - 1)
    for k in range(len(least)):
        least[k] = cost[firsts[k] : firsts[k + 1]].min()
    return least


@njit(cache=True, error_model="numpy")
def _slacks(program: Program, at: Point) -> Floats:
    """The options' costs less their gradients' values."""
    slack = program.fixed + _priced(program, at.prices, at.price)
    for k in range(len(program.ready)):
        slack[program.firsts[k] : program.firsts[k + 1]] -= at.values[k]
    return slack


@njit(cache=True, error_model="numpy")
def _step(program: Program, at: Point, slack: Floats, gap: Floats, aim: Point) -> Point:
    """The Newton step towards the products of slacks and multipliers that ``aim`` has in the multipliers' places."""
    n = len(program.ready)
    diagonal, side, arrow, right = np.zeros(n + 1), np.zeros(n + 1), np.zeros(n + 1), np.zeros(n + 1)
    corner, corner_right = 0.0, program.gain
    sums, rests, means = np.zeros(n), np.ones(n), np.zeros((n, 3))
    for k in range(n):
        first, last = program.firsts[k], program.firsts[k + 1]
        gained_e, gained_c, gained_q = 0.0, 0.0, 0.0
        for j in range(first, last):
            d, t = at.weights[j] / slack[j], aim.weights[j] / slack[j]
            sums[k] += d
            means[k, 0] += d * program.encode[j]
            means[k, 1] += d * program.wire[j]
            means[k, 2] += d * program.priced[j]
            rests[k] -= t
            gained_e += t * program.encode[j]
            gained_c += t * program.wire[j]
            gained_q += t * program.priced[j]
        means[k] /= sums[k]
        e, c, q = means[k]
        for j in range(first, last):
            d = at.weights[j] / slack[j]
            x, y, z = program.encode[j] - e, program.wire[j] - c, program.priced[j] - q
            diagonal[k] += d * x * x
            diagonal[k + 1] += d * y * y
            side[k + 1] -= d * x * y
            arrow[k] -= d * x * z
            arrow[k + 1] += d * y * z
            corner += d * z * z
        d, t = at.waits[k] / gap[k], aim.waits[k] / gap[k]
        diagonal[k] += d
        diagonal[k + 1] += d
        side[k + 1] -= d
        right[k] -= gained_e + e * rests[k] + t
        right[k + 1] += gained_c + c * rests[k] + t
        corner_right += gained_q + q * rests[k]
        if k < n - 1:
            right[k + 1] += program.ready[k] - program.ready[k + 1]
    if program.free_last:
        corner += diagonal[n]
        corner_right += right[n]
        arrow[n - 1] += side[n]
    elif program.has_price:
        corner += at.spare / at.price
        corner_right += aim.spare / at.price
    prices, price = _solve(diagonal, side, arrow, right, corner, corner_right, program.has_price)
    if program.free_last:
        prices[n] = price
    values = rests / sums - means[:, 0] * prices[:-1] + means[:, 1] * prices[1:] + means[:, 2] * price
    return Point(values, prices, price, np.zeros(0), np.zeros(0), 0.0)


@njit(cache=True, error_model="numpy")
def _solve(
    diagonal: Floats, side: Floats, arrow: Floats, right: Floats, corner: float, corner_right: float, has_price: bool
) -> tuple[Floats, float]:
    """Unknowns 1 .. n - 1 of a chain, and one that all of them meet."""
    n = len(diagonal) - 1
    for k in range(1, n):
        if k > 1:
            ratio = side[k] / diagonal[k - 1]
            diagonal[k] -= ratio * side[k]
            right[k] -= ratio * right[k - 1]
            arrow[k] -= ratio * arrow[k - 1]
        corner -= arrow[k] * arrow[k] / diagonal[k]
        corner_right -= arrow[k] * right[k] / diagonal[k]
    price = corner_right / corner if has_price else 0.0
    prices = np.zeros(n + 1)
    for k in range(n - 1, 0, -1):
        later = side[k + 1] * prices[k + 1] if k < n - 1 else 0.0
        prices[k] = (right[k] - arrow[k] * price - later) / diagonal[k]
    return prices, price


@njit(cache=True, error_model="numpy")
def _follow(program: Program, at: Point, slack: Floats, gap: Floats, aim: Point) -> tuple[Point, Floats, Floats]:
    """The whole step, and how slacks and gaps change with it."""
    dual = _step(program, at, slack, gap, aim)
    slack_step = _priced(program, dual.prices, dual.price)
    for k in range(len(program.ready)):
        slack_step[program.firsts[k] : program.firsts[k + 1]] -= dual.values[k]
    gap_step = dual.prices[1:] - dual.prices[:-1]
    weights = (aim.weights - at.weights * slack_step) / slack - at.weights
    waits = (aim.waits - at.waits * gap_step) / gap - at.waits
    has_spare = program.has_price and not program.free_last
    spare = (aim.spare - at.spare * dual.price) / at.price - at.spare if has_spare else 0.0
    return Point(dual.values, dual.prices, dual.price, weights, waits, spare), slack_step, gap_step


@njit(cache=True, error_model="numpy")
def _room(values: Floats, steps: Floats) -> float:
    """How far a step may go before a value is 0, at most 1."""
    room = 1.0
    for value, step in zip(values, steps):  # noqa: B905 - Numba's zip
        if step < 0:
            room = min(room, -value / step)
    return room


@njit(cache=True, error_model="numpy")
def _rooms(
    program: Program, at: Point, step: Point, slack: Floats, gap: Floats, moves: tuple[Floats, Floats]
) -> tuple[float, float]:
    dual = min(_room(slack, moves[0]), _room(gap, moves[1]))
    primal = min(_room(at.weights, step.weights), _room(at.waits, step.waits))
    if program.has_price and not program.free_last:
        if step.price < 0:
            dual = min(dual, -at.price / step.price)
        if step.spare < 0:
            primal = min(primal, -at.spare / step.spare)
    return dual, primal


@njit(cache=True, error_model="numpy")
def value(program: Program, prices: Floats, price: float) -> float:
    """The dual function, less what is constant."""
    total = _least(program.firsts, program.fixed + _priced(program, prices, price)).sum() + program.gain * price
    for k in range(1, len(program.ready)):
        total += (program.ready[k - 1] - program.ready[k]) * prices[k]
    return total


@njit(cache=True, error_model="numpy")
def _start(program: Program) -> Point:
    """A point well inside; only the multipliers of p may not fit their equation."""
    n = len(program.ready)
    prices = np.arange(n + 1) / n
    price = 1.0 if program.free_last else 1.0 / n
    weights, shares = np.empty(len(program.encode)), np.empty((n, 3))
    for k in range(n):
        first, last = program.firsts[k], program.firsts[k + 1]
        weights[first:last] = 1.0 / (last - first)
        shares[k, 0] = program.encode[first:last].mean()
        shares[k, 1] = program.wire[first:last].mean()
        shares[k, 2] = program.priced[first:last].mean()
    paths = program.ready + np.cumsum(shares[:, 0]) + np.cumsum(shares[::-1, 1])[::-1]
    waits = paths.max() + 0.1 - paths
    spare = max(0.1, -program.gain - shares[:, 2].sum())
    values = _least(program.firsts, program.fixed + _priced(program, prices, price)) - 1.0 / n
    return Point(values, prices, price, weights, waits, spare)


@njit(cache=True, error_model="numpy")
def maximise(program: Program, tolerance: float) -> tuple[Floats, float, Floats]:
    """The best (prices, price) met and the last weights; ends where products of slacks and multipliers are small.

    Parameters
    ----------
    tolerance : float
        Sum of the products; the best value is closer to the optimum once the multipliers are feasible.
    """
    at = _start(program)
    n, options = len(program.ready), len(program.encode)
    has_spare = program.has_price and not program.free_last
    count = options + n + (1 if has_spare else 0)
    best, best_prices, best_price = -np.inf, at.prices, at.price
    for _ in range(_MOST_STEPS):
        slack, gap = _slacks(program, at), at.prices[1:] - at.prices[:-1]
        reached = value(program, at.prices, at.price)
        if not np.isfinite(reached):
            break
        if reached > best:
            best, best_prices, best_price = reached, at.prices, at.price
        spare = at.spare * at.price if has_spare else 0.0
        products = (at.weights * slack).sum() + (at.waits * gap).sum() + spare
        if products <= tolerance or slack.min() <= 0 or gap.min() <= 0:
            break
        aim = Point(at.values, at.prices, 0.0, np.zeros(options), np.zeros(n), 0.0)
        step, slack_step, gap_step = _follow(program, at, slack, gap, aim)
        dual, primal = _rooms(program, at, step, slack, gap, (slack_step, gap_step))
        later = ((at.weights + primal * step.weights) * (slack + dual * slack_step)).sum()
        later += ((at.waits + primal * step.waits) * (gap + dual * gap_step)).sum()
        if has_spare:
            later += (at.spare + primal * step.spare) * (at.price + dual * step.price)
        centre = (later / products) ** 3 * products / count
        aim = Point(
            at.values,
            at.prices,
            0.0,
            centre - step.weights * slack_step,
            centre - step.waits * gap_step,
            centre - step.spare * step.price,
        )
        step, slack_step, gap_step = _follow(program, at, slack, gap, aim)
        dual, primal = _rooms(program, at, step, slack, gap, (slack_step, gap_step))
        dual, primal = min(1.0, _STEP * dual), min(1.0, _STEP * primal)
        at = Point(
            at.values + dual * step.values,
            at.prices + dual * step.prices,
            at.price + dual * step.price,
            at.weights + primal * step.weights,
            at.waits + primal * step.waits,
            at.spare + primal * step.spare,
        )
    return best_prices, best_price, at.weights
