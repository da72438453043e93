r"""Numba kernel of the timeline's dual bound: an interior-point method made for this linear program.

In the notation of :mod:`ddlopt.frontier.compression.timeline.dual.bound` it maximises, over :math:`0 \le B_1 \le \dots
\le B_n`, p and the gradients' values v,

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

from ddlopt.models.kernels import inner, kernel

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

_STEP = 0.995
"""Part of the way to the boundary that a step may go."""
# Interior point methods take some 20 to 40; whatever it ends at is a bound.
_MOST_STEPS = 80
_PROGRAM = "record(Program, i8[::1], f8[::1], f8[::1], f8[::1], f8[::1], f8[::1], f8, b1, b1)"


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

    ``values`` (n,); ``prices`` (n + 1,), B_0 to B_n; ``weights`` of the options; ``waits`` (n,) of B_k - B_(k-1) >= 0.
    ``single``: p, and the multiplier of p >= 0.
    """

    values: Floats
    prices: Floats
    weights: Floats
    waits: Floats
    single: Floats


class Slack(NamedTuple):
    """Slacks of the options, and gaps (n,) between prices that follow each other."""

    options: Floats
    gaps: Floats


@inner(error_model="numpy")
def _new(n: int, options: int) -> Point:
    return Point(np.zeros(n), np.zeros(n + 1), np.zeros(options), np.zeros(n), np.zeros(2))


@inner(error_model="numpy")
def _priced(program: Program, prices: Floats, price: float, cost: Floats) -> None:
    """What each option costs at these prices, less what it costs at none."""
    for k in range(len(program.ready)):
        for j in range(program.firsts[k], program.firsts[k + 1]):
            cost[j] = price * program.priced[j]
            cost[j] += prices[k + 1] * program.wire[j] - prices[k] * program.encode[j]


@inner(error_model="numpy")
def _valued(program: Program, prices: Floats, price: float, cost: Floats, least: Floats) -> None:
    """What each option costs at these prices, and the least of each gradient."""
    _priced(program, prices, price, cost)
    for k in range(len(least)):
        for j in range(program.firsts[k], program.firsts[k + 1]):
            cost[j] = program.fixed[j] + cost[j]
            if j == program.firsts[k] or cost[j] < least[k] or np.isnan(cost[j]):
                least[k] = cost[j]


@inner(inline="always", error_model="numpy")
def _start(program: Program, at: Point, cost: Floats) -> None:
    """Write a point well inside; only the multipliers of p may not fit their equation."""
    n = len(program.ready)
    price = 1.0 if program.free_last else 1.0 / n
    paths, later, priced = np.zeros(n), np.zeros(n), 0.0
    before = 0.0
    for k in range(n):
        first, last = program.firsts[k], program.firsts[k + 1]
        encode, wire, own = 0.0, 0.0, 0.0
        for j in range(first, last):
            at.weights[j] = 1.0 / (last - first)
            encode += program.encode[j]
            wire += program.wire[j]
            own += program.priced[j]
        before += encode / (last - first)
        paths[k] = program.ready[k] + before
        later[k] = wire / (last - first)
        priced += own / (last - first)
        at.prices[k] = k / n
    at.prices[n] = 1.0
    behind, longest = 0.0, -np.inf
    for k in range(n - 1, -1, -1):
        behind += later[k]
        paths[k] += behind
        longest = max(longest, paths[k])
    for k in range(n):
        at.waits[k] = longest + 0.1 - paths[k]
    _valued(program, at.prices, price, cost, at.values)
    for k in range(n):
        at.values[k] -= 1.0 / n
    at.single[0], at.single[1] = price, max(0.1, -program.gain - priced)


