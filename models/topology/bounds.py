"""Lower bounds on the load of the busiest link, without a solver, for every design of an instance.

For the links of one design see :func:`metric_bound`.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate
from math import inf

import numpy as np
import numpy.typing as npt

from ddlopt.models.errors import InfeasibleError
from ddlopt.models.tolerances import OBJECTIVE_TOL, ROUNDING
from ddlopt.models.topology.instance import TopologyInstance
from ddlopt.models.topology.metric import metric_bound

__all__ = [
    "congestion_bounds",
    "hop_bytes_out",
    "least_hop_bytes",
    "level_sizes",
    "lower_bound",
    "metric_bound",
]

Array = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Effort:
    """How far bounds that are looked for are looked for, and why so far."""

    rounds: int = 4
    """Descent steps on the prices of :func:`_bytes_within`: each keeps the bound valid, more of them hardly move it."""
    priced_levels: int = 3
    """Hops whose prices are looked for: most bytes arrive near the first levels."""
    priced_servers: int = 512
    """Most servers that are priced: it sorts n figures for each of n servers in every round."""
    branching: int = 2
    """Ports from which servers can forward."""
    servers_with_sums: int = 3
    """Least servers whose traffic may be sums: of two there is one sum, whose parts cannot be told."""
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
        Where duplex planes leave servers out, all rows together have the entries of :func:`pairs_within` at most.
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
    pairs, reduced = _traffic_and_reduction(instance)
    _refuse_unreachable(instance, pairs)
    d, n = instance.degree, instance.servers
    capacity, all_reduce = directions_of_links(instance), all_reduce_bytes(instance)

    bounds = {"node": float(instance.node_bytes.max()) / d, "all-reduce": float(all_reduce.max()) / d}
    levels = list(level_sizes(n - 1, d, instance.optics == "duplex"))
    views = views_of(pairs, instance.optics == "duplex")
    within = pairs_within(instance)
    under_way = [bytes_under_way(view, levels, within) for view in views]
    beside = float(reduced.sum()) + idle_bytes(instance)
    bounds["moore"] = (beside + max(sum(stages) for stages in under_way)) / capacity
    bounds["multiplicity"] = max(
        _multiplicity_bound(instance, view, beside, stages, capacity, max(bounds.values()))
        for view, stages in zip(views[:2], under_way[:2], strict=True)
    )
    if not instance.host_forwarding:
        bounds["direct"] = _direct_bound(instance, pairs)
    if not instance.parallel_links and n < 2 * d:
        bounds["cut"] = _cut_bound(instance, pairs)
    return bounds


def directions_of_links(instance: TopologyInstance) -> int:
    """C of :func:`congestion_bounds`."""
    n = instance.servers
    return instance.degree * (n if instance.optics == "one_way" else 2 * (n // 2))


def all_reduce_bytes(instance: TopologyInstance) -> Array:
    """(n,) hop bytes of the groups of every server, which each of their rings sends from it."""
    found = np.zeros(instance.servers)
    for group in instance.allreduce_groups:
        found[list(group.members)] += group.hop_bytes
    return found


def idle_bytes(instance: TopologyInstance) -> float:
    """Bytes that servers receive beyond what they send: links out of them are idle for as many."""
    return float((instance.node_bytes.max(axis=0) - instance.node_bytes[0]).sum())


def level_sizes(others: int, degree: int, duplex: bool) -> Iterator[int]:
    """Most servers at distance 1, 2, … from a server, until there are ``others`` in all or no more can be reached."""
    left, size = others, degree
    while left and size:
        size = min(size, left)
        yield size
        left -= size
        size *= degree - 1 if duplex else degree


def pairs_within(instance: TopologyInstance) -> list[int]:
    r"""Most ordered pairs within 1, 2, … hops, where they are fewer than what every server can reach alone.

    A duplex plane leaves one of an odd number n of servers out, so degrees add up to d (n - 1). As many ordered pairs
    are joined, and at most :math:`\sum_v \deg_v (\deg_v - 1)` are two hops apart: a convex sum, which is largest where
    one server lacks as many links as it can, one if it has bytes to send or to receive, and another one the rest. At
    h hops there are at most d (n - 1) (d - 1)^(h - 1), a way for each first link. All pairs are left out of the list.
    """
    n, d = instance.servers, instance.degree
    if instance.optics == "one_way" or n % 2 == 0 or d < _EFFORT.branching or not instance.host_forwarding:
        return []
    joined, needed = d * (n - 1), bool((instance.node_bytes.max(axis=0) > 0).all())
    two_apart = ((n - 2) * d + d - 2) * (d - 1) if needed else (n - 1) * d * (d - 1)
    found, last, apart = [joined], joined + two_apart, joined * (d - 1) ** 2
    while last < n * (n - 1):
        found.append(last)
        last, apart = last + apart, apart * (d - 1)
    return found


def hop_bytes_out(rows: Array, degree: int, duplex: bool) -> float:
    """Least bytes times hops of what some servers send, (k, n): the largest pieces of each to the nearest others."""
    levels = list(level_sizes(rows.shape[1] - 1, degree, duplex))
    hops = np.repeat(np.arange(1, len(levels) + 1), levels)
    return float((-np.sort(-rows, axis=1)[:, : len(hops)] @ hops).sum())


def least_hop_bytes(traffic: Array, degree: int, duplex: bool) -> float:
    """Least sum of bytes times hops of an (n, n) traffic, as under ``moore`` in :func:`congestion_bounds`.

    It holds for all links of that degree, and so does, for a sum of traffics, the sum of theirs: no links are better
    for all of them than the best for each.
    """
    levels = list(level_sizes(len(traffic) - 1, degree, duplex))
    least = max(sum(bytes_under_way(view, levels)) for view in views_of(traffic, duplex))
    to_many = (traffic > 0).sum(axis=1, keepdims=True) > degree
    if len(traffic) <= _EFFORT.priced_servers or to_many.all() or not to_many.any():
        return least
    # There are no prices on rows and columns at once: what few send to many is taken apart from the rest.
    parts = np.where(to_many, traffic, 0.0), np.where(to_many, 0.0, traffic).T
    return max(least, sum(sum(bytes_under_way(part, levels)) for part in parts))


def _traffic_and_reduction(instance: TopologyInstance) -> tuple[Array, Array]:
    """Bytes by pair that every design serves, and by sender the all-reduce bytes whose receiver it chooses."""
    pairs, reduced = instance.traffic_bytes.copy(), np.zeros(instance.servers)
    for group in instance.allreduce_groups:
        if len(group.members) == 2:
            a, b = group.members
            pairs[a, b] += group.hop_bytes
            pairs[b, a] += group.hop_bytes
        else:
            reduced[list(group.members)] += group.hop_bytes
    return pairs, reduced


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


def views_of(pairs: Array, duplex: bool) -> list[Array]:
    """Traffic as its senders and as its receivers see it, and for duplex optics, where hops are symmetric, the mean."""
    if np.array_equal(pairs, pairs.T):
        return [pairs]
    return [pairs, pairs.T, *([(pairs + pairs.T) / 2] if duplex else [])]


def bytes_under_way(traffic: Array, levels: list[int], within: Sequence[int] = ()) -> list[float]:
    """Least bytes not yet delivered after 0, 1, 2, … hops, with :func:`pairs_within` of all servers together."""
    total = float(traffic.sum())
    if total == 0:
        return [0.0]
    most_receivers = int((traffic > 0).sum(axis=1).max())
    descending = -np.sort(-traffic, axis=1)
    delivered = np.concatenate([[0.0], np.cumsum(descending.sum(axis=0))])
    reached = list(accumulate(levels))
    reached += [reached[-1]] * (len(within) - len(reached))
    stages = [total]
    for level, reach in enumerate(reached, start=1):
        all_reached = reach >= min(most_receivers, len(traffic) - 1)
        if all_reached and level > len(within):
            break
        near = float(delivered[reach])
        if level <= _EFFORT.priced_levels and len(traffic) <= _EFFORT.priced_servers and not all_reached:
            near = min(near, _bytes_within(traffic, reach))
        if level <= len(within):
            near = min(near, float(-np.sort(-descending[:, :reach], axis=None)[: within[level - 1]].sum()))
        stages.append(max(0.0, total - near))
    return stages


def _bytes_within(traffic: Array, reach: int) -> float:
    r"""Upper bound on the bytes that ``reach`` entries of each row and each column can hold.

    For any prices u, v >= 0 of rows and columns the dual of that transportation problem,
    :math:`K Σ_i u_i + K Σ_j v_j + Σ_{ij} (T_{ij} - u_i - v_j)^+`, is such a bound; u and v descend in turn.
    """
    best, parts = inf, _parts_of_sums(traffic)
    for v in (np.zeros(len(traffic)), *([] if parts is None else [parts])):
        for _ in range(_EFFORT.rounds):
            u = _price(traffic - v[None, :], reach)
            v = _price((traffic - u[:, None]).T, reach)
            rest = np.maximum(traffic - u[:, None] - v[None, :], 0).sum()
            best = min(best, float(reach * (u.sum() + v.sum()) + rest))
    return best


def _parts_of_sums(traffic: Array) -> Array | None:
    """The :math:`a_j` where all pairs exchange :math:`T_{ij} = a_i + a_j`, which are prices to begin with; else None.

    So do embedding tables, of which server i has some and gets from all others as much as it sends to each. Descent
    from zero stays far above the least there, as rows alone seem to have room for the largest.
    """
    n = len(traffic)
    if n < _EFFORT.servers_with_sums:
        return None
    half = float(traffic.sum()) / (2 * (n - 1))
    parts = np.maximum(traffic.sum(axis=0) - half, 0.0) / (n - 2)
    sums = parts[:, None] + parts
    np.fill_diagonal(sums, 0.0)
    fits = np.abs(sums - traffic).max() <= OBJECTIVE_TOL * float(traffic.max())
    return np.asarray(parts) if fits else None


def _price(values: Array, reach: int) -> Array:
    """Row prices that minimise the dual while the others are held: each row's (reach + 1)-th largest value, or 0."""
    position = values.shape[1] - 1 - reach
    return np.asarray(np.maximum(np.partition(values, position, axis=1)[:, position], 0))


