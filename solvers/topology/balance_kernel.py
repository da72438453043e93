"""The Numba kernel that routes traffic and shares out rings on fixed links, near-optimally."""

# mypy: disable-error-code="untyped-decorator"

import numpy as np
from numba import njit

from ddlopt.solvers.topology.kernels import (
    Floats,
    Ints,
    all_trees,
    busiest,
    capacities,
    load_trees,
    set_lengths,
    shift_flows,
)
from ddlopt.solvers.topology.ring_kernels import route_ring, shift_shares, short_ring


@njit(cache=True)
def seed_kernels(seed: int) -> None:
    """Seed the random numbers of all kernels."""
    np.random.seed(seed)


@njit(cache=True)
def metric_volume(traffic: Floats, dist: Floats) -> float:
    """Sum of traffic times distance; infinite if some traffic has no path."""
    total = 0.0
    for s in range(len(traffic)):
        for t in range(len(traffic)):
            if traffic[s, t] > 0.0:
                total += traffic[s, t] * dist[s, t]
    return total


@njit(cache=True)
def _add_column(
    ring: Ints,
    first: int,
    last: int,
    hop_bytes: float,
    via: Ints,
    heads: Ints,
    length: Floats,
    orders: Ints,
    cells: Ints,
    cell_counts: Ints,
    loads: Floats,
    shares: Floats,
) -> bool:
    """Store the routed ``ring`` among the columns first..last-1, in the place of the longest that is not in use.

    False if it has no routes, no place, or is not shorter under ``length`` than all columns there are.
    """
    arcs = loads.shape[1]
    some_cells, some_load = np.empty(cells.shape[1], np.int64), np.empty(arcs)
    used = route_ring(ring, hop_bytes, via, heads, some_cells, some_load)
    if used < 0:
        return False
    cost = 0.0
    for a in range(arcs):
        if some_load[a] > 0.0:
            cost += some_load[a] * length[a]
    place, longest = -1, -1.0
    for c in range(first, last):
        if cell_counts[c] == 0:
            if longest < np.inf:
                place, longest = c, np.inf
            continue
        there = 0.0
        for a in range(arcs):
            if loads[c, a] > 0.0:
                there += loads[c, a] * length[a]
        if there <= cost * (1.0 + 1e-4):
            return False
        if shares[c] == 0.0 and there > longest:
            place, longest = c, there
    if place < 0:
        return False
    orders[place, : len(ring)] = ring
    cells[place] = some_cells
    cell_counts[place] = used
    loads[place] = some_load
    shares[place] = 0.0
    return True


