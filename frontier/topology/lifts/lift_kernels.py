"""Numba kernels: annealing of the hops of links with a group of symmetries, and rings that together use each link once.

The links of a *lift* look alike from all servers of an orbit: server ``orbit * m + x`` is the element x of a group of
order m, and slot a of its orbit leads to the element ``product[x, shift[orbit, a]]`` of the orbit ``target[orbit, a]``.
In its *line digraph* the servers are those links, each with links to those that begin where it ends.
"""

# mypy: disable-error-code="untyped-decorator, no-any-return"

import numpy as np

from ddlopt.models.kernels import helper, kernel, leaf
from ddlopt.solvers.topology.balance.path_kernels import Ints

_EXCHANGES = 0.4
"""Part of the moves that exchange the orbits to which two slots lead, where there are several."""


@leaf
def _hops(target: Ints, shift: Ints, product: Ints, inverse: Ints, line: bool, queue: Ints, dist: Ints) -> int:
    """Hops from the first server of each orbit to all others; n for each that is out of reach.

    For the line digraph: from the links that end there, to all others. ``queue`` and ``dist`` (n,) are room to work in.
    """
    orbits, degree = target.shape
    m = len(product)
    n = orbits * m
    total = 0
    for orbit in range(orbits):
        for v in range(n):
            dist[v] = n
        dist[orbit * m] = 0
        queue[0] = orbit * m
        begin, end = 0, 1
        while begin < end:
            v = queue[begin]
            begin += 1
            own = v // m
            x = v - own * m
            for a in range(degree):
                w = target[own, a] * m + product[x, shift[own, a]]
                if dist[w] == n:
                    dist[w] = dist[v] + 1
                    queue[end] = w
                    end += 1
        if not line:
            for v in range(n):
                total += dist[v]
            continue
        # Each of so many links has so many ahead in every server, one hop further than that; one of them is itself.
        for v in range(n):
            total += degree * degree * (dist[v] + 1)
        for i in range(orbits):
            for a in range(degree):
                if target[i, a] == orbit:
                    total -= dist[i * m + inverse[shift[i, a]]] + 1
    return total


@kernel("(i8[:, ::1], i8[:, ::1], i8[:, ::1], b1, i8, i8, f8, f8)")
def anneal_lift(
    target: Ints, shift: Ints, product: Ints, line: bool, moves: int, least: int, hot: float, cold: float
) -> int:
    """Simulated annealing of the hops of a lift in place; returns those of the best, which it leaves in the tables.

    A move draws another element for a slot, or exchanges the orbits of two slots. It stops at ``least`` hops, from one
    server of each orbit, or from the links that end there if those of its ``line`` digraph count. The temperature, in
    hops, falls geometrically.
    """
    orbits, degree = target.shape
    m = len(product)
    queue, dist = np.empty(orbits * m, np.int64), np.empty(orbits * m, np.int64)
    inverse = np.empty(m, np.int64)
    for x in range(m):
        for y in range(m):
            if product[x, y] == 0:
                inverse[y] = x
    best_target, best_shift = target.copy(), shift.copy()
    current = best = _hops(target, shift, product, inverse, line, queue, dist)
    cooling, temperature = (cold / hot) ** (1.0 / max(1, moves)), hot
    for _ in range(moves):
        if best <= least:
            break
        temperature *= cooling
        i, a = np.random.randint(orbits), np.random.randint(degree)
        j, b = i, a
        if orbits > 1 and np.random.random() < _EXCHANGES:
            j, b = np.random.randint(orbits), np.random.randint(degree)
        to_first, to_second, by_first, by_second = target[i, a], target[j, b], shift[i, a], shift[j, b]
        target[i, a], target[j, b] = to_second, to_first
        shift[i, a] = np.random.randint(m)
        if j != i or b != a:
            shift[j, b] = np.random.randint(m)
        looped = (target[i, a] == i and shift[i, a] == 0) or (target[j, b] == j and shift[j, b] == 0)
        trial = current if looped else _hops(target, shift, product, inverse, line, queue, dist)
        if looped or trial > current - temperature * np.log(1.0 - np.random.random()):
            target[i, a], target[j, b], shift[i, a], shift[j, b] = to_first, to_second, by_first, by_second
            continue
        current = trial
        if current < best:
            best = current
            for orbit in range(orbits):
                for slot in range(degree):
                    best_target[orbit, slot], best_shift[orbit, slot] = target[orbit, slot], shift[orbit, slot]
    for orbit in range(orbits):
        for slot in range(degree):
            target[orbit, slot], shift[orbit, slot] = best_target[orbit, slot], best_shift[orbit, slot]
    return best


@helper
def _cycles(heads: Ints, column: int, seen: Ints) -> int:
    """How many cycles a column has."""
    number = 0
    for v in range(len(heads)):
        seen[v] = 0
    for v in range(len(heads)):
        number += 1 - seen[v]
        w = v
        while not seen[w]:
            seen[w] = 1
            w = heads[w, column]
    return number


@kernel("(i8[:, ::1], i8)")
def close_columns(heads: Ints, moves: int) -> bool:
    """Exchange links between the columns, each a permutation, until each is one cycle; whether that was reached.

    A move takes two columns and a server, exchanges its two links, then those of the server whose link now meets
    another in the same column, and so on until both are permutations again. Columns with few cycles are annealed.
    """
    n, d = heads.shape
    tail, number = np.empty((n, d), np.int64), np.empty(d, np.int64)
    seen, path = np.empty(n, np.int64), np.empty(n, np.int64)
    total = 0
    for k in range(d):
        number[k] = _cycles(heads, k, seen)
        total += number[k]
        for v in range(n):
            tail[heads[v, k], k] = v
    for _ in range(moves):
        if total == d:
            break
        p, q, first = np.random.randint(d), np.random.randint(d), np.random.randint(n)
        if p == q:
            continue
        length, v = 0, first
        while length == 0 or v != first:
            path[length] = v
            length += 1
            v = tail[heads[v, p], q]
        for i in range(length):
            heads[path[i], p], heads[path[i], q] = heads[path[i], q], heads[path[i], p]
        cycles_p, cycles_q = _cycles(heads, p, seen), _cycles(heads, q, seen)
        more = cycles_p + cycles_q - number[p] - number[q]
        # At half a cycle of temperature few moves go up, and enough of them.
        if more > 0 and np.random.random() >= np.exp(-2.0 * more):
            for i in range(length):
                heads[path[i], p], heads[path[i], q] = heads[path[i], q], heads[path[i], p]
            continue
        number[p], number[q] = cycles_p, cycles_q
        total += more
        for i in range(length):
            tail[heads[path[i], p], p] = tail[heads[path[i], q], q] = path[i]
    return total == d
