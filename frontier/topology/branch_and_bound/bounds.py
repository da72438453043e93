"""Numba kernels of the branch and bound: what arc lengths prove about all designs that a node still allows.

A node is a table ``allowed`` of shape (n, K): whether server s may still have its k-th neighbour set. Everything that
decides is calculated in 64-bit integers, which cannot overflow (see ``IntegerInstance``); floating-point numbers only
steer the search for good lengths. :mod:`ddlopt.certificates.topology.check` states the bound.
"""

# mypy: disable-error-code="untyped-decorator, no-any-return"

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from ddlopt.frontier.topology.branch_and_bound.integer_instance import FAR, MOST_RING, IntegerInstance
from ddlopt.models.kernels import helper, leaf

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]

NOTHING = 2**62
"""More than any cost."""


ARCS, DISTANCE, LATER, NEAR, TWO = range(5)
DECIDED, LEFT, LEAST, CHOSEN, GAINS, AT, PICKED = range(7)
SLOPE, USES = range(2)


class Room(NamedTuple):
    """Scratch and results of one evaluation; n servers, K sets. Few arrays, as each makes all functions longer.

    ``squares`` (5, n, n): possible ARCS, DISTANCE and LATER as :func:`measure` fills them, NEAR and TWO as
    :func:`from_server`. ``rows`` (7, n): DECIDED servers with one set left, sets LEFT, the LEAST of each row of values,
    the CHOSEN set that has it, and for :func:`cost_sets` GAINS, where they are AT, and the PICKED ones. ``values``
    (n, K). ``steering`` (2, n, n): SLOPE, the derivatives by length, and USES, the links of the chosen sets.
    """

    squares: Ints
    rows: Ints
    values: Ints
    steering: Floats


def make_room(n: int, sets: int) -> Room:
    """Empty scratch."""
    squares, rows = np.zeros((5, n, n), np.int64), np.zeros((7, n), np.int64)
    return Room(squares, rows, np.zeros((n, sets), np.int64), np.zeros((2, n, n)))


@helper
def propagate(degree: int, duplex: bool, copies: Ints, allowed: Flags, room: Room) -> bool:
    """Strike off sets that overfill a server, or that no set of the other end of a duplex link matches.

    Also notes which arcs are possible and which servers are decided. ``copies`` (n, K, n) counts the links of each set.
    False if a server has no set left.
    """
    n, sets, _ = copies.shape
    left, decided, arcs = room.rows[LEFT], room.rows[DECIDED], room.squares[ARCS]
    least, possible, into = np.empty((n, n), np.int64), np.empty((n, n), np.int64), np.empty(n, np.int64)
    changed = True
    while changed:
        changed = False
        for v in range(n):
            into[v] = 0
        for s in range(n):
            left[s] = 0
            for v in range(n):
                least[s, v] = degree
                possible[s, v] = 0
            for k in range(sets):
                if allowed[s, k]:
                    left[s] += 1
                    for v in range(n):
                        c = copies[s, k, v]
                        if c < least[s, v]:
                            least[s, v] = c
                        possible[s, v] |= 1 << c
            if left[s] == 0:
                return False
            for v in range(n):
                into[v] += least[s, v]
        for s in range(n):
            for k in range(sets):
                if not allowed[s, k]:
                    continue
                for v in range(n):
                    c = copies[s, k, v]
                    too_many = c > 0 and into[v] - least[s, v] + c > degree
                    if too_many or (duplex and v != s and not (possible[v, s] >> c) & 1):
                        allowed[s, k] = False
                        changed = True
                        break
    for s in range(n):
        decided[s] = left[s] == 1
        for v in range(n):
            arcs[s, v] = possible[s, v] > 1
    return True


@leaf
def measure(wanted: Flags, forwarding: bool, lengths: Ints, room: Room) -> bool:
    """Distances over all possible arcs: all of them, and those that begin at an undecided server with two arcs.

    False if a pair that must be joined cannot be.
    """
    n = len(lengths)
    squares, alone = room.squares, room.rows[DECIDED]
    arcs, dist, later = squares[ARCS], squares[DISTANCE], squares[LATER]
    for v in range(n):
        for w in range(n):
            dist[v, w] = lengths[v, w] if arcs[v, w] else FAR
        dist[v, v] = 0
    if forwarding:
        for u in range(n):
            for v in range(n):
                first = dist[v, u]
                if first < FAR:
                    for w in range(n):
                        if first + dist[u, w] < dist[v, w]:
                            dist[v, w] = first + dist[u, w]
    for v in range(n):
        decided = alone[v]
        for w in range(n):
            if wanted[v, w] and dist[v, w] >= FAR:
                return False
            if v == w or (decided and forwarding):
                later[v, w] = dist[v, w]
                continue
            best = FAR
            if forwarding:
                for u in range(n):
                    if u != w and arcs[v, u] and lengths[v, u] + dist[u, w] < best:
                        best = lengths[v, u] + dist[u, w]
            later[v, w] = best
    return True


