"""Numba kernels of all-reduce rings on fixed links: short rings under given lengths, and the shares that balance them.

A *column* is a ring with its routing: the order of its members, the cells of the (source, arc) table that its hops use
(a flat number ``source * arcs + arc`` each), and the load that it puts on every arc when it carries the whole gradient.
"""

# mypy: disable-error-code="untyped-decorator, no-any-return"
# ruff: noqa: NPY002 (compiled code is fastest with Numba's own state of random numbers)

from typing import NamedTuple

import numpy as np

from ddlopt.models.kernels import helper, kernel, leaf
from ddlopt.models.tolerances import IMPROVEMENT_TOL
from ddlopt.solvers.topology.balance.path_kernels import Floats, Ints, Loads, Net, set_lengths


class Columns(NamedTuple):
    """Rings with routes: those of group g are the places g * C .. (g + 1) * C - 1 of the first axis.

    ``orders`` (places, largest) has -1 first where a place is free; ``cells`` (places, most) the cells that hops use,
    the first ``counts`` of them, none where a place is free; ``loads`` (places, n * d); ``shares`` of the group's
    gradient.
    """

    orders: Ints
    cells: Ints
    counts: Ints
    loads: Floats
    shares: Floats


@helper
def nearest(cost: Floats, wanted: int) -> Ints:
    """For each of k places the ``wanted`` places of least ``cost`` (k, k) other than itself, nearest first."""
    k = len(cost)
    near = np.empty((k, wanted), np.int64)
    for i in range(k):
        filled = 0
        for j in range(k):
            if i == j or (filled == wanted and cost[i, j] >= cost[i, near[i, wanted - 1]]):
                continue
            place = filled if filled < wanted else wanted - 1
            while place > 0 and cost[i, near[i, place - 1]] > cost[i, j]:
                near[i, place] = near[i, place - 1]
                place -= 1
            near[i, place] = j
            if filled < wanted:
                filled += 1
    return near


@leaf
def greedy_ring(cost: Floats, first: int, ring: Ints, taken: Ints) -> None:
    """Order of all k places from ``first`` into ``ring``, each followed by the nearest that is left."""
    k = len(cost)
    for j in range(k):
        taken[j] = 0
    best = first
    for i in range(k):
        last, taken[best], ring[i] = best, 1, best
        best = -1
        for j in range(k):
            if not taken[j] and (best < 0 or cost[last, j] < cost[last, best]):
                best = j


@leaf
def ring_cost(cost: Floats, ring: Ints) -> float:
    """Sum of ``cost`` over the hops of a closed ring."""
    total = 0.0
    for i in range(len(ring)):
        total += cost[ring[i - 1], ring[i]]
    return total


@leaf
def swap_stretches(ring: Ints, start: int, first: int, second: int, old: Ints) -> None:
    """Swap two neighbouring stretches: places start + 1 .. start + first, and those up to start + second (mod k).

    ``old`` (k,) is scratch.
    """
    k = len(ring)
    for i in range(k):
        old[i] = ring[i]
    for i in range(second):
        ring[(start + 1 + i) % k] = old[(start + 1 + (i + first) % second) % k]


@leaf
def _improve_once(
    cost: Floats, ring: Ints, place: Ints, turns: Floats, near: Ints, near_in: Ints, reversing: bool, tiny: float
) -> bool:
    """Apply the first improving move found; False where there is none.

    ``place`` (k,) inverts ``ring``; ``turns`` (k,) is what the hops up to a place cost more backwards than forwards.
    """
    k = len(ring)
    for start in range(k):
        a, b = ring[start], ring[(start + 1) % k]
        for i in range(near.shape[1]):
            x = near[a, i]
            saved = cost[a, b] - cost[a, x]
            if saved <= tiny:
                break
            if x == b:
                continue
            # a→b … c→x … e→f becomes a→x … e→b … c→f.
            off = (place[x] - start) % k
            c = ring[place[x] - 1]
            for j in range(near.shape[1]):
                e = near_in[b, j]
                off_e = (place[e] - start) % k
                f = ring[(place[e] + 1) % k]
                if off_e >= off and saved + cost[c, x] + cost[e, f] - cost[e, b] - cost[c, f] > tiny:
                    # The search begins anew after a move, which sets ``place`` again.
                    swap_stretches(ring, start, off - 1, off_e, place)
                    return True
            if reversing and place[x] > start + 1:
                # a→b … x→y becomes a→x … b→y, the stretch b … x backwards.
                y = ring[(place[x] + 1) % k]
                if saved + cost[x, y] - cost[b, y] - (turns[place[x]] - turns[start + 1]) > tiny:
                    low, high = start + 1, place[x]
                    while low < high:
                        ring[low], ring[high] = ring[high], ring[low]
                        low, high = low + 1, high - 1
                    return True
    return False


