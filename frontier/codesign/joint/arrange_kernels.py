"""Compiled search over the order of servers on closed rings of links."""

import numpy as np

from ddlopt.models.kernels import helper, kernel
from ddlopt.models.tolerances import ROUNDING
from ddlopt.solvers.topology.balance.path_kernels import Floats, Ints


@kernel("(const(i8[:, ::1]), const(f8[::1]), const(f8[:, ::1]))")
def weighted_volume(heads: Ints, lengths: Floats, traffic: Floats) -> float:
    """Sum of traffic times distance, where links of column k are ``lengths[k]`` long; no path counts as 4 n links."""
    return float(_volume(heads, lengths, traffic))


@helper
def _volume(heads: Ints, lengths: Floats, traffic: Floats) -> float:
    n, d = heads.shape
    far = 4.0 * n * lengths.max()
    dist = np.empty(n)
    queue = np.empty(n + 1, np.int64)
    waiting = np.empty(n, np.bool_)
    total = 0.0
    for source in range(n):
        for v in range(n):
            dist[v] = far
            waiting[v] = False
        dist[source] = 0.0
        queue[0] = source
        first, last = 0, 1
        while first != last:
            v = queue[first]
            first = first + 1 if first < n else 0
            waiting[v] = False
            for k in range(d):
                w = heads[v, k]
                if w >= 0 and dist[v] + lengths[k] < dist[w] - ROUNDING:
                    dist[w] = dist[v] + lengths[k]
                    if not waiting[w]:
                        waiting[w] = True
                        queue[last] = w
                        last = last + 1 if last < n else 0
        for v in range(n):
            total += traffic[source, v] * dist[v]
    return total


@helper
def _lay(heads: Ints, column: int, order: Ints, size: int, duplex: bool) -> None:
    """Write a closed ring into its column, or with duplex optics into its column and the next."""
    for i in range(size):
        tail, head = order[i], order[i + 1 if i + 1 < size else 0]
        if duplex:
            heads[tail, column + i % 2], heads[head, column + i % 2] = head, tail
        else:
            heads[tail, column] = head


@kernel(
    "(i8[:, ::1], i8[:, ::1], const(i8[::1]), const(i8[::1]), const(i8[:, ::1]), const(f8[::1]), const(f8[:, ::1]), "
    "b1, i8, f8)"
)
def anneal_orders(
    heads: Ints,
    orders: Ints,
    sizes: Ints,
    columns: Ints,
    stretches: Ints,
    lengths: Floats,
    traffic: Floats,
    duplex: bool,
    moves: int,
    hot: float,
) -> float:
    """Simulated annealing of the weighted volume: two servers of one stretch of a ring exchange their places.

    ``stretches`` are rows (ring, first place, number of places). ``heads`` and ``orders`` get the best that was found;
    returned is its volume. The temperature falls from ``hot`` to a hundredth of it, as parts of the volume.
    """
    current = _volume(heads, lengths, traffic)
    least, best = current, orders.copy()
    temperature, cooling = hot * current, 0.01 ** (1.0 / max(1, moves))
    for _ in range(moves):
        temperature *= cooling
        row = np.random.randint(len(stretches))
        ring, first, places = stretches[row, 0], stretches[row, 1], stretches[row, 2]
        i, j = first + np.random.randint(places), first + np.random.randint(places)
        if i == j:
            continue
        order = orders[ring]
        order[i], order[j] = order[j], order[i]
        _lay(heads, columns[ring], order, sizes[ring], duplex)
        trial = _volume(heads, lengths, traffic)
        if trial <= current - temperature * np.log(1.0 - np.random.random()):
            current = trial
            if current < least:
                least = current
                best[:, :] = orders
        else:
            order[i], order[j] = order[j], order[i]
            _lay(heads, columns[ring], order, sizes[ring], duplex)
    orders[:, :] = best
    for ring in range(len(orders)):
        _lay(heads, columns[ring], orders[ring], sizes[ring], duplex)
    return float(least)
