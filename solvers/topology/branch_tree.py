"""Numba kernels of the branch and bound: lengths that refute a node, and depth-first search below one.

See :mod:`.branch_bounds`; the words that are logged are those of
:class:`~ddlopt.models.topology.certificate.format.DesignCertificate`.
"""

# mypy: disable-error-code="untyped-decorator, no-any-return"

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from numba import njit

from ddlopt.models.topology.certificate.format import BRANCH, CLOSED, ELSEWHERE, END, MOST_LENGTH, MOST_PRICE
from ddlopt.models.topology.certificate.format import FIRST_WEIGHT as WEIGHTS
from ddlopt.models.topology.neighbour_sets import Task
from ddlopt.solvers.topology.branch_bounds import (
    Flags,
    Floats,
    Ints,
    Room,
    evaluate,
    find_slopes,
    make_room,
    measure,
    propagate,
    strike_off,
)

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


@njit(cache=True, nogil=True)
def _scaled(task: Task, lengths: Floats, prices: Floats, tax: Floats, room: Room, weights: Weights) -> None:
    """Bring lengths to their mean and round everything; prices go with them."""
    n = len(lengths)
    total, arcs = 0.0, 0
    for v in range(n):
        for w in range(n):
            if room.arcs[v, w]:
                total += lengths[v, w]
                arcs += 1
    factor = MEAN_LENGTH * arcs / total if total > 0.0 else 1.0
    lengths *= factor
    prices *= factor
    tax *= factor
    for v in range(n):
        for w in range(n):
            weights.lengths[v, w] = min(MOST_LENGTH, int(np.rint(lengths[v, w])))
            weights.prices[v, w] = max(-MOST_PRICE, min(MOST_PRICE, int(np.rint(prices[v, w]))))
    weights.tax[0] = min(MOST_PRICE, int(np.rint(tax[0])))
    weights.number[0] = -1


@njit(cache=True, nogil=True)
def _ascend(
    task: Task, z: int, aim: float, pace: Pace, lengths: Floats, prices: Floats, tax: Floats, room: Room
) -> bool:
    """One step of Polyak's towards a total of ``aim``, which is given as what is missing; False if there is none."""
    n = len(lengths)
    weight = pace.price_weight * float(z) * float(z)
    norm, links = 0.0, 0.0
    for v in range(n):
        into = 0.0
        for s in range(n):
            if room.arcs[s, v]:
                norm += room.slope[s, v] ** 2
            into += room.uses[s, v]
            if task.duplex:
                norm += weight * (room.uses[s, v] - room.uses[v, s]) ** 2 / 2
        links += into
        if not task.duplex:
            norm += weight * (into - task.degree) ** 2
    spare = links - task.ends
    if task.duplex and task.ends < n * task.degree:
        norm += weight * spare**2
    if norm <= 0.0:
        return False
    step = pace.step * aim / norm
    for v in range(n):
        into = 0.0
        for s in range(n):
            if room.arcs[s, v]:
                lengths[s, v] = max(0.0, lengths[s, v] + step * room.slope[s, v])
            into += room.uses[s, v]
            if task.duplex:
                prices[s, v] += step * weight * (room.uses[s, v] - room.uses[v, s]) / 2
        if not task.duplex:
            price = prices[0 if v else 1, v] + step * weight * (into - task.degree)
            prices[:, v] = price if task.exact else max(0.0, price)
    if task.duplex and task.ends < n * task.degree:
        tax[0] = max(0.0, tax[0] + step * weight * spare)
    return True


@njit(cache=True, nogil=True)
def _note(log: Log, weights: Weights) -> None:
    """Log that the weights struck something off."""
    if not log.on[0]:
        return
    if weights.number[0] < 0:
        n, place = len(weights.lengths), log.used[1]
        for v in range(n):
            for w in range(n):
                log.lengths[place, v * n + w] = weights.lengths[v, w]
        if log.prices.shape[1] == n + 1:
            for v in range(n):
                log.prices[place, v] = weights.prices[0 if v else 1, v]
        else:
            for v in range(n):
                for w in range(n):
                    log.prices[place, v * n + w] = weights.prices[v, w]
        log.prices[place, -1] = weights.tax[0]
        weights.number[0] = place
        log.used[1] += 1
    log.words[log.used[0]] = WEIGHTS - weights.number[0]
    log.used[0] += 1


@njit(cache=True, nogil=True)
def _word(log: Log, word: int) -> None:
    if log.on[0]:
        log.words[log.used[0]] = word
        log.used[0] += 1