@inner(error_model="numpy")
def _follow(program: Program, at: Point, slack: Slack, aim: Point, step: Point, change: Slack) -> None:
    """The Newton step towards the products of slacks and multipliers that ``aim`` has in the multipliers' places.

    Into ``step``, and how slacks and gaps change with it into ``change``.
    """
    n = len(program.ready)
    diagonal, side, arrow, right = np.zeros(n + 1), np.zeros(n + 1), np.zeros(n + 1), np.zeros(n + 1)
    corner, corner_right = 0.0, program.gain
    sums, rests, means = np.zeros(n), np.zeros(n), np.zeros((n, 3))
    for k in range(n):
        first, last = program.firsts[k], program.firsts[k + 1]
        gained_e, gained_c, gained_q = 0.0, 0.0, 0.0
        e, c, q, rest, total = 0.0, 0.0, 0.0, 1.0, 0.0
        for j in range(first, last):
            d, t = at.weights[j] / slack.options[j], aim.weights[j] / slack.options[j]
            total += d
            e += d * program.encode[j]
            c += d * program.wire[j]
            q += d * program.priced[j]
            rest -= t
            gained_e += t * program.encode[j]
            gained_c += t * program.wire[j]
            gained_q += t * program.priced[j]
        e, c, q = e / total, c / total, q / total
        sums[k], rests[k], means[k, 0], means[k, 1], means[k, 2] = total, rest, e, c, q
        for j in range(first, last):
            d = at.weights[j] / slack.options[j]
            x, y, z = program.encode[j] - e, program.wire[j] - c, program.priced[j] - q
            diagonal[k] += d * x * x
            diagonal[k + 1] += d * y * y
            side[k + 1] -= d * x * y
            arrow[k] -= d * x * z
            arrow[k + 1] += d * y * z
            corner += d * z * z
        d, t = at.waits[k] / slack.gaps[k], aim.waits[k] / slack.gaps[k]
        diagonal[k] += d
        diagonal[k + 1] += d
        side[k + 1] -= d
        right[k] -= gained_e + e * rest + t
        right[k + 1] += gained_c + c * rest + t
        corner_right += gained_q + q * rest
        if k < n - 1:
            right[k + 1] += program.ready[k] - program.ready[k + 1]
    if program.free_last:
        corner += diagonal[n]
        corner_right += right[n]
        arrow[n - 1] += side[n]
    elif program.has_price:
        corner += at.single[1] / at.single[0]
        corner_right += aim.single[1] / at.single[0]
    # Unknowns 1 .. n - 1 of a chain, and one that all of them meet.
    for k in range(1, n):
        if k > 1:
            ratio = side[k] / diagonal[k - 1]
            diagonal[k] -= ratio * side[k]
            right[k] -= ratio * right[k - 1]
            arrow[k] -= ratio * arrow[k - 1]
        corner -= arrow[k] * arrow[k] / diagonal[k]
        corner_right -= arrow[k] * right[k] / diagonal[k]
    price = corner_right / corner if program.has_price else 0.0
    prices = step.prices
    prices[0], prices[n] = 0.0, 0.0
    for k in range(n - 1, 0, -1):
        later = side[k + 1] * prices[k + 1] if k < n - 1 else 0.0
        prices[k] = (right[k] - arrow[k] * price - later) / diagonal[k]
    if program.free_last:
        prices[n] = price
    _priced(program, prices, price, change.options)
    for k in range(n):
        value = rests[k] / sums[k] - means[k, 0] * prices[k] + means[k, 1] * prices[k + 1] + means[k, 2] * price
        step.values[k] = value
        for j in range(program.firsts[k], program.firsts[k + 1]):
            moved = change.options[j] - value
            change.options[j] = moved
            step.weights[j] = (aim.weights[j] - at.weights[j] * moved) / slack.options[j] - at.weights[j]
        moved = prices[k + 1] - prices[k]
        change.gaps[k] = moved
        step.waits[k] = (aim.waits[k] - at.waits[k] * moved) / slack.gaps[k] - at.waits[k]
    step.single[0], step.single[1] = price, 0.0
    if program.has_price and not program.free_last:
        step.single[1] = (aim.single[1] - at.single[1] * price) / at.single[0] - at.single[1]


@inner(error_model="numpy")
def _room(room: float, values: Floats, steps: Floats) -> float:
    """How far a step may go before a value is 0, at most ``room``."""
    for i in range(len(values)):
        if steps[i] < 0:
            room = min(room, -values[i] / steps[i])
    return room


