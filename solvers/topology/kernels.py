"""Numba kernels of the fractional routing on fixed links: shortest-path trees and shifts of flow along them.

Links are a table ``heads`` of shape (n, d): ``heads[v, k]`` is the server at the far end of the k-th outgoing link of v, or -1
where the port is idle. The arc of that link has the number ``v * d + k``. Parallel links are one arc: the first of them has
their number as its capacity, the others have capacity 0. Nothing here knows an instance.
"""

# mypy: disable-error-code="untyped-decorator"

import numpy as np
import numpy.typing as npt
from numba import njit

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

FLOOR = 1e-9
"""Length of an arc far from busy, where the busiest has 1: of two idle paths the shorter one is taken."""


@njit(cache=True)
def capacities(heads: Ints) -> Floats:
    """Capacity in links of every arc, shape (n * d,)."""
    n, d = heads.shape
    capacity = np.zeros(n * d)
    for v in range(n):
        for k in range(d):
            if heads[v, k] < 0:
                continue
            first = k
            for earlier in range(k):
                if heads[v, earlier] == heads[v, k]:
                    first = earlier
                    break
            capacity[v * d + first] += 1.0
    return capacity


@njit(cache=True)
def grow_tree(source: int, heads: Ints, length: Floats, forwarding: bool, dist: Floats, via: Ints, order: Ints) -> int:
    """Shortest-path tree from ``source`` by Dijkstra's algorithm with dense scans; returns how many servers it reaches.

    Fills ``dist`` (infinite where unreached), ``via`` (the arc that enters a server) and ``order`` (servers as settled), each
    (n,). Without ``forwarding`` a path is a single arc. An arc of infinite length is absent.
    """
    n, d = heads.shape
    dist[:] = np.inf
    via[:] = -1
    dist[source] = 0.0
    frontier = np.empty(n, np.int64)
    frontier[0] = source
    waiting, settled = 1, 0
    while waiting > 0:
        best = 0
        for i in range(1, waiting):
            if dist[frontier[i]] < dist[frontier[best]]:
                best = i
        v = frontier[best]
        waiting -= 1
        frontier[best] = frontier[waiting]
        order[settled] = v
        settled += 1
        if v != source and not forwarding:
            continue
        for k in range(d):
            arc = v * d + k
            if length[arc] == np.inf:
                continue
            w = heads[v, k]
            reached = dist[v] + length[arc]
            if reached < dist[w]:
                if dist[w] == np.inf:
                    frontier[waiting] = w
                    waiting += 1
                dist[w] = reached
                via[w] = arc
    return settled


@njit(cache=True)
def all_trees(heads: Ints, length: Floats, forwarding: bool, dist: Floats, via: Ints) -> None:
    """Shortest-path trees from every server into ``dist`` and ``via``, both (n, n), row = source."""
    order = np.empty(len(heads), np.int64)
    for s in range(len(heads)):
        grow_tree(s, heads, length, forwarding, dist[s], via[s], order)


@njit(cache=True)
def set_lengths(load: Floats, capacity: Floats, sharpness: float, reference: float, length: Floats) -> None:
    """Lengths = derivatives of the potential sum capacity * exp(sharpness * load / capacity), scaled: long where busy."""
    for a in range(len(load)):
        if capacity[a] > 0.0:
            length[a] = np.exp(sharpness * (load[a] / capacity[a] - reference)) + FLOOR
        else:
            length[a] = np.inf


@njit(cache=True)
def busiest(load: Floats, capacity: Floats) -> float:
    """The largest load per link."""
    most = 0.0
    for a in range(len(load)):
        if capacity[a] > 0.0:
            most = max(most, load[a] / capacity[a])
    return most


