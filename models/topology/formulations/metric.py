"""The metric bound: the dual of routing over fixed links."""

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from math import inf
from typing import Literal

import numpy as np
import numpy.typing as npt

from ddlopt.models.contracts import Number
from ddlopt.models.errors import InfeasibleError
from ddlopt.models.topology.instance import TopologyInstance
from ddlopt.models.topology.solution import TopologyDesign

Array = npt.NDArray[np.float64]
Pair = tuple[int, int]
Freedom = Literal["shares", "orders", "any"]

_SMALLEST = 2.0**-30
"""Arc lengths are kept above this part of the largest, so that exact arithmetic can hold them as integers."""


@dataclass(frozen=True)
class MetricBound:
    """A bound and what proves it.

    Parameters
    ----------
    max_link_load_bytes : float or Fraction
        No routing over the links has its busiest link below this.
    lengths : dict (i, j) -> float
        The arc lengths that show it, the largest 1.
    """

    max_link_load_bytes: Number
    lengths: dict[Pair, float]


def metric_bound(
    instance: TopologyInstance,
    design: TopologyDesign,
    freedom: Freedom = "orders",
    lengths: Mapping[Pair, float] | None = None,
    rounds: int = 200,
    gap: float = 1e-4,
    exact: bool = False,
) -> MetricBound:
    r"""Bound on the busiest link's load for the *links of the design*, whatever the routes.

    For any arc lengths :math:`\ell \ge 0`, a byte from s to t uses up at least :math:`dist_\ell(s, t)` of length, and
    an arc of :math:`c_a` links offers :math:`c_a \ell_a` for each unit of z. Summed up,

    .. math:: z \ge \frac{\sum_{st} D_{st}\, dist_\ell(s, t)}{\sum_a c_a \ell_a} ,

    and the best lengths make it an equality (LP duality). They are found by mirror ascent: shares :math:`c_a \ell_a` of
    the total length grow as the exponential of the relative load that shortest paths put on the arc, with a Polyak step
    towards the best load that an average of those routings reaches.

    Parameters
    ----------
    freedom : {"shares", "orders", "any"}
        What the all-reduce may still choose: nothing; the shares of the design's rings (a group then counts with its
        cheapest ring); any rings (the cheapest assignment of a successor to each member, which no ring can beat).
    lengths : mapping, optional
        Bound of these lengths, as they are; arcs that are missing have length 0.
    rounds : int
        Most shortest-path computations.
    gap : float
        Stop when the bound is proven to be within this relative distance of the best one.
    exact : bool
        Give the bound as a Fraction, free of rounding: of the lengths rounded to integers when the largest is 2^30.

    Raises
    ------
    InfeasibleError
        If the links leave a server without a way to one that it must send to.

    References
    ----------
    F. Shahrokhi and D. W. Matula, "The maximum concurrent flow problem", J. ACM 37(2), 1990 (the duality);
    A. Beck and M. Teboulle, "Mirror descent and nonlinear projected subgradient methods", Oper. Res. Lett. 31(3), 2003.
    """
    network = _Network(instance, design, freedom)
    if lengths is not None:
        best = np.array([float(lengths.get(arc, 0.0)) for arc in network.arcs])
        if not (best >= 0).all() or not best.any():
            raise ValueError("arc lengths must be >= 0 and not all 0")
        best = best / best.max()
    else:
        best = _ascend(network, rounds, gap)
    if exact:
        best = np.rint(best / _SMALLEST)
        value: Number = network.exact_bound(best)
        best = best * _SMALLEST
    else:
        value = network.priced(best)[0] / float(network.counts @ best)
    return MetricBound(value, dict(zip(network.arcs, best.tolist(), strict=True)))


def _ascend(network: "_Network", rounds: int, gap: float) -> Array:
    """Lengths whose bound is the best found; the largest is 1."""
    weights = network.counts / network.counts.sum()
    best, best_value, attained = weights / network.counts, 0.0, inf
    mean, mass = np.zeros_like(weights), 0.0
    for _ in range(rounds):
        lengths = weights / network.counts
        value, loads = network.priced(lengths)
        relative = loads / network.counts
        if value > best_value:
            best, best_value = lengths, value
        spread = float(relative.max()) - value
        if spread <= 0:
            break
        # An average of routings is a routing, and the busiest arc of the average is what the ascent aims at.
        ahead = min(attained, float(relative.max()))
        step = max(ahead - value, gap * value) / float(((relative - value) ** 2 * weights).sum() + spread**2 / 4)
        mean, mass = mean + step * relative, mass + step
        attained = min(attained, float(mean.max()) / mass)
        if best_value >= (1 - gap) * attained:
            break
        weights = weights * np.exp(step * (relative - relative.max()))
        # An arc that once had next to no weight can still come back.
        weights = np.maximum(weights / weights.sum(), 1e-12)
        weights /= weights.sum()
    return np.asarray(np.maximum(best / best.max(), _SMALLEST))


