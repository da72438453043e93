"""Numba kernels of the local search on links: moves that keep a table of links realisable, and annealing of its hops.

The table of :mod:`~ddlopt.solvers.topology.balance.path_kernels` gets a meaning for its columns here. With duplex
optics column p is the matching of plane p. ``cycles`` (c, 2) lists pairs of columns that, followed in turn, are one
cycle through all servers: with one-way optics a column and itself, with duplex optics two planes. Such columns are
*closed*, the others open. All moves keep degrees, planes and cycles.
"""

# mypy: disable-error-code="untyped-decorator, no-any-return"
# ruff: noqa: SIM109, SIM110 (compiled code is written in loops)

import numpy as np

from ddlopt.models.kernels import helper, kernel, leaf
from ddlopt.solvers.topology.balance.path_kernels import Floats, Ints

MOST_CHANGES = 6
"""Cells of the table that a move changes at most."""

_DEBRUIJN = np.uint64(0x03F79D71B4CB0A89)
_BIT = np.zeros(64, np.int64)
for _position in range(64):
    _BIT[((0x03F79D71B4CB0A89 << _position) & 0xFFFFFFFFFFFFFFFF) >> 58] = _position


@kernel("(i8[:, ::1], f8[:, ::1], b1)")
def hop_volume(heads: Ints, traffic: Floats, forwarding: bool) -> float:
    """Sum of traffic times hops; where there is no path it counts as n hops.

    All servers are searched at once, breadth first on bit sets: v reaches in h + 1 hops what its neighbours reach in h.
    """
    n, d = heads.shape
    words = (n + 63) // 64
    reach, wider = np.empty((n, words), np.uint64), np.empty((n, words), np.uint64)
    total, rest = 0.0, 0.0
    for v in range(n):
        for i in range(words):
            reach[v, i] = wider[v, i] = np.uint64(1) << np.uint64(v & 63) if i == v >> 6 else np.uint64(0)
        for t in range(n):
            rest += traffic[v, t]
    for hops in range(1, n):
        grown = False
        for v in range(n):
            for k in range(d):
                w = heads[v, k]
                if w >= 0:
                    for i in range(words):
                        wider[v, i] |= reach[w, i]
            for i in range(words):
                fresh = wider[v, i] & ~reach[v, i]
                while fresh:
                    low = fresh & (~fresh + np.uint64(1))
                    t = (i << 6) + _BIT[(low * _DEBRUIJN) >> np.uint64(58)]
                    total += hops * traffic[v, t]
                    rest -= traffic[v, t]
                    fresh ^= low
                    grown = True
        if not grown or not forwarding or rest <= 0.0:
            break
        for v in range(n):
            for i in range(words):
                reach[v, i] = wider[v, i]
    return total + n * rest if rest > 0.0 else total


@kernel("(i8[:, ::1], i8, i8, i8[::1])")
def follow(heads: Ints, first: int, second: int, ring: Ints) -> bool:
    """Walk from server 0 along columns ``first`` and ``second`` in turn; whether that is one cycle through all servers.

    Fills ``ring`` (n,) with the servers met.
    """
    n = len(heads)
    v = 0
    for i in range(n):
        ring[i] = v
        v = heads[v, second if i & 1 else first]
        if v < 0 or (v == 0 and i + 1 < n and (first == second or i & 1)):
            return False
    return v == 0


@helper
def _stays_closed(heads: Ints, column: int, cycles: Ints) -> bool:
    """Whether all cycles that use ``column`` still are cycles."""
    ring = np.empty(len(heads), np.int64)
    for i in range(len(cycles)):
        if (cycles[i, 0] == column or cycles[i, 1] == column) and not follow(heads, cycles[i, 0], cycles[i, 1], ring):
            return False
    return True


@leaf
def _is_closed(column: int, cycles: Ints) -> bool:
    for i in range(len(cycles)):
        if cycles[i, 0] == column or cycles[i, 1] == column:
            return True
    return False


