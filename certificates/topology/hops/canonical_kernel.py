"""Numba kernels that number the servers of a table of pairs in an order that depends on the table only."""

# mypy: disable-error-code="untyped-decorator, no-any-return"

import numpy as np
import numpy.typing as npt

from ddlopt.models.kernels import helper, kernel, leaf

Ints = npt.NDArray[np.int64]
Colours = npt.NDArray[np.uint64]

_MOST_TABLES = 2000
"""Complete numberings compared for one design; beyond that the smallest so far is taken, which may hide likeness."""


@helper
def _mix(x: np.uint64) -> np.uint64:
    """A hash of 64 bits (splitmix64)."""
    x = x + np.uint64(0x9E3779B97F4A7C15)
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


@leaf
def _different(colours: Colours) -> int:
    number = 0
    for v in range(len(colours)):
        w = 0
        while colours[w] != colours[v]:
            w += 1
        if w == v:
            number += 1
    return number


@kernel("(u8[::1], i8[:, ::1])")
def refine(colours: Colours, table: Ints) -> None:
    """Refine colours (n,) in place until their number no longer grows; ``table`` (n, n) of pairs."""
    n = len(colours)
    fresh, classes = np.empty(n, np.uint64), 0
    while True:
        different = _different(colours)
        if different <= classes or different == n:
            return
        classes = different
        for v in range(n):
            total = _mix(colours[v]) + np.uint64(table[v, v])
            for w in range(n):
                if w != v:
                    pair = _mix(np.uint64(table[v, w])) + np.uint64(3) * _mix(np.uint64(table[w, v]) + np.uint64(77))
                    total += _mix(pair + _mix(colours[w]))
            fresh[v] = total
        for v in range(n):
            colours[v] = fresh[v]


@leaf
def _twins(v: int, w: int, table: Ints) -> bool:
    """Whether exchanging two servers of one colour leaves the table as it is."""
    if table[v, w] != table[w, v] or table[v, v] != table[w, w]:
        return False
    for u in range(len(table)):
        if u != v and u != w and (table[v, u] != table[w, u] or table[u, v] != table[u, w]):
            return False
    return True


@leaf
def _smaller(order: Ints, best: Ints, table: Ints) -> bool:
    """Whether one numbering gives the smaller table."""
    for i in range(len(order)):
        for j in range(len(order)):
            one, other = table[order[i], order[j]], table[best[i], best[j]]
            if one != other:
                return one < other
    return False


@kernel("(u8[:, ::1], i8[:, ::1], i8[:, ::1], i8[::1], i8[::1], i8[::1])")
def _canonical_order(colours: Colours, members: Ints, table: Ints, next_one: Ints, ranks: Ints, best: Ints) -> None:
    """Fill ``best``; ``colours`` (n + 1, n) begin with the marks, what else there is is scratch."""
    n = len(table)
    refine(colours[0], table)
    found, depth, fresh, tables = False, 0, True, 0
    while depth >= 0:
        if fresh:
            # Equal colours stand in the order of the servers.
            for v in range(n):
                i = v
                while i > 0 and colours[depth, ranks[i - 1]] > colours[depth, v]:
                    ranks[i] = ranks[i - 1]
                    i -= 1
                ranks[i] = v
            size, begin, i = n + 1, 0, 0
            while i < n:
                j = i
                while j < n and colours[depth, ranks[j]] == colours[depth, ranks[i]]:
                    j += 1
                if 1 < j - i < size:
                    size, begin = j - i, i
                i = j
            for i in range(n):
                members[depth, i] = -1
            next_one[depth] = 0
            if size > n:
                tables += 1
                if not found or _smaller(ranks, best, table):
                    for i in range(n):
                        best[i] = ranks[i]
                    found = True
                depth, fresh = depth - 1, False
                continue
            alike = True
            for i in range(begin, begin + size):
                members[depth, i - begin] = ranks[i]
                alike = alike and (i == begin or _twins(ranks[begin], ranks[i], table))
            if alike:
                for i in range(1, n):
                    members[depth, i] = -1
        place = next_one[depth]
        if place >= n or members[depth, place] < 0 or (found and tables >= _MOST_TABLES):
            depth, fresh = depth - 1, False
            continue
        next_one[depth] = place + 1
        for v in range(n):
            colours[depth + 1, v] = colours[depth, v]
        v = members[depth, place]
        colours[depth + 1, v] = _mix(colours[depth, v] + np.uint64(1))
        refine(colours[depth + 1], table)
        depth, fresh = depth + 1, True


def canonical_order(marks: Colours, table: Ints) -> Ints:
    """The servers in an order that depends on the numbers in ``marks`` (n,) and ``table`` (n, n) only."""
    n = len(marks)
    colours, members, order = np.empty((n + 1, n), np.uint64), np.empty((n + 1, n), np.int64), np.zeros(n, np.int64)
    colours[0] = marks
    _canonical_order(colours, members, table, np.empty(n + 1, np.int64), np.empty(n, np.int64), order)
    return order
