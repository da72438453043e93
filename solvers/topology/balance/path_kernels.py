"""Numba kernels of the fractional routing on fixed links: shortest-path trees and shifts of flow along them.

Links are a table ``heads`` of shape (n, d): ``heads[v, k]`` is the server at the far end of the k-th outgoing link of
v, or -1 where the port is idle. The arc of that link has the number ``v * d + k``. Parallel links are one arc: the
first of them has their number as its capacity, the others have capacity 0. Nothing here knows an instance.

Written for a short compilation too: every function is compiled into each one that calls it, so they are few and small,
in plain loops, and take arrays out of their tuples once.
"""

# mypy: disable-error-code="untyped-decorator, no-any-return"

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from ddlopt.models.kernels import helper, kernel, leaf
from ddlopt.models.tolerances import IMPROVEMENT_TOL

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


@kernel("(i8,)")
def seed_kernels(seed: int) -> None:
    """Seed the random numbers of all kernels."""
    np.random.seed(seed)


@kernel("(i8[:, ::1],)")
def capacities(heads: Ints) -> Floats:
    """Capacity in links of every arc, shape (n * d,)."""
    n, d = heads.shape
    capacity = np.empty(n * d, np.float64)
    for v in range(n):
        for k in range(d):
            capacity[v * d + k] = 0.0
            if heads[v, k] < 0:
                continue
            first = k
            for earlier in range(k):
                if heads[v, earlier] == heads[v, k]:
                    first = earlier
                    break
            capacity[v * d + first] += 1.0
    return capacity


@leaf
def grow_tree(source: int, net: Net, length: Floats, dist: Floats, via: Ints, order: Ints) -> int:
    """Shortest-path tree from ``source`` by Dijkstra's algorithm with dense scans; returns how many servers it reaches.

    Fills ``dist`` (infinite where unreached), ``via`` (the arc that enters a server) and ``order`` (servers as
    settled), each (n,). Without forwarding a path is a single arc. An arc of infinite length is absent.
    """
    heads, forwarding = net.heads, net.forwarding
    n, d = heads.shape
    for v in range(n):
        dist[v] = np.inf
        via[v] = -1
    dist[source] = 0.0
    # Servers that wait are kept from the end of ``order`` backwards; those settled never get that far.
    last = n - 1
    order[last] = source
    waiting, settled = 1, 0
    while waiting > 0:
        best = last
        for i in range(last - 1, last - waiting, -1):
            if dist[order[i]] < dist[order[best]]:
                best = i
        v = order[best]
        waiting -= 1
        order[best] = order[last - waiting]
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
                    order[last - waiting] = w
                    waiting += 1
                dist[w] = reached
                via[w] = arc
    return settled


@kernel("(record(Net, i8[:, ::1], f8[::1], b1), f8[::1], f8[:, ::1], i8[:, ::1])")
def all_trees(net: Net, length: Floats, dist: Floats, via: Ints) -> None:
    """Shortest-path trees from every server into ``dist`` and ``via``, both (n, n), row = source."""
    order = np.empty(len(net.heads), np.int64)
    for s in range(len(net.heads)):
        grow_tree(s, net, length, dist[s], via[s], order)


@leaf
def set_lengths(net: Net, loads: Loads, sharpness: float, reference: float) -> None:
    """Lengths = derivatives of the potential sum capacity * exp(sharpness * load / capacity), scaled: long where busy.

    An arc with ``reference`` bytes per link has length 1.
    """
    capacity, load, length = net.capacity, loads.load, loads.length
    for a in range(len(load)):
        if capacity[a] > 0.0:
            length[a] = np.exp(sharpness * (load[a] / capacity[a] - reference)) + FLOOR
        else:
            length[a] = np.inf


@leaf
def add_load(arc: int, amount: float, net: Net, loads: Loads, sharpness: float, reference: float) -> None:
    """Add to the load of one arc and set its length."""
    load = loads.load[arc] + amount
    loads.load[arc] = load
    loads.length[arc] = np.exp(sharpness * (load / net.capacity[arc] - reference)) + FLOOR


@leaf
def busiest(net: Net, load: Floats) -> float:
    """The largest load per link."""
    capacity, most = net.capacity, 0.0
    for a in range(len(load)):
        if capacity[a] > 0.0 and load[a] / capacity[a] > most:
            most = load[a] / capacity[a]
    return most


