"""Numba kernels of the branch and bound: lengths that refute a node, and depth-first search below one.

See :mod:`.branch_bounds`; the words that are logged are those of
:class:`~ddlopt.models.topology.certificate.format.DesignCertificate`.
"""

# mypy: disable-error-code="untyped-decorator, no-any-return"

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from ddlopt.models.kernels import helper, kernel, leaf
from ddlopt.models.topology.certificate.format import BRANCH, CLOSED, ELSEWHERE, END, MOST_LENGTH, MOST_PRICE
from ddlopt.models.topology.certificate.format import FIRST_WEIGHT as WEIGHTS
from ddlopt.models.topology.integer_instance import Task
from ddlopt.solvers.topology.branch_and_bound.bounds import (
    Flags,
    Floats,
    Ints,
    Room,
    every,
    measure,
    members,
    propagate,
)
from ddlopt.solvers.topology.branch_and_bound.prices import evaluate, find_slopes, strike_off

MEAN_LENGTH = 4096.0
"""Arc lengths are scaled to this mean, so that rounding to whole numbers changes little."""
REFUTED = 2.0


class Pace(NamedTuple):
    """How hard to try on a node: steps, steps where all is decided, step length, weight of prices, aim above zero."""

    rounds: int
    leaf_rounds: int
    step: float
    price_weight: float
    aim: float


class Weights(NamedTuple):
    """Lengths (n, n), prices (n, n) of arcs and tax (1,) that a node hands to its children, and which entry they are.

    ``number`` (1,) is that of the log, -1 if they are in none.
    """

    lengths: Ints
    prices: Ints
    tax: Ints
    number: Ints


class Log(NamedTuple):
    """What is needed to repeat the proof: words, the weights they speak of, ``used`` (2,) of either; ``on`` (1,)."""

    words: npt.NDArray[np.int32]
    lengths: npt.NDArray[np.uint16]
    prices: Ints
    used: Ints
    on: Flags


@leaf
def _rounded(value: float, most: int) -> int:
    """To the next whole number, of at most this size."""
    whole = int(np.rint(value))
    if whole > most:
        return most
    return whole if whole > -most else -most


@leaf
def _scaled(task: Task, lengths: Floats, prices: Floats, tax: Floats, room: Room, weights: Weights) -> None:
    """Bring lengths to their mean and round everything; prices go with them."""
    n, possible, whole_lengths, whole_prices = len(lengths), room.arcs, weights.lengths, weights.prices
    total, arcs = 0.0, 0
    for v in range(n):
        for w in range(n):
            if possible[v, w]:
                total += lengths[v, w]
                arcs += 1
    factor = MEAN_LENGTH * arcs / total if total > 0.0 else 1.0
    tax[0] *= factor
    for v in range(n):
        for w in range(n):
            lengths[v, w] *= factor
            prices[v, w] *= factor
            whole_lengths[v, w] = _rounded(lengths[v, w], MOST_LENGTH)
            whole_prices[v, w] = _rounded(prices[v, w], MOST_PRICE)
    weights.tax[0] = _rounded(tax[0], MOST_PRICE)
    weights.number[0] = -1


@leaf
def _ascend(
    task: Task, z: int, aim: float, pace: Pace, lengths: Floats, prices: Floats, tax: Floats, room: Room
) -> bool:
    """One step of Polyak's towards a total of ``aim``, which is given as what is missing; False if there is none."""
    n, arcs, slope, uses, duplex = len(lengths), room.arcs, room.slope, room.uses, task.duplex
    weight = pace.price_weight * float(z) * float(z)
    norm, links = 0.0, 0.0
    for v in range(n):
        into = 0.0
        for s in range(n):
            if arcs[s, v]:
                norm += slope[s, v] ** 2
            into += uses[s, v]
            if duplex:
                norm += weight * (uses[s, v] - uses[v, s]) ** 2 / 2
        links += into
        if not duplex:
            norm += weight * (into - task.degree) ** 2
    spare = links - task.ends
    if duplex and task.ends < n * task.degree:
        norm += weight * spare**2
    if norm <= 0.0:
        return False
    step = pace.step * aim / norm
    for v in range(n):
        into = 0.0
        for s in range(n):
            if arcs[s, v]:
                moved = lengths[s, v] + step * slope[s, v]
                lengths[s, v] = moved if moved > 0.0 else 0.0
            into += uses[s, v]
            if duplex:
                prices[s, v] += step * weight * (uses[s, v] - uses[v, s]) / 2
        if not duplex:
            price = prices[0 if v else 1, v] + step * weight * (into - task.degree)
            if price < 0.0 and not task.exact:
                price = 0.0
            for s in range(n):
                prices[s, v] = price
    if duplex and task.ends < n * task.degree:
        moved = tax[0] + step * weight * spare
        tax[0] = moved if moved > 0.0 else 0.0
    return True


