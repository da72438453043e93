"""Numba kernel of the search for compressors at given prices: the most promising beginnings, gradient by gradient.

A *beginning* is what is chosen for the first gradients: how far computation is behind, when the wire is free, the
error, and the message that may still grow. What comes after it costs at least what its cheapest options cost at the
prices of the dual bound, which gives each beginning a bound of its own.
"""

# mypy: disable-error-code="untyped-decorator, no-any-return"

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from ddlopt.models.kernels import inner, kernel
from ddlopt.models.sorting_kernels import quick_order

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]

DELAY, FREE, WIRE, LAUNCH, ERROR, BYTES, CLOSED = range(7)
"""Columns of a beginning: seconds by which computation is delayed; when the wire is free for the open message; its
``wire_s`` and ``launch_s``; the error of all; the message's bytes; when the wire is free if the message ends here."""


_LANES = (
    "record(Lanes, f8[::1], f8[:, ::1], f8[:, ::1], f8[:, ::1], f8[:, ::1], i8[::1], i8[:, ::1], f8[::1], "
    "i8[:, ::1], f8[:, ::1], f8)"
)
_PRICES = "record(Prices, f8[::1], f8[::1], f8[:, ::1], f8)"
_ENDING = "record(Ending, f8[::1], f8[::1], f8[::1])"


class Lanes(NamedTuple):
    """The problem: (n,) and (n, m) arrays as in :class:`~ddlopt.models.compression.timeline.choices.Choices`.

    ``order`` (n, m): options by their price, dearest last; ``above`` (n, m): how much more than the cheapest they are,
    in that order, at least. ``labels``: all 0 without fusion, and ``largest_bucket_bytes`` too.
    """

    ready: Floats
    encode: Floats
    wire: Floats
    launch: Floats
    error: Floats
    counts: Ints
    labels: Ints
    bytes: Floats
    order: Ints
    above: Floats
    largest_bucket_bytes: float


class Prices(NamedTuple):
    """A bound that is linear in a beginning: prices after k gradients of the wire's and of computation's lane.

    ``wire``, ``delay`` (n + 1,); ``rest`` (n + 1, labels): what is still to come, by the label of the last
    gradient, with its message's launch;
    ``error``.
    """

    wire: Floats
    delay: Floats
    rest: Floats
    error: float


class Ending(NamedTuple):
    """A known plan's messages after k gradients, infinite where a message of it goes on there: all (n + 1,).

    ``wire``: they keep the wire for; ``latest``: when they end if the wire is free and nothing is delayed before;
    ``error``.
    """

    wire: Floats
    latest: Floats
    error: Floats


class Sweep(NamedTuple):
    """What a sweep found.

    ``best``: objective, infinite if nothing is better than what was known; ``step``, ``place``: the beginning that it
    has, of so many gradients, before the known ending. ``cut``: no better than this are the beginnings that were left
    for want of width. ``parents``, ``options``, ``joins`` (n, width) of the beginnings kept.
    """

    best: float
    step: int
    place: int
    cut: float
    parents: Ints
    options: Ints
    joins: Bools


@inner()
def _price(prices: Prices, step: int, state: Floats, label: int) -> float:
    """The bound of a beginning; the rest has what launching its last message costs."""
    free = state[CLOSED] - state[LAUNCH]
    known = prices.wire[step] * free + prices.delay[step] * state[DELAY] + prices.error * state[ERROR]
    return known + prices.rest[step, label]


@inner()
def _dominated(kept: Floats, labels: Ints, count: int, state: Floats, label: int) -> bool:
    """Whether one of those kept is no worse in anything."""
    for other in range(count):
        if (
            labels[other] == label
            and kept[other, DELAY] <= state[DELAY]
            and kept[other, FREE] <= state[FREE]
            and kept[other, ERROR] <= state[ERROR]
            and kept[other, WIRE] <= state[WIRE]
            and kept[other, LAUNCH] <= state[LAUNCH]
            and kept[other, BYTES] <= state[BYTES]
        ):
            return True
    return False


