"""Numba kernels that list regular digraphs, or graphs, whose hops exceed the Moore bound by little, depth first.

Servers are numbered breadth first from server 0. Of a digraph each server gets all of its links at once, of a graph
those that lead to later servers. Sets of servers are the bits of a whole number.
"""

# mypy: disable-error-code="untyped-decorator, no-any-return"

import numpy as np
import numpy.typing as npt

from ddlopt.models.kernels import helper, kernel, leaf

Ints = npt.NDArray[np.int64]

DEPTH, NODES, FOUND, DONE = range(4)
"""Entries of ``state``: the server whose links are chosen, sets tried, digraphs found, and whether all is searched."""


NEVER = 10**6
"""More than hops can exceed anything by, where somebody is out of reach."""


@leaf
def _size(members: int) -> int:
    """How many bits are set."""
    number = 0
    while members:
        members &= members - 1
        number += 1
    return number


@leaf
def least_excess(v: int, n: int, degree: int, onward: int, near: Ints, open_ends: Ints, free: int) -> int:
    """Hops to v, or from it, beyond those of the Moore bound at least.

    ``near`` has the known neighbours of each server, ``open_ends`` how many it will get besides, and ``free`` is the
    set of those that these may be. Of an unknown one all that can be reached over it is counted as new: it leads to
    ``onward`` others.
    """
    seen, layer = np.int64(1) << v, np.int64(1) << v
    reached, unknown, full, size, excess = 0, 0, 0, degree, 0
    while full < n - 1 and size:
        full = min(n - 1, full + size)
        size *= onward
        unknown *= onward
        following, ends = np.int64(0), 0
        for w in range(n):
            if (layer >> w) & 1:
                following |= near[w]
                ends += open_ends[w]
        layer = following & ~seen
        seen |= layer
        if ends:
            unknown += min(ends, _size(free & ~seen))
        reached += _size(layer) + unknown
        excess += max(0, full - reached)
    while reached < n - 1 and (layer or unknown):
        unknown *= onward
        following, ends = np.int64(0), 0
        for w in range(n):
            if (layer >> w) & 1:
                following |= near[w]
                ends += open_ends[w]
        layer = following & ~seen
        seen |= layer
        if ends:
            unknown += min(ends, _size(free & ~seen))
        reached += _size(layer) + unknown
        excess += max(0, n - 1 - reached)
    return excess if reached >= n - 1 else NEVER


@leaf
def has_room(n: int, copies: Ints, open_in: Ints) -> bool:
    """Whether no server would get more links than it takes."""
    for w in range(n):  # noqa: SIM110 (compiled code is written in loops)
        if copies[w] > open_in[w]:
            return False
    return True


@leaf
def with_ends(n: int, open_ends: Ints) -> int:
    """The servers that will get more links."""
    free = np.int64(0)
    for w in range(n):
        if open_ends[w]:
            free |= np.int64(1) << w
    return int(free)


@helper
def too_far(n: int, degree: int, onward: int, most: int, near: Ints, open_ends: Ints, other_ends: Ints) -> bool:
    """Whether all hops together exceed the Moore bound by more than ``most``.

    ``other_ends`` is how many links each server will get at their other ends.
    """
    excess, free = 0, with_ends(n, other_ends)
    for v in range(n):
        if open_ends[v] < degree:
            excess += least_excess(v, n, degree, onward, near, open_ends, free)
            if excess > most:
                return True
    return False


@kernel("(i8, i8, i8, b1, i8[::1], i8[:, ::1], i8[::1], i8[:, ::1], i8[::1], i8, i8[:, ::1])", nogil=True)
def list_links(
    n: int,
    degree: int,
    most: int,
    duplex: bool,
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
    of each server, servers found before, those found by it and by whom each server was found, links out and in as
    sets, and how many of either are open. Of a graph links lead both ways, so that one row of sets and one of open
    links have all of them.
    """
    place, before, new, finder = table[0], table[1], table[2], table[3]
    out, into, open_out, open_in = table[4], table[5], table[6], table[7]
    onward = degree
    if duplex:
        into, open_in, onward = out, open_out, degree - 1
    v = state[DEPTH]
    if state[NODES] == 0:
        before[0] = 1
        for w in range(n):
            open_out[w] = open_in[w] = degree
    last = state[NODES] + budget
    while v >= 0 and state[NODES] < last and state[FOUND] < len(found):
        if place[v] >= 0:
            for w in range(n):
                if copies[place[v], w]:
                    out[v] &= ~(np.int64(1) << w)
                    into[w] &= ~(np.int64(1) << v)
                    open_out[v] += copies[place[v], w]
                    open_in[w] += copies[place[v], w]
        barred = (np.int64(2) << v) - 1 if duplex else np.int64(1) << v
        for w in range(n):
            if open_in[w] == 0:
                barred |= np.int64(1) << w
        k, end, known = max(place[v] + 1, begins[open_out[v]]), begins[open_out[v] + 1], before[v]
        while k < end:
            # Servers are numbered as they are found.
            fresh = sets[k] >> known
            if not sets[k] & barred and not fresh & (fresh + 1) and has_room(n, copies[k], open_in):
                break
            k += 1
        if k == end:
            place[v] = -1
            v -= 1
            continue
        place[v] = k
        state[NODES] += 1
        new[v] = 0
        for w in range(n):
            if copies[k, w]:
                out[v] |= np.int64(1) << w
                into[w] |= np.int64(1) << v
                open_out[v] -= copies[k, w]
                open_in[w] -= copies[k, w]
                if w >= known:
                    new[v] += 1
                    finder[w] = v
        # Of servers found by the same one that comes first which finds the most.
        if v > 1 and finder[v] == finder[v - 1] and new[v] > new[v - 1]:
            continue
        if known + new[v] == v + 1 < n:
            continue
        if least_excess(0, n, degree, onward, out, open_out, with_ends(n, open_in)) > most // n:
            continue
        if too_far(n, degree, onward, most, out, open_out, open_in):
            continue
        if not duplex and too_far(n, degree, onward, most, into, open_in, open_out):
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