@leaf
def _note(log: Log, weights: Weights) -> None:
    """Log that the weights struck something off."""
    if not log.on[0]:
        return
    if weights.number[0] < 0:
        n, place, kept_lengths, kept_prices = len(weights.lengths), log.used[1], log.lengths, log.prices
        by_server = kept_prices.shape[1] == n + 1
        for v in range(n):
            if by_server:
                kept_prices[place, v] = weights.prices[0 if v else 1, v]
            for w in range(n):
                kept_lengths[place, v * n + w] = weights.lengths[v, w]
                if not by_server:
                    kept_prices[place, v * n + w] = weights.prices[v, w]
        kept_prices[place, kept_prices.shape[1] - 1] = weights.tax[0]
        weights.number[0] = place
        log.used[1] += 1
    log.words[log.used[0]] = WEIGHTS - weights.number[0]
    log.used[0] += 1


@leaf
def _word(log: Log, word: int) -> None:
    if log.on[0]:
        log.words[log.used[0]] = word
        log.used[0] += 1


@leaf
def _take(weights: Weights, taken: Weights) -> None:
    """Make ``weights`` those of ``taken``."""
    n, lengths, prices, own_lengths, own_prices = (
        len(weights.lengths),
        taken.lengths,
        taken.prices,
        weights.lengths,
        weights.prices,
    )
    for v in range(n):
        for w in range(n):
            own_lengths[v, w] = lengths[v, w]
            own_prices[v, w] = prices[v, w]
    weights.tax[0] = taken.tax[0]
    weights.number[0] = taken.number[0]


@helper
def bound_node(
    task: Task, copies: Ints, z: int, pace: Pace, allowed: Flags, weights: Weights, room: Room, log: Log, steps: Ints
) -> float:
    """Look for weights that refute the node; ``REFUTED`` if they do, else the part of z proven.

    Sets that are in no better design are struck off ``allowed`` on the way; ``weights`` become the best found, with the
    values of ``room`` belonging to some of those tried. Adds to ``steps`` (1,) the evaluations made.
    """
    n = len(allowed)
    lengths, prices, tax = np.empty((n, n), np.float64), np.empty((n, n), np.float64), np.empty(1, np.float64)
    best = Weights(np.empty((n, n), np.int64), np.empty((n, n), np.int64), np.empty(1, np.int64), np.empty(1, np.int64))
    _take(best, weights)
    best_total, proven, changed = -np.inf, 0.0, True
    tax[0] = best.tax[0]
    traffic = 0
    for v in range(n):
        for w in range(n):
            lengths[v, w], prices[v, w] = best.lengths[v, w], best.prices[v, w]
            traffic += task.bytes[v, w]
    everything = float(traffic)
    for g in range(len(task.hop)):
        everything += float(task.hop[g] * members(task.member, g))
    r, rounds = 0, pace.rounds
    while True:
        if changed:
            if not propagate(task, copies, allowed, room):
                _word(log, CLOSED)
                return REFUTED
            if every(room.decided):
                rounds = pace.leaf_rounds
            best_total = -np.inf
        steps[0] += 1
        if not measure(task, weights.lengths, room):
            _note(log, weights)
            _word(log, CLOSED)
            return REFUTED
        total, plain = evaluate(task, z, allowed, weights.lengths, weights.prices, weights.tax[0], room)
        if total > 0:
            _note(log, weights)
            _word(log, CLOSED)
            return REFUTED
        if plain > 0:
            part = plain / (plain - float(total))
            if part > proven:
                proven = part
        changed = strike_off(total, allowed, room)
        if changed:
            _note(log, weights)
        if total > best_total:
            best_total = float(total)
            _take(best, weights)
        if r >= rounds:
            break
        find_slopes(task, z, allowed, weights.lengths, room)
        if not _ascend(task, z, pace.aim * everything * MEAN_LENGTH - total, pace, lengths, prices, tax, room):
            break
        _scaled(task, lengths, prices, tax, room, weights)
        r += 1
    if changed and not propagate(task, copies, allowed, room):
        _word(log, CLOSED)
        return REFUTED
    _take(weights, best)
    return proven


@leaf
def branching_row(allowed: Flags, room: Room) -> int:
    """The server whose sets leave the least to search for; -1 if all are decided."""
    row, left = -1, room.left
    for s in range(len(allowed)):
        if left[s] > 1 and (row < 0 or left[s] < left[row]):
            row = s
    return row


class Stack(NamedTuple):
    """The nodes from the top to the present one, by depth: their sets, weights, rows, next sets, and part of z proven.

    ``path`` (n + 1, n): of nodes with children left to do, the sets taken at smaller depths.
    """

    allowed: Flags
    lengths: Ints
    prices: Ints
    tax: Ints
    number: Ints
    row: Ints
    next: Ints
    proven: Floats
    path: Ints


