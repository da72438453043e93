"""Near-optimal fractional routing and ring shares on fixed links, with a bound that certifies them."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

import numpy as np

from ddlopt.models.errors import InfeasibleError
from ddlopt.models.topology import Path, Ring, Route, TopologyDesign, TopologyInstance
from ddlopt.models.topology.assembly import NEGLIGIBLE, Pair, decompose
from ddlopt.models.topology.metric import metric_bound
from ddlopt.models.topology.permutations import hops_of
from ddlopt.models.topology.planes import Plane
from ddlopt.solvers.topology.balance.kernel import Demand, Pace, balance_kernel
from ddlopt.solvers.topology.balance.path_kernels import Floats, Ints, Loads, Net, capacities
from ddlopt.solvers.topology.balance.ring_kernels import Columns

_FAINT = 1e-6
"""Part of the node bound up to which traffic is routed as if it were so much; a path for it must not get lost."""


@dataclass(frozen=True)
class Effort:
    """How accurately to balance: sweeps over all sources, last exponent, kicks per ring and sweep, rings per group."""

    sweeps: int = 80
    sharpest: float = 2000.0
    kicks: int = 10
    columns: int = 64
    tolerance: float = 1e-4


class Outcome(NamedTuple):
    """What :func:`.balance_kernel` finds.

    ``congestion``: largest load per link, infinite where something has no path or the bound was beyond hope;
    ``bound``: dual value over the rings that were priced (not all rings), given by the arc lengths ``length``;
    ``flow`` (n, n * d) of the traffic, without that of the rings.
    """

    congestion: float
    bound: float
    flow: Floats
    length: Floats
    columns: Columns


@dataclass(frozen=True)
class Job:
    """What an instance wants to send, as arrays for the kernels."""

    instance: TopologyInstance

    @cached_property
    def traffic(self) -> Floats:
        """(n, n) bytes of model-parallel traffic; as little as tolerances would drown counts as just above them."""
        traffic = self.instance.traffic_bytes
        least = _FAINT * float(self.instance.node_bytes.max()) / self.instance.degree
        return np.ascontiguousarray(np.where(traffic > 0, np.maximum(traffic, least), 0.0), dtype=np.float64)

    @cached_property
    def sizes(self) -> Ints:
        """(groups,) numbers of members."""
        return np.array([len(group.members) for group in self.instance.allreduce_groups], dtype=np.int64)

    @cached_property
    def members(self) -> Ints:
        """(groups, largest) members, -1 where there are no more."""
        table = np.full((len(self.sizes), max(self.sizes, default=0)), -1, dtype=np.int64)
        for row, group in zip(table, self.instance.allreduce_groups, strict=True):
            row[: len(group.members)] = group.members
        return table

    @cached_property
    def hop_bytes(self) -> Floats:
        """(groups,) bytes on each hop of a ring that carries the whole gradient."""
        return np.array([group.hop_bytes for group in self.instance.allreduce_groups], dtype=np.float64)

    @cached_property
    def demand(self) -> Demand:
        """All of it, for :func:`.balance_kernel`."""
        return Demand(self.traffic, self.members, self.sizes, self.hop_bytes)

    def estimate(self, heads: Ints, orders: Ints, effort: Effort, give_up: float = np.inf) -> Outcome:
        """Run the kernel on the links ``heads``; ``orders`` are replaced by the rings in use."""
        reversing = self.instance.optics == "duplex"
        pace = Pace(effort.sweeps, effort.sharpest, effort.kicks, reversing, effort.tolerance, give_up)
        (n, d), places = heads.shape, len(orders)
        arcs = n * d
        columns = Columns(
            orders,
            np.empty((places, n * min(n, 24)), dtype=np.int64),
            np.zeros(places, dtype=np.int64),
            np.zeros((places, arcs)),
            np.zeros(places),
        )
        net, loads = Net(heads, capacities(heads), self.instance.host_forwarding), Loads(np.zeros(arcs), np.empty(arcs))
        flow, length, dist, via = np.zeros((n, arcs)), np.empty(arcs), np.empty((n, n)), np.empty((n, n), np.int64)
        congestion, bound = balance_kernel(net, self.demand, pace, flow, loads, length, columns, dist, via)
        return Outcome(congestion, bound, flow, length, columns)

    def no_orders(self, columns: int) -> Ints:
        """A table for ``columns`` rings of each group, still empty."""
        return np.full((len(self.sizes) * columns, self.members.shape[1]), -1, dtype=np.int64)

    def orders(self, rings: Mapping[int, Sequence[Sequence[int]]], columns: int) -> Ints:
        """The table with the first ``columns`` of the given rings of each group."""
        table = self.no_orders(columns)
        for group, known in rings.items():
            for place, ring in enumerate(known[:columns]):
                table[group * columns + place, : len(ring)] = ring
        return table


@dataclass(frozen=True)
class Balance:
    """Routes and ring shares on fixed links.

    Parameters
    ----------
    congestion_bytes : float
        Largest load per link.
    flow : (n, n * d) array
        Model-parallel bytes of each source on each arc of ``heads``.
    rings : tuple of (group, members in ring order, share, one path per hop)
    length : (n * d,) array
        Arc lengths whose metric bound is close to the congestion; infinite where there is no arc.
    """

    job: Job
    heads: Ints
    congestion_bytes: float
    flow: Floats
    rings: tuple[tuple[int, tuple[int, ...], float, tuple[Path, ...]], ...]
    length: Floats
    planes: tuple[Plane, ...] = field(default=())

    @cached_property
    def bound_bytes(self) -> float:
        """What the busiest link carries at least on these links, whatever the rings and routes.

        The better of the metric bounds of ``length`` and of equal lengths.
        """
        d, instance = self.heads.shape[1], self.job.instance
        arcs = np.flatnonzero(np.isfinite(self.length))
        links = TopologyDesign(instance=instance.name, links=links_of(instance, self.heads)).link_counts(instance)
        values = []
        for length in (self.length, np.ones_like(self.length)):
            lengths = {(int(a) // d, int(self.heads.flat[a])): float(length[a]) for a in arcs}
            values.append(metric_bound(instance, links, lengths))
        return min(max(values), self.congestion_bytes)

    def design(self) -> TopologyDesign:
        """The design in words: links, planes, rings and routes."""
        instance, d = self.job.instance, self.heads.shape[1]
        used = np.flatnonzero(self.flow.any(axis=0))
        arcs = [(int(a) // d, int(self.heads.flat[a])) for a in used]
        if instance.host_forwarding:
            flows = decompose(arcs, self.flow[:, used], self.job.traffic)
        else:
            flows = {(int(s), int(t)): [((int(s), int(t)), 1.0)] for s, t in np.argwhere(instance.traffic_bytes > 0)}
        routes = []
        for (source, target), paths in sorted(flows.items()):
            total = sum(amount for _, amount in paths)
            kept = [(path, amount) for path, amount in paths if amount > NEGLIGIBLE * total]
            rest = sum(amount for _, amount in kept)
            fractions = tuple(amount / rest for _, amount in kept)
            routes.append(
                Route(source=source, target=target, paths=tuple(path for path, _ in kept), fractions=fractions)
            )
        return TopologyDesign(
            instance=instance.name,
            instance_digest=instance.digest,
            links=links_of(instance, self.heads),
            planes=planes_of(instance, self.heads),
            rings=tuple(
                Ring(group=group, members=members, share=share, paths=paths)
                for group, members, share, paths in self.rings
            ),
            routes=tuple(routes),
        )


def heads_of(instance: TopologyInstance, links: Mapping[Pair, int]) -> Ints:
    """The table of link ends, (n, d): one-way links by ordered pair, duplex links once per pair (either order).

    The columns are no planes; see :func:`planes_of`.
    """
    table = np.full((instance.servers, instance.degree), -1, dtype=np.int64)
    used = Counter[int]()
    for (i, j), count in sorted(links.items()):
        for tail, head in [(i, j), (j, i)] if instance.optics == "duplex" else [(i, j)]:
            for _ in range(count):
                if used[tail] == instance.degree:
                    raise InfeasibleError(f"server {tail} has more than {instance.degree} links")
                table[tail, used[tail]] = head
                used[tail] += 1
    return table


def links_of(instance: TopologyInstance, heads: Ints) -> tuple[tuple[int, int, int], ...]:
    """The links of a table as in :attr:`TopologyDesign.links`."""
    counts = Counter(
        (v, int(w)) for v, row in enumerate(heads) for w in row if w >= 0 and (v < w or instance.optics == "one_way")
    )
    return tuple((i, j, count) for (i, j), count in sorted(counts.items()))


def planes_of(instance: TopologyInstance, heads: Ints) -> tuple[Plane, ...]:
    """The planes of a duplex table whose columns are matchings; none for one-way optics, which need not show them."""
    if instance.optics == "one_way":
        return ()
    return tuple(tuple((v, int(w)) for v, w in enumerate(column) if v < w) for column in heads.T)


def balance(job: Job, heads: Ints, orders: Ints | None = None, effort: Effort = Effort()) -> Balance:
    """Route the job's traffic and share out its rings on fixed links so that the busiest link carries little.

    Parameters
    ----------
    job : Job
    heads : (n, d) array
        Far ends of each server's links, -1 for idle ports; for duplex optics each column a matching.
    orders : (groups * columns, largest) array, optional
        Rings to begin with; those found come in addition, unless ``effort.kicks`` is negative.
    effort : Effort

    Raises
    ------
    InfeasibleError
        If some traffic or ring has no path on these links.
    """
    known = job.no_orders(effort.columns) if orders is None else orders.copy()
    found = job.estimate(heads, known, effort)
    if not np.isfinite(found.congestion):
        raise InfeasibleError(f"'{job.instance.name}': the links leave some traffic or some ring without a path")
    rings = []
    places = len(known) // max(1, len(job.sizes))
    for c in np.flatnonzero(found.columns.shares > NEGLIGIBLE):
        group = int(c) // places
        members = tuple(int(v) for v in known[c, : job.sizes[group]])
        paths = hop_paths(heads, members, found.columns.cells[c, : found.columns.counts[c]])
        rings.append((group, members, float(found.columns.shares[c]), paths))
    return Balance(job, heads, float(found.congestion), found.flow, tuple(rings), found.length)


def hop_paths(heads: Ints, ring: Sequence[int], cells: Ints) -> tuple[Path, ...]:
    """Paths of a ring's hops from the (source, arc) cells that they use."""
    n, d = heads.shape
    before: dict[int, dict[int, int]] = {}
    for cell in cells.tolist():
        source, arc = divmod(cell, n * d)
        before.setdefault(source, {})[int(heads.flat[arc])] = arc // d
    paths = []
    for source, target in hops_of(ring):
        path = [target]
        while path[-1] != source:
            path.append(before[source][path[-1]])
        paths.append(tuple(reversed(path)))
    return tuple(paths)
