"""A topology instance in whole numbers, as a certificate speaks of it; made from the instance and nothing else."""

from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations, combinations_with_replacement
from math import comb

import numpy as np
import numpy.typing as npt

from ddlopt.certificates.topology.format import MOST_LINKS, MOST_SERVERS, MOST_SETS, MOST_UNITS
from ddlopt.models.errors import NotApplicableError, SolutionError
from ddlopt.models.topology.instance import TopologyInstance

Ints = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class Statement:
    """The instance in units of 2^e bytes, rounded down, so that what is proved for it holds for the instance.

    Parameters
    ----------
    demand : (n, n) array
        Traffic, with that of all-reduce groups of two members, which have one ring.
    joined : (n, n) array of bool
        Pairs that need a way: with traffic, however little, or within a group where servers forward.
    member : (groups, n) array of bool
        All-reduce groups of three members or more.
    hop : (groups,) array
        What a ring of the group carries over each of its hops.
    sets : (n, K, d) array
        Neighbour sets of each server, -1 for idle ports.
    links_in : (n, K, n) int8 array
        How many links to each server a neighbour set has.
    degree, most_links : int
        d, and how many links, in one direction, a design has at most.
    forwarding, duplex, filled : bool
        ``filled``: every set has d members, as some best design leaves no port idle.
    """

    demand: Ints
    joined: Flags
    member: Flags
    hop: Ints
    sets: Ints
    links_in: npt.NDArray[np.int8]
    degree: int
    most_links: int
    forwarding: bool
    duplex: bool
    filled: bool


def statement_of(instance: TopologyInstance, unit_exponent: int) -> Statement:
    """The instance in units of 2^``unit_exponent`` bytes.

    With one-way optics, parallel links and forwarding only designs without idle ports are looked at: at least one best
    design is among them. As many transmitters as receivers are idle. Joining two of different servers hurts nobody.
    If all idle ones are at one server s, the others send d (n - 1) links, of which at most d - 1 go to s, so that some
    link u → v avoids s; u → s and s → v in its place carry what it carried. Each step fills one more port.

    Raises
    ------
    NotApplicableError
        If the instance is larger than certificates can speak of.
    SolutionError
        If its bytes are too many units for 64-bit sums.
    """
    n, d = instance.servers, instance.degree
    _refuse_large(instance)
    unit = Fraction(2) ** unit_exponent
    exact = [[Fraction(float(size)) for size in row] for row in instance.traffic_bytes]
    member, hop = [], []
    for group in instance.allreduce_groups:
        k = len(group.members)
        size = Fraction(group.gradient_bytes) * 2 * (k - 1) / k
        if k == 2:
            i, j = group.members
            exact[i][j] += size
            exact[j][i] += size
        else:
            member.append([v in group.members for v in range(n)])
            hop.append(size // unit)
    demand = [[size // unit for size in row] for row in exact]
    everything = sum(map(sum, demand)) + sum(size * sum(inside) for size, inside in zip(hop, member, strict=True))
    if everything > MOST_UNITS:
        raise SolutionError(f"the certificate's unit of 2^{unit_exponent} bytes is too small for the instance")
    duplex = instance.optics == "duplex"
    joined = np.array([[size > 0 for size in row] for row in exact])
    for inside in member if instance.host_forwarding else []:
        joined |= np.outer(inside, inside) & ~np.eye(n, dtype=np.bool_)
    sets = np.array([neighbour_sets(instance, s) for s in range(n)], dtype=np.int64)
    links_in = np.zeros((n, sets.shape[1], n), dtype=np.int8)
    for v in range(n):
        links_in[:, :, v] = (sets == v).sum(axis=2)
    return Statement(
        np.array(demand, dtype=np.int64),
        joined,
        np.array(member, dtype=np.bool_).reshape(len(member), n),
        np.array(hop, dtype=np.int64),
        sets,
        links_in,
        d,
        d * (2 * (n // 2) if duplex else n),
        instance.host_forwarding,
        duplex,
        _filled(instance),
    )


def neighbour_sets(instance: TopologyInstance, server: int) -> list[list[int]]:
    """The neighbour sets of a server in the order of their numbers, each with -1 for idle ports at its end."""
    others, d = [v for v in range(instance.servers) if v != server], instance.degree
    choose = combinations_with_replacement if instance.parallel_links else combinations
    sizes = range(d, d - 1 if _filled(instance) else -1, -1)
    return [[*ends, *[-1] * (d - size)] for size in sizes for ends in choose(others, size)]


def _filled(instance: TopologyInstance) -> bool:
    return instance.optics == "one_way" and instance.parallel_links and instance.host_forwarding


def _refuse_large(instance: TopologyInstance) -> None:
    n, d = instance.servers, instance.degree
    if n > MOST_SERVERS or n * d > MOST_LINKS:
        raise NotApplicableError(
            f"topology instance '{instance.name}' has {n} servers with {d} links each; certificates speak of at most "
            f"{MOST_SERVERS} servers and {MOST_LINKS} links"
        )
    sizes = [d] if _filled(instance) else range(d + 1)
    many = sum(comb(n - 2 + size, size) if instance.parallel_links else comb(n - 1, size) for size in sizes)
    if many > MOST_SETS:
        raise NotApplicableError(
            f"topology instance '{instance.name}' has {many} neighbour sets a server; certificates speak of at most "
            f"{MOST_SETS}"
        )