class _Network:
    """The arcs of a design with their link counts, and what is to be sent over them."""

    def __init__(self, instance: TopologyInstance, design: TopologyDesign, freedom: Freedom) -> None:
        self.instance, self.design, self.freedom = instance, design, freedom
        counts = {arc: count for arc, count in sorted(design.link_counts(instance).items()) if count > 0}
        if not counts:
            raise InfeasibleError(f"'{instance.name}': the design has no links")
        self.arcs = list(counts)
        self.counts = np.array(list(counts.values()), dtype=float)
        self._tails, self._heads = (np.array(ends, dtype=np.int64) for ends in zip(*self.arcs, strict=True))

    def distances(self, lengths: Array, want_trees: bool = False) -> tuple[Array, npt.NDArray[np.int32] | None]:
        """(n, n) shortest distances, and each source's tree as (n, n) predecessors."""
        n = self.instance.servers
        if not self.instance.host_forwarding:
            direct = np.full((n, n), inf)
            direct[self._tails, self._heads] = lengths
            np.fill_diagonal(direct, 0)
            return direct, None
        from scipy.sparse import csr_array
        from scipy.sparse.csgraph import dijkstra

        graph = csr_array((lengths, (self._tails, self._heads)), shape=(n, n))
        if not want_trees:
            return dijkstra(graph), None
        distance, trees = dijkstra(graph, return_predecessors=True)
        return distance, trees

    def priced(self, lengths: Array) -> tuple[float, Array]:
        """Cheapest total of bytes times distance, and the (m,) loads of a routing that attains it."""
        distance, trees = self.distances(lengths, want_trees=True)
        demand = self.instance.traffic_bytes.copy()
        for group, rings in enumerate(self._ring_costs(distance)):
            size = self.instance.allreduce_groups[group].hop_bytes
            for senders, receivers, share, _ in self._chosen(rings):
                demand[senders, receivers] += size * share
        sent = demand > 0
        if not np.isfinite(distance[sent]).all():
            s, t = (int(end) for end in np.argwhere(sent & ~np.isfinite(distance))[0])
            raise InfeasibleError(
                f"'{self.instance.name}': the design's links have no path from server {s} to server {t}"
            )
        return float((demand[sent] * distance[sent]).sum()), self._loads(demand, distance, trees)

    def _ring_costs(self, distance: Array) -> list[list[tuple[Array, Array, float, float]]]:
        """Of each group the rings it may choose from: senders, receivers, share in the design, length."""
        costs: list[list[tuple[Array, Array, float, float]]] = []
        for number, group in enumerate(self.instance.allreduce_groups):
            if self.freedom == "any":
                members = np.array(group.members)
                between = distance[np.ix_(members, members)].copy()
                np.fill_diagonal(between, inf)
                costs.append([self._assignment(members, between)])
                continue
            rings = [ring for ring in self.design.rings if ring.group == number]
            total = sum(ring.share for ring in rings)
            costs.append([])
            for ring in rings:
                senders = np.array(ring.members)
                receivers = np.roll(senders, -1)
                costs[-1].append((senders, receivers, ring.share / total, float(distance[senders, receivers].sum())))
        return costs

    def _assignment(self, members: Array, between: Array) -> tuple[Array, Array, float, float]:
        from scipy.optimize import linear_sum_assignment

        try:
            rows, columns = linear_sum_assignment(between)
        except ValueError:
            raise InfeasibleError(
                f"'{self.instance.name}': the links leave a member of {members.tolist()} without any successor"
            ) from None
        return members[rows], members[columns], 1.0, float(between[rows, columns].sum())

    def _chosen(self, rings: list[tuple[Array, Array, float, float]]) -> list[tuple[Array, Array, float, float]]:
        """The rings in use with their shares; the cheapest alone where shares are free."""
        if self.freedom == "shares" or not rings:
            return rings
        senders, receivers, _, cost = min(rings, key=lambda ring: ring[3])
        return [(senders, receivers, 1.0, cost)]

    def _loads(self, demand: Array, distance: Array, trees: npt.NDArray[np.int32] | None) -> Array:
        """(m,) loads when every pair uses its path in the tree of its source."""
        if trees is None:
            return np.asarray(demand[self._tails, self._heads])
        n = len(demand)
        carried = np.zeros((n, n))
        below = demand.copy()
        sources = np.arange(n)
        # All sources at once, farthest server first: what reaches a server goes on to its predecessor.
        for servers in np.argsort(-distance, axis=1, kind="stable").T:
            before = trees[sources, servers]
            inner = before >= 0
            s, v, u = sources[inner], servers[inner], before[inner]
            amount = below[s, v]
            np.add.at(carried, (u, v), amount)
            below[s, u] += amount
        return np.asarray(carried[self._tails, self._heads])

    def exact_bound(self, lengths: Array) -> Fraction:
        """The bound of integer lengths up to 2^30: all sums of them stay below 2^53, where floats are exact."""
        distance, _ = self.distances(lengths)
        total = Fraction(0)
        for s, t in np.argwhere(self.instance.traffic_bytes > 0).tolist():
            total += Fraction(float(self.instance.traffic_bytes[s, t])) * _whole(distance[s, t])
        for number, rings in enumerate(self._ring_costs(distance)):
            group = self.instance.allreduce_groups[number]
            k = len(group.members)
            if not rings:
                continue
            costs = [(Fraction(share), _whole(cost)) for _, _, share, cost in self._chosen(rings)]
            whole = sum(share for share, _ in costs)
            mean = sum((share * cost for share, cost in costs), Fraction(0)) / whole
            total += Fraction(2 * (k - 1), k) * Fraction(group.gradient_bytes) * mean
        return total / sum((int(c) * _whole(x) for c, x in zip(self.counts, lengths, strict=True)), Fraction(0))


def _whole(value: float) -> Fraction:
    if not value < 2**53:
        raise InfeasibleError("the links of the design leave a pair of servers without a way")
    return Fraction(int(value))
