"""A topology instance in whole numbers: what the branch and bound calculates with.

The check of its certificates does not: :mod:`ddlopt.certificates.topology.statement` is independent of this.
"""

from collections.abc import Iterator
from fractions import Fraction
from itertools import combinations, combinations_with_replacement
from math import comb
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from ddlopt.certificates.topology.format import MOST_UNITS
from ddlopt.models.topology.instance import TopologyInstance

Ints = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]

UNITS = MOST_UNITS
"""All bytes of an instance together, in the unit in which they are whole numbers, are at most this."""
FAR = 2**28
"""Length of a way that there is not; ways of at most 256 arcs are shorter."""
MOST_RING = 12
"""Members of a group up to which the shortest ring is found, once all links are known."""


class IntegerInstance(NamedTuple):
    """An instance in whole numbers, as the kernels take it.

    Bytes are rounded down, so that what is proved for them holds for the instance. The sums of the search cannot
    overflow: bytes times distance is at most UNITS · FAR = 2^58 in all; a bound z is at most UNITS, there are at most
    2^11 link ends and lengths are below 2^16, so that z times length is at most 2^57; so are all prices together.

    Parameters
    ----------
    bytes : (n, n) array
        Traffic, with that of all-reduce groups of two members, which have one ring.
    wanted : (n, n) array of bool
        Pairs that need a way: those with traffic, however little, and members of a group where servers forward.
    member : (groups, n) array of bool
        All-reduce groups of at least three members.
    hop : (groups,) array
        Bytes on each hop of a ring.
    options : (n, K, d) array
        Neighbour sets of each server, -1 for idle ports.
    degree, ends : int
        d, and the most links (in one direction) that a design has.
    forwarding, duplex, exact : bool
        ``exact``: every set has d members, so that every server has exactly d links in each direction.
    """

    bytes: Ints
    wanted: Flags
    member: Flags
    hop: Ints
    options: Ints
    degree: int
    ends: int
    forwarding: bool
    duplex: bool
    exact: bool


def unit_of(instance: TopologyInstance) -> Fraction:
    """Bytes of one unit, a power of two."""
    hops = [len(group.members) * group.hop_bytes for group in instance.allreduce_groups]
    whole, unit = Fraction(float(instance.traffic_bytes.sum() + sum(hops))) * Fraction(5, 4), Fraction(1)
    while whole / unit > UNITS:
        unit *= 2
    while 2 * whole / unit <= UNITS:
        unit /= 2
    return unit


def always_filled(instance: TopologyInstance) -> bool:
    """Whether some best design uses all ports, so that only those need be looked at.

    With one-way optics, parallel links and forwarding: as many transmitters as receivers are idle. Joining them adds
    links, which hurts nobody, unless all that are idle are at one server s. Then a link u → v elsewhere can be replaced
    by u → s and s → v, which carry what it carried. There is one, as s alone has too few ports for all others.
    """
    return instance.optics == "one_way" and instance.parallel_links and instance.host_forwarding


def number_of_sets(instance: TopologyInstance) -> int:
    """Neighbour sets of one server."""
    others, d = instance.servers - 1, instance.degree
    sizes = [d] if always_filled(instance) else range(d + 1)
    return sum(comb(others + size - 1, size) if instance.parallel_links else comb(others, size) for size in sizes)


def _sets(instance: TopologyInstance, server: int) -> Iterator[tuple[int, ...]]:
    others, d = [v for v in range(instance.servers) if v != server], instance.degree
    choose = combinations_with_replacement if instance.parallel_links else combinations
    for size in [d] if always_filled(instance) else range(d, -1, -1):
        for ends in choose(others, size):
            yield (*ends, *[-1] * (d - size))


def integer_instance(instance: TopologyInstance) -> IntegerInstance:
    """The instance in whole numbers."""
    n, d, unit = instance.servers, instance.degree, unit_of(instance)
    demand = [[Fraction(float(size)) for size in row] for row in instance.traffic_bytes]
    member, hop = [], []
    for group in instance.allreduce_groups:
        k = len(group.members)
        size = Fraction(2 * (k - 1), k) * Fraction(group.gradient_bytes)
        if k == 2:
            i, j = group.members
            demand[i][j] += size
            demand[j][i] += size
        else:
            member.append([v in group.members for v in range(n)])
            hop.append(int(size / unit))
    duplex = instance.optics == "duplex"
    wanted = np.array([[size > 0 for size in row] for row in demand])
    for inside in member if instance.host_forwarding else []:
        wanted |= np.outer(inside, inside) & ~np.eye(n, dtype=np.bool_)
    return IntegerInstance(
        np.array([[int(size / unit) for size in row] for row in demand], dtype=np.int64),
        wanted,
        np.array(member, dtype=np.bool_).reshape(len(member), n),
        np.array(hop, dtype=np.int64),
        np.array([list(_sets(instance, s)) for s in range(n)], dtype=np.int64),
        d,
        d * (2 * (n // 2) if duplex else n),
        instance.host_forwarding,
        duplex,
        always_filled(instance),
    )
