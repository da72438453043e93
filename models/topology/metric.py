"""The metric bound: the dual of routing over fixed links."""

from collections.abc import Mapping
from math import inf

import numpy as np
import numpy.typing as npt

from ddlopt.models.errors import InfeasibleError
from ddlopt.models.topology.instance import TopologyInstance

Array = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Pair = tuple[int, int]


def metric_bound(instance: TopologyInstance, links: Mapping[Pair, int], lengths: Mapping[Pair, float]) -> float:
    r"""Bytes that the busiest of these *links* carries at least, whatever the routes and rings.

    For any arc lengths :math:`\ell \ge 0`, a byte from s to t uses up at least :math:`dist_\ell(s, t)` of length, and
    an arc of :math:`c_a` links offers :math:`c_a \ell_a` for each unit of z. Summed up,

    .. math:: z \ge \frac{\sum_{st} D_{st}\, dist_\ell(s, t)}{\sum_a c_a \ell_a} ,

    and the best lengths make it an equality (LP duality): they are the dual values of the arcs in a linear program
    that routes. An all-reduce group counts with the cheapest assignment of a successor to each member, which no ring
    and no mixture of rings can beat.

    Parameters
    ----------
    instance : TopologyInstance
    links : mapping (i, j) -> count
        Ordered pairs, as :meth:`.TopologyDesign.link_counts` gives them.
    lengths : mapping (i, j) -> float
        Any; arcs that are missing have length 0.

    Raises
    ------
    InfeasibleError
        If the links leave a server without a way to one that it must send to.
    ValueError
        If a length is negative, or all are 0.

    References
    ----------
    F. Shahrokhi and D. W. Matula, "The maximum concurrent flow problem", J. ACM 37(2), 1990 (the duality).
    """
    arcs = sorted(arc for arc, count in links.items() if count > 0)
    if not arcs:
        raise InfeasibleError(f"'{instance.name}': the design has no links")
    tails, heads = (np.array(ends, dtype=np.int64) for ends in zip(*arcs, strict=True))
    counts = np.array([links[arc] for arc in arcs], dtype=float)
    length = np.array([float(lengths.get(arc, 0.0)) for arc in arcs])
    if not (length >= 0).all() or not length.any():
        raise ValueError("arc lengths must be >= 0 and not all 0")
    distance = _distances(instance, tails, heads, length)
    sent = instance.traffic_bytes > 0
    if not np.isfinite(distance[sent]).all():
        s, t = (int(end) for end in np.argwhere(sent & ~np.isfinite(distance))[0])
        raise InfeasibleError(f"'{instance.name}': the design's links have no path from server {s} to server {t}")
    used = float((instance.traffic_bytes[sent] * distance[sent]).sum())
    used += sum(group.hop_bytes * _cheapest(instance, group.members, distance) for group in instance.allreduce_groups)
    return used / float(counts @ length)


def _distances(instance: TopologyInstance, tails: Ints, heads: Ints, length: Array) -> Array:
    """(n, n) shortest distances; without forwarding only those of links."""
    n = instance.servers
    if not instance.host_forwarding:
        direct = np.full((n, n), inf)
        direct[tails, heads] = length
        np.fill_diagonal(direct, 0)
        return direct
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import dijkstra

    return np.asarray(dijkstra(csr_array((length, (tails, heads)), shape=(n, n))))


def _cheapest(instance: TopologyInstance, members: tuple[int, ...], distance: Array) -> float:
    """Length of the cheapest assignment of another member to each."""
    from scipy.optimize import linear_sum_assignment

    between = distance[np.ix_(members, members)].copy()
    np.fill_diagonal(between, inf)
    try:
        rows, columns = linear_sum_assignment(between)
    except ValueError:
        raise InfeasibleError(
            f"'{instance.name}': the links leave a member of {list(members)} without any successor"
        ) from None
    return float(between[rows, columns].sum())
