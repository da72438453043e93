"""The combinatorial bound of a topology in whole numbers, as a proof that anybody can recompute.

It is that of :func:`~ddlopt.models.topology.bounds.congestion_bounds`, where each argument is proven, without rounding.
"""

from fractions import Fraction
from math import lcm

import numpy as np

from ddlopt.models.topology.bounds import Sizes, congestion_bounds
from ddlopt.models.topology.instance import TopologyInstance

_EASED = (Fraction(0), Fraction(1, 10**15), Fraction(1, 10**14), Fraction(1, 10**12))
"""By how much the load that floats exclude may be too large for the exact argument."""


def exact_lower_bound(instance: TopologyInstance) -> Fraction:
    """Iteration time in seconds that no design can beat, without any rounding.

    Raises
    ------
    InfeasibleError
        If the degree leaves some server without a way to all those that it must reach.
    """
    load = Fraction(congestion_bounds(instance)["multiplicity"])
    sizes, unit = exact_sizes(instance)
    best = max(Fraction(bound) for bound in sizes.bounds().values())
    tried = (load * unit * (1 - eased) for eased in _EASED)
    return exact_iteration_s(instance, next((z for z in tried if z > best and sizes.excluded(z)), best) / unit)


def exact_sizes(instance: TopologyInstance) -> tuple[Sizes, int]:
    """What the instance sends in units, and how many of them are a byte."""
    rows = [[Fraction(value) for value in row] for row in instance.traffic_bytes.tolist()]
    hops = [
        Fraction(group.gradient_bytes) * 2 * (len(group.members) - 1) / len(group.members)
        for group in instance.allreduce_groups
    ]
    unit = 2 * lcm(*(value.denominator for row in (*rows, hops) for value in row))
    traffic = np.array([[int(value * unit) for value in row] for row in rows], dtype=object)
    whole = tuple(int(hop * unit) for hop in hops)
    return Sizes(instance, traffic, whole, np.frompyfunc(Fraction, 2, 1), rounding=Fraction(0)), unit


def exact_iteration_s(instance: TopologyInstance, busiest_bytes: Fraction) -> Fraction:
    """Time of an iteration where the busiest link carries a number of bytes, without any rounding."""
    communication = busiest_bytes / Fraction(instance.link_bandwidth_bytes_per_s)
    compute = Fraction(instance.compute_s)
    return max(compute, communication) if instance.overlap == "full" else compute + communication
