"""The Numba kernel that routes traffic and shares out rings on fixed links, near-optimally."""

# mypy: disable-error-code="untyped-decorator, no-any-return"

from typing import NamedTuple

import numpy as np

from ddlopt.models.kernels import helper, kernel, leaf
from ddlopt.solvers.topology.balance.path_kernels import (
    Floats,
    Ints,
    Loads,
    Net,
    all_trees,
    busiest,
    load_trees,
    set_lengths,
    shift_flows,
)
from ddlopt.solvers.topology.balance.ring_kernels import (
    Columns,
    add_column,
    cheapest_column,
    route_ring,
    shift_shares,
    shorten_ring,
)

SOFTEST = 2.0
"""First exponent of the potential, relative to the busiest link; higher ones commit to the first trees too early."""


class Demand(NamedTuple):
    """What is to be sent: traffic (n, n); of each group the members (groups, largest), their number, the hop bytes."""

    traffic: Floats
    members: Ints
    sizes: Ints
    hop_bytes: Floats


class Pace(NamedTuple):
    """How hard to try.

    ``sweeps``, the last exponent ``sharpest`` of the potential, ``kicks`` per ring and sweep (negative: only known
    rings), whether rings may be ``reversing``; stop where the largest load is within ``tolerance`` of the bound, or the
    bound exceeds ``give_up``.
    """

    sweeps: int
    sharpest: float
    kicks: int
    reversing: bool
    tolerance: float
    give_up: float


@leaf
def _metric_volume(traffic: Floats, dist: Floats) -> float:
    """Sum of traffic times distance; infinite if some traffic has no path."""
    total = 0.0
    for s in range(len(traffic)):
        for t in range(len(traffic)):
            if traffic[s, t] > 0.0:
                total += traffic[s, t] * dist[s, t]
    return total


@leaf
def _total_length(net: Net, length: Floats) -> float:
    """Sum of capacity times length."""
    capacity, total = net.capacity, 0.0
    for a in range(len(length)):
        if capacity[a] > 0.0:
            total += capacity[a] * length[a]
    return total


@leaf
def _row_sum(table: Floats, row: int) -> float:
    total = 0.0
    for i in range(table.shape[1]):
        total += table[row, i]
    return total


@helper
def _route_known(g: int, demand: Demand, via: Ints, d: int, columns: Columns) -> None:
    """Route the known rings of group g; places of those that have no routes are free."""
    orders, cells, counts, loads = columns.orders, columns.cells, columns.counts, columns.loads
    size, places = demand.sizes[g], len(counts) // len(demand.sizes)
    for c in range(g * places, (g + 1) * places):
        if orders[c, 0] >= 0:
            counts[c] = route_ring(orders[c, :size], demand.hop_bytes[g], via, d, cells[c], loads[c])
            if counts[c] < 0:
                counts[c] = 0
                orders[c, 0] = -1
                for a in range(loads.shape[1]):
                    loads[c, a] = 0.0


@leaf
def _share_out(g: int, best: int, groups: int, columns: Columns) -> float:
    """Share out group g among its rings with about the least bytes times hops, which ``best`` has; returns those."""
    counts, loads, shares = columns.counts, columns.loads, columns.shares
    places = len(shares) // groups
    least, shortest = _row_sum(loads, best), 0
    for c in range(g * places, (g + 1) * places):
        if counts[c] > 0 and _row_sum(loads, c) <= least * 1.0001:
            shares[c] = 1.0
            shortest += 1
    for c in range(g * places, (g + 1) * places):
        shares[c] /= shortest
    return least


@helper
def _price_ring(
    g: int,
    known: int,
    kicks: int,
    demand: Demand,
    reversing: bool,
    dist: Floats,
    via: Ints,
    d: int,
    length: Floats,
    columns: Columns,
) -> float:
    """Look for a ring of group g that is shorter than its columns, add it, and return its bytes times length.

    The search begins at the column ``known``, or at a greedy ring if that is -1; only known rings are taken if
    ``kicks`` are negative.
    """
    orders, sizes, hop_bytes = columns.orders, demand.sizes, demand.hop_bytes[g]
    size, places = sizes[g], len(columns.shares) // len(sizes)
    ring = np.empty(size, np.int64)
    for i in range(size):
        ring[i] = orders[known, i] if known >= 0 else -1
    if kicks >= 0 and (size > 2 or known < 0):
        shorten_ring(dist, demand.members[g, :size], ring, reversing, kicks)
    add_column(ring, g * places, (g + 1) * places, hop_bytes, via, d, length, columns)
    total = 0.0
    for i in range(size):
        total += hop_bytes * dist[ring[i - 1], ring[i]]
    return total