@leaf
def from_server(forwarding: bool, s: int, lengths: Ints, room: Room) -> None:
    """Fill NEAR and TWO: lengths from s over v to t, not with one arc from an undecided v, or with just one."""
    n = len(lengths)
    squares, decided = room.squares, room.rows[DECIDED]
    arcs, near, two, later = squares[ARCS], squares[NEAR], squares[TWO], squares[LATER]
    for v in range(n):
        if not arcs[s, v]:
            continue
        open_end, first = forwarding and not decided[v], lengths[s, v]
        for t in range(n):
            way = first + later[v, t]
            near[v, t] = way if way < FAR else FAR
            two[v, t] = first + lengths[v, t] if open_end and arcs[v, t] else FAR


@leaf
def every(flags: Ints) -> bool:
    """Whether all are set."""
    for i in range(len(flags)):  # noqa: SIM110 (compiled code is written in loops)
        if not flags[i]:
            return False
    return True


@leaf
def members(member: Flags, g: int) -> int:
    """Members of group g."""
    number = 0
    for v in range(member.shape[1]):
        number += member[g, v]
    return number


@helper
def cost_sets(integers: IntegerInstance, s: int, first: int, last: int, allowed: Flags, room: Room) -> None:
    """Fill ``values[s]`` with the bytes times length that leave s at least, for the allowed sets from first to last.

    Call :func:`from_server` before. The undecided neighbours reach d others each with one arc, so that only so many
    targets have their short way: the most profitable ones, which are PICKED (of the last set).
    """
    options, demand, values, squares, rows = integers.options, integers.bytes, room.values, room.squares, room.rows
    arcs, near, two, decided = squares[ARCS], squares[NEAR], squares[TWO], rows[DECIDED]
    gains, at, picked = rows[GAINS], rows[AT], rows[PICKED]
    n, d = len(near), integers.degree
    targets, many = np.empty(n, np.int64), 0
    for t in range(n):
        if demand[s, t] > 0:
            targets[many] = t
            many += 1
    for k in range(first, last):
        if not allowed[s, k]:
            continue
        reach, cost, found = 0, 0, 0
        for j in range(d):
            # Equal ends stand side by side.
            u = options[s, k, j]
            if u >= 0 and not decided[u] and (j == 0 or u != options[s, k, j - 1]):
                reach += d
        two_ends = d == 2 and options[s, k, 1] >= 0
        v, w = options[s, k, 0], options[s, k, d - 1]
        for i in range(many):
            t = targets[i]
            if two_ends:
                far, short = near[v, t], two[v, t]
                if near[w, t] < far:
                    far = near[w, t]
                if two[w, t] < short:
                    short = two[w, t]
            else:
                far, short = FAR, FAR
                for j in range(d):
                    u = options[s, k, j]
                    if u >= 0:
                        if near[u, t] < far:
                            far = near[u, t]
                        if two[u, t] < short:
                            short = two[u, t]
            cost += demand[s, t] * far
            picked[t] = 0
            if short < far:
                gains[found] = demand[s, t] * (far - short)
                at[found] = t
                found += 1
        for i in range(found if found < reach else reach):
            if found > reach:
                best = i
                for j in range(i + 1, found):
                    if gains[j] > gains[best]:
                        best = j
                gain, place = gains[i], at[i]
                gains[i], at[i] = gains[best], at[best]
                gains[best], at[best] = gain, place
            cost -= gains[i]
            picked[at[i]] = 1
        values[s, k] = cost
    member, hop = integers.member, integers.hop
    for g in range(len(hop)):
        if not member[g, s] or (every(decided) and members(member, g) <= MOST_RING):
            continue
        for v in range(n):
            nearest = FAR
            for t in range(n):
                if member[g, t] and t != s and arcs[s, v]:
                    if near[v, t] < nearest:
                        nearest = near[v, t]
                    if two[v, t] < nearest:
                        nearest = two[v, t]
            gains[v] = nearest
        for k in range(first, last):
            if allowed[s, k]:
                nearest = FAR
                for j in range(d):
                    u = options[s, k, j]
                    if u >= 0 and gains[u] < nearest:
                        nearest = gains[u]
                values[s, k] += hop[g] * nearest


@helper
def shortest_ring(member: Flags, g: int, distance: Ints) -> int:
    """Length of the shortest ring through group g, by dynamic programming over sets of members (Held and Karp)."""
    rest, k, first = np.empty(MOST_RING, np.int64), 0, -1
    for v in range(len(distance)):
        if member[g, v]:
            if first < 0:
                first = v
            else:
                rest[k] = v
                k += 1
    best = np.empty((1 << k, k), np.int64)
    for visited in range(1 << k):
        for i in range(k):
            best[visited, i] = distance[first, rest[i]] if visited == 1 << i else NOTHING >> 1
    for visited in range(1, 1 << k):
        for i in range(k):
            so_far = best[visited, i]
            if so_far < NOTHING >> 1:
                for j in range(k):
                    longer, with_j = so_far + distance[rest[i], rest[j]], visited | 1 << j
                    if with_j != visited and longer < best[with_j, j]:
                        best[with_j, j] = longer
    shortest = NOTHING >> 1
    for i in range(k):
        around = best[(1 << k) - 1, i] + distance[rest[i], first]
        if around < shortest:
            shortest = around
    return shortest