@njit(cache=True)
def load_trees(
    traffic: Floats, heads: Ints, capacity: Floats, forwarding: bool, sharpness: float, flow: Floats, load: Floats
) -> bool:
    """Send every source's traffic down its tree, one source after the other, each seeing the loads of those before it.

    Fills ``flow`` (n, n * d) and ``load`` (n * d,), both zero before. False if some traffic has no path.
    """
    n, d = heads.shape
    length = np.empty(n * d)
    set_lengths(load, capacity, sharpness, 0.0, length)
    dist, via, order = np.empty(n), np.empty(n, np.int64), np.empty(n, np.int64)
    for s in range(n):
        if not traffic[s].any():
            continue
        settled = grow_tree(s, heads, length, forwarding, dist, via, order)
        below = traffic[s].copy()
        for t in range(n):
            if below[t] > 0.0 and dist[t] == np.inf:
                return False
        for i in range(settled - 1, 0, -1):
            v = order[i]
            if below[v] > 0.0:
                arc = via[v]
                below[arc // d] += below[v]
                flow[s, arc] = below[v]
                load[arc] += below[v]
                length[arc] = np.exp(sharpness * load[arc] / capacity[arc]) + FLOOR
    return True


@njit(cache=True)
def shift_flows(
    traffic: Floats,
    heads: Ints,
    capacity: Floats,
    forwarding: bool,
    sharpness: float,
    reference: float,
    flow: Floats,
    load: Floats,
    length: Floats,
) -> None:
    """One sweep of Newton shifts: for each source, from every used segment to the tree segment that avoids it.

    A used arc that is no tree arc ends at a server where two segments meet: the tree path, and a path of used arcs back to
    the first server on that tree path. Flow moves from the second to the first until both are equally long (to first order
    in the logarithms of their lengths, which is exact where all capacities agree). ``flow``, ``load`` and ``length`` are
    kept consistent throughout. The idea of paired alternative segments is Bar-Gera's.

    References
    ----------
    H. Bar-Gera, "Traffic assignment by paired alternative segments", Transportation Research B 44, 2010.
    """
    n, d = heads.shape
    dist, via, order = np.empty(n), np.empty(n, np.int64), np.empty(n, np.int64)
    on_tree, entering = np.full(n, -1), np.empty(n, np.int64)
    segment = np.empty(n + 1, np.int64)
    for s in range(n):
        if not traffic[s].any():
            continue
        grow_tree(s, heads, length, forwarding, dist, via, order)
        entering[:] = -1
        for a in range(n * d):
            if flow[s, a] > 0.0:
                v = heads[a // d, a % d]
                if entering[v] < 0 or flow[s, a] > flow[s, entering[v]]:
                    entering[v] = a
        on_tree[:] = -1
        for a in range(n * d):
            if flow[s, a] <= 0.0:
                continue
            v = heads[a // d, a % d]
            if via[v] == a or dist[a // d] + length[a] <= dist[v] * (1.0 + 1e-9):
                continue
            w = v
            while w != s:
                on_tree[w] = a
                w = via[w] // d
            on_tree[s] = a

            segment[0] = a
            arcs = 1
            room, slow, slow_bend = flow[s, a], length[a], length[a] / capacity[a]
            u = a // d
            while on_tree[u] != a:
                b = entering[u]
                if b < 0 or arcs == n or flow[s, b] <= 0.0:
                    arcs = 0
                    break
                segment[arcs] = b
                arcs += 1
                room = min(room, flow[s, b])
                slow += length[b]
                slow_bend += length[b] / capacity[b]
                u = b // d
            if arcs == 0:
                continue

            fast = fast_bend = 0.0
            w = v
            while w != u:
                fast += length[via[w]]
                fast_bend += length[via[w]] / capacity[via[w]]
                w = via[w] // d
            if fast >= slow:
                continue
            amount = room
            if u != v:
                amount = min(room, np.log(slow / fast) / (sharpness * (slow_bend / slow + fast_bend / fast)))
            for i in range(arcs):
                b = segment[i]
                flow[s, b] = max(0.0, flow[s, b] - amount)
                load[b] -= amount
                length[b] = np.exp(sharpness * (load[b] / capacity[b] - reference)) + FLOOR
            w = v
            while w != u:
                b = via[w]
                flow[s, b] += amount
                load[b] += amount
                length[b] = np.exp(sharpness * (load[b] / capacity[b] - reference)) + FLOOR
                w = b // d