@leaf
def _apply(heads: Ints, changes: Ints, count: int) -> None:
    """Make the changes written down, one after the other, and write down what was there before."""
    for i in range(count):
        v, k, w = changes[i, 0], changes[i, 1], changes[i, 2]
        changes[i, 2] = heads[v, k]
        heads[v, k] = w


@leaf
def _swap_servers(heads: Ints, a: int, b: int) -> None:
    """Give server a the links of b and the reverse: the same network, other places in it."""
    n, d = heads.shape
    for v in range(n):
        for k in range(d):
            w = heads[v, k]
            if w == a:
                heads[v, k] = b
            elif w == b:
                heads[v, k] = a
    for k in range(d):
        w = heads[a, k]
        heads[a, k] = heads[b, k]
        heads[b, k] = w


@kernel("(i8[:, ::1], i8[:, ::1], i8)")
def undo(heads: Ints, changes: Ints, count: int) -> None:
    """Take back the ``count`` changes of a move, last first; a count of -1 is a swap of two servers."""
    if count < 0:
        _swap_servers(heads, changes[0, 0], changes[0, 1])
    for i in range(count - 1, -1, -1):
        heads[changes[i, 0], changes[i, 1]] = changes[i, 2]


@leaf
def _legal(heads: Ints, changes: Ints, count: int, parallel: bool) -> bool:
    """No changed link leads home, nor repeats another where ``parallel`` links are forbidden."""
    d = heads.shape[1]
    for i in range(count):
        v, k = changes[i, 0], changes[i, 1]
        w = heads[v, k]
        if w == v:
            return False
        if w >= 0 and not parallel:
            for other in range(d):
                if other != k and heads[v, other] == w:
                    return False
    return True


@helper
def _swap_colours(heads: Ints, cycles: Ints) -> None:
    """Swap two open planes along a random alternating path or cycle: other planes, same links, hence other moves."""
    n, d = heads.shape
    p, q = np.random.randint(d), np.random.randint(d)
    if p == q or _is_closed(p, cycles) or _is_closed(q, cycles):
        return
    inside, stack = np.empty(n, np.int64), np.empty(n, np.int64)
    for v in range(n):
        inside[v] = 0
    stack[0] = np.random.randint(n)
    inside[stack[0]] = 1
    waiting = 1
    while waiting:
        waiting -= 1
        v = stack[waiting]
        at_p, at_q = heads[v, p], heads[v, q]
        for side in range(2):
            w = at_q if side else at_p
            if w >= 0 and not inside[w]:
                inside[w] = 1
                stack[waiting] = w
                waiting += 1
        heads[v, p], heads[v, q] = at_q, at_p


@helper
def _exchange_in_plane(heads: Ints, k: int, cycles: Ints, changes: Ints) -> int:
    """Join two random servers in plane k, and those that they were joined to."""
    n = len(heads)
    if np.random.random() < 0.2:
        _swap_colours(heads, cycles)
    a, c = np.random.randint(n), np.random.randint(n)
    b, e = heads[a, k], heads[c, k]
    if a == c or a == e:
        return 0
    changes[0, 0], changes[0, 1], changes[0, 2] = a, k, c
    changes[1, 0], changes[1, 1], changes[1, 2] = c, k, a
    count = 2
    if b >= 0:
        changes[count, 0], changes[count, 1], changes[count, 2] = b, k, e
        count += 1
    if e >= 0:
        changes[count, 0], changes[count, 1], changes[count, 2] = e, k, b
        count += 1
    return count


@leaf
def _exchange_in_cycle(heads: Ints, k: int, changes: Ints) -> int:
    """Cut the cycle of column k at three random places and put the stretches together in the other order."""
    n = len(heads)
    a, c, e = np.random.randint(n), np.random.randint(n), np.random.randint(n)
    if a == c or e == a or e == c:
        return 0
    # c is to be the first of the two on the way from a.
    v = heads[a, k]
    while v != c and v != e:
        v = heads[v, k]
    if v == e:
        e = c
        c = v
    changes[0, 0], changes[0, 1], changes[0, 2] = a, k, heads[c, k]
    changes[1, 0], changes[1, 1], changes[1, 2] = e, k, heads[a, k]
    changes[2, 0], changes[2, 1], changes[2, 2] = c, k, heads[e, k]
    return 3


