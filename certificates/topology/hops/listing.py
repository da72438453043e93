"""All regular digraphs, or graphs, whose hops exceed the Moore bound by little, in whole numbers."""

from collections.abc import Callable, Iterator
from fractions import Fraction
from itertools import combinations_with_replacement
from math import comb

import numpy as np
import numpy.typing as npt
from scipy.optimize import linear_sum_assignment

from ddlopt.certificates.topology.hops.canonical_kernel import canonical_order
from ddlopt.certificates.topology.hops.listing_kernel import DEPTH, DONE, FOUND, NODES, list_links
from ddlopt.certificates.topology.kernels import shortest_ring
from ddlopt.models.topology.hop_bytes import level_sizes
from ddlopt.models.topology.instance import TopologyInstance

Ints = npt.NDArray[np.int64]

KERNELS = (
    "ddlopt.certificates.topology.hops.listing_kernel",
    "ddlopt.certificates.topology.kernels",
    "ddlopt.certificates.topology.hops.canonical_kernel",
)
_BUDGET = 2_000_000
"""Sets tried between looks at the clock: about a second."""
# Digraphs taken over from the kernel at a time.
_ROOM = 4096
# Combinations of neighbours beyond which a search ends in no time that anybody has.
_MOST_SETS, _MOST_GRAPH_SETS = 2000, 4000
_LEAST_RING = 3
"""Of two servers an all-reduce is traffic."""
_RINGED = 16
"""Servers up to which the shortest ring takes some ten milliseconds."""
_MOST_SERVERS = 32
"""Sets of servers are bits of a number, and so few servers are far beyond what can be listed."""


def not_listed(instance: TopologyInstance) -> str | None:
    """Why links of an instance are not listed; None where they are.

    Adding links hurts nobody. One-way links can be added until all ports are in use (``always_filled`` of the branch
    and bound says why), and so can duplex ones between an even number of servers, as a plane that leaves one idle
    leaves another. Where links may not be parallel, those with parallel ones are a relaxation, and so are links that
    no planes can hold.
    """
    n, d, duplex = instance.servers, instance.degree, instance.optics == "duplex"
    if not instance.host_forwarding or (duplex and (n % 2 or d == 1)):
        return "it lists links that use all ports, over which servers forward"
    if not instance.traffic_bytes.any() or len(np.unique(instance.traffic_bytes[~np.eye(n, dtype=np.bool_)])) > 1:
        return "the traffic is not the same for all pairs"
    if n < _LEAST_RING or any(len(group.members) < n for group in instance.allreduce_groups):
        return "not all servers are symmetric: an all-reduce of some of them, or of two"
    many, most = comb(n + d - 1, d), _MOST_GRAPH_SETS if duplex else _MOST_SETS
    if n > _MOST_SERVERS or many > most:
        return f"{n} servers have {many} sets of {d} neighbours; at most {most}, and {_MOST_SERVERS} servers"
    return None


def least_hops(n: int, degree: int, duplex: bool = False) -> int:
    """Of all ordered pairs together, by the Moore bound."""
    return n * sum(h * size for h, size in enumerate(level_sizes(n - 1, degree, duplex), 1))


def _hop_bytes(instance: TopologyInstance) -> Fraction:
    """What each server sends to the next one in rings of all of them, in all."""
    gradients = (Fraction(group.gradient_bytes) for group in instance.allreduce_groups)
    return 2 * (1 - Fraction(1, instance.servers)) * sum(gradients, Fraction(0))


def bytes_beyond(instance: TopologyInstance, excess: int) -> Fraction:
    r"""On the busiest link of a design with more than ``excess`` hops beyond the least, at least.

    With c bytes of all-reduce from each server, over one link at least,
    :math:`n d z \ge n c + (H_0 + e + 1)\,\tau`. Duplex distances are the same in both directions, so
    that all pairs together have an even number of hops.
    """
    n, d, duplex = instance.servers, instance.degree, instance.optics == "duplex"
    hops = least_hops(n, d, duplex) + excess + 1
    traffic = (hops + duplex * hops % 2) * Fraction(float(instance.traffic_bytes[0, -1]))
    return (n * _hop_bytes(instance) + traffic) / (n * d)


def bytes_times_length(instance: TopologyInstance, distances: Ints) -> Fraction:
    """Of all traffic and all rings at least, over (n, n) whole distances below 2^40.

    Of many servers a ring is taken for any permutation without a fixed one.
    """
    traffic = int(distances.sum()) * Fraction(float(instance.traffic_bytes[0, -1]))
    if not instance.allreduce_groups:
        return traffic
    if len(distances) <= _RINGED:
        return traffic + int(
            shortest_ring(np.ones(len(distances), np.bool_), np.ascontiguousarray(distances))
        ) * _hop_bytes(instance)
    following = distances + (int(distances.sum()) + 1) * np.eye(len(distances), dtype=np.int64)
    # Sums of whole numbers as small as these are exact in doubles.
    return traffic + int(following[linear_sum_assignment(following)].sum()) * _hop_bytes(instance)


class Listing:
    """A search for all regular digraphs, or graphs, of n servers with at most ``most`` hops beyond the least.

    Attributes
    ----------
    sets_tried : int
    complete : bool
        Whether all have been listed.
    """

    def __init__(self, n: int, degree: int, most: int, duplex: bool = False) -> None:
        # Duplex hops are even, as they come in both directions.
        self.n, self.degree, self.most, self.duplex = n, degree, most - most % 2 if duplex else most, duplex
        self.sets_tried, self.complete = 0, False

    def digraphs(self, expired: Callable[[], bool]) -> Iterator[tuple[bytes, Ints]]:
        """Each at least once in some numbering: the key of :func:`key_of`, and (n, d) servers that each leads to."""
        n, d = self.n, self.degree
        numbers = range(0 if self.duplex else d, d + 1)
        chosen = [each for number in numbers for each in combinations_with_replacement(range(n), number)]
        sets = np.array([sum(1 << w for w in set(each)) for each in chosen], dtype=np.int64)
        copies = np.array([[each.count(w) for w in range(n)] for each in chosen], dtype=np.int64)
        begins = np.searchsorted(copies.sum(axis=1), np.arange(d + 2))
        table, state = np.zeros((8, n + 1), dtype=np.int64), np.zeros(4, dtype=np.int64)
        table[0] = -1
        found = np.zeros((_ROOM, n), dtype=np.int64)
        while not state[DONE] and not expired():
            list_links(n, d, self.most, self.duplex, sets, copies, begins, table, state, _BUDGET, found)
            self.sets_tried = int(state[NODES])
            for places in found[: state[FOUND]]:
                arcs = copies[places] + (copies[places].T if self.duplex else 0)
                yield key_of(arcs), np.array([np.repeat(np.arange(n), row) for row in arcs], dtype=np.int64)
                if expired():
                    return
            state[FOUND] = 0
        self.complete = bool(state[DONE]) and state[DEPTH] < 0


def key_of(arcs: Ints) -> bytes:
    """The (n, n) table of links in canonical numbering: equal keys are copies, as they are the whole table."""
    arcs = np.ascontiguousarray(arcs)
    order = canonical_order(np.zeros(len(arcs), np.uint64), arcs)
    return arcs[np.ix_(order, order)].astype(np.int16).tobytes()
