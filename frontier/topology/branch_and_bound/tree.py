"""Numba kernels of the branch and bound: lengths that refute a node, and depth-first search below one.

See :mod:`.branch_bounds`; the words that are logged are those of
:class:`~ddlopt.certificates.topology.format.DesignCertificate`.
"""

# mypy: disable-error-code="untyped-decorator, no-any-return"

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from ddlopt.certificates.topology.format import BRANCH, CLOSED, ELSEWHERE, END, MOST_LENGTH, MOST_PRICE
from ddlopt.certificates.topology.format import FIRST_WEIGHT as WEIGHTS
from ddlopt.frontier.topology.branch_and_bound.bounds import (
    ARCS,
    DECIDED,
    LEFT,
    SLOPE,
    USES,
    Flags,
    Floats,
    Ints,
    Room,
    every,
    measure,
    members,
    propagate,
)
from ddlopt.frontier.topology.branch_and_bound.integer_instance import IntegerInstance
from ddlopt.frontier.topology.branch_and_bound.prices import evaluate, find_slopes, strike_off
from ddlopt.models.kernels import helper, kernel, leaf

MEAN_LENGTH = 4096.0
"""Arc lengths are scaled to this mean, so that rounding to whole numbers changes little."""
# More than any part of z, which is 1 at most.
REFUTED = 2.0


class Pace(NamedTuple):
    """How hard to try on a node: steps, steps where all is decided, step length, weight of prices, aim above zero."""

    rounds: int
    leaf_rounds: int
    step: float
    price_weight: float
    aim: float


LENGTHS, PRICES, REST = range(3)
"""Of the weights (3, n, n) that a node hands to its children. The first row of the rest are ``TAX`` and ``NUMBER``."""
TAX, NUMBER = range(2)
"""The tax on every link, and which entry of the log they are, -1 if they are in none."""


class Log(NamedTuple):
    """What is needed to repeat the proof: words, the weights they speak of, ``used`` (2,) of either.

    Without room for words nothing is logged.
    """

    words: npt.NDArray[np.int32]
    lengths: npt.NDArray[np.uint16]
    prices: Ints
    used: Ints


@leaf
def _rounded(value: float, most: int) -> int:
    """To the next whole number, of at most this size."""
    whole = int(np.rint(value))
    if whole > most:
        return most
    return whole if whole > -most else -most


@leaf
def _scaled(lengths: Floats, prices: Floats, tax: Floats, possible: Ints, weights: Ints) -> None:
    """Bring lengths to their mean and round everything; prices go with them."""
    n, whole_lengths, whole_prices = len(lengths), weights[LENGTHS], weights[PRICES]
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
    weights[REST, 0, TAX] = _rounded(tax[0], MOST_PRICE)
    weights[REST, 0, NUMBER] = -1


@leaf
def _ascend(
    degree: int,
    ends: int,
    duplex: bool,
    exact: bool,
    weight: float,
    step: float,
    aim: float,
    lengths: Floats,
    prices: Floats,
    tax: Floats,
    room: Room,
) -> bool:
    """One step of Polyak's towards a total of ``aim``, which is given as what is missing; False if there is none."""
    n, arcs, slope, uses = len(lengths), room.squares[ARCS], room.steering[SLOPE], room.steering[USES]
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
            norm += weight * (into - degree) ** 2
    spare = links - ends
    if duplex and ends < n * degree:
        norm += weight * spare**2
    if norm <= 0.0:
        return False
    step = step * aim / norm
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
            price = prices[0 if v else 1, v] + step * weight * (into - degree)
            if price < 0.0 and not exact:
                price = 0.0
            for s in range(n):
                prices[s, v] = price
    if duplex and ends < n * degree:
        moved = tax[0] + step * weight * spare
        tax[0] = moved if moved > 0.0 else 0.0
    return True