def _multiplicity_bound(
    instance: TopologyInstance, traffic: Array, beside: float, stages: list[float], capacity: int, known: float
) -> float:
    """The smallest z >= ``known`` that the Moore argument with pieces of at most z bytes does not exclude.

    ``beside`` are the bytes that need capacity beside traffic times hops.
    """
    if float(traffic.max()) <= known:
        return known
    total, d = float(traffic.sum()), instance.degree
    later = sum(stages[2:])

    def excluded(z: float) -> bool:
        whole = np.floor(traffic / z) if instance.parallel_links else (traffic >= z).astype(float)
        rests = (traffic - z * whole) if instance.parallel_links else np.where(traffic >= z, 0.0, traffic)
        links = np.minimum(whole.sum(axis=1), d)
        left = (d - links).astype(int)
        best_rests = np.concatenate([np.zeros((len(traffic), 1)), np.cumsum(-np.sort(-rests, axis=1), axis=1)], axis=1)
        direct = z * links + np.take_along_axis(best_rests, left[:, None], axis=1)[:, 0]
        after_one = max(total - float(direct.sum()), stages[1] if len(stages) > 1 else 0.0)
        return capacity * z < beside + total + after_one + later

    low, high = known, total
    if not excluded(low):
        return known
    for _ in range(_EFFORT.bisections):
        middle = (low + high) / 2
        low, high = (middle, high) if excluded(middle) else (low, middle)
    return low