def make_stack(n: int, sets: int) -> Stack:
    """An empty one."""
    return Stack(
        np.zeros((n + 1, n, sets), np.bool_),
        np.zeros((n + 1, n, n), np.int64),
        np.zeros((n + 1, n, n), np.int64),
        np.zeros((n + 1, 1), np.int64),
        np.full((n + 1, 1), -1, np.int64),
        np.full(n + 1, -1, np.int64),
        np.zeros(n + 1, np.int64),
        np.zeros(n + 1),
        np.zeros((n + 1, n), np.int64),
    )


@helper
def _weights_at(stack: Stack, depth: int) -> Weights:
    return Weights(stack.lengths[depth], stack.prices[depth], stack.tax[depth], stack.number[depth])


@kernel(
    "(record(Task, i8[:, ::1], b1[:, ::1], b1[:, ::1], i8[::1], i8[:, :, ::1], i8, i8, b1, b1, b1), i8[:, :, ::1], i8,"
    " record(Pace, i8, i8, f8, f8, f8), record(Stack, b1[:, :, ::1], i8[:, :, ::1], i8[:, :, ::1], i8[:, ::1],"
    " i8[:, ::1], i8[::1], i8[::1], f8[::1], i8[:, ::1]), record(Room, b1[:, ::1], b1[::1], i8[::1], i8[:, ::1],"
    " i8[:, ::1], i8[:, ::1], i8[::1], i8[::1], f8[:, ::1], f8[:, ::1], i8[:, ::1], i8[:, ::1], i8[::1], i8[::1],"
    " b1[::1]), i8, i8, record(Log, i4[::1], u2[:, ::1], i8[:, ::1], i8[::1], b1[::1]), i8[:, ::1], i8[:, ::1],"
    " i8[::1])",
    nogil=True,
)
def dive(
    task: Task,
    copies: Ints,
    z: int,
    pace: Pace,
    stack: Stack,
    room: Room,
    deepest: int,
    budget: int,
    log: Log,
    opened: Ints,
    leaves: Ints,
    counts: Ints,
) -> None:
    """Search below the node at the top of ``stack``, depth first, to the depth ``deepest`` or until the budget is used.

    ``opened`` (many, 3) takes what is left to do, as (depth, set of that depth's row, position of its word);
    ``leaves`` (many, n + 1) designs that no lengths refuted, as the set of each server and the position of the word.
    ``counts`` (4,): of opened, of leaves, nodes, evaluations. In the log both are
    ``ELSEWHERE``, followed by a number to be filled in. ``room`` is scratch.
    """
    n, sets, _ = task.options.shape
    allowed, next_set, rows = stack.allowed, stack.next, stack.row
    steps = np.empty(1, np.int64)
    steps[0] = 0
    depth, fresh = 0, True
    while depth >= 0:
        if fresh and depth > 0:
            row, k = rows[depth - 1], next_set[depth - 1] - 1
            full = log.used[0] + 4 * pace.leaf_rounds > len(log.words) or log.used[1] + 2 * pace.leaf_rounds > len(
                log.lengths
            )
            if depth > deepest or steps[0] >= budget or (log.on[0] and full):
                opened[counts[0], 0], opened[counts[0], 1], opened[counts[0], 2] = depth - 1, k, log.used[0] + 1
                counts[0] += 1
                for above in range(depth - 1):
                    stack.path[depth - 1, above] = next_set[above] - 1
                _word(log, ELSEWHERE)
                _word(log, 0)
                depth, fresh = depth - 1, False
                continue
            for s in range(n):
                for j in range(sets):
                    allowed[depth, s, j] = allowed[depth - 1, s, j] if s != row else j == k
            _take(_weights_at(stack, depth), _weights_at(stack, depth - 1))
        if fresh:
            counts[2] += 1
            weights = _weights_at(stack, depth)
            proven = bound_node(task, copies, z, pace, allowed[depth], weights, room, log, steps)
            if proven == REFUTED:
                depth, fresh = depth - 1, False
                continue
            if depth > 0 and stack.proven[depth - 1] > proven:
                proven = stack.proven[depth - 1]
            stack.proven[depth] = proven
            row = branching_row(allowed[depth], room)
            if row < 0:
                for s in range(n):
                    only = 0
                    while not allowed[depth, s, only]:
                        only += 1
                    leaves[counts[1], s] = only
                leaves[counts[1], n] = log.used[0] + 1
                counts[1] += 1
                _word(log, ELSEWHERE)
                _word(log, 0)
                depth, fresh = depth - 1, False
                continue
            rows[depth], next_set[depth] = row, 0
            _word(log, BRANCH)
            _word(log, row)
        row, k = rows[depth], next_set[depth]
        while k < sets and not allowed[depth, row, k]:
            k += 1
        if k == sets:
            _word(log, END)
            depth, fresh = depth - 1, False
            continue
        _word(log, k)
        next_set[depth] = k + 1
        depth, fresh = depth + 1, True
    counts[3] += steps[0]