@leaf
def improve_ring(
    cost: Floats, ring: Ints, near: Ints, near_in: Ints, reversing: bool, place: Ints, turns: Floats
) -> float:
    """Local search on ``ring`` in place: swaps of two stretches (3-opt) and, if wanted, reversals; returns its cost.

    ``near`` and ``near_in`` list for each place those that it reaches, and that reach it, at least cost. ``place`` and
    ``turns`` (k,) are scratch.
    """
    k = len(ring)
    tiny = IMPROVEMENT_TOL * ring_cost(cost, ring)
    turns[0] = 0.0
    improved = k > 2
    while improved:
        for i in range(k):
            place[ring[i]] = i
            if i > 0:
                turns[i] = turns[i - 1] + cost[ring[i], ring[i - 1]] - cost[ring[i - 1], ring[i]]
        improved = _improve_once(cost, ring, place, turns, near, near_in, reversing, tiny)
    return ring_cost(cost, ring)


@kernel("(f8[:, ::1], i8[::1], i8[::1], b1, i8)")
def shorten_ring(dist: Floats, members: Ints, known: Ints, reversing: bool, kicks: int) -> None:
    """Make a ring of ``members`` (k,) short under ``dist`` (n, n): local search from ``known``, kicked ``kicks`` times.

    ``known`` (k,) are servers in ring order, replaced by those found; where it starts with -1 the search starts from a
    greedy ring.
    """
    k = len(members)
    cost, back, turns = np.empty((k, k), np.float64), np.empty((k, k), np.float64), np.empty(k, np.float64)
    index, ring = np.empty(len(dist), np.int64), np.empty(k, np.int64)
    trial, place = np.empty(k, np.int64), np.empty(k, np.int64)
    far = 0.0
    for i in range(k):
        index[members[i]] = i
        for j in range(k):
            hop = dist[members[i], members[j]]
            if hop != np.inf and hop > far:
                far = hop
    for i in range(k):
        for j in range(k):
            hop = dist[members[i], members[j]]
            cost[i, j] = back[j, i] = hop if hop != np.inf else 10.0 * k * (far + 1.0)
    wanted = k - 1 if k < 9 else 8
    near, near_in = nearest(cost, wanted), nearest(back, wanted)
    if known[0] < 0:
        greedy_ring(cost, np.random.randint(k), trial, place)
    else:
        for i in range(k):
            trial[i] = index[known[i]]
    best = np.inf
    for attempt in range(1 + (kicks if k > 3 else 0)):
        if attempt > 0:
            for i in range(k):
                trial[i] = ring[i]
            # A kick disturbs one place only: two neighbouring stretches, up to 50 hops long together, are swapped.
            reach = k - 1 if k < 51 else 50
            first = 1 + np.random.randint(reach - 1)
            swap_stretches(trial, np.random.randint(k), first, first + 1 + np.random.randint(reach - first), place)
        total = improve_ring(cost, trial, near, near_in, reversing, place, turns)
        if attempt == 0 or total <= best:
            best = total
            for i in range(k):
                ring[i] = trial[i]
    for i in range(k):
        known[i] = members[ring[i]]


