"""Numba kernel that lists regular undirected graphs whose hops exceed the Moore bound by little, as for digraphs.

Servers are numbered breadth first from server 0, and each gets those of its links that lead to later ones. Sets of
servers are the bits of a whole number.
"""

# mypy: disable-error-code="untyped-decorator"

import numpy as np

from ddlopt.certificates.topology.hops.listing_kernel import (
    DEPTH,
    DONE,
    FOUND,
    NODES,
    Ints,
    has_room,
    least_excess,
    too_far,
    with_ends,
)
from ddlopt.models.kernels import kernel


@kernel("(i8, i8, i8, i8[::1], i8[:, ::1], i8[::1], i8[:, ::1], i8[::1], i8, i8[:, ::1])", nogil=True)
def list_graphs(
    n: int,
    degree: int,
    most: int,
    sets: Ints,
    copies: Ints,
    begins: Ints,
    table: Ints,
    state: Ints,
    budget: int,
    found: Ints,
) -> None:
    """Go on with the search until ``budget`` more sets are tried or ``found`` (many, n) is full.

    ``sets`` are all that up to ``degree`` links may lead to, ordered by how many these are, ``begins`` (degree + 2,)
    where those of each number begin, ``copies`` (sets, n) how many links lead to each server, and what is found are
    places in these. ``table`` (8, n + 1) is the stack and begins with zeros, but -1 in its first row: place of the set
    of each server, servers found before, those found by it and by whom each server was found, neighbours as sets, and
    how many links are open; two rows are of no use here.
    """
    place, before, new, finder = table[0], table[1], table[2], table[3]
    near, open_ends = table[4], table[5]
    v = state[DEPTH]
    if state[NODES] == 0:
        before[0] = 1
        for w in range(n):
            open_ends[w] = degree
    last = state[NODES] + budget
    while v >= 0 and state[NODES] < last and state[FOUND] < len(found):
        if place[v] >= 0:
            for w in range(v + 1, n):
                if copies[place[v], w]:
                    near[v] &= ~(np.int64(1) << w)
                    near[w] &= ~(np.int64(1) << v)
                    open_ends[w] += copies[place[v], w]
                    open_ends[v] += copies[place[v], w]
        barred = (np.int64(2) << v) - 1
        for w in range(v + 1, n):
            if open_ends[w] == 0:
                barred |= np.int64(1) << w
        k, end, known = max(place[v] + 1, begins[open_ends[v]]), begins[open_ends[v] + 1], before[v]
        while k < end:
            # Servers are numbered as they are found.
            fresh = sets[k] >> known
            if not sets[k] & barred and not fresh & (fresh + 1) and has_room(n, copies[k], open_ends):
                break
            k += 1
        if k == end:
            place[v] = -1
            v -= 1
            continue
        place[v] = k
        state[NODES] += 1
        new[v], open_ends[v] = 0, 0
        for w in range(v + 1, n):
            if copies[k, w]:
                near[v] |= np.int64(1) << w
                near[w] |= np.int64(1) << v
                open_ends[w] -= copies[k, w]
                if w >= known:
                    new[v] += 1
                    finder[w] = v
        # Of servers found by the same one that comes first which finds the most.
        if v > 1 and finder[v] == finder[v - 1] and new[v] > new[v - 1]:
            continue
        if known + new[v] == v + 1 < n:
            continue
        if least_excess(0, n, degree, degree - 1, near, open_ends, with_ends(n, open_ends)) > most // n:
            continue
        if too_far(n, degree, degree - 1, most, near, open_ends, open_ends):
            continue
        if v == n - 1:
            for w in range(n):
                found[state[FOUND], w] = place[w]
            state[FOUND] += 1
            continue
        v += 1
        before[v] = known + new[v - 1]
    state[DEPTH] = v
    state[DONE] = v < 0


@kernel("i8(i8[:, ::1])", nogil=True)
def least_ring(distances: Ints) -> int:
    """Length of the shortest ring of all servers, by the sets of those that it has met and the last of these.

    References
    ----------
    M. Held, R. M. Karp, "A dynamic programming approach to sequencing problems", Journal of SIAM 10(1), 1962.
    """
    others = len(distances) - 1
    far = np.iinfo(np.int64).max // 2
    best = np.full((1 << others, others), far)
    for v in range(others):
        best[1 << v, v] = distances[others, v]
    for met in range(1, 1 << others):
        for last in range(others):
            if best[met, last] == far:
                continue
            for v in range(others):
                if not (met >> v) & 1:
                    after = met | (1 << v)
                    best[after, v] = min(best[after, v], best[met, last] + distances[last, v])
    least = far
    for last in range(others):
        least = min(least, best[-1, last] + distances[last, others])
    return least
