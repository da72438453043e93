"""Numba kernels of the branch and bound: the bound of a node, and in which direction its prices should move.

As in :mod:`ddlopt.frontier.topology.branch_and_bound.bounds`, everything that decides is calculated in 64-bit integers.
"""

# mypy: disable-error-code="untyped-decorator, no-any-return"

import numpy as np

from ddlopt.frontier.topology.branch_and_bound.bounds import (
    ARCS,
    CHOSEN,
    DECIDED,
    DISTANCE,
    LEAST,
    NEAR,
    NOTHING,
    PICKED,
    SLOPE,
    TWO,
    USES,
    Flags,
    Ints,
    Room,
    cost_sets,
    every,
    from_server,
    members,
    shortest_ring,
)
from ddlopt.frontier.topology.branch_and_bound.integer_instance import FAR, MOST_RING, IntegerInstance
from ddlopt.models.kernels import helper, leaf


@helper
def evaluate(
    integers: IntegerInstance, z: int, allowed: Flags, lengths: Ints, prices: Ints, tax: int, room: Room
) -> tuple[int, int]:
    """The least bytes times distance minus z times total length of all designs of the node, and the same for z = 0.

    A total above 0 refutes the node. ``prices`` (n, n) of arcs and the ``tax`` on every link charge designs for links
    that no design can have all.
    """
    n, sets, d = integers.options.shape
    total = -tax * integers.ends
    if not integers.duplex:
        for v in range(n):
            total -= d * prices[0 if v else 1, v]
    plain = total
    options, values, member, hop = integers.options, room.values, integers.member, integers.hop
    chosen, smallest, decided = room.rows[CHOSEN], room.rows[LEAST], room.rows[DECIDED]
    for s in range(n):
        from_server(integers.forwarding, s, lengths, room)
        cost_sets(integers, s, 0, sets, allowed, room)
        least, least_plain = NOTHING, NOTHING
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
                chosen[s] = k
        smallest[s] = least
        total += least
        plain += least_plain
    if every(decided):
        for g in range(len(hop)):
            if members(member, g) <= MOST_RING:
                cost = hop[g] * shortest_ring(member, g, room.squares[DISTANCE])
                total += cost
                plain += cost
    return total, plain


@leaf
def strike_off(total: int, allowed: Flags, room: Room) -> bool:
    """Strike off the sets that are in no design better than z; whether there were any."""
    some, values, least = False, room.values, room.rows[LEAST]
    n, sets = allowed.shape
    for s in range(n):
        others = total - least[s]
        for k in range(sets):
            if allowed[s, k] and others + values[s, k] > 0:
                allowed[s, k] = False
                some = True
    return some


@leaf
def _nearest_members(integers: IntegerInstance, s: int, chosen: int, room: Room, at: Ints) -> int:
    """For each group of s the member nearest to it over its chosen set, into ``at``; how many there are."""
    found, member, options, near, two = 0, integers.member, integers.options, room.squares[NEAR], room.squares[TWO]
    for g in range(len(member)):
        if not member[g, s]:
            continue
        best = FAR
        at[found] = -1
        for t in range(len(near)):
            if member[g, t] and t != s:
                for j in range(integers.degree):
                    v = options[s, chosen, j]
                    if v >= 0:
                        way = near[v, t] if near[v, t] < two[v, t] else two[v, t]
                        if way < best:
                            best = way
                            at[found] = t
        found += 1
    return found


@helper
def find_slopes(integers: IntegerInstance, z: int, allowed: Flags, lengths: Ints, room: Room) -> None:
    """A supergradient of the total: SLOPE by length, and USES, from which that by price follows."""
    # Local names: a call for every way, with all that it needs, would take longer than the ways.
    slope, uses, squares, rows = room.steering[SLOPE], room.steering[USES], room.squares, room.rows
    arcs, distance, near, two = squares[ARCS], squares[DISTANCE], squares[NEAR], squares[TWO]
    decided, choice, picked, values = rows[DECIDED], rows[CHOSEN], rows[PICKED], room.values
    n, d, groups = len(lengths), integers.degree, len(integers.hop)
    nearest, options, member = np.empty(groups, np.int64), integers.options, integers.member
    for s in range(n):
        for v in range(n):
            slope[s, v] = uses[s, v] = 0.0
    for s in range(n):
        chosen = choice[s]
        for j in range(d):
            v = options[s, chosen, j]
            if v >= 0:
                slope[s, v] -= z
                uses[s, v] += 1.0
        from_server(integers.forwarding, s, lengths, room)
        value = values[s, chosen]
        cost_sets(integers, s, chosen, chosen + 1, allowed, room)
        values[s, chosen] = value
        rings = _nearest_members(integers, s, chosen, room, nearest) if groups > 0 else 0
        ring = -1
        for way in range(n + rings):
            if way < n:
                t, size = way, float(integers.bytes[s, way])
                short = picked[t] != 0
            else:
                ring += 1
                while not member[ring, s]:
                    ring += 1
                t, size, short = nearest[way - n], float(integers.hop[ring]), False
            if size == 0.0 or t < 0:
                continue
            best, over = FAR, -1
            for j in range(d):
                v = options[s, chosen, j]
                if v < 0:
                    continue
                with_one = two[v, t] < near[v, t] if way >= n else short
                reached = two[v, t] if with_one else near[v, t]
                if reached < best:
                    best, over, short = reached, v, with_one
            if over < 0:
                continue
            slope[s, over] += size
            if short:
                slope[over, t] += size
                continue
            v, first = over, integers.forwarding and not decided[over]
            for _ in range(n):
                if v == t:
                    break
                best, after = FAR, -1
                for u in range(n):
                    reached = lengths[v, u] + distance[u, t]
                    if arcs[v, u] and not (first and u == t) and reached < best:
                        best, after = reached, u
                if after < 0:
                    break
                slope[v, after] += size
                v, first = after, False
