"""Numba kernels of the branch and bound: what arc lengths prove about all designs that a node still allows.

A node is a table ``allowed`` of shape (n, K): whether server s may still have its k-th neighbour set. Everything that
decides is calculated in 64-bit integers, which cannot overflow (see ``Task``); floating-point numbers only steer the
search for good lengths. :mod:`ddlopt.models.topology.certificate.check` states the bound.

Numba's cache on disk looks at the file of a function only: after a change here, delete ``__pycache__`` to have the
kernels of other files compiled anew.
"""

# mypy: disable-error-code="untyped-decorator, no-any-return"

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from numba import njit

from ddlopt.models.topology.neighbour_sets import FAR, MOST_RING, Task

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]

_NOTHING = 2**62


class Room(NamedTuple):
    """Scratch and results of one evaluation; n servers, K sets.

    ``arcs`` (n, n) possible ones, ``decided`` (n,) servers with one set left, ``left`` (n,) sets left, ``distance``
    and ``later`` (n, n) as :func:`measure` fills them, ``values`` (n, K), ``least`` (n,) the smallest of each row,
    ``chosen`` (n,) the set that has it, ``slope`` (n, n) derivatives by length, ``uses`` (n, n) links of the chosen.
    """

    arcs: Flags
    decided: Flags
    left: Ints
    distance: Ints
    later: Ints
    values: Ints
    least: Ints
    chosen: Ints
    slope: Floats
    uses: Floats
    near: Ints
    two: Ints
    gains: Ints
    at: Ints
    picked: Flags


@njit(cache=True, nogil=True)
def make_room(n: int, sets: int) -> Room:
    """Empty scratch."""
    return Room(
        np.zeros((n, n), np.bool_),
        np.zeros(n, np.bool_),
        np.zeros(n, np.int64),
        np.zeros((n, n), np.int64),
        np.zeros((n, n), np.int64),
        np.zeros((n, sets), np.int64),
        np.zeros(n, np.int64),
        np.zeros(n, np.int64),
        np.zeros((n, n)),
        np.zeros((n, n)),
        np.zeros((n, n), np.int64),
        np.zeros((n, n), np.int64),
        np.zeros(n, np.int64),
        np.zeros(n, np.int64),
        np.zeros(n, np.bool_),
    )


@njit(cache=True, nogil=True)
def propagate(task: Task, copies: Ints, allowed: Flags, room: Room) -> bool:
    """Strike off sets that overfill a server, or that no set of the other end of a duplex link matches.

    Also notes which arcs are possible and which servers are decided. ``copies`` (n, K, n) counts the links of each set.
    False if a server has no set left.
    """
    n, sets, _ = copies.shape
    least, possible, into = np.zeros((n, n), np.int64), np.zeros((n, n), np.int64), np.zeros(n, np.int64)
    changed = True
    while changed:
        changed = False
        into[:] = 0
        for s in range(n):
            room.left[s] = 0
            least[s, :] = task.degree
            possible[s, :] = 0
            for k in range(sets):
                if allowed[s, k]:
                    room.left[s] += 1
                    for v in range(n):
                        least[s, v] = min(least[s, v], copies[s, k, v])
                        possible[s, v] |= 1 << copies[s, k, v]
            if room.left[s] == 0:
                return False
            into += least[s]
        for s in range(n):
            for k in range(sets):
                if not allowed[s, k]:
                    continue
                for v in range(n):
                    c = copies[s, k, v]
                    too_many = c > 0 and into[v] - least[s, v] + c > task.degree
                    if too_many or (task.duplex and v != s and not (possible[v, s] >> c) & 1):
                        allowed[s, k] = False
                        changed = True
                        break
    for s in range(n):
        room.decided[s] = room.left[s] == 1
        for v in range(n):
            room.arcs[s, v] = possible[s, v] > 1
    return True


@njit(cache=True, nogil=True)
def measure(task: Task, lengths: Ints, room: Room) -> bool:
    """Distances over all possible arcs: all of them, and those that begin at an undecided server with two arcs.

    False if a pair that must be joined cannot be.
    """
    n = len(lengths)
    dist, later = room.distance, room.later
    for v in range(n):
        for w in range(n):
            dist[v, w] = lengths[v, w] if room.arcs[v, w] else FAR
        dist[v, v] = 0
    if task.forwarding:
        for u in range(n):
            for v in range(n):
                first = dist[v, u]
                if first < FAR:
                    for w in range(n):
                        if first + dist[u, w] < dist[v, w]:
                            dist[v, w] = first + dist[u, w]
    for v in range(n):
        for w in range(n):
            if task.wanted[v, w] and dist[v, w] >= FAR:
                return False
            if v == w or (room.decided[v] and task.forwarding):
                later[v, w] = dist[v, w]
                continue
            best = FAR
            if task.forwarding:
                for u in range(n):
                    if u != w and room.arcs[v, u] and lengths[v, u] + dist[u, w] < best:
                        best = lengths[v, u] + dist[u, w]
            later[v, w] = best
    return True


