"""Lower bounds on the load of the busiest link, without a solver, for every design of an instance.

For the links of one design see :func:`~ddlopt.models.topology.metric.metric_bound`.
"""

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from ddlopt.models.errors import InfeasibleError
from ddlopt.models.tolerances import ROUNDING
from ddlopt.models.topology.hop_bytes import bytes_under_way, level_sizes, pairs_within, views_of
from ddlopt.models.topology.instance import TopologyInstance

Array = npt.NDArray[Any]


@dataclass(frozen=True)
class Effort:
    """How far bounds that are looked for are looked for, and why so far."""

    bisections: int = 60
    """Sixty halvings are exact to a double."""
    exhaustive_cuts: int = 14
    """Servers of which every set is tried as a cut: sixteen thousand take milliseconds. Of more, some intervals are."""


_EFFORT = Effort()


def lower_bound(instance: TopologyInstance) -> float:
    """Iteration time in seconds that no design can beat: the best of :func:`congestion_bounds`.

    Raises
    ------
    InfeasibleError
        If the degree leaves some server without a way to all those that it must reach.
    """
    return float(instance.iteration_time_s(max(congestion_bounds(instance).values())))


def congestion_bounds(instance: TopologyInstance) -> dict[str, float]:
    r"""Bytes that the busiest link carries in any design, by name of the bound.

    Let z be the bytes on the busiest link, d the degree, c_k the hop bytes of all-reduce group k and T the
    model-parallel traffic. Every bound holds for all links, ring orders, shares and routes, because it uses only that
    in each ring of a group every member sends to one other member and receives from one, over at least one link.

    ``node``
        The at most d links out of (into) server s carry all that s sends (receives): z >= bytes / d.
    ``all-reduce``
        The same with the all-reduce alone: z >= max_s Σ_{k ∋ s} c_k / d, the bandwidth bound of ring all-reduce.
    ``moore``
        Loads add up to bytes times hops, and there are at most C directions of links: C = n d, or d · 2⌊n/2⌋ for duplex
        optics, as a plane is a matching. So C z >= Σ_s A_s + Σ_st T_st dist(s, t), with A_s = Σ_{k ∋ s} c_k.
        More precisely, the links out of v carry what v sends and forwards, those into v what it receives and forwards,
        and v has as many ports for either: C z >= Σ_v max(sent, received) + forwarded, which adds
        Σ_v max(received - sent, 0) to the right-hand side.
        At most K_h = Σ_{i<=h} d^i servers (duplex: Σ_{i<=h} d (d-1)^{i-1}) lie within h hops of s, and as many have s
        within h hops. With X_h the most bytes that K_h entries of each row and column of T can hold, the bytes still
        under way after h hops are at least ΣT - X_h, hence Σ T dist >= Σ_{h >= 0} (ΣT - X_h).
        Where duplex planes leave servers out, all rows together have the entries of :func:`.pairs_within` at most.
        Duplex distances are symmetric, so that T may be replaced by (T + Tᵀ) / 2. A group of two members is counted as
        traffic: it has only one ring.
    ``multiplicity``
        The same, except that X_1 depends on z: over one hop the d links out of s carry at most the d largest of the
        pieces z, z, …, remainder of its row (one piece a pair without parallel links). C z grows with z and the other
        side falls, so bisection finds the smallest z that is not excluded. Stronger if one pair needs several links.
    ``direct`` (only without host forwarding)
        The pair (s, t) has at least ⌈T_st / z⌉ links, so Σ_t ⌈T_st / z⌉ <= d in each row and column. Where links are
        not parallel, z >= T_st, and an all-reduce group of k leaves each member over at most min(d, k-1) links.
    ``cut`` (only without parallel links and for n < 2 d)
        Traffic out of a set S, and c_k for each group that S divides, cross at most
        ``min(d|S|, d(n-|S|), |S|(n-|S|))`` links. Otherwise the last of the three is never the smallest, and the mean
        of the node bounds of S, or of the rest, is as strong. All S up to n = 14, intervals beyond.

    Raises
    ------
    InfeasibleError
        If a server has more servers to reach than the degree allows: without host forwarding each of them takes a link
        of its own, and duplex links of degree 1 are a matching, over which nobody reaches more than one other.
    """
    sizes = sizes_of(instance)
    bounds = sizes.bounds()
    known = max(bounds["node"], bounds["moore"])
    low, high = known, float(sizes.pairs.sum())
    if float(sizes.pairs.max()) > known and sizes.excluded(low):
        for _ in range(_EFFORT.bisections):
            middle = (low + high) / 2
            low, high = (middle, high) if sizes.excluded(middle) else (low, middle)
    return {name: float(bound) for name, bound in bounds.items()} | {"multiplicity": low}


