"""Numba kernels of the fractional routing on fixed links: shortest-path trees and shifts of flow along them.

Links are a table ``heads`` of shape (n, d): ``heads[v, k]`` is the server at the far end of the k-th outgoing link of
v, or -1 where the port is idle. The arc of that link has the number ``v * d + k``. Parallel links are one arc: the
first of them has their number as its capacity, the others have capacity 0. Nothing here knows an instance.

Numba's cache on disk looks at the file of a function only: after a change here, delete ``__pycache__`` to have the
kernels of other files compiled anew.
"""

# mypy: disable-error-code="untyped-decorator, no-any-return"

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from numba import njit

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

FLOOR = 1e-9
"""Length of an arc far from busy, where the busiest has 1: of two idle paths the shorter one is taken."""


class Net(NamedTuple):
    """Links as the kernels take them: ends (n, d), capacities (n * d,) in links, whether servers relay."""

    heads: Ints
    capacity: Floats
    forwarding: bool


class Loads(NamedTuple):
    """What arcs carry, (n * d,) bytes, and their lengths at this load, infinite where there is no arc."""

    load: Floats
    length: Floats


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
def grow_tree(source: int, net: Net, length: Floats, dist: Floats, via: Ints, order: Ints) -> int:
    """Shortest-path tree from ``source`` by Dijkstra's algorithm with dense scans; returns how many servers it reaches.

    Fills ``dist`` (infinite where unreached), ``via`` (the arc that enters a server) and ``order`` (servers as
    settled), each (n,). Without forwarding a path is a single arc. An arc of infinite length is absent.
    """
    n, d = net.heads.shape
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
        if v != source and not net.forwarding:
            continue
        for k in range(d):
            arc = v * d + k
            if length[arc] == np.inf:
                continue
            w = net.heads[v, k]
            reached = dist[v] + length[arc]
            if reached < dist[w]:
                if dist[w] == np.inf:
                    frontier[waiting] = w
                    waiting += 1
                dist[w] = reached
                via[w] = arc
    return settled


@njit(cache=True)
def all_trees(net: Net, length: Floats, dist: Floats, via: Ints) -> None:
    """Shortest-path trees from every server into ``dist`` and ``via``, both (n, n), row = source."""
    order = np.empty(len(net.heads), np.int64)
    for s in range(len(net.heads)):
        grow_tree(s, net, length, dist[s], via[s], order)


@njit(cache=True)
def set_lengths(net: Net, loads: Loads, sharpness: float, reference: float) -> None:
    """Lengths = derivatives of the potential sum capacity * exp(sharpness * load / capacity), scaled: long where busy.

    An arc with ``reference`` bytes per link has length 1.
    """
    for a in range(len(loads.load)):
        if net.capacity[a] > 0.0:
            loads.length[a] = np.exp(sharpness * (loads.load[a] / net.capacity[a] - reference)) + FLOOR
        else:
            loads.length[a] = np.inf


@njit(cache=True)
def add_load(arc: int, amount: float, net: Net, loads: Loads, sharpness: float, reference: float) -> None:
    """Add to the load of one arc and set its length."""
    loads.load[arc] += amount
    loads.length[arc] = np.exp(sharpness * (loads.load[arc] / net.capacity[arc] - reference)) + FLOOR


@njit(cache=True)
def busiest(net: Net, load: Floats) -> float:
    """The largest load per link."""
    most = 0.0
    for a in range(len(load)):
        if net.capacity[a] > 0.0:
            most = max(most, load[a] / net.capacity[a])
    return most