@kernel("(i8[::1], f8, i8[:, ::1], i8, i8[::1], f8[::1])")
def route_ring(ring: Ints, hop_bytes: float, via: Ints, d: int, cells: Ints, load: Floats) -> int:
    """Route every hop of ``ring`` along the trees ``via`` (n, n); returns the number of cells.

    Fills ``cells`` and ``load`` (n * d,). Returns -1 where a hop has no path or ``cells`` are too few.
    """
    used, arcs, most = 0, len(load), len(cells)
    for a in range(arcs):
        load[a] = 0.0
    for i in range(len(ring)):
        s, v = ring[i - 1], ring[i]
        while v != s:
            arc = via[s, v]
            if arc < 0 or used == most:
                return -1
            cells[used] = s * arcs + arc
            load[arc] += hop_bytes
            used += 1
            v = arc // d
    return used


@leaf
def column_cost(columns: Columns, place: int, length: Floats) -> float:
    """Load times length of one column; 0 where the place is free."""
    loads, total = columns.loads, 0.0
    for a in range(len(length)):
        if loads[place, a] > 0.0:
            total += loads[place, a] * length[a]
    return total


@leaf
def cheapest_column(columns: Columns, first: int, last: int, length: Floats) -> int:
    """The column of first..last-1 with the least cost; -1 where all places are free."""
    counts, best, least = columns.counts, -1, np.inf
    for c in range(first, last):
        if counts[c] > 0:
            cost = column_cost(columns, c, length)
            if cost < least:
                best, least = c, cost
    return best


@helper
def add_column(
    ring: Ints, first: int, last: int, hop_bytes: float, via: Ints, d: int, length: Floats, columns: Columns
) -> None:
    """Store the routed ``ring`` at a free place of first..last-1, or in place of the costliest that is not in use.

    Nothing happens if it has no routes or no place, or is not cheaper under ``length`` than all columns there are.
    """
    counts, shares = columns.counts, columns.shares
    cells, load = np.empty(columns.cells.shape[1], np.int64), np.empty(len(length), np.float64)
    used = route_ring(ring, hop_bytes, via, d, cells, load)
    if used < 0:
        return
    cost = 0.0
    for a in range(len(length)):
        if load[a] > 0.0:
            cost += load[a] * length[a]
    place, most = -1, -1.0
    for c in range(first, last):
        there = column_cost(columns, c, length) if counts[c] > 0 else np.inf
        if there <= cost * (1.0 + 1e-4):
            return
        if shares[c] == 0.0 and there > most:
            place, most = c, there
    if place >= 0:
        counts[place] = used
        orders, all_cells, loads = columns.orders, columns.cells, columns.loads
        for i in range(len(ring)):
            orders[place, i] = ring[i]
        for i in range(used):
            all_cells[place, i] = cells[i]
        for a in range(len(length)):
            loads[place, a] = load[a]


@leaf
def shift_shares(
    columns: Columns, first: int, last: int, steps: int, net: Net, loads: Loads, sharpness: float, reference: float
) -> None:
    """Newton shifts of shares among the columns first..last-1, from the costliest in use to the cheapest.

    Each makes the two equally long, to first order in the logarithms of the lengths of the arcs in which they differ.
    """
    load, length, capacity = loads.load, loads.length, net.capacity
    table, shares = columns.loads, columns.shares
    for _ in range(steps):
        worst, most = -1, -1.0
        for c in range(first, last):
            if shares[c] > 0.0:
                cost = column_cost(columns, c, length)
                if cost > most:
                    worst, most = c, cost
        best = cheapest_column(columns, first, last, length)
        if best == worst or most <= column_cost(columns, best, length) * (1.0 + 1e-4):
            return
        up = up_bend = down = down_bend = 0.0
        for a in range(len(load)):
            change = table[best, a] - table[worst, a]
            if change > 0.0:
                up += change * length[a]
                up_bend += change * change * length[a] / capacity[a]
            elif change < 0.0:
                down -= change * length[a]
                down_bend += change * change * length[a] / capacity[a]
        amount = shares[worst]
        if up > 0.0:
            wanted = np.log(down / up) / (sharpness * (up_bend / up + down_bend / down))
            if wanted < amount:
                amount = wanted
        shares[worst] -= amount
        shares[best] += amount
        for a in range(len(load)):
            load[a] += amount * (table[best, a] - table[worst, a])
        set_lengths(net, loads, sharpness, reference)
