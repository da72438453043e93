"""The Numba kernel that routes traffic and shares out rings on fixed links, near-optimally."""

# mypy: disable-error-code="untyped-decorator, no-any-return"
# ruff: noqa: NPY002 (compiled code is fastest with Numba's own state of random numbers)

from typing import NamedTuple

import numpy as np
from numba import njit

from ddlopt.solvers.topology.kernels import (
    Floats,
    Ints,
    Loads,
    Net,
    all_trees,
    busiest,
    capacities,
    load_trees,
    set_lengths,
    shift_flows,
)
from ddlopt.solvers.topology.ring_kernels import (
    Columns,
    add_column,
    cheapest_column,
    route_ring,
    shift_shares,
    short_ring,
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


class Outcome(NamedTuple):
    """What :func:`balance_kernel` finds.

    ``congestion``: largest load per link, infinite where something has no path or the bound was beyond hope;
    ``bound``: dual value over the rings that were priced (not all rings), given by the arc lengths ``length``;
    ``flow`` (n, n * d) of the traffic, without that of the rings.
    """

    congestion: float
    bound: float
    flow: Floats
    length: Floats
    columns: Columns


@njit(cache=True)
def seed_kernels(seed: int) -> None:
    """Seed the random numbers of all kernels."""
    np.random.seed(seed)


@njit(cache=True)
def _metric_volume(traffic: Floats, dist: Floats) -> float:
    """Sum of traffic times distance; infinite if some traffic has no path."""
    total = 0.0
    for s in range(len(traffic)):
        for t in range(len(traffic)):
            if traffic[s, t] > 0.0:
                total += traffic[s, t] * dist[s, t]
    return total


@njit(cache=True)
def _total_length(net: Net, length: Floats) -> float:
    """Sum of capacity times length."""
    total = 0.0
    for a in range(len(length)):
        if net.capacity[a] > 0.0:
            total += net.capacity[a] * length[a]
    return total


@njit(cache=True)
def _first_rings(
    g: int, demand: Demand, net: Net, pace: Pace, dist: Floats, via: Ints, length: Floats, columns: Columns
) -> float:
    """Route the known rings of group g and, where none takes single links only, a new one; share out among the best.

    Returns the bytes times hops of the shortest; infinite where there is no ring.
    """
    d, size, hop_bytes = net.heads.shape[1], demand.sizes[g], demand.hop_bytes[g]
    places = len(columns.shares) // len(demand.sizes)
    first, last = g * places, (g + 1) * places
    for c in range(first, last):
        if columns.orders[c, 0] >= 0:
            used = route_ring(columns.orders[c, :size], hop_bytes, via, d, columns.cells[c], columns.loads[c])
            columns.counts[c] = max(0, used)
            if used < 0:
                columns.orders[c, 0] = -1
                columns.loads[c] = 0.0
    best = cheapest_column(columns, first, last, length)
    direct = size * hop_bytes * 1.0001
    if pace.kicks >= 0 and (best < 0 or columns.loads[best].sum() > direct):
        known = columns.orders[best, :size].copy() if best >= 0 else np.full(size, -1)
        ring = short_ring(dist, demand.members[g, :size], known, pace.reversing, pace.kicks + 3)
        add_column(ring, first, last, hop_bytes, via, d, length, columns)
        best = cheapest_column(columns, first, last, length)
    if best < 0:
        return np.inf
    least = columns.loads[best].sum()
    shortest = 0
    for c in range(first, last):
        if columns.counts[c] > 0 and columns.loads[c].sum() <= least * 1.0001:
            columns.shares[c] = 1.0
            shortest += 1
    columns.shares[first:last] /= shortest
    return least


@njit(cache=True)
def _price_ring(
    g: int, demand: Demand, net: Net, pace: Pace, dist: Floats, via: Ints, length: Floats, columns: Columns
) -> float:
    """Look for a ring of group g that is shorter than its columns, add it, and return its bytes times length."""
    size = demand.sizes[g]
    places = len(columns.shares) // len(demand.sizes)
    first, last = g * places, (g + 1) * places
    ring = columns.orders[cheapest_column(columns, first, last, length), :size].copy()
    if pace.kicks >= 0 and size > 2:
        ring = short_ring(dist, demand.members[g, :size], ring, pace.reversing, pace.kicks)
    add_column(ring, first, last, demand.hop_bytes[g], via, net.heads.shape[1], length, columns)
    total = 0.0
    for i in range(size):
        total += demand.hop_bytes[g] * dist[ring[i - 1], ring[i]]
    return total


@njit(cache=True)
def balance_kernel(heads: Ints, forwarding: bool, demand: Demand, orders: Ints, pace: Pace) -> Outcome:
    """Near-optimal routes and ring shares on fixed links.

    The largest load is smoothed to a potential Σ capacity · exp(κ load / (capacity · busiest)). Each sweep prices one
    more ring per group, shifts shares among the group's rings and then flows among paths, while κ grows geometrically.

    Parameters
    ----------
    heads : (n, d)
    orders : (groups * places, largest)
        Known rings as in :class:`Columns`; replaced by those in use.
    """
    n, d = heads.shape
    arcs, groups = n * d, len(demand.sizes)
    net = Net(heads, capacities(heads), forwarding)
    links = max(1.0, net.capacity.sum())
    flow, loads = np.zeros((n, arcs)), Loads(np.zeros(arcs), np.empty(arcs))
    columns = Columns(
        orders,
        np.empty((len(orders), n * min(n, 24)), np.int64),
        np.zeros(len(orders), np.int64),
        np.zeros((len(orders), arcs)),
        np.zeros(len(orders)),
    )
    dist, via = np.empty((n, n)), np.empty((n, n), np.int64)

    set_lengths(net, loads, 0.0, 0.0)
    best_length = loads.length.copy()
    all_trees(net, loads.length, dist, via)
    bound = _metric_volume(demand.traffic, dist) / links
    for g in range(groups):
        bound += _first_rings(g, demand, net, pace, dist, via, loads.length, columns) / links
    if bound == np.inf or bound > pace.give_up:
        return Outcome(np.inf, bound, flow, best_length, columns)
    for c in range(len(orders)):
        if columns.shares[c] > 0.0:
            loads.load[:] += columns.shares[c] * columns.loads[c]
    load_trees(demand.traffic, net, SOFTEST / bound, flow, loads)

    congestion = busiest(net, loads.load)
    kappa, growth = SOFTEST, (pace.sharpest / SOFTEST) ** (1.0 / max(1.0, 0.8 * pace.sweeps))
    for sweep in range(pace.sweeps):
        if congestion <= bound * (1.0 + pace.tolerance):
            break
        sharpness = kappa / congestion
        kappa = min(kappa * growth, pace.sharpest)
        set_lengths(net, loads, sharpness, congestion)
        if groups > 0 or sweep % 4 == 3:
            all_trees(net, loads.length, dist, via)
            value = _metric_volume(demand.traffic, dist)
            for g in range(groups):
                value += _price_ring(g, demand, net, pace, dist, via, loads.length, columns)
            value /= _total_length(net, loads.length)
            if value > bound:
                bound = value
                best_length[:] = loads.length
            if bound > pace.give_up:
                break
            places = len(orders) // max(1, groups)
            for g in range(groups):
                shift_shares(columns, g * places, (g + 1) * places, places + 4, net, loads, sharpness, congestion)
        shift_flows(demand.traffic, net, sharpness, congestion, flow, loads)
        congestion = busiest(net, loads.load)
    return Outcome(congestion, bound, flow, best_length, columns)