@njit(cache=True, nogil=True)
def bound_node(
    task: Task, copies: Ints, z: int, pace: Pace, allowed: Flags, weights: Weights, room: Room, log: Log, steps: Ints
) -> float:
    """Look for weights that refute the node; ``REFUTED`` if they do, else the part of z proven.

    Sets that are in no better design are struck off ``allowed`` on the way; ``weights`` become the best found, with the
    values of ``room`` belonging to some of those tried. Adds to ``steps`` (1,) the evaluations made.
    """
    lengths, prices, tax = weights.lengths * 1.0, weights.prices * 1.0, weights.tax * 1.0
    best = Weights(weights.lengths.copy(), weights.prices.copy(), weights.tax.copy(), weights.number.copy())
    best_total, proven, changed = -np.inf, 0.0, True
    everything = float(task.bytes.sum())
    for g in range(len(task.hop)):
        everything += float(task.hop[g] * task.member[g].sum())
    r, rounds = 0, pace.rounds
    while True:
        if changed:
            if not propagate(task, copies, allowed, room):
                _word(log, CLOSED)
                return REFUTED
            if room.decided.all():
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
            proven = max(proven, plain / (plain - float(total)))
        changed = strike_off(total, allowed, room)
        if changed:
            _note(log, weights)
        if total > best_total:
            best_total = float(total)
            best.lengths[:] = weights.lengths
            best.prices[:] = weights.prices
            best.tax[:] = weights.tax
            best.number[:] = weights.number
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
    weights.lengths[:] = best.lengths
    weights.prices[:] = best.prices
    weights.tax[:] = best.tax
    weights.number[:] = best.number
    return proven


@njit(cache=True, nogil=True)
def branching_row(allowed: Flags, room: Room) -> int:
    """The server whose sets leave the least to search for; -1 if all are decided."""
    best, row = np.inf, -1
    for s in range(len(allowed)):
        if room.left[s] > 1:
            score = float(room.left[s])
            if score < best:
                best, row = score, s
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


@njit(cache=True, nogil=True)
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


@njit(cache=True, nogil=True)
def dive(
    task: Task,
    copies: Ints,
    z: int,
    pace: Pace,
    stack: Stack,
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
    ``ELSEWHERE``, followed by a number to be filled in.
    """
    n, sets, _ = task.options.shape
    room = make_room(n, sets)
    steps = np.zeros(1, np.int64)
    depth, fresh = 0, True
    while depth >= 0:
        if fresh and depth > 0:
            row, k = stack.row[depth - 1], stack.next[depth - 1] - 1
            full = log.used[0] + 4 * pace.leaf_rounds > len(log.words) or log.used[1] + 2 * pace.leaf_rounds > len(
                log.lengths
            )
            if depth > deepest or steps[0] >= budget or (log.on[0] and full):
                opened[counts[0], 0], opened[counts[0], 1], opened[counts[0], 2] = depth - 1, k, log.used[0] + 1
                counts[0] += 1
                for above in range(depth - 1):
                    stack.path[depth - 1, above] = stack.next[above] - 1
                _word(log, ELSEWHERE)
                _word(log, 0)
                depth, fresh = depth - 1, False
                continue
            stack.allowed[depth] = stack.allowed[depth - 1]
            stack.allowed[depth, row, :] = False
            stack.allowed[depth, row, k] = True
            stack.lengths[depth], stack.prices[depth] = stack.lengths[depth - 1], stack.prices[depth - 1]
            stack.tax[depth], stack.number[depth] = stack.tax[depth - 1], stack.number[depth - 1]
        if fresh:
            counts[2] += 1
            weights = Weights(stack.lengths[depth], stack.prices[depth], stack.tax[depth], stack.number[depth])
            proven = bound_node(task, copies, z, pace, stack.allowed[depth], weights, room, log, steps)
            if proven == REFUTED:
                depth, fresh = depth - 1, False
                continue
            stack.proven[depth] = max(proven, stack.proven[depth - 1]) if depth > 0 else proven
            row = branching_row(stack.allowed[depth], room)
            if row < 0:
                for s in range(n):
                    leaves[counts[1], s] = np.argmax(stack.allowed[depth, s])
                leaves[counts[1], n] = log.used[0] + 1
                counts[1] += 1
                _word(log, ELSEWHERE)
                _word(log, 0)
                depth, fresh = depth - 1, False
                continue
            stack.row[depth], stack.next[depth] = row, 0
            _word(log, BRANCH)
            _word(log, row)
        row, k = stack.row[depth], stack.next[depth]
        while k < sets and not stack.allowed[depth, row, k]:
            k += 1
        if k == sets:
            _word(log, END)
            depth, fresh = depth - 1, False
            continue
        _word(log, k)
        stack.next[depth] = k + 1
        depth, fresh = depth + 1, True
    counts[3] += steps[0]