def _direct_bound(instance: TopologyInstance, pairs: Array) -> float:
    """Links that a pair needs for its own traffic, where nobody forwards."""
    d = instance.degree
    demand = np.maximum(pairs, pairs.T) if instance.optics == "duplex" else pairs
    known = 0.0
    if not instance.parallel_links:
        of_groups = [g.hop_bytes / min(d, len(g.members) - 1) for g in instance.allreduce_groups]
        return max(float(demand.max()), max(of_groups, default=0.0))
    for row in (*demand, *demand.T):
        needed = row[row > 0]
        if needed.size:
            # The answer is an entry divided by the number of its links.
            candidates = np.unique(needed[:, None] / np.arange(1, d + 1))
            low, high = 0, len(candidates) - 1
            while low < high:
                middle = (low + high) // 2
                fits = np.ceil(needed / candidates[middle] * (1 - ROUNDING)).sum() <= d
                low, high = (low, middle) if fits else (middle + 1, high)
            known = max(known, float(candidates[low]))
    return known


def _cut_bound(instance: TopologyInstance, pairs: Array) -> float:
    """The best ratio of bytes to links over sets of servers, for designs without parallel links."""
    n, d = instance.servers, instance.degree
    if n <= _EFFORT.exhaustive_cuts:
        inside = ((np.arange(1, 2**n - 1)[:, None] >> np.arange(n)) & 1).astype(float)
    else:
        offsets = (np.arange(n)[None, :] - np.arange(n)[:, None]) % n
        inside = np.concatenate([(offsets < size).astype(float) for size in (1, 2, n // 2, n - 2, n - 1)])
    crossing = ((inside @ pairs) * (1 - inside)).sum(axis=1)
    for group in instance.allreduce_groups:
        if len(group.members) > 2:
            members = inside[:, list(group.members)].sum(axis=1)
            crossing += group.hop_bytes * ((members > 0) & (members < len(group.members)))
    size = inside.sum(axis=1)
    links = np.minimum(np.minimum(d * size, d * (n - size)), size * (n - size))
    return float((crossing / links).max())
