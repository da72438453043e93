"""Numba kernels of all-reduce rings on fixed links: short rings under given lengths, and the shares that balance them.

A *column* is a ring with its routing: the order of its members, the cells of the (source, arc) table that its hops use (a flat
number ``source * arcs + arc`` each), and the load that it puts on every arc when it carries the whole gradient.
"""

# mypy: disable-error-code="untyped-decorator"

import numpy as np
from numba import njit

from ddlopt.solvers.topology.kernels import Floats, Ints, set_lengths


@njit(cache=True)
def nearest(cost: Floats, wanted: int) -> Ints:
    """For each of k places the ``wanted`` places of least ``cost`` (k, k) other than itself, nearest first."""
    k = len(cost)
    near = np.empty((k, wanted), np.int64)
    for i in range(k):
        filled = 0
        for j in range(k):
            if i == j or (filled == wanted and cost[i, j] >= cost[i, near[i, wanted - 1]]):
                continue
            place = min(filled, wanted - 1)
            while place > 0 and cost[i, near[i, place - 1]] > cost[i, j]:
                near[i, place] = near[i, place - 1]
                place -= 1
            near[i, place] = j
            filled = min(filled + 1, wanted)
    return near


@njit(cache=True)
def greedy_ring(cost: Floats, first: int) -> Ints:
    """Order of all k places from ``first``, each followed by the nearest that is left."""
    k = len(cost)
    ring, left = np.empty(k, np.int64), np.full(k, True)
    ring[0] = first
    left[first] = False
    for i in range(1, k):
        best = -1
        for j in range(k):
            if left[j] and (best < 0 or cost[ring[i - 1], j] < cost[ring[i - 1], best]):
                best = j
        ring[i] = best
        left[best] = False
    return ring


@njit(cache=True)
def ring_cost(cost: Floats, ring: Ints) -> float:
    """Sum of ``cost`` over the hops of a closed ring."""
    total = 0.0
    for i in range(len(ring)):
        total += cost[ring[i - 1], ring[i]]
    return total


@njit(cache=True)
def exchange_segments(ring: Ints, i: int, j: int, l: int) -> None:  # noqa: E741
    """Swap the neighbouring stretches i+1..j and j+1..l (i < j < l < k) of ``ring`` in place."""
    swapped = np.concatenate((ring[j + 1 : l + 1], ring[i + 1 : j + 1]))
    ring[i + 1 : l + 1] = swapped


@njit(cache=True)
def improve_ring(cost: Floats, ring: Ints, near: Ints, near_in: Ints, reversing: bool) -> float:
    """Local search on ``ring`` in place: swaps of two stretches (pure 3-opt) and, if wanted, reversals; returns its cost.

    ``near`` and ``near_in`` list for each place those that it reaches, and that reach it, at least cost.
    """
    k = len(ring)
    total = ring_cost(cost, ring)
    if k < 3:
        return total
    place = np.empty(k, np.int64)
    tiny = 1e-9 * total
    improved = True
    while improved:
        improved = False
        # Hop costs forwards and backwards from the first place, so that a reversal is priced at once.
        gain_back = np.zeros(k)
        for i in range(k):
            place[ring[i]] = i
            if i > 0:
                gain_back[i] = gain_back[i - 1] + cost[ring[i], ring[i - 1]] - cost[ring[i - 1], ring[i]]
        for start in range(k):
            a, b = ring[start], ring[(start + 1) % k]
            for x in near[a]:
                saved = cost[a, b] - cost[a, x]
                if saved <= tiny:
                    break
                if x == b or x == a:
                    continue
                off = (place[x] - start) % k
                c = ring[(start + off - 1) % k]
                # a→b … c→x … e→f becomes a→x … e→b … c→f.
                for e in near_in[b]:
                    off_e = (place[e] - start) % k
                    if off_e < off:
                        continue
                    f = ring[(start + off_e + 1) % k]
                    if saved + cost[c, x] + cost[e, f] - cost[e, b] - cost[c, f] > tiny:
                        turned = np.concatenate((ring[start:], ring[:start]))
                        exchange_segments(turned, 0, off - 1, off_e)
                        ring[:] = turned
                        improved = True
                        break
                if improved:
                    break
                if reversing and place[x] > start + 1:
                    # a→b … x→y becomes a→x … b→y, the stretch b … x backwards.
                    y = ring[(place[x] + 1) % k]
                    turn = gain_back[place[x]] - gain_back[start + 1]
                    if saved + cost[x, y] - cost[b, y] - turn > tiny:
                        ring[start + 1 : place[x] + 1] = ring[start + 1 : place[x] + 1][::-1].copy()
                        improved = True
                        break
            if improved:
                break
    return ring_cost(cost, ring)