@njit(cache=True)
def load_trees(traffic: Floats, net: Net, sharpness: float, flow: Floats, loads: Loads) -> None:
    """Send every source's traffic (n, n) down its tree, one source after the other, each seeing the loads before it.

    Fills ``flow`` (n, n * d), zero before, and adds to ``loads``. Everybody must be reachable from where it is sent to.
    """
    n, d = net.heads.shape
    set_lengths(net, loads, sharpness, 0.0)
    dist, via, order = np.empty(n), np.empty(n, np.int64), np.empty(n, np.int64)
    for s in range(n):
        if not traffic[s].any():
            continue
        settled = grow_tree(s, net, loads.length, dist, via, order)
        below = traffic[s].copy()
        for i in range(settled - 1, 0, -1):
            v = order[i]
            if below[v] > 0.0:
                below[via[v] // d] += below[v]
                flow[s, via[v]] = below[v]
                add_load(via[v], below[v], net, loads, sharpness, 0.0)


@njit(cache=True)
def _main_entries(flow: Floats, heads: Ints, entering: Ints) -> None:
    """For each server the arc into it that carries most of one source's ``flow`` (n * d,); -1 where there is none."""
    entering[:] = -1
    d = heads.shape[1]
    for a in range(len(flow)):
        if flow[a] > 0.0:
            v = heads[a // d, a % d]
            if entering[v] < 0 or flow[a] > flow[entering[v]]:
                entering[v] = a


@njit(cache=True)
def _used_segment(arc: int, flow: Floats, entering: Ints, on_tree: Ints, d: int, segment: Ints) -> int:
    """Follow used arcs back from ``arc`` to the first server marked with it; returns how many, 0 where that fails."""
    segment[0] = arc
    arcs, u = 1, arc // d
    while on_tree[u] != arc:
        b = entering[u]
        if b < 0 or arcs == len(on_tree) or flow[b] <= 0.0:
            return 0
        segment[arcs] = b
        arcs += 1
        u = b // d
    return arcs


@njit(cache=True)
def _equalise(
    flow: Floats,
    segment: Ints,
    arcs: int,
    tree: Ints,
    tree_arcs: int,
    net: Net,
    loads: Loads,
    sharpness: float,
    ref: float,
) -> None:
    """Shift a source's flow from ``segment`` to ``tree``, between the same ends, until both are about as long."""
    room = np.inf
    slow = slow_bend = fast = fast_bend = 0.0
    for b in segment[:arcs]:
        room = min(room, flow[b])
        slow += loads.length[b]
        slow_bend += loads.length[b] / net.capacity[b]
    for b in tree[:tree_arcs]:
        fast += loads.length[b]
        fast_bend += loads.length[b] / net.capacity[b]
    if fast >= slow:
        return
    amount = room
    if tree_arcs > 0:
        amount = min(room, np.log(slow / fast) / (sharpness * (slow_bend / slow + fast_bend / fast)))
    for b in segment[:arcs]:
        flow[b] = max(0.0, flow[b] - amount)
        add_load(b, -amount, net, loads, sharpness, ref)
    for b in tree[:tree_arcs]:
        flow[b] += amount
        add_load(b, amount, net, loads, sharpness, ref)


@njit(cache=True)
def shift_flows(traffic: Floats, net: Net, sharpness: float, reference: float, flow: Floats, loads: Loads) -> None:
    """One sweep of Newton shifts: for each source, from every used segment to the tree segment that avoids it.

    A used arc that is no tree arc ends at a server where two segments meet: the tree path, and a path of used arcs back
    to the first server on that tree path. Flow moves from the second to the first until both are equally long: a Newton
    step on the logarithms of their lengths, exact where all capacities agree and no arc is idle. ``flow`` (n, n * d)
    and ``loads`` stay consistent. The idea of paired alternative segments is Bar-Gera's.

    References
    ----------
    H. Bar-Gera, "Traffic assignment by paired alternative segments", Transportation Research B 44, 2010.
    """
    n, d = net.heads.shape
    dist, via, order = np.empty(n), np.empty(n, np.int64), np.empty(n, np.int64)
    on_tree, entering = np.empty(n, np.int64), np.empty(n, np.int64)
    segment, tree = np.empty(n + 1, np.int64), np.empty(n + 1, np.int64)
    for s in range(n):
        if not traffic[s].any():
            continue
        grow_tree(s, net, loads.length, dist, via, order)
        _main_entries(flow[s], net.heads, entering)
        on_tree[:] = -1
        for a in range(n * d):
            if flow[s, a] <= 0.0:
                continue
            v = net.heads[a // d, a % d]
            if via[v] == a or dist[a // d] + loads.length[a] <= dist[v] * (1.0 + 1e-9):
                continue
            w = v
            while w != s:
                on_tree[w] = a
                w = via[w] // d
            on_tree[s] = a
            arcs = _used_segment(a, flow[s], entering, on_tree, d, segment)
            if arcs == 0:
                continue
            meet = segment[arcs - 1] // d
            tree_arcs, w = 0, v
            while w != meet:
                tree[tree_arcs] = via[w]
                tree_arcs += 1
                w = via[w] // d
            _equalise(flow[s], segment, arcs, tree, tree_arcs, net, loads, sharpness, reference)