@njit(cache=True)
def balance_kernel(
    heads: Ints,
    traffic: Floats,
    members: Ints,
    sizes: Ints,
    hop_bytes: Floats,
    orders: Ints,
    forwarding: bool,
    reversing: bool,
    kicks: int,
    sweeps: int,
    softest: float,
    sharpest: float,
    tolerance: float,
    give_up: float,
) -> tuple[float, float, Floats, Floats, Floats, Ints, Ints]:
    """Near-optimal routes and ring shares on fixed links.

    The largest load is smoothed to a potential Σ capacity · exp(κ load / (capacity · busiest)), κ grows geometrically from
    ``softest`` to ``sharpest`` over the ``sweeps``; each sweep prices one more ring per group, shifts shares among the
    group's rings and then flows among paths.

    Parameters
    ----------
    heads : (n, d)
    traffic : (n, n)
    members : (groups, largest), sizes, hop_bytes : (groups,)
        Unused places are -1.
    orders : (groups * columns, largest)
        Known rings in ring order, -1 in the first place where there is none; replaced by those in use.
    forwarding, reversing : bool
        Whether servers relay; whether the local search on rings tries reversals.
    kicks : int
        Disturbances per ring and sweep; negative: only the ``orders`` given are used.
    tolerance, give_up : float
        Stop where the largest load is within ``tolerance`` of the bound, or the bound exceeds ``give_up``.

    Returns
    -------
    congestion : float
        Largest load per link, infinite if something cannot be routed.
    bound : float
        Dual value over the rings that were priced (not over all rings).
    flow : (n, n * d)
        Of the traffic; without that of the rings.
    length : (n * d,)
        Arc lengths that gave ``bound``.
    shares : (groups * columns,)
    cells, cell_counts
        (source, arc) cells that each column's hops use.
    """
    n, d = heads.shape
    arcs, groups = n * d, len(sizes)
    columns = len(orders) // groups if groups > 0 else 0
    capacity = capacities(heads)
    links = capacity.sum()
    flow, load, length = np.zeros((n, arcs)), np.zeros(arcs), np.empty(arcs)
    shares, loads = np.zeros(len(orders)), np.zeros((len(orders), arcs))
    cells = np.empty((len(orders), n * min(n, 24)), np.int64)
    cell_counts = np.zeros(len(orders), np.int64)
    dist, via = np.empty((n, n)), np.empty((n, n), np.int64)
    nothing = np.inf, np.inf, flow, length, shares, cells, cell_counts

    set_lengths(load, capacity, 0.0, 0.0, length)
    all_trees(heads, length, forwarding, dist, via)
    volume = metric_volume(traffic, dist)
    if volume == np.inf:
        return nothing
    for g in range(groups):
        first, last = g * columns, (g + 1) * columns
        found, least = 0, np.inf
        for c in range(first, last):
            if orders[c, 0] < 0:
                continue
            used = route_ring(orders[c, : sizes[g]], hop_bytes[g], via, heads, cells[c], loads[c])
            if used < 0:
                orders[c, 0] = -1
                loads[c] = 0.0
                continue
            cell_counts[c] = used
            found += 1
            least = min(least, loads[c].sum())
        if kicks >= 0 and (found == 0 or least > sizes[g] * hop_bytes[g] * 1.0001):
            known = np.full(sizes[g], -1)
            if found > 0:
                for c in range(first, last):
                    if cell_counts[c] > 0 and loads[c].sum() == least:
                        known[:] = orders[c, : sizes[g]]
                        break
            ring = short_ring(dist, members[g, : sizes[g]], known, reversing, kicks + 3)
            if _add_column(
                ring, first, last, hop_bytes[g], via, heads, length, orders, cells, cell_counts, loads, shares
            ):
                found += 1
                least = np.inf
                for c in range(first, last):
                    if cell_counts[c] > 0:
                        least = min(least, loads[c].sum())
        if found == 0:
            return nothing
        shortest = 0
        for c in range(first, last):
            if cell_counts[c] > 0 and loads[c].sum() <= least * 1.0001:
                shortest += 1
        for c in range(first, last):
            if cell_counts[c] > 0 and loads[c].sum() <= least * 1.0001:
                shares[c] = 1.0 / shortest
                load += loads[c] / shortest
        volume += least
    bound = volume / links
    best_length = length.copy()
    if bound > give_up:
        return np.inf, bound, flow, best_length, shares, cells, cell_counts
    load_trees(traffic, heads, capacity, forwarding, softest / bound, flow, load)

    congestion = busiest(load, capacity)
    kappa = softest
    growth = (sharpest / softest) ** (1.0 / max(1.0, 0.8 * sweeps))
    for sweep in range(sweeps):
        sharpness = kappa / congestion
        kappa = min(kappa * growth, sharpest)
        set_lengths(load, capacity, sharpness, congestion, length)
        if groups > 0 or sweep % 4 == 3:
            all_trees(heads, length, forwarding, dist, via)
            value = metric_volume(traffic, dist)
            for g in range(groups):
                first, last = g * columns, (g + 1) * columns
                best, cheapest = -1, np.inf
                for c in range(first, last):
                    if cell_counts[c] > 0:
                        total = 0.0
                        for a in range(arcs):
                            if loads[c, a] > 0.0:
                                total += loads[c, a] * length[a]
                        if total < cheapest:
                            best, cheapest = c, total
                if kicks >= 0 and sizes[g] > 2:
                    ring = short_ring(dist, members[g, : sizes[g]], orders[best, : sizes[g]], reversing, kicks)
                else:
                    ring = orders[best, : sizes[g]].copy()
                _add_column(
                    ring, first, last, hop_bytes[g], via, heads, length, orders, cells, cell_counts, loads, shares
                )
                for i in range(sizes[g]):
                    value += hop_bytes[g] * dist[ring[i - 1], ring[i]]
            total = 0.0
            for a in range(arcs):
                if capacity[a] > 0.0:
                    total += capacity[a] * length[a]
            if value / total > bound:
                bound = value / total
                best_length[:] = length
            if bound > give_up or congestion <= bound * (1.0 + tolerance):
                break
            for g in range(groups):
                shift_shares(
                    loads, shares, g * columns, (g + 1) * columns, columns + 4, capacity, sharpness, congestion, load, length
                )
        shift_flows(traffic, heads, capacity, forwarding, sharpness, congestion, flow, load, length)
        congestion = busiest(load, capacity)
    return congestion, bound, flow, best_length, shares, cells, cell_counts