@leaf
def _note(log: Log, weights: Ints) -> None:
    """Log that the weights struck something off."""
    words, used = log.words, log.used
    if len(words) == 0:
        return
    if weights[REST, 0, NUMBER] < 0:
        n, place, kept_lengths, kept_prices = weights.shape[1], used[1], log.lengths, log.prices
        lengths, prices = weights[LENGTHS], weights[PRICES]
        by_server = kept_prices.shape[1] == n + 1
        for v in range(n):
            if by_server:
                kept_prices[place, v] = prices[0 if v else 1, v]
            for w in range(n):
                kept_lengths[place, v * n + w] = lengths[v, w]
                if not by_server:
                    kept_prices[place, v * n + w] = prices[v, w]
        kept_prices[place, kept_prices.shape[1] - 1] = weights[REST, 0, TAX]
        weights[REST, 0, NUMBER] = place
        used[1] += 1
    words[used[0]] = WEIGHTS - weights[REST, 0, NUMBER]
    used[0] += 1


@leaf
def _word(log: Log, word: int) -> None:
    words, used = log.words, log.used
    if len(words) > 0:
        words[used[0]] = word
        used[0] += 1


@leaf
def _take(weights: Ints, taken: Ints) -> None:
    """Make ``weights`` those of ``taken``."""
    for part in range(3):
        for v in range(weights.shape[1]):
            for w in range(weights.shape[1]):
                weights[part, v, w] = taken[part, v, w]


@helper
def bound_node(
    integers: IntegerInstance,
    copies: Ints,
    z: int,
    pace: Pace,
    allowed: Flags,
    weights: Ints,
    room: Room,
    log: Log,
    counts: Ints,
) -> float:
    """Look for weights that refute the node; ``REFUTED`` if they do, else the part of z proven.

    Sets that are in no better design are struck off ``allowed`` on the way; ``weights`` become the best found, with the
    values of ``room`` belonging to some of those tried. The evaluations made are added to ``counts[3]``.
    """
    n = len(allowed)
    lengths, prices, tax = np.empty((n, n), np.float64), np.empty((n, n), np.float64), np.empty(1, np.float64)
    best, arcs, decided = np.empty((3, n, n), np.int64), room.squares[ARCS], room.rows[DECIDED]
    _take(best, weights)
    best_total, proven, changed = -np.inf, 0.0, True
    tax[0] = best[REST, 0, TAX]
    traffic = 0
    for v in range(n):
        for w in range(n):
            lengths[v, w], prices[v, w] = best[LENGTHS, v, w], best[PRICES, v, w]
            traffic += integers.bytes[v, w]
    everything = float(traffic)
    for g in range(len(integers.hop)):
        everything += float(integers.hop[g] * members(integers.member, g))
    r, rounds, whole_lengths, whole_prices = 0, pace.rounds, weights[LENGTHS], weights[PRICES]
    weight = pace.price_weight * float(z) * float(z)
    while True:
        if changed:
            if not propagate(integers.degree, integers.duplex, copies, allowed, room):
                _word(log, CLOSED)
                return REFUTED
            if every(decided):
                rounds = pace.leaf_rounds
            best_total = -np.inf
        counts[3] += 1
        if not measure(integers.wanted, integers.forwarding, whole_lengths, room):
            _note(log, weights)
            _word(log, CLOSED)
            return REFUTED
        total, plain = evaluate(integers, z, allowed, whole_lengths, whole_prices, weights[REST, 0, TAX], room)
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
        find_slopes(integers, z, allowed, whole_lengths, room)
        missing = pace.aim * everything * MEAN_LENGTH - total
        if not _ascend(
            integers.degree,
            integers.ends,
            integers.duplex,
            integers.exact,
            weight,
            pace.step,
            missing,
            lengths,
            prices,
            tax,
            room,
        ):
            break
        _scaled(lengths, prices, tax, arcs, weights)
        r += 1
    if changed and not propagate(integers.degree, integers.duplex, copies, allowed, room):
        _word(log, CLOSED)
        return REFUTED
    _take(weights, best)
    return proven


