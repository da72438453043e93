"""Numba kernels of exchange times: dynamic programs over the last send.

Segment [s, e) means: the model is sent at s, and next at e. Prefixes are numbered by their end: ``cost[e]`` is that of
steps 0 to e - 1. Every send has a price, but for that at step 0, which is none. Nothing here knows an instance.
"""

# mypy: disable-error-code="untyped-decorator, no-any-return"

import numpy as np
import numpy.typing as npt

from ddlopt.models.kernels import helper, kernel
from ddlopt.models.tolerances import ROUNDING

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

LEVEL = 0.5
"""Part of the price of a send at which a segment of constant drift is best closed (any part gives valid margins)."""
SHORT = 0.02
"""Part of the price up to which a segment costs next to nothing."""


@helper
def apart(points: Floats, t: int, s: int, plain: bool) -> float:
    """Distance of two points of a (T, d) array, squared or plain."""
    total = 0.0
    for k in range(points.shape[1]):
        step = points[t, k] - points[s, k]
        total += step * step
    return np.sqrt(total) if plain else total


@helper
def pairs_apart(points: Floats, start: int, end: int) -> float:
    """Sum of plain distances between the points of [start, end) that are half of its even length apart."""
    half = (end - start) // 2
    total = 0.0
    for t in range(start, start + half):
        total += apart(points, t, t + half, True)
    return total


@kernel("(const(f8[:, ::1]), f8, b1)")
def margins(points: Floats, price: float, plain: bool) -> Floats:
    """(T + 1,) how much a segment that is open at t may lie above the best prefix and still be worth going on with.

    Let A(t, e) be what some sends of [t, e) cost, the first of them at t, and L(t, e) what staleness from any one
    vector is at least. A segment that costs more than ``cost[t] + max over e of (A - L)(t, e)`` at t is never better
    than the prefix with those sends, wherever it ends. L is superadditive and A subadditive, so with M for this maximum

        M(t) <= max(A(t, e), (A - L)(t, e) + M(e))   for every e,

    as A does not fall with e. The least of these is taken, over all e until A exceeds it; or that of one segment up to
    the last e for which it was, where this segment costs next to nothing.
    """
    steps, width = points.shape
    found = np.zeros(steps + 1)
    total = np.empty(width)
    known = steps
    for t in range(steps - 1, -1, -1):
        short = 0.0
        for e in range(t + 1, known):
            short += apart(points, e, t, plain)
            if short > SHORT * price:
                break
        if known < steps and short <= SHORT * price:
            found[t] = price + short + found[known]
            continue
        known = t
        best = np.inf
        closed, opened, last = price, 0.0, t
        least, squares = 0.0, 0.0
        for k in range(width):
            total[k] = 0.0
        power = 2
        for e in range(t + 1, steps + 1):
            # The step e - 1 joins.
            if opened >= LEVEL * price:
                closed += price + opened
                opened, last = 0.0, e - 1
            opened += apart(points, e - 1, last, plain)
            count = e - t
            if closed + opened >= best:
                break
            if plain:
                if count == power:
                    least = pairs_apart(points, t, e)
                    power *= 2
            else:
                square = 0.0
                for k in range(width):
                    step = points[e - 1, k] - points[t, k]
                    total[k] += step
                    squares += step * step
                    square += total[k] * total[k]
                least = squares - square / count
            value = closed + opened
            if e < steps:
                value = max(value, value - least + found[e])
            best = min(best, value)
        found[t] = best
    return found


@kernel("(const(f8[:, ::1]), f8, b1, f8[::1], f8, f8)")
def penalised(
    points: Floats, price: float, plain: bool, margin: Floats, slack: float, most: float
) -> tuple[Floats, Ints, Ints, float]:
    """Least cost of every prefix, the last send in it, and up to where each segment is worth considering.

    Segments are dropped where ``margins`` allow it, so that no path that costs less than the optimum and ``slack`` is
    lost. The last figure is how many segments were open at a time, on average. After ``most`` distances it gives up;
    costs are infinite from there on.
    """
    steps = len(points)
    cost, before, ends = np.full(steps + 1, np.inf), np.zeros(steps + 1, np.int64), np.full(steps, steps)
    cost[0] = 0.0
    starts, values = np.empty(steps, np.int64), np.empty(steps)
    opened, work = 0, 0
    for t in range(steps):
        starts[opened] = t
        values[opened] = cost[t] + price if t else 0.0
        opened += 1
        best, place = np.inf, 0
        for i in range(opened):
            values[i] += apart(points, t, starts[i], plain)
            if values[i] < best:
                best, place = values[i], starts[i]
        cost[t + 1], before[t + 1] = best, place
        work += opened
        if work > most:
            cost[t + 1] = np.inf
            break
        limit = best + margin[t + 1] + slack
        limit += ROUNDING * limit
        kept = 0
        for i in range(opened):
            if values[i] <= limit:
                starts[kept], values[kept] = starts[i], values[i]
                kept += 1
            else:
                ends[starts[i]] = t + 1
        opened = kept
    return cost, before, ends, work / steps


@kernel("(const(f8[:, ::1]), f8, b1, i8[::1])")
def to_go(points: Floats, price: float, plain: bool, ends: Ints) -> Floats:
    """(T + 1,) least cost of the steps from t on where the model is sent at t, its price included; 0 at T."""
    steps = len(points)
    found = np.zeros(steps + 1)
    for s in range(steps - 1, -1, -1):
        best, total = np.inf, price if s else 0.0
        for e in range(s + 1, ends[s] + 1):
            total += apart(points, e - 1, s, plain)
            best = min(best, total + found[e])
        found[s] = best
    return found