@leaf
def _exchange_ends(heads: Ints, k: int, cycles: Ints, changes: Ints) -> int:
    """Exchange the ends of a random link of column k with one, sometimes two, random ones of open columns."""
    n, d = heads.shape
    a, c, m = np.random.randint(n), np.random.randint(n), np.random.randint(d)
    b, x = heads[a, k], heads[c, m]
    if _is_closed(m, cycles) or b == x:
        return 0
    changes[0, 0], changes[0, 1], changes[0, 2] = a, k, x
    if np.random.random() >= 0.15:
        changes[1, 0], changes[1, 1], changes[1, 2] = c, m, b
        return 2
    e, o = np.random.randint(n), np.random.randint(d)
    if _is_closed(o, cycles) or (e == a and o == k) or (e == c and o == m):
        return 0
    changes[1, 0], changes[1, 1], changes[1, 2] = c, m, heads[e, o]
    changes[2, 0], changes[2, 1], changes[2, 2] = e, o, b
    return 3


@kernel("(i8[:, ::1], i8[:, ::1], b1, b1, f8, i8[:, ::1])")
def move(heads: Ints, cycles: Ints, duplex: bool, parallel: bool, swaps: float, changes: Ints) -> int:
    """Apply a random move; returns its number of changes (see :func:`undo`), 0 where the attempt failed.

    Links exchange their ends, two at a time; three at a time in a closed one-way column, where two would break the
    cycle, and sometimes among open one-way links. The part ``swaps`` of the moves swap the places of two servers.
    """
    n, d = heads.shape
    k = np.random.randint(d)
    if np.random.random() < swaps:
        a, c = np.random.randint(n), np.random.randint(n)
        if a == c:
            return 0
        changes[0, 0], changes[0, 1] = a, c
        _swap_servers(heads, a, c)
        return -1
    if duplex:
        count = _exchange_in_plane(heads, k, cycles, changes)
    elif _is_closed(k, cycles):
        count = _exchange_in_cycle(heads, k, changes)
    else:
        count = _exchange_ends(heads, k, cycles, changes)
    _apply(heads, changes, count)
    if (duplex and not _stays_closed(heads, k, cycles)) or not _legal(heads, changes, count, parallel):
        undo(heads, changes, count)
        return 0
    return count


@kernel("(i8[:, ::1], i8[:, ::1], f8[:, ::1], b1, b1, b1, f8, i8, f8, f8, i8[:, ::1], f8)")
def anneal_hops(
    heads: Ints,
    cycles: Ints,
    traffic: Floats,
    duplex: bool,
    parallel: bool,
    forwarding: bool,
    swaps: float,
    moves: int,
    temperature: float,
    cooling: float,
    best: Ints,
    least: float,
) -> float:
    """One stage of simulated annealing of :func:`hop_volume` on ``heads`` in place; returns the least volume so far.

    ``best`` gets the table of that volume where it is below ``least``. The temperature is multiplied by ``cooling``
    with every move.
    """
    changes = np.empty((MOST_CHANGES, 3), np.int64)
    current = hop_volume(heads, traffic, forwarding)
    for _ in range(moves):
        temperature *= cooling
        count = move(heads, cycles, duplex, parallel, swaps, changes)
        if count == 0:
            continue
        trial = hop_volume(heads, traffic, forwarding)
        if trial <= current - temperature * np.log(1.0 - np.random.random()):
            current = trial
            if current < least:
                least = current
                for v in range(len(heads)):
                    for k in range(heads.shape[1]):
                        best[v, k] = heads[v, k]
        else:
            undo(heads, changes, count)
    return least