@njit(cache=True, nogil=True)
def from_server(task: Task, s: int, lengths: Ints, room: Room) -> None:
    """Fill ``near`` and ``two``: lengths from s over v to t, not with one arc from an undecided v, or with just one."""
    n = len(lengths)
    for v in range(n):
        if not room.arcs[s, v]:
            continue
        for t in range(n):
            room.near[v, t] = min(FAR, lengths[s, v] + room.later[v, t])
            direct = task.forwarding and not room.decided[v] and room.arcs[v, t]
            room.two[v, t] = lengths[s, v] + lengths[v, t] if direct else FAR


@njit(cache=True, nogil=True)
def cost_sets(task: Task, s: int, first: int, last: int, allowed: Flags, room: Room) -> None:
    """Fill ``values[s]`` with the bytes times length that leave s at least, for the allowed sets from first to last.

    Call :func:`from_server` before. The undecided neighbours reach d others each with one arc, so that only so many
    targets have their short way: the most profitable ones, the flags ``picked`` (of the last set).
    """
    options, demand, decided, near, two = task.options, task.bytes, room.decided, room.near, room.two
    gains, at, picked, values = room.gains, room.at, room.picked, room.values
    n, d = len(near), task.degree
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
                    if options[s, k, j] >= 0:
                        far = min(far, near[options[s, k, j], t])
                        short = min(short, two[options[s, k, j], t])
            cost += demand[s, t] * far
            picked[t] = False
            if short < far:
                gains[found] = demand[s, t] * (far - short)
                at[found] = t
                found += 1
        for i in range(min(found, reach)):
            if found > reach:
                best = i
                for j in range(i + 1, found):
                    if gains[j] > gains[best]:
                        best = j
                gains[i], gains[best] = gains[best], gains[i]
                at[i], at[best] = at[best], at[i]
            cost -= gains[i]
            picked[at[i]] = True
        values[s, k] = cost
    for g in range(len(task.hop)):
        if not task.member[g, s] or (decided.all() and task.member[g].sum() <= MOST_RING):
            continue
        for v in range(n):
            gains[v] = FAR
            for t in range(n):
                if task.member[g, t] and t != s and room.arcs[s, v]:
                    gains[v] = min(gains[v], near[v, t], two[v, t])
        for k in range(first, last):
            if allowed[s, k]:
                nearest = FAR
                for j in range(d):
                    if options[s, k, j] >= 0:
                        nearest = min(nearest, gains[options[s, k, j]])
                values[s, k] += task.hop[g] * nearest


@njit(cache=True, nogil=True)
def shortest_ring(member: Flags, distance: Ints) -> int:
    """Length of the shortest ring through all members, by dynamic programming over sets of them (Held and Karp)."""
    servers = np.flatnonzero(member)
    first, rest = servers[0], servers[1:]
    k = len(rest)
    best = np.full((1 << k, k), _NOTHING >> 1)
    for i in range(k):
        best[1 << i, i] = distance[first, rest[i]]
    for visited in range(1, 1 << k):
        for i in range(k):
            so_far = best[visited, i]
            if so_far < _NOTHING >> 1:
                for j in range(k):
                    if not (visited >> j) & 1:
                        longer = so_far + distance[rest[i], rest[j]]
                        best[visited | 1 << j, j] = min(best[visited | 1 << j, j], longer)
    shortest = _NOTHING >> 1
    for i in range(k):
        shortest = min(shortest, best[(1 << k) - 1, i] + distance[rest[i], first])
    return shortest


