"""Numba kernels of the Lagrangian bound: what each job does for itself when workers have a price in every slot.

A job buys progress in *segments*: in every slot of its window it can have segment s of its rate's concave envelope,
``amounts[s]`` of all that it wants at ``workers[s]`` workers for all that it wants. Segments of a slot get dearer, so
buying the cheapest first keeps their order.
"""

# mypy: disable-error-code="untyped-decorator, no-any-return"

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from ddlopt.models.kernels import inner, kernel
from ddlopt.models.sorting_kernels import stable_order

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

LINEAR, LOGARITHM, HYPERBOLA, POWER = 0, 1, 2, 3
"""Kinds of utility: v p, v log(1 + s p), v s p / (1 + s p), and v ((e + p)^s - e^s)."""

_JOBS = (
    "record(Jobs, i8[::1], f8[::1], f8[::1], i8[::1], f8[::1], f8[::1], f8[::1], i8[::1], i8[::1], i8[::1], i8[::1])"
)


class Jobs(NamedTuple):
    """Jobs as the kernels take them, sorted by (kind of worker, arrival, end of the window).

    ``firsts`` (I + 1,) into ``amounts`` and ``workers``; ``kinds``, ``values``, ``shapes``, ``offsets`` (I,) of the
    utility; ``groups`` (G + 1,) into the jobs, of one window each: ``group_worker``, ``group_start``, ``group_end``.
    """

    firsts: Ints
    amounts: Floats
    workers: Floats
    kinds: Ints
    values: Floats
    shapes: Floats
    offsets: Floats
    groups: Ints
    group_worker: Ints
    group_start: Ints
    group_end: Ints


class Response(NamedTuple):
    """What jobs do at given prices.

    ``total``: sum of the largest utility less cost of each job (with a goal: less the costs only); ``costs``: their
    sum; ``used`` (K, T): workers taken; ``parts`` and ``ends`` (I,): the part that each job buys, and the price for all
    at which its buying ended, endless where there was no more to buy.
    """

    total: float
    costs: float
    used: Floats
    parts: Floats
    ends: Floats


@kernel("(i8, f8, f8, f8, f8)")
def utility(kind: int, value: float, shape: float, offset: float, part: float) -> float:
    """Worth of a part."""
    if kind == LINEAR:
        return value * part
    if kind == LOGARITHM:
        return value * np.log1p(shape * part)
    if kind == HYPERBOLA:
        return value * shape * part / (1 + shape * part)
    return value * ((offset + part) ** shape - offset**shape)


@kernel("(i8, f8, f8, f8, f8)")
def part_worth(kind: int, value: float, shape: float, offset: float, price: float) -> float:
    """The part up to which more is worth its ``price`` for all; may be negative or endless."""
    if kind == LINEAR:
        return np.inf if price < value else 0.0
    if price <= 0:
        return np.inf
    if kind == LOGARITHM:
        return value / price - 1 / shape
    if kind == HYPERBOLA:
        return (np.sqrt(value * shape / price) - 1) / shape
    return (price / (value * shape)) ** (1 / (shape - 1)) - offset


@inner(inline="always")
def _buy(
    jobs: Jobs, job: int, goal: float, prices: Floats, slots: Ints, used: Floats, places: Ints
) -> tuple[float, float, float]:
    """(part, its cost, price for all at which the buying ended) of one job, and its workers added to ``used``.

    With a ``goal`` it buys that part at any price; below 0 it buys what is worth its price.
    """
    first, last = jobs.firsts[job], jobs.firsts[job + 1]
    places[: last - first] = 0
    kind, value, shape, offset = jobs.kinds[job], jobs.values[job], jobs.shapes[job], jobs.offsets[job]
    part, cost, price = 0.0, 0.0, 0.0
    while True:
        cheapest, price = -1, np.inf
        for segment in range(first, last):
            place = places[segment - first]
            if place < len(prices) and prices[place] * jobs.workers[segment] < price:
                cheapest, price = segment, prices[place] * jobs.workers[segment]
        if cheapest < 0:
            return part, cost, price
        wanted = goal if goal >= 0 else min(1.0, part_worth(kind, value, shape, offset, price))
        taken = min(jobs.amounts[cheapest], wanted - part)
        if taken > 0:
            used[slots[places[cheapest - first]]] += taken * jobs.workers[cheapest]
            cost += taken * price
            part += taken
        if taken < jobs.amounts[cheapest]:
            return part, cost, price
        places[cheapest - first] += 1


@kernel(f"({_JOBS}, f8[:, ::1], f8)")
def respond(jobs: Jobs, prices: Floats, goal: float) -> Response:
    """What all jobs do at ``prices`` (K, T) of a worker of each kind; see :func:`_buy` for the ``goal``."""
    slots = prices.shape[1]
    used = np.zeros(prices.shape)
    order = np.zeros(prices.shape, np.int64)
    for worker in range(len(prices)):
        ranks = stable_order(prices[worker])
        for place in range(slots):
            order[worker, place] = ranks[place]
    parts, ends = np.zeros(len(jobs.kinds)), np.zeros(len(jobs.kinds))
    total, costs = 0.0, 0.0
    window = np.zeros(slots, np.int64)
    window_prices = np.zeros(slots)
    most = 0
    for job in range(len(jobs.kinds)):
        most = max(most, jobs.firsts[job + 1] - jobs.firsts[job])
    places = np.zeros(most, np.int64)
    for group in range(len(jobs.group_worker)):
        worker, start, end = jobs.group_worker[group], jobs.group_start[group], jobs.group_end[group]
        count = 0
        for place in range(slots):
            slot = order[worker, place]
            if start <= slot < end:
                window[count], window_prices[count] = slot, prices[worker, slot]
                count += 1
        for job in range(jobs.groups[group], jobs.groups[group + 1]):
            part, cost, price = _buy(jobs, job, goal, window_prices[:count], window[:count], used[worker], places)
            if goal < 0:
                total += utility(jobs.kinds[job], jobs.values[job], jobs.shapes[job], jobs.offsets[job], part)
            total -= cost
            costs += cost
            parts[job], ends[job] = part, price
    return Response(total, costs, used, parts, ends)
