"""Kernels of the packing of trees: maximum flows on dense matrices of whole numbers, and trees grown by them."""

# mypy: disable-error-code="untyped-decorator, no-any-return"

import numpy as np
import numpy.typing as npt

from ddlopt.models.kernels import helper, kernel

Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]

PLENTY = 2**60
"""Capacity of what never binds."""


@helper
def _levels(left: Ints, source: int, sink: int, level: Ints, queue: Ints) -> bool:
    """Distances from the source over what is left; whether the sink is reached."""
    n = len(left)
    level[:] = -1
    level[source] = 0
    queue[0] = source
    first, last = 0, 1
    while first < last:
        node = queue[first]
        first += 1
        for other in range(n):
            if level[other] < 0 and left[node, other] > 0:
                level[other] = level[node] + 1
                if other == sink:
                    return True
                queue[last] = other
                last += 1
    return False


@helper
def _flow(left: Ints, source: int, sink: int, wanted: int) -> int:
    """Send up to ``wanted`` from source to sink, by Dinic's algorithm; ``left`` becomes what is left."""
    n = len(left)
    level, queue = np.empty(n, np.int64), np.empty(n, np.int64)
    following, path = np.empty(n, np.int64), np.empty(n, np.int64)
    sent = 0
    while sent < wanted and _levels(left, source, sink, level, queue):
        following[:] = 0
        path[0] = source
        depth = 0
        while depth >= 0 and sent < wanted:
            node = path[depth]
            if node == sink:
                amount = wanted - sent
                for k in range(depth):
                    amount = min(amount, left[path[k], path[k + 1]])
                back = depth
                for k in range(depth - 1, -1, -1):
                    left[path[k], path[k + 1]] -= amount
                    left[path[k + 1], path[k]] += amount
                    if left[path[k], path[k + 1]] == 0:
                        back = k
                sent += amount
                depth = back
                continue
            advanced = False
            while following[node] < n:
                other = following[node]
                if left[node, other] > 0 and level[other] == level[node] + 1:
                    depth += 1
                    path[depth] = other
                    advanced = True
                    break
                following[node] += 1
            if not advanced:
                level[node] = -1
                depth -= 1
    return sent


@kernel("i8(const(i8[:, ::1]), i8, i8[::1], i8)")
def least_arriving(network: Ints, accelerators: int, counts: Ints, wanted: int) -> int:
    """The least that arrives at any accelerator where a source sends ``counts`` to each, up to ``wanted``."""
    n = len(network)
    least = wanted
    for sink in range(accelerators):
        left = np.zeros((n + 1, n + 1), np.int64)
        left[:n, :n] = network
        left[n, :accelerators] = counts
        least = min(least, _flow(left, n, sink, wanted))
    return least


@kernel("i8(const(i8[:, ::1]), i8, i8[::1], i8, i8, i8, i8, i8)")
def spare(network: Ints, accelerators: int, counts: Ints, wanted: int, u: int, w: int, t: int, most: int) -> int:
    """How much of u -> w and w -> t may become u -> t, at most ``most``, so that ``wanted`` still arrives everywhere.

    A set of nodes loses what is replaced if it has u and t and not w, or w and neither u nor t. The least that leaves
    such a set with the source and without some accelerator is a minimum cut, for each accelerator.
    """
    n = len(network)
    best = most
    for inside in range(2):
        for sink in range(accelerators):
            if inside == 0 and sink in (u, t):
                continue
            left = np.zeros((n + 1, n + 1), np.int64)
            left[:n, :n] = network
            left[n, :accelerators] = counts
            end = w if inside == 0 else u
            if inside == 0:
                left[n, u] = PLENTY
                left[n, t] = PLENTY
            else:
                left[n, w] = PLENTY
                left[t, end] = PLENTY
            if sink != end:
                left[sink, end] = PLENTY
            best = min(best, _flow(left, n, end, wanted + best) - wanted)
            if best <= 0:
                return 0
    return best


@helper
def _addable(network: Ints, inside: Bools, amounts: Ints, sizes: Ints, roots: Ints, tree: int, x: int, y: int) -> int:
    """For how many copies of a tree the arc from x to y can be added so that all others can still be completed."""
    n, count = network.shape[0], len(amounts)
    extra = 0
    for other in range(tree + 1, count):
        if sizes[other] > 1 and amounts[other] > 0:
            extra += 1
    left = np.zeros((n + extra, n + extra), np.int64)
    left[:n, :n] = network
    others, place = 0, n
    for other in range(tree + 1, count):
        if amounts[other] == 0:
            continue
        others += amounts[other]
        if sizes[other] == 1:
            left[x, roots[other]] += amounts[other]
            continue
        left[x, place] = amounts[other]
        for node in range(n):
            if inside[other, node]:
                left[place, node] = PLENTY
        place += 1
    most = min(network[x, y], amounts[tree])
    return min(most, _flow(left, x, y, others + most) - others)


@kernel("Tuple((i8[:, ::1], i8[::1], i8[::1]))(i8[:, ::1], i8[::1], i8)")
def packed(network: Ints, counts: Ints, most: int) -> tuple[Ints, Ints, Ints]:
    """Spanning trees out of the roots, ``counts`` of each, that together use no arc more often than it is there.

    Parameters
    ----------
    network : (n, n) int array
        How often each arc is there; what is left of it afterwards.
    counts : (n,) int array
    most : int
        Trees that are different, beyond which it gives up and returns none.

    Returns
    -------
    (trees, n) int array
        The node before each node, -1 at the root.
    (trees,) int array
        How many copies there are of each.
    (trees,) int array
        Roots.
    """
    n = len(network)
    used = 0
    parents, inside = np.full((most, n), -1), np.zeros((most, n), np.bool_)
    amounts, roots, sizes = np.zeros(most, np.int64), np.zeros(most, np.int64), np.zeros(most, np.int64)
    for node in range(n):
        if counts[node] > 0:
            amounts[used], roots[used], sizes[used] = counts[node], node, 1
            inside[used, node] = True
            used += 1
    joined = np.empty(n, np.int64)
    tree = 0
    while tree < used:
        # Nodes in the order in which they joined: trees are as shallow as what is left allows.
        joined[0] = roots[tree]
        size, first = 1, 0
        known = np.zeros(n, np.bool_)
        known[roots[tree]] = True
        while size < sizes[tree]:
            for node in range(n):
                if inside[tree, node] and not known[node] and known[parents[tree, node]]:
                    joined[size] = node
                    known[node] = True
                    size += 1
        while size < n and first < size:
            x = joined[first]
            for y in range(n):
                if inside[tree, y] or network[x, y] == 0:
                    continue
                amount = _addable(network, inside[:used], amounts[:used], sizes[:used], roots[:used], tree, x, y)
                if amount <= 0:
                    continue
                if amount < amounts[tree]:
                    if used == most:
                        return parents[:0].copy(), amounts[:0].copy(), roots[:0].copy()
                    parents[used] = parents[tree]
                    inside[used] = inside[tree]
                    amounts[used] = amounts[tree] - amount
                    roots[used], sizes[used] = roots[tree], sizes[tree]
                    used += 1
                    amounts[tree] = amount
                network[x, y] -= amount
                inside[tree, y] = True
                parents[tree, y] = x
                joined[size] = y
                size += 1
                sizes[tree] = size
            first += 1
        if size < n:
            return parents[:0].copy(), amounts[:0].copy(), roots[:0].copy()
        tree += 1
    return parents[:used].copy(), amounts[:used].copy(), roots[:used].copy()