def sizes_of(instance: TopologyInstance) -> "Sizes":
    """What an instance sends, in floats."""
    return Sizes(instance, instance.traffic_bytes, tuple(group.hop_bytes for group in instance.allreduce_groups))


@dataclass(frozen=True)
class Sizes:
    """What an instance sends, and the bounds of :func:`congestion_bounds`, in floats or in whole numbers.

    Parameters
    ----------
    instance : TopologyInstance
        Of which no number of bytes is read.
    traffic : (n, n) array
        Bytes by pair; whole numbers are even, as duplex optics see half the sum of two of them.
    hops : tuple
        Bytes on each hop of a ring of each all-reduce group.
    ratio : callable
        Divides elements: ``np.true_divide``, or of whole numbers what gives fractions.
    rounding : float
        How far ratios may be wrong.
    """

    instance: TopologyInstance
    traffic: Array
    hops: tuple[Any, ...]
    ratio: Callable[[Any, Any], Any] = np.true_divide
    rounding: float | Fraction = ROUNDING

    def bounds(self) -> dict[str, Any]:
        """All but ``multiplicity``.

        Raises
        ------
        InfeasibleError
            As :func:`congestion_bounds`.
        """
        instance, d = self.instance, self.instance.degree
        _refuse_unreachable(instance, self.pairs)
        volume = self.beside + max(sum(stages) for stages in self.under_way)
        found = {
            "node": self.ratio(self.node.max(), d),
            "all-reduce": self.ratio(self.all_reduce.max(), d),
            "moore": self.ratio(volume, directions_of_links(instance)),
        }
        if not instance.host_forwarding:
            found["direct"] = self._direct()
        if not instance.parallel_links and instance.servers < 2 * d:
            found["cut"] = self._cut()
        return found

    @cached_property
    def all_reduce(self) -> Array:
        """(n,) hop bytes of the groups of every server, which each of their rings sends from it."""
        return self._of_groups(2)

    @cached_property
    def node(self) -> Array:
        """(2, n) bytes that every server sends, and receives."""
        return np.stack([self.traffic.sum(axis=axis) + self.all_reduce for axis in (1, 0)])

    @cached_property
    def pairs(self) -> Array:
        """(n, n) bytes by pair that every design serves: a group of two members has one ring."""
        pairs = self.traffic.copy()
        for group, hop in zip(self.instance.allreduce_groups, self.hops, strict=True):
            if len(group.members) == 2:
                a, b = group.members
                pairs[a, b] += hop
                pairs[b, a] += hop
        return pairs

    @cached_property
    def beside(self) -> Any:
        """Bytes that need links beside traffic times hops."""
        return self._of_groups(3).sum() + self.idle

    @cached_property
    def idle(self) -> Any:
        """Bytes that servers receive beyond what they send: links out of them are idle for as many."""
        return (self.node.max(axis=0) - self.node[0]).sum()

    @cached_property
    def under_way(self) -> list[list[Any]]:
        """:func:`.bytes_under_way` as senders, receivers and the mean of both see it."""
        instance, duplex = self.instance, self.instance.optics == "duplex"
        levels, within = list(level_sizes(instance.servers - 1, instance.degree, duplex)), pairs_within(instance)
        return [bytes_under_way(view, levels, within) for view in views_of(self.pairs, duplex)]

    def excluded(self, z: Any) -> bool:
        """Whether no design carries at most z on every link: over one hop a link brings at most z of one pair."""
        instance, d = self.instance, self.instance.degree
        for view, stages in zip(views_of(self.pairs, duplex=False), self.under_way, strict=False):
            whole = view // z if instance.parallel_links else (view >= z) * 1
            rests = view - z * whole if instance.parallel_links else np.where(view >= z, 0, view)
            links = np.minimum(whole.sum(axis=1), d)
            left = (d - links).astype(int)
            best_rests = np.concatenate([rests[:, :1] * 0, np.cumsum(-np.sort(-rests, axis=1), axis=1)], axis=1)
            direct = z * links + np.take_along_axis(best_rests, left[:, None], axis=1)[:, 0]
            after_one = max(view.sum() - direct.sum(), stages[1] if len(stages) > 1 else 0)
            if directions_of_links(instance) * z < self.beside + view.sum() + after_one + sum(stages[2:]):
                return True
        return False

    def _of_groups(self, members: int) -> Array:
        """(n,) hop bytes of every server's groups of so many members or more."""
        found: Array = self.traffic[0] * 0
        for group, hop in zip(self.instance.allreduce_groups, self.hops, strict=True):
            if len(group.members) >= members:
                found[list(group.members)] += hop
        return found

    def _direct(self) -> Any:
        """Links that a pair needs for its own traffic, where nobody forwards."""
        d, instance = self.instance.degree, self.instance
        demand = np.maximum(self.pairs, self.pairs.T) if instance.optics == "duplex" else self.pairs
        if not instance.parallel_links:
            fewest = [min(d, len(group.members) - 1) for group in instance.allreduce_groups]
            of_groups = [self.ratio(hop, links) for hop, links in zip(self.hops, fewest, strict=True)]
            return max(demand.max(), *of_groups, 0)
        known: Any = 0
        for row in (*demand, *demand.T):
            needed = row[row > 0]
            if needed.size:
                # The answer is an entry divided by the number of its links.
                candidates = np.unique(self.ratio(needed[:, None], np.arange(1, d + 1)))
                eased = needed * (1 - self.rounding)
                low, high = 0, len(candidates) - 1
                while low < high:
                    middle = (low + high) // 2
                    fits = -(-eased // candidates[middle]).sum() <= d
                    low, high = (low, middle) if fits else (middle + 1, high)
                known = max(known, candidates[low])
        return known

    def _cut(self) -> Any:
        """The best ratio of bytes to links over sets of servers, for designs without parallel links."""
        n, d = self.instance.servers, self.instance.degree
        if n <= _EFFORT.exhaustive_cuts:
            inside = (np.arange(1, 2**n - 1)[:, None] >> np.arange(n)) & 1
        else:
            offsets = (np.arange(n)[None, :] - np.arange(n)[:, None]) % n
            inside = np.concatenate([(offsets < size) * 1 for size in (1, 2, n // 2, n - 2, n - 1)])
        crossing = ((inside @ self.pairs) * (1 - inside)).sum(axis=1)
        for group, hop in zip(self.instance.allreduce_groups, self.hops, strict=True):
            if len(group.members) > 2:
                members = inside[:, list(group.members)].sum(axis=1)
                divided = (members > 0) & (members < len(group.members))
                crossing = crossing + hop * divided.astype(self.traffic.dtype)
        size = inside.sum(axis=1)
        links = np.minimum(np.minimum(d * size, d * (n - size)), size * (n - size))
        return self.ratio(crossing, links).max()


def directions_of_links(instance: TopologyInstance) -> int:
    """C of :func:`congestion_bounds`."""
    n = instance.servers
    return instance.degree * (n if instance.optics == "one_way" else 2 * (n // 2))


def _refuse_unreachable(instance: TopologyInstance, pairs: Array) -> None:
    """Raise if a server must reach more others than ever lie within its reach."""
    d, duplex = instance.degree, instance.optics == "duplex"
    if instance.host_forwarding and not (duplex and d == 1):
        return
    wanted = pairs > 0
    if duplex:
        wanted = wanted | wanted.T
    if instance.host_forwarding:  # a perfect matching: nobody reaches more than one other
        for group in instance.allreduce_groups:
            wanted[np.ix_(group.members, group.members)] = True
        np.fill_diagonal(wanted, False)
    for partners, verb in ((wanted.sum(axis=1), "send to"), (wanted.sum(axis=0), "receive from")):
        if partners.max(initial=0) > d:
            s = int(partners.argmax())
            cure = "raise the degree" if instance.host_forwarding else "raise the degree or allow host forwarding"
            raise InfeasibleError(
                f"topology instance '{instance.name}': server {s} must {verb} {partners[s]} servers, "
                f"but degree {d} lets it reach {d}; {cure}"
            )