@leaf
def _copy_row(table: Floats, row: int, copy: Floats) -> bool:
    """Copy a row; whether there is anything but zeros in it."""
    some = False
    for i in range(len(copy)):
        copy[i] = table[row, i]
        some = some or copy[i] != 0.0
    return some


@helper
def load_trees(traffic: Floats, net: Net, sharpness: float, flow: Floats, loads: Loads) -> None:
    """Send every source's traffic (n, n) down its tree, one source after the other, each seeing the loads before it.

    Fills ``flow`` (n, n * d), zero before, and adds to ``loads``. Everybody must be reachable from where it is sent to.
    """
    n, d = net.heads.shape
    set_lengths(net, loads, sharpness, 0.0)
    dist, below = np.empty(n, np.float64), np.empty(n, np.float64)
    via, order = np.empty(n, np.int64), np.empty(n, np.int64)
    for s in range(n):
        if not _copy_row(traffic, s, below):
            continue
        settled = grow_tree(s, net, loads.length, dist, via, order)
        for i in range(settled - 1, 0, -1):
            v = order[i]
            if below[v] > 0.0:
                below[via[v] // d] += below[v]
                flow[s, via[v]] = below[v]
                add_load(via[v], below[v], net, loads, sharpness, 0.0)


@leaf
def _main_entries(flow: Floats, heads: Ints, entering: Ints) -> None:
    """For each server the arc into it that carries most of one source's ``flow`` (n * d,); -1 where there is none."""
    n, d = heads.shape
    for v in range(n):
        entering[v] = -1
    for a in range(len(flow)):
        if flow[a] > 0.0:
            v = heads[a // d, a % d]
            if entering[v] < 0 or flow[a] > flow[entering[v]]:
                entering[v] = a


@leaf
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


@leaf
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
    capacity, length = net.capacity, loads.length
    amount = np.inf
    slow = slow_bend = fast = fast_bend = 0.0
    for i in range(arcs):
        b = segment[i]
        if flow[b] < amount:
            amount = flow[b]
        slow += length[b]
        slow_bend += length[b] / capacity[b]
    for i in range(tree_arcs):
        b = tree[i]
        fast += length[b]
        fast_bend += length[b] / capacity[b]
    if fast >= slow:
        return
    if tree_arcs > 0:
        wanted = np.log(slow / fast) / (sharpness * (slow_bend / slow + fast_bend / fast))
        if wanted < amount:
            amount = wanted
    for i in range(arcs + tree_arcs):
        less = i < arcs
        b = segment[i] if less else tree[i - arcs]
        shift = -amount if less else amount
        flow[b] += shift
        if flow[b] < 0.0:
            flow[b] = 0.0
        add_load(b, shift, net, loads, sharpness, ref)


@helper
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
    heads, length = net.heads, loads.length
    n, d = heads.shape
    dist = np.empty(n, np.float64)
    via, on_tree, entering = np.empty(n, np.int64), np.empty(n, np.int64), np.empty(n, np.int64)
    segment, tree = np.empty(n + 1, np.int64), np.empty(n + 1, np.int64)
    for s in range(n):
        if not _copy_row(traffic, s, dist):
            continue
        grow_tree(s, net, length, dist, via, tree)
        own = flow[s]
        _main_entries(own, heads, entering)
        for v in range(n):
            on_tree[v] = -1
        for a in range(n * d):
            if own[a] <= 0.0:
                continue
            v = heads[a // d, a % d]
            if via[v] == a or dist[a // d] + length[a] <= dist[v] * (1.0 + IMPROVEMENT_TOL):
                continue
            w = v
            while w != s:
                on_tree[w] = a
                w = via[w] // d
            on_tree[s] = a
            arcs = _used_segment(a, own, entering, on_tree, d, segment)
            if arcs == 0:
                continue
            meet = segment[arcs - 1] // d
            tree_arcs, w = 0, v
            while w != meet:
                tree[tree_arcs] = via[w]
                tree_arcs += 1
                w = via[w] // d
            _equalise(own, segment, arcs, tree, tree_arcs, net, loads, sharpness, reference)