@inner(error_model="numpy")
def _rooms(has_spare: bool, at: Point, step: Point, slack: Slack, change: Slack) -> tuple[float, float]:
    dual = _room(_room(1.0, slack.options, change.options), slack.gaps, change.gaps)
    primal = _room(_room(1.0, at.weights, step.weights), at.waits, step.waits)
    if has_spare:
        if step.single[0] < 0:
            dual = min(dual, -at.single[0] / step.single[0])
        if step.single[1] < 0:
            primal = min(primal, -at.single[1] / step.single[1])
    return dual, primal


@kernel(f"({_PROGRAM}, f8)", error_model="numpy")
def maximise(program: Program, tolerance: float) -> tuple[Floats, float, Floats]:
    """The best (prices, price) met and the last weights; ends where products of slacks and multipliers are small.

    Parameters
    ----------
    tolerance : float
        Sum of the products; the best value is closer to the optimum once the multipliers are feasible.
    """
    n, options = len(program.ready), len(program.encode)
    at, step, aim = _new(n, options), _new(n, options), _new(n, options)
    slack, change = Slack(np.zeros(options), np.zeros(n)), Slack(np.zeros(options), np.zeros(n))
    least = np.zeros(n)
    _start(program, at, slack.options)
    has_spare = program.has_price and not program.free_last
    count = options + n + (1 if has_spare else 0)
    best, best_prices, best_price = -np.inf, at.prices.copy(), at.single[0]
    for _ in range(_MOST_STEPS):
        _valued(program, at.prices, at.single[0], slack.options, least)
        # The dual function, less what is constant.
        reached, of_gaps, narrowest = 0.0, 0.0, np.inf
        for k in range(n):
            reached += least[k]
            slack.gaps[k] = at.prices[k + 1] - at.prices[k]
            of_gaps += at.waits[k] * slack.gaps[k]
            narrowest = min(narrowest, slack.gaps[k])
        reached += program.gain * at.single[0]
        for k in range(1, n):
            reached += (program.ready[k - 1] - program.ready[k]) * at.prices[k]
        if not np.isfinite(reached):
            break
        if reached > best:
            best, best_price = reached, at.single[0]
            for k in range(n + 1):
                best_prices[k] = at.prices[k]
        products = 0.0
        for k in range(n):
            for j in range(program.firsts[k], program.firsts[k + 1]):
                slack.options[j] -= at.values[k]
                products += at.weights[j] * slack.options[j]
                narrowest = min(narrowest, slack.options[j])
        products += of_gaps
        if has_spare:
            products += at.single[1] * at.single[0]
        if products <= tolerance or narrowest <= 0:
            break
        dual, primal, centre = 0.0, 0.0, 0.0
        for turn in range(2):
            # First towards the boundary, then, by how far that leads, towards the middle.
            for j in range(options):
                aim.weights[j] = centre - step.weights[j] * change.options[j] if turn else 0.0
            for k in range(n):
                aim.waits[k] = centre - step.waits[k] * change.gaps[k] if turn else 0.0
            aim.single[1] = centre - step.single[1] * step.single[0] if turn else 0.0
            _follow(program, at, slack, aim, step, change)
            dual, primal = _rooms(has_spare, at, step, slack, change)
            later, of_waits = 0.0, 0.0
            for j in range(options):
                weight = at.weights[j] + primal * step.weights[j]
                later += weight * (slack.options[j] + dual * change.options[j])
            for k in range(n):
                of_waits += (at.waits[k] + primal * step.waits[k]) * (slack.gaps[k] + dual * change.gaps[k])
            later += of_waits
            if has_spare:
                later += (at.single[1] + primal * step.single[1]) * (at.single[0] + dual * step.single[0])
            centre = (later / products) ** 3 * products / count
        dual, primal = min(1.0, _STEP * dual), min(1.0, _STEP * primal)
        for k in range(n):
            at.values[k] += dual * step.values[k]
            at.prices[k] += dual * step.prices[k]
            at.waits[k] += primal * step.waits[k]
        at.prices[n] += dual * step.prices[n]
        for j in range(options):
            at.weights[j] += primal * step.weights[j]
        at.single[0] += dual * step.single[0]
        at.single[1] += primal * step.single[1]
    return best_prices, best_price, at.weights