@inner(inline="always")
def _send(lanes: Lanes, k: int, option: int, before: Floats, join: bool, state: Floats) -> None:
    """Write to ``state`` what is after gradient k, which joins the open message or begins one."""
    launch, wire = lanes.launch[k, option], lanes.wire[k, option]
    state[DELAY] = before[DELAY] + lanes.encode[k, option]
    state[ERROR] = before[ERROR] + lanes.error[k, option]
    if join:
        state[FREE] = before[FREE]
        state[WIRE] = before[WIRE] + wire
        state[LAUNCH] = max(before[LAUNCH], launch)
        state[BYTES] = before[BYTES] + lanes.bytes[k]
    else:
        state[FREE] = before[CLOSED]
        state[WIRE], state[LAUNCH], state[BYTES] = wire, launch, lanes.bytes[k]
    state[CLOSED] = max(state[FREE], lanes.ready[k] + state[DELAY]) + state[WIRE] + state[LAUNCH]
    if lanes.largest_bucket_bytes == 0:
        state[FREE] = state[CLOSED]
        state[WIRE], state[LAUNCH], state[BYTES] = 0.0, 0.0, 0.0


@kernel(f"({_LANES}, {_PRICES}, b1, {_PRICES}, f8, f8, f8, {_ENDING}, i8)")
def sweep(
    lanes: Lanes, goal: Prices, goal_is_time: bool, limit: Prices, most: float, allowed: float, known: float,
    ending: Ending, width: int,
) -> Sweep:  # fmt: skip
    """One pass over the gradients that keeps ``width`` beginnings of each length.

    Parameters
    ----------
    lanes : Lanes
    goal : Prices
        Of the bound on the objective, by which beginnings are ranked; those that cannot improve what is known are
        dropped.
    goal_is_time : bool
    limit, most : Prices, float
        Of a bound on what the budget limits; beginnings above ``most`` are dropped.
    allowed : float
        The budget that an answer keeps, at most ``most``.
    known : float
        Objective of the answer to improve; beginnings that cannot are dropped.
    ending : Ending
        Of a plan within the budget: every beginning is tried with it.
    width : int
    """
    n, m = lanes.encode.shape
    fusion = lanes.largest_bucket_bytes > 0
    parents, options = np.zeros((n, width), np.int64), np.zeros((n, width), np.int64)
    joins = np.zeros((n, width), np.bool_)
    kept, labels = np.zeros((width, 7)), np.full(width, -1)
    room = width * m * (2 if fusion else 1)
    states, least = np.zeros((room, 7)), np.zeros(room)
    origins, picks = np.zeros(room, np.int64), np.zeros(room, np.int64)
    joined = np.zeros(room, np.bool_)
    best, best_step, best_place, cut, count = known, -1, -1, np.inf, 1
    bounds = np.zeros(width)
    bounds[0] = np.inf
    for label in range(goal.rest.shape[1]):
        bounds[0] = min(bounds[0], goal.rest[0, label])
    for k in range(n):
        made = 0
        for place in range(count):
            for turn in range(lanes.counts[k]):
                if bounds[place] + lanes.above[k, turn] > best:
                    break
                option = lanes.order[k, turn]
                label = lanes.labels[k, option]
                for join in range(2 if fusion and k > 0 else 1):
                    if join == 1 and (
                        labels[place] != label or kept[place, BYTES] + lanes.bytes[k] > lanes.largest_bucket_bytes
                    ):
                        continue
                    state = states[made]
                    _send(lanes, k, option, kept[place], join == 1, state)
                    if _price(limit, k + 1, state, label) > most:
                        continue
                    least[made] = _price(goal, k + 1, state, label)
                    if least[made] >= best:
                        continue
                    origins[made], picks[made], joined[made] = place, option, join == 1
                    made += 1
        order = quick_order(least[:made])
        count = 0
        new, new_labels, new_bounds = np.zeros((width, 7)), np.full(width, -1), np.zeros(width)
        for child in order:
            option = picks[child]
            label = lanes.labels[k, option]
            if count == width:
                cut = min(cut, least[child])
                continue
            if least[child] >= best or _dominated(new, new_labels, count, states[child], label):
                continue
            for column in range(7):
                new[count, column] = states[child, column]
            new_labels[count], new_bounds[count] = label, least[child]
            parents[k, count], options[k, count], joins[k, count] = origins[child], option, joined[child]
            time = max(new[count, CLOSED] + ending.wire[k + 1], new[count, DELAY] + ending.latest[k + 1])
            error = new[count, ERROR] + ending.error[k + 1]
            reached, spent = (time, error) if goal_is_time else (error, time)
            if spent <= allowed:
                if reached < best:
                    best, best_step, best_place = reached, k + 1, count
            elif k == n - 1:  # but below ``most``
                cut = min(cut, least[child])
            count += 1
        kept, labels, bounds = new, new_labels, new_bounds
    return Sweep(best, best_step, best_place, cut, parents, options, joins)