@njit(cache=True, nogil=True)
def evaluate(task: Task, z: int, allowed: Flags, lengths: Ints, prices: Ints, tax: int, room: Room) -> tuple[int, int]:
    """The least bytes times distance minus z times total length of all designs of the node, and the same for z = 0.

    A total above 0 refutes the node. ``prices`` (n, n) of arcs and the ``tax`` on every link charge designs for links
    that no design can have all.
    """
    n, sets, d = task.options.shape
    total = -tax * task.ends
    if not task.duplex:
        for v in range(n):
            total -= d * prices[0 if v else 1, v]
    plain = total
    options, values = task.options, room.values
    for s in range(n):
        from_server(task, s, lengths, room)
        cost_sets(task, s, 0, sets, allowed, room)
        least, least_plain = _NOTHING, _NOTHING
        for k in range(sets):
            if not allowed[s, k]:
                continue
            cost, used = values[s, k], 0
            for j in range(d):
                v = options[s, k, j]
                if v >= 0:
                    cost += prices[s, v] + tax
                    used += lengths[s, v]
            values[s, k] = cost - z * used
            least_plain = min(least_plain, cost)
            if values[s, k] < least:
                least = values[s, k]
                room.chosen[s] = k
        room.least[s] = least
        total += least
        plain += least_plain
    if room.decided.all():
        for g in range(len(task.hop)):
            if task.member[g].sum() <= MOST_RING:
                cost = task.hop[g] * shortest_ring(task.member[g], room.distance)
                total += cost
                plain += cost
    return total, plain


@njit(cache=True, nogil=True)
def strike_off(total: int, allowed: Flags, room: Room) -> bool:
    """Strike off the sets that are in no design better than z; whether there were any."""
    some = False
    for s in range(len(allowed)):
        for k in range(allowed.shape[1]):
            if allowed[s, k] and total - room.least[s] + room.values[s, k] > 0:
                allowed[s, k] = False
                some = True
    return some


@njit(cache=True, nogil=True)
def _nearest_members(task: Task, s: int, chosen: int, room: Room, at: Ints) -> int:
    """For each group of s the member nearest to it over its chosen set, into ``at``; how many there are."""
    found = 0
    for g in range(len(task.hop)):
        if not task.member[g, s]:
            continue
        best = FAR
        at[found] = -1
        for t in range(len(room.near)):
            if task.member[g, t] and t != s:
                for v in task.options[s, chosen]:
                    if v >= 0 and min(room.near[v, t], room.two[v, t]) < best:
                        best, at[found] = min(room.near[v, t], room.two[v, t]), t
        found += 1
    return found


@njit(cache=True, nogil=True)
def find_slopes(task: Task, z: int, allowed: Flags, lengths: Ints, room: Room) -> None:
    """A supergradient of the total: ``slope`` by length, and ``uses``, from which that by price follows."""
    # Local names: a call for every way, with all that it needs, would take longer than the ways.
    slope, arcs, decided, distance, near, two = room.slope, room.arcs, room.decided, room.distance, room.near, room.two
    n, d, groups = len(lengths), task.degree, len(task.hop)
    nearest = np.empty(groups, np.int64)
    slope[:] = 0.0
    room.uses[:] = 0.0
    for s in range(n):
        chosen = room.chosen[s]
        for j in range(d):
            v = task.options[s, chosen, j]
            if v >= 0:
                slope[s, v] -= z
                room.uses[s, v] += 1.0
        from_server(task, s, lengths, room)
        value = room.values[s, chosen]
        cost_sets(task, s, chosen, chosen + 1, allowed, room)
        room.values[s, chosen] = value
        rings = _nearest_members(task, s, chosen, room, nearest) if groups > 0 else 0
        ring = -1
        for way in range(n + rings):
            if way < n:
                t, size = way, float(task.bytes[s, way])
                short = room.picked[t]
            else:
                ring += 1
                while not task.member[ring, s]:
                    ring += 1
                t, size, short = nearest[way - n], float(task.hop[ring]), False
            if size == 0.0 or t < 0:
                continue
            best, over = FAR, -1
            for j in range(d):
                v = task.options[s, chosen, j]
                if v < 0:
                    continue
                if way >= n and min(near[v, t], two[v, t]) < best:
                    best, over, short = min(near[v, t], two[v, t]), v, two[v, t] < near[v, t]
                elif way < n and (two[v, t] if short else near[v, t]) < best:
                    best, over = (two[v, t] if short else near[v, t]), v
            if over < 0:
                continue
            slope[s, over] += size
            if short:
                slope[over, t] += size
                continue
            v, first = over, task.forwarding and not decided[over]
            for _ in range(n):
                if v == t:
                    break
                best, after = FAR, -1
                for u in range(n):
                    if arcs[v, u] and not (first and u == t) and lengths[v, u] + distance[u, t] < best:
                        best, after = lengths[v, u] + distance[u, t], u
                if after < 0:
                    break
                slope[v, after] += size
                v, first = after, False