@njit(cache=True)
def short_ring(dist: Floats, members: Ints, known: Ints, reversing: bool, kicks: int) -> Ints:
    """A ring of ``members`` (k,), short under ``dist`` (n, n): local search from ``known`` (servers in ring order), kicked.

    Where ``known`` starts with -1 the search starts from a greedy ring.
    """
    k = len(members)
    cost = np.empty((k, k))
    index = np.full(len(dist), -1)
    for i in range(k):
        index[members[i]] = i
        for j in range(k):
            cost[i, j] = dist[members[i], members[j]]
    far = 0.0
    for x in cost.flat:
        if x != np.inf:
            far = max(far, x)
    for i in range(k):
        for j in range(k):
            if cost[i, j] == np.inf:
                cost[i, j] = 10.0 * k * (far + 1.0)
    wanted = min(8, k - 1)
    near, near_in = nearest(cost, wanted), nearest(cost.T.copy(), wanted)
    if known[0] < 0:
        ring = greedy_ring(cost, np.random.randint(k))
    else:
        ring = np.empty(k, np.int64)
        for i in range(k):
            ring[i] = index[known[i]]
    best = improve_ring(cost, ring, near, near_in, reversing)
    trial = ring.copy()
    for _ in range(kicks if k > 3 else 0):
        trial[:] = ring
        # A kick disturbs one place only: a stretch of up to 50 hops is cut in three and put together differently.
        reach = min(k - 1, 50)
        i = np.random.randint(k)
        turned = np.concatenate((trial[i:], trial[:i]))
        cuts = np.sort(np.random.choice(reach, 3, False)) if reach > 3 else np.array([0, 1, 2])
        exchange_segments(turned, cuts[0], cuts[1], cuts[2])
        trial[:] = turned
        total = improve_ring(cost, trial, near, near_in, reversing)
        if total <= best:
            best = total
            ring[:] = trial
    return members[ring]


@njit(cache=True)
def route_ring(
    ring: Ints, hop_bytes: float, via: Ints, heads: Ints, cells: Ints, load: Floats
) -> int:
    """Route every hop of ``ring`` along the trees ``via`` (n, n); returns the number of cells, or -1 if there are too many.

    Fills ``cells`` and ``load`` (n * d,); -1 also if a hop has no path.
    """
    d = heads.shape[1]
    arcs = len(load)
    used = 0
    load[:] = 0.0
    for i in range(len(ring)):
        s, v = ring[i - 1], ring[i]
        while v != s:
            arc = via[s, v]
            if arc < 0 or used == len(cells):
                return -1
            cells[used] = s * arcs + arc
            load[arc] += hop_bytes
            used += 1
            v = arc // d
    return used


@njit(cache=True)
def shift_shares(
    loads: Floats,
    shares: Floats,
    first: int,
    last: int,
    steps: int,
    capacity: Floats,
    sharpness: float,
    reference: float,
    load: Floats,
    length: Floats,
) -> None:
    """Newton shifts of shares among the columns first..last-1 of one group, from the longest in use to the shortest.

    ``loads`` (columns, n * d) are the columns' loads at share 1; ``shares``, ``load`` and ``length`` are kept consistent.
    """
    arcs = len(load)
    for _ in range(steps):
        worst = best = -1
        worst_cost, best_cost = -1.0, np.inf
        for c in range(first, last):
            total = 0.0
            for a in range(arcs):
                if loads[c, a] > 0.0:
                    total += loads[c, a] * length[a]
            if 0.0 < total < best_cost:
                best, best_cost = c, total
            if shares[c] > 0.0 and total > worst_cost:
                worst, worst_cost = c, total
        if best == worst or worst_cost <= best_cost * (1.0 + 1e-4):
            return
        up = up_bend = down = down_bend = 0.0
        for a in range(arcs):
            change = loads[best, a] - loads[worst, a]
            if change > 0.0:
                up += change * length[a]
                up_bend += change * change * length[a] / capacity[a]
            elif change < 0.0:
                down -= change * length[a]
                down_bend += change * change * length[a] / capacity[a]
        amount = shares[worst]
        if up > 0.0:
            amount = min(amount, np.log(down / up) / (sharpness * (up_bend / up + down_bend / down)))
        shares[worst] -= amount
        shares[best] += amount
        for a in range(arcs):
            load[a] += amount * (loads[best, a] - loads[worst, a])
        set_lengths(load, capacity, sharpness, reference, length)