@kernel("(const(f8[:, ::1]), f8, b1, i8[::1], f8[::1], f8[::1], f8, i8)")
def near_arcs(
    points: Floats, price: float, plain: bool, ends: Ints, cost: Floats, rest: Floats, limit: float, most: int
) -> tuple[Ints, Ints, Floats]:
    """Segments that are on paths of penalised cost up to ``limit``, ``most`` at most: starts, ends, staleness."""
    steps = len(points)
    count, room = 0, 1024
    starts, stops, values = np.empty(room, np.int64), np.empty(room, np.int64), np.empty(room)
    for s in range(steps):
        base = cost[s] + price if s else 0.0
        if count >= most:
            break
        if cost[s] + rest[s] > limit:
            continue
        total = 0.0
        for e in range(s + 1, ends[s] + 1):
            total += apart(points, e - 1, s, plain)
            if base + total + rest[e] <= limit:
                if count == room:
                    room *= 2
                    longer_starts, longer_stops = np.empty(room, np.int64), np.empty(room, np.int64)
                    longer_values = np.empty(room)
                    for arc in range(count):
                        longer_starts[arc], longer_stops[arc] = starts[arc], stops[arc]
                        longer_values[arc] = values[arc]
                    starts, stops, values = longer_starts, longer_stops, longer_values
                starts[count], stops[count], values[count] = s, e, total
                count += 1
    return starts[:count], stops[:count], values[:count]


@kernel("(i8[::1], i8[::1], f8[::1], i8, i8)")
def layered(starts: Ints, stops: Ints, values: Floats, nodes: int, sends: int) -> tuple[Floats, Ints]:
    """Least staleness at every node with 0…``sends`` sends, and the node before; shapes (nodes, sends + 2).

    Arcs are sorted by their starts, which are numbers of nodes, as are their ends; node 0 is step 0. Column k is for k
    segments, which are k - 1 sends.
    """
    cost = np.full((nodes, sends + 2), np.inf)
    before = np.full((nodes, sends + 2), -1, np.int64)
    cost[0, 0] = 0.0
    for arc in range(len(starts)):
        s, e, value = starts[arc], stops[arc], values[arc]
        for k in range(sends + 1):
            total = cost[s, k] + value
            if total < cost[e, k + 1]:
                cost[e, k + 1] = total
                before[e, k + 1] = s
    return cost, before


@helper
def _segment(points: Floats, sums: Floats, rest: Floats, s: int, e: int) -> float:
    """Staleness of [s, e) from prefix sums (T + 1, d + 1) of points and of their squared norms, in two parts."""
    width = points.shape[1]
    total = (sums[e, width] - sums[s, width]) + (rest[e, width] - rest[s, width])
    norm, product = 0.0, 0.0
    for k in range(width):
        norm += points[s, k] * points[s, k]
        product += points[s, k] * ((sums[e, k] - sums[s, k]) + (rest[e, k] - rest[s, k]))
    return max(0.0, total - 2.0 * product + (e - s) * norm)


@kernel("(const(f8[:, ::1]),)")
def prefix_sums(points: Floats) -> tuple[Floats, Floats]:
    """Sums of points and their squared norms over prefixes, (T + 1, d + 1), and what rounding took from them."""
    steps, width = points.shape
    sums, rest = np.zeros((steps + 1, width + 1)), np.zeros((steps + 1, width + 1))
    for t in range(steps):
        norm = 0.0
        for k in range(width + 1):
            value = norm if k == width else points[t, k]
            norm += value * value
            high = sums[t, k] + value
            # What is lost in the addition (Knuth's two-sum).
            part = high - sums[t, k]
            rest[t + 1, k] = rest[t, k] + ((sums[t, k] - (high - part)) + (value - part))
            sums[t + 1, k] = high
    return sums, rest


@kernel("(const(f8[:, ::1]), f8[:, ::1], f8[:, ::1], f8)")
def monotone_penalised(points: Floats, sums: Floats, rest: Floats, price: float) -> tuple[Floats, Ints]:
    """Least cost of every prefix and the last send in it, where segments satisfy the quadrangle inequality.

    Of two sends the later one is then ahead from some end on and stays so; a queue has the sends that are best for some
    end to come, and where each begins to be.
    """
    steps = len(points)
    cost, before = np.zeros(steps + 1), np.zeros(steps + 1, np.int64)
    queue, since = np.empty(steps + 1, np.int64), np.empty(steps + 1, np.int64)
    front, back = 0, 1
    queue[0], since[0] = 0, 1
    for e in range(1, steps + 1):
        while front + 1 < back and since[front + 1] <= e:
            front += 1
        s = queue[front]
        before[e] = s
        cost[e] = (cost[s] + price if s else 0.0) + _segment(points, sums, rest, s, e)
        if e == steps:
            break
        base = cost[e] + price
        while back > front:
            s = queue[back - 1]
            first = max(since[back - 1], e + 1)
            other = (cost[s] + price if s else 0.0) + _segment(points, sums, rest, s, first)
            if base + _segment(points, sums, rest, e, first) <= other:
                back -= 1
                continue
            low, high = first, steps + 1
            while high - low > 1:
                middle = (low + high) // 2
                other = (cost[s] + price if s else 0.0) + _segment(points, sums, rest, s, middle)
                if base + _segment(points, sums, rest, e, middle) <= other:
                    high = middle
                else:
                    low = middle
            if high <= steps:
                queue[back], since[back] = e, high
                back += 1
            break
        if back == front:
            queue[back], since[back] = e, e + 1
            back += 1
    return cost, before