@kernel(
    "(record(Net, i8[:, ::1], f8[::1], b1), record(Demand, f8[:, ::1], i8[:, ::1], i8[::1], f8[::1]),"
    " record(Pace, i8, f8, i8, b1, f8, f8), f8[:, ::1], record(Loads, f8[::1], f8[::1]), f8[::1],"
    " record(Columns, i8[:, ::1], i8[:, ::1], i8[::1], f8[:, ::1], f8[::1]), f8[:, ::1], i8[:, ::1])"
)
def balance_kernel(
    net: Net,
    demand: Demand,
    pace: Pace,
    flow: Floats,
    loads: Loads,
    best_length: Floats,
    columns: Columns,
    dist: Floats,
    via: Ints,
) -> tuple[float, float]:
    """Near-optimal routes and ring shares on fixed links.

    The largest load is smoothed to a potential Σ capacity · exp(κ load / (capacity · busiest)). Each sweep prices one
    more ring per group, shifts shares among the group's rings and then flows among paths, while κ grows geometrically.

    Parameters
    ----------
    net, demand, pace
    flow : (n, n * d)
        Zero before; that of the traffic, without that of the rings.
    loads
        ``load`` zero before.
    best_length : (n * d,)
        Takes the arc lengths that give the bound.
    columns
        ``orders`` with known rings, replaced by those in use; ``counts``, ``loads`` and ``shares`` zero before.
    dist, via : (n, n)
        Scratch.

    Returns
    -------
    congestion : float
        Largest load per link, infinite where something has no path or the bound was beyond hope.
    bound : float
        Dual value over the rings that were priced (not all rings).
    """
    d, groups, traffic = net.heads.shape[1], len(demand.sizes), demand.traffic
    load, length, shares, orders = loads.load, loads.length, columns.shares, columns.orders
    capacity, ring_loads = net.capacity, columns.loads
    arcs = len(load)
    set_lengths(net, loads, 0.0, 0.0)
    links = 0.0
    for a in range(arcs):
        links += capacity[a]
        best_length[a] = length[a]
    if links < 1.0:
        links = 1.0
    places = len(orders) // (groups if groups > 0 else 1)
    all_trees(net, length, dist, via)
    bound = _metric_volume(traffic, dist) / links
    for g in range(groups):
        first, last = g * places, (g + 1) * places
        _route_known(g, demand, via, d, columns)
        best = cheapest_column(columns, first, last, length)
        direct = demand.sizes[g] * demand.hop_bytes[g] * 1.0001
        if pace.kicks >= 0 and (best < 0 or _row_sum(ring_loads, best) > direct):
            _price_ring(g, best, pace.kicks + 3, demand, pace.reversing, dist, via, d, length, columns)
            best = cheapest_column(columns, first, last, length)
        bound += _share_out(g, best, groups, columns) / links if best >= 0 else np.inf
    if bound == np.inf or bound > pace.give_up:
        return np.inf, bound
    for c in range(len(orders)):
        if shares[c] > 0.0:
            for a in range(arcs):
                load[a] += shares[c] * ring_loads[c, a]
    load_trees(traffic, net, SOFTEST / bound, flow, loads)

    congestion = busiest(net, load)
    steps = 0.8 * pace.sweeps
    kappa, growth = SOFTEST, (pace.sharpest / SOFTEST) ** (1.0 / (steps if steps > 1.0 else 1.0))
    for sweep in range(pace.sweeps):
        if congestion <= bound * (1.0 + pace.tolerance):
            break
        sharpness = kappa / congestion
        kappa = kappa * growth if kappa * growth < pace.sharpest else pace.sharpest
        set_lengths(net, loads, sharpness, congestion)
        if groups > 0 or sweep % 4 == 3:
            all_trees(net, length, dist, via)
            value = _metric_volume(traffic, dist)
            for g in range(groups):
                best = cheapest_column(columns, g * places, (g + 1) * places, length)
                value += _price_ring(g, best, pace.kicks, demand, pace.reversing, dist, via, d, length, columns)
            value /= _total_length(net, length)
            if value > bound:
                bound = value
                for a in range(arcs):
                    best_length[a] = length[a]
            if bound > pace.give_up:
                break
            for g in range(groups):
                shift_shares(columns, g * places, (g + 1) * places, places + 4, net, loads, sharpness, congestion)
        shift_flows(traffic, net, sharpness, congestion, flow, loads)
        congestion = busiest(net, load)
    return congestion, bound