@leaf
def branching_row(left: Ints) -> int:
    """The server whose sets leave the least to search for; -1 if all are decided."""
    row = -1
    for s in range(len(left)):
        if left[s] > 1 and (row < 0 or left[s] < left[row]):
            row = s
    return row


class Stack(NamedTuple):
    """The nodes from the top to the present one, by depth: their sets, weights, rows, next sets, and part of z proven.

    ``path`` (n + 1, n): of nodes with children left to do, the sets taken at smaller depths.
    """

    allowed: Flags
    weights: Ints
    row: Ints
    next: Ints
    proven: Floats
    path: Ints


def make_stack(n: int, sets: int) -> Stack:
    """An empty one."""
    return Stack(
        np.zeros((n + 1, n, sets), np.bool_),
        np.zeros((n + 1, 3, n, n), np.int64),
        np.full(n + 1, -1, np.int64),
        np.zeros(n + 1, np.int64),
        np.zeros(n + 1),
        np.zeros((n + 1, n), np.int64),
    )


@kernel(
    "(record(IntegerInstance, i8[:, ::1], b1[:, ::1], b1[:, ::1], i8[::1], i8[:, :, ::1], i8, i8, b1, b1, b1),"
    " i8[:, :, ::1], i8,"
    " record(Pace, i8, i8, f8, f8, f8), record(Stack, b1[:, :, ::1], i8[:, :, :, ::1], i8[::1], i8[::1], f8[::1],"
    " i8[:, ::1]), record(Room, i8[:, :, ::1], i8[:, ::1], i8[:, ::1], f8[:, :, ::1]), i8, i8,"
    " record(Log, i4[::1], u2[:, ::1], i8[:, ::1], i8[::1]), i8[:, ::1], i8[:, ::1], i8[::1])",
    nogil=True,
)
def dive(
    integers: IntegerInstance,
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
    ``counts`` (4,), zero before: of opened, of leaves, nodes, evaluations. In the log both are
    ``ELSEWHERE``, followed by a number to be filled in. ``room`` is scratch.
    """
    n, sets, _ = integers.options.shape
    allowed, next_set, rows, tables = stack.allowed, stack.next, stack.row, stack.weights
    path, known, words, used = stack.path, stack.proven, log.words, log.used
    depth, fresh = 0, True
    while depth >= 0:
        if fresh and depth > 0:
            row, k = rows[depth - 1], next_set[depth - 1] - 1
            full = used[0] + 4 * pace.leaf_rounds > len(words) or used[1] + 2 * pace.leaf_rounds > len(log.lengths)
            if depth > deepest or counts[3] >= budget or (len(words) > 0 and full):
                opened[counts[0], 0], opened[counts[0], 1], opened[counts[0], 2] = depth - 1, k, used[0] + 1
                counts[0] += 1
                for above in range(depth - 1):
                    path[depth - 1, above] = next_set[above] - 1
                _word(log, ELSEWHERE)
                _word(log, 0)
                depth, fresh = depth - 1, False
                continue
            for s in range(n):
                for j in range(sets):
                    allowed[depth, s, j] = allowed[depth - 1, s, j] if s != row else j == k
            _take(tables[depth], tables[depth - 1])
        if fresh:
            counts[2] += 1
            proven = bound_node(integers, copies, z, pace, allowed[depth], tables[depth], room, log, counts)
            if proven == REFUTED:
                depth, fresh = depth - 1, False
                continue
            if depth > 0 and known[depth - 1] > proven:
                proven = known[depth - 1]
            known[depth] = proven
            row = branching_row(room.rows[LEFT])
            if row < 0:
                for s in range(n):
                    only = 0
                    while not allowed[depth, s, only]:
                        only += 1
                    leaves[counts[1], s] = only
                leaves[counts[1], n] = used[0] + 1
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
