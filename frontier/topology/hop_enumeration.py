"""All-to-all traffic: all links with few hops are listed, so that others are known to have many."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from math import inf
from typing import Any, ClassVar

import numpy as np
from scipy.sparse.csgraph import floyd_warshall

from ddlopt.certificates.topology.hops.certificate import LONGEST
from ddlopt.certificates.topology.hops.listing import (
    KERNELS,
    Ints,
    Listing,
    bytes_beyond,
    bytes_times_length,
    not_listed,
)
from ddlopt.frontier.topology.blocks.bounds import congestion_bounds
from ddlopt.models.errors import NoSolutionError, OptionError
from ddlopt.models.tolerances import TINY
from ddlopt.models.topology import TopologyDesign, TopologyInstance
from ddlopt.models.topology.evaluate import evaluate
from ddlopt.solvers.certify import MethodOutput
from ddlopt.solvers.contracts import Limits
from ddlopt.solvers.heuristic import CertifiedMethod, Clock
from ddlopt.solvers.topology.balance.balance import Balance, Effort, Job, balance
from ddlopt.solvers.topology.balance.exact import polish
from ddlopt.solvers.topology.balance.path_kernels import capacities
from ddlopt.solvers.topology.link_exchange.link_exchange import LinkExchange
from ddlopt.solvers.topology.link_exchange.starts import planes_table

_STEP = 2
"""By how much more than before hops may exceed the least in the next list, so that there is always a bound."""
_FASTER = 8
"""Of the excess, the part that the step is where that is more: all-reduces may be worth a thousand hops."""
_QUICK = Effort(sweeps=30, sharpest=500.0, kicks=0, columns=1, tolerance=1e-4)


@dataclass(frozen=True)
class HopEnumeration(CertifiedMethod, uses=("seed", "start")):
    r"""Proves how far all-to-all traffic is from the Moore bound, by listing the links whose hops are close to it.

    All pairs of servers exchange :math:`\tau` bytes, and there may be all-reduces of all servers, in which each sends c
    bytes over at least one link. Let :math:`H_0` be the least hops that the Moore bound allows all pairs together. A
    design with :math:`H_0 + e` hops loads a link with at least :math:`c / d + (H_0 + e)\,\tau / (n d)`. All regular
    digraphs, with duplex optics graphs, with at most e more hops are listed, up to their numbering, and each is routed,
    with the dual values of its routing as proof of its load. So either one of these is best, or the load is that of
    :math:`e + 1` at least. e is raised until that reaches the best design.

    *Listing.* Servers are numbered breadth first from one with no more excess hops than the mean, and get their links
    in this order. After each it is counted how many servers each server can reach, and be reached from, within
    h hops at most; what is missing from the Moore bound, over all h, is excess. Among servers found by the same one,
    those come first that find more. Copies with other numbers are told by their canonical numbering.

    That all ports are in use hurts nobody, see :func:`~ddlopt.certificates.topology.hops.listing.not_listed`.

    The Moore bound on hops is folklore; the enumeration is ours.

    Parameters
    ----------
    opening : float
        Effort of ``link-exchange``, which gives the first design where no start is given.
    """

    opening: float = 0.3

    kernels: ClassVar[tuple[str, ...]] = KERNELS

    def __post_init__(self) -> None:
        if not self.opening > 0:
            raise OptionError(f"opening must be positive, got {self.opening}")

    @property
    def name(self) -> str:
        """``hop-enumeration``."""
        return "hop-enumeration"

    def kernels_for(self, instance: TopologyInstance) -> tuple[str, ...]:
        """Its own, and those of the opening."""
        return (*self.kernels, *LinkExchange().kernels_for(instance))

    def refuses(self, instance: TopologyInstance) -> str | None:
        """Anything but all-to-all traffic and all-reduces of all servers with forwarding, and too many neighbours."""
        return not_listed(instance)

    def find(self, instance: TopologyInstance, limits: Limits, seed: int, clock: Clock, start: Any) -> MethodOutput:
        """The best design and the bound; details: excess hops that are listed, digraphs, sets tried."""
        search = Search(instance, clock)
        if start is not None:
            search.offer(start)
        else:
            share = None if limits.time_s is None else 0.3 * limits.time_s
            opening = LinkExchange(self.opening).solve(instance, replace(limits, time_s=share), seed)
            if isinstance(opening.solution, TopologyDesign):
                search.offer(opening.solution)
        search.run()
        if search.best is None:
            raise NoSolutionError(f"'{instance.name}': no design was found")
        details = {"excess_hops": search.excess, "digraphs": len(search.known), "sets": search.sets_tried}
        return MethodOutput(search.best, details, instance.iteration_time_s(search.proven_bytes))


class Search:
    """The incumbent, and what is proven.

    Parameters
    ----------
    instance : TopologyInstance
    clock : Clock
    """

    def __init__(self, instance: TopologyInstance, clock: Clock) -> None:
        self.instance, self.clock, self.job = instance, clock, Job(instance)
        self.n, self.d = instance.servers, instance.degree
        self.least_bytes = max(congestion_bounds(instance).values())
        self.best: TopologyDesign | None = None
        self.best_bytes = inf
        self.least_listed = inf
        self.excess, self.sets_tried = -1, 0
        self.known: set[bytes] = set()

    def offer(self, design: TopologyDesign) -> None:
        """Take a design as incumbent if it is better."""
        checked = evaluate(self.instance, design)
        if checked.feasible and float(checked.details["max_link_load_bytes"]) < self.best_bytes:
            self.best, self.best_bytes = design, float(checked.details["max_link_load_bytes"])
            self._tell()

    def _tell(self) -> None:
        bound = self.instance.iteration_time_s(self.proven_bytes)
        self.clock.report(self.instance.iteration_time_s(self.best_bytes), bound)

    @property
    def proven_bytes(self) -> float:
        """A bound on the load of every design."""
        listed = min(self.least_listed, float(bytes_beyond(self.instance, self.excess)))
        return max(self.least_bytes, min(self.best_bytes, listed))

    @property
    def target_bytes(self) -> float:
        """A load that no design is to stay below for the proof to be complete."""
        return self.best_bytes - self.gap_bytes(self.instance.iteration_time_s(self.best_bytes))

    def gap_bytes(self, seconds: float) -> float:
        """Bytes of a link in the part of a number of seconds that a gap may have."""
        return self.clock.gap * seconds * self.instance.link_bandwidth_bytes_per_s

    def run(self) -> None:
        """List more and more until nothing better is left, or the time is up."""
        while self.proven_bytes < self.target_bytes <= self.least_listed:
            most, step = self.excess + 1, max(_STEP, self.excess // _FASTER)
            while most < self.excess + step and float(bytes_beyond(self.instance, most)) < self.target_bytes:
                most += 1
            least = min((self._load(out) for out in self._digraphs(most)), default=inf)
            self.least_listed = min(self.least_listed, least)
            if self.clock.expired:
                return
            self.excess = most
            self._tell()

    def _digraphs(self, most: int) -> Iterator[Ints]:
        """Those with ``most`` excess hops at most that were not met before: the servers to which each server leads."""
        listing = Listing(self.n, self.d, most, self.instance.optics == "duplex")
        for key, heads in listing.digraphs(lambda: self.clock.expired):
            if key not in self.known:
                self.known.add(key)
                yield heads
        self.sets_tried += listing.sets_tried

    def _load(self, heads: Ints) -> float:
        """A bound on the load of these links, which is their load unless it is above the target."""
        return self.proof(heads)[0]

    def proof(self, heads: Ints) -> tuple[float, Ints, Ints]:
        """The same, with (n, d) far ends of links and whole lengths of these that prove it."""
        heads = self._in_planes(heads)
        found = balance(self.job, heads, None, _QUICK)
        proven = self._metric_bound(found)
        if proven[0] < self.target_bytes:
            found = polish(found)
            proven = self._metric_bound(found)
        if found.congestion_bytes < self.best_bytes:
            self.offer(found.design())
        return proven[0], heads, proven[1]

    def _in_planes(self, heads: Ints) -> Ints:
        """Duplex links in columns that are planes, where there are some: without, they are no design but a bound."""
        if self.instance.optics == "one_way":
            return heads
        count = Counter((v, w) for v, row in enumerate(heads.tolist()) for w in row if v < w)
        table = planes_table(self.instance, count)
        return heads if table is None else table

    def _metric_bound(self, found: Balance) -> tuple[float, Ints]:
        """Bytes times length of the shortest paths over the length of all links, for the better of two lengths.

        Parallel links are one arc, and each of them has its length.
        """
        n, d = self.n, self.d
        ends = np.repeat(np.arange(n), d), found.heads.ravel()
        own = np.where(capacities(found.heads) > 0, found.length, 0.0)
        total = np.zeros(n * n)
        np.maximum.at(total, ends[0] * n + ends[1], own)
        each = total[ends[0] * n + ends[1]]
        best, lengths = 0.0, np.ones((n, d), dtype=np.int64)
        for tried in (np.maximum(1, np.rint(each / max(TINY, float(each.max())) * LONGEST)), np.ones(n * d)):
            table = np.full((n, n), inf)
            np.minimum.at(table, ends, tried)
            distances = floyd_warshall(table).astype(np.int64)
            bound = float(bytes_times_length(self.instance, distances) / int(tried.sum()))
            if bound > best:
                best, lengths = bound, tried.astype(np.int64).reshape(n, d)
        return best, lengths
