"""Complete designs of the branch and bound: their load, and arc lengths that prove that it is no less."""

import numpy as np

from ddlopt.certificates.topology.format import MOST_LENGTH
from ddlopt.frontier.topology.branch_and_bound.bounds import Ints
from ddlopt.models.errors import InfeasibleError
from ddlopt.models.tolerances import TINY
from ddlopt.models.topology import TopologyInstance
from ddlopt.models.topology.planes import EXHAUSTIVE_LINKS, colour_planes
from ddlopt.solvers.topology.balance.balance import Balance, Effort, Job, balance, heads_of
from ddlopt.solvers.topology.balance.exact import polish

_MOST_DENOMINATOR = 2000
"""Dual values are tried as fractions with denominators up to this, so that as whole numbers they lose nothing."""
_ACCURATE = Effort(sweeps=60, sharpest=2000.0, kicks=10, columns=64, tolerance=1e-4)


def heads_of_sets(instance: TopologyInstance, ends: Ints) -> tuple[Ints | None, bool]:
    """Table of link ends for the neighbours (n, d) of all servers, or None; whether that proves that there is none.

    The columns for duplex optics are planes.
    """
    links: dict[tuple[int, int], int] = {}
    for s, row in enumerate(ends.tolist()):
        for v in row:
            if v >= 0 and (instance.optics == "one_way" or s < v):
                links[s, v] = links.get((s, v), 0) + 1
    if instance.optics == "one_way":
        return heads_of(instance, links), False
    planes = colour_planes(instance.servers, links, instance.degree)
    if planes is None:
        return None, sum(links.values()) <= EXHAUSTIVE_LINKS
    heads = np.full((instance.servers, instance.degree), -1, dtype=np.int64)
    for column, plane in enumerate(planes):
        for i, j in plane:
            heads[i, column], heads[j, column] = j, i
    return heads, False


def routed(job: Job, heads: Ints) -> Balance | None:
    """Nearly optimal rings and routes on the links; None where some traffic or ring has no path."""
    try:
        return polish(balance(job, heads, None, _ACCURATE))
    except InfeasibleError:
        return None


def lengths_of(found: Balance) -> Ints:
    """(n, n) dual values of the routing as whole numbers; 1 where there is no arc."""
    n, d = found.heads.shape
    lengths = np.ones((n, n), dtype=np.int64)
    arcs = np.flatnonzero(np.isfinite(found.length))
    parts = found.length[arcs] / max(float(found.length[arcs].max(initial=0.0)), TINY)
    scales = np.arange(1, _MOST_DENOMINATOR + 1)
    misses = np.abs(np.outer(scales, parts) - np.rint(np.outer(scales, parts))).max(axis=1, initial=0.0)
    # As exact as the dual values of a linear program are.
    exact = np.flatnonzero(misses < 1e-7 * scales)
    scale = int(scales[exact[0]]) if len(exact) else MOST_LENGTH
    lengths[arcs // d, found.heads.flat[arcs]] = np.rint(scale * parts).astype(np.int64)
    return lengths
