"""Where the link search begins: closed rings with matchings, circulants, and other methods' designs."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import combinations
from math import comb

import numpy as np

from ddlopt.models.errors import DdloptError
from ddlopt.models.topology import TopologyDesign, TopologyInstance
from ddlopt.models.topology.permutations import hops_of, totients
from ddlopt.models.topology.planes import colour_planes
from ddlopt.solvers.topology.balance.balance import Job, heads_of
from ddlopt.solvers.topology.balance.path_kernels import Floats, Ints
from ddlopt.solvers.topology.link_exchange.moves import follow, hop_volume

# Permutations tried for a column, which is left idle if none of them suits.
_ATTEMPTS = 400
# All are rated where there are no more.
_CIRCULANTS = 2000
# Relative temperature for starts that are good already, so that annealing does not destroy them.
COOL = 0.02


@dataclass(frozen=True)
class LinkStart:
    """Links to search from: the table of link ends, its closed cycles, and rings known to be good, by group.

    ``hot`` is the first temperature of :func:`.anneal_volume`, low where the start has a structure worth keeping.
    """

    name: str
    heads: Ints
    cycles: Ints = field(default_factory=lambda: np.empty((0, 2), np.int64))
    rings: dict[int, list[tuple[int, ...]]] = field(default_factory=dict)
    hot: float = 0.2


def spanning_groups(instance: TopologyInstance) -> list[int]:
    """All-reduce groups of all servers: the rings of closed columns are theirs."""
    n = instance.servers
    return [number for number, group in enumerate(instance.allreduce_groups) if len(group.members) == n]


def cycles_of(instance: TopologyInstance, closed: int) -> Ints:
    """Which columns are closed: the first ``closed`` of them.

    One-way columns are cycles by themselves. Duplex planes go in pairs; of an odd number the last three close pairwise.
    """
    if instance.optics == "one_way":
        pairs = [(k, k) for k in range(closed)]
    else:
        pairs = [(k, k + 1) for k in range(0, closed - 1, 2)]
        if closed % 2 and closed > 1:
            pairs += [(closed - 3, closed - 1), (closed - 2, closed - 1)]
    return np.array(pairs, dtype=np.int64).reshape(-1, 2)


def closed_rings(heads: Ints, cycles: Ints, duplex: bool) -> list[tuple[int, ...]]:
    """The rings of the closed columns; with duplex optics in both directions."""
    ring = np.empty(len(heads), np.int64)
    rings: list[tuple[int, ...]] = []
    for first, second in cycles:
        follow(heads, first, second, ring)
        rings.append(tuple(ring.tolist()))
        if duplex:
            rings.append(tuple(ring[::-1].tolist()))
    return rings


def random_start(instance: TopologyInstance, closed: int, rng: np.random.Generator) -> LinkStart | None:
    """Random links on every port, with the first ``closed`` columns closed; None if that fails."""
    cycles = cycles_of(instance, closed)
    if closed == 0 and not instance.parallel_links:
        return LinkStart("round robin", _round_robin(instance, rng))
    for _ in range(5):
        heads = np.full((instance.servers, instance.degree), -1, dtype=np.int64)
        if all(_fill_column(instance, heads, k, closed, cycles, rng) for k in range(instance.degree)):
            return LinkStart(f"random with {closed} closed columns" if closed else "random", heads, cycles)
    return None


def _round_robin(instance: TopologyInstance, rng: np.random.Generator) -> Ints:
    """Links without parallels under random names: a circulant, or with duplex optics rounds of a tournament."""
    n, d = instance.servers, instance.degree
    name = rng.permutation(n)
    heads = np.full((n, d), -1, dtype=np.int64)
    for k in range(d):
        for v in range(n):
            if instance.optics == "one_way":
                w = (v + k + 1) % n
            elif n % 2:
                # In round k everybody meets the one with whom the numbers sum to k; alone is who would meet itself.
                w = (k - v) % n
            elif v == n - 1:
                w = k * n // 2 % (n - 1)
            else:
                w = (k - v) % (n - 1)
                w = n - 1 if w == v else w
            if w != v:
                heads[name[v], k] = name[w]
    return heads


def _fill_column(
    instance: TopologyInstance, heads: Ints, k: int, closed: int, cycles: Ints, rng: np.random.Generator
) -> bool:
    """Random links in column k, which was idle; False if none that suit the columns before it were found."""
    n = instance.servers
    duplex = instance.optics == "duplex"
    due = [(first, second) for first, second in cycles if max(first, second) == k]
    ring = np.empty(n, np.int64)
    for _ in range(_ATTEMPTS):
        order = rng.permutation(n)
        if not duplex:
            column = np.empty(n, dtype=np.int64)
            column[order] = np.roll(order, -1)
        else:
            column = np.full(n, -1, dtype=np.int64)
            half = n // 2
            if len(due) == 1:
                # The other plane's pairs in random order and direction, the end of each joined to the next.
                before = heads[:, due[0][0]]
                chain = [v if rng.random() < 0.5 else before[v] for v in order if v < before[v]]
                a, b = before[chain], np.roll(chain, -1)
            else:
                a, b = order[:half], order[half : 2 * half]
            column[a], column[b] = b, a
        if not instance.parallel_links and not _repair(heads[:, :k], column, duplex, k < closed, rng):
            continue
        heads[:, k] = column
        if all(follow(heads, first, second, ring) for first, second in due):
            return True
    heads[:, k] = -1
    return False


def _repair(before: Ints, column: Ints, duplex: bool, closed: bool, rng: np.random.Generator) -> bool:
    """Exchange link ends until no link of ``column`` repeats one of ``before``; False if that fails."""
    n = len(column)
    for _ in range(10 * n):
        bad = np.flatnonzero((before == np.where(column < 0, -2, column)[:, None]).any(axis=1))
        if not len(bad):
            return True
        if closed and not duplex and n < 6:
            return False
        a, c = int(rng.choice(bad)), int(rng.integers(n))
        b, e = int(column[a]), int(column[c])
        if len({a, b, c, e}) < 4 or e < 0:
            continue
        if duplex:
            column[a], column[c], column[b], column[e] = c, a, e, b
        elif not closed:
            column[a], column[c] = e, b
        else:
            # Three ends in the order met on the way from a.
            f = int(rng.integers(n))
            v = e
            while v not in (a, f):
                v = int(column[v])
            if v == a or f in (a, c):
                continue
            column[a], column[f], column[c] = e, b, int(column[f])
    return False


def circulant_starts(job: Job, rng: np.random.Generator) -> Iterator[LinkStart]:
    """The circulants with the least hops for the traffic: over all generators, and over those that give rings.

    With more than ``_CIRCULANTS`` generator sets that many are drawn.
    """
    instance = job.instance
    n, d, duplex = instance.servers, instance.degree, instance.optics == "duplex"
    steps = range(1, (n - 1) // 2 + 1) if duplex else range(1, n)
    wanted = d // 2 if duplex else d
    if wanted == 0 or wanted > len(steps):
        return
    if comb(len(steps), wanted) <= _CIRCULANTS:
        sets = list(combinations(steps, wanted))
    else:
        drawn = (rng.choice(len(steps), wanted, replace=False) for _ in range(_CIRCULANTS))
        sets = [tuple(sorted(steps[int(i)] for i in choice)) for choice in drawn]
    extra = (n // 2,) if duplex and d % 2 and n % 2 == 0 else ()
    coprime = set(totients(n))

    def table(generators: tuple[int, ...]) -> Ints:
        both = (*generators, *(n - g for g in generators), *extra) if duplex else generators
        heads = np.full((n, d), -1, dtype=np.int64)
        heads[:, : len(both)] = (np.arange(n)[:, None] + np.array(both)[None, :]) % n
        return heads

    def volume(generators: tuple[int, ...]) -> float:
        return float(hop_volume(table(generators), job.traffic, True))

    chosen = [min(sets, key=volume)]
    ringed = [generators for generators in sets if coprime.issuperset(generators)]
    if ringed:
        chosen.append(min(ringed, key=volume))
    for generators in dict.fromkeys(chosen):
        name = f"circulant {'±' if duplex else ''}{generators + extra}"
        if not duplex:
            closed = coprime.issuperset(generators)
            cycles = cycles_of(instance, d) if closed and spanning_groups(instance) else cycles_of(instance, 0)
            yield LinkStart(name, table(generators), cycles, hot=COOL)
            continue
        links = {(v, int(w)): 1 for v, row in enumerate(table(generators)) for w in row if v < w}
        heads = planes_table(instance, links)
        if heads is not None:
            yield LinkStart(name, heads, hot=COOL)


def kautz_start(instance: TopologyInstance) -> LinkStart | None:
    """The generalised Kautz graph, u → -(d u + k) mod n for k = 1..d, of diameter at most ⌈log_d n⌉; one-way only.

    Where a server would be joined to itself its port goes to another one.

    References
    ----------
    M. Imase and M. Itoh, "A design for directed graphs with minimum diameter", IEEE Trans. Computers 32(8), 1983.
    """
    n, d = instance.servers, instance.degree
    if instance.optics == "duplex" or d == 1:
        return None
    heads = -(d * np.arange(n)[:, None] + np.arange(1, d + 1)[None, :]) % n
    heads[heads == np.arange(n)[:, None]] = -1
    _join_idle_ports(instance, heads)
    if not instance.parallel_links and any(len(set(row[row >= 0])) < (row >= 0).sum() for row in heads):
        return None
    return LinkStart("generalised Kautz", heads, hot=COOL)


def planes_table(instance: TopologyInstance, links: dict[tuple[int, int], int]) -> Ints | None:
    """Table of duplex links whose columns are planes; None if no planes were found."""
    planes = colour_planes(instance.servers, links, instance.degree)
    if planes is None:
        return None
    heads = np.full((instance.servers, instance.degree), -1, dtype=np.int64)
    for k, plane in enumerate(planes):
        for i, j in plane:
            heads[i, k], heads[j, k] = j, i
    return heads


def design_start(instance: TopologyInstance, design: TopologyDesign, name: str) -> LinkStart | None:
    """Links and rings of a design, with links added between idle ports where they fit."""
    links = {(i, j): count for i, j, count in design.links}
    if instance.optics == "one_way":
        heads: Ints | None = heads_of(instance, links)
    else:
        heads = planes_table(instance, links)
    if heads is None:
        return None
    _join_idle_ports(instance, heads)
    rings: dict[int, list[tuple[int, ...]]] = {}
    for ring in sorted(design.rings, key=lambda ring: -ring.share):
        known = rings.setdefault(ring.group, [])
        if ring.members not in known:
            known.append(ring.members)
    return LinkStart(name, heads, rings=rings, hot=COOL)


def _join_idle_ports(instance: TopologyInstance, heads: Ints) -> None:
    """Lay links between idle ports, one after the other, where the rule on parallel links lets them."""
    n, d = heads.shape
    if instance.optics == "duplex":
        for k in range(d):
            for i, j in combinations(np.flatnonzero(heads[:, k] < 0).tolist(), 2):
                fits = instance.parallel_links or j not in heads[i]
                if heads[i, k] < 0 and heads[j, k] < 0 and fits:
                    heads[i, k], heads[j, k] = j, i
        return
    idle = d - np.bincount(heads[heads >= 0], minlength=n)
    for i in range(n):
        for k in np.flatnonzero(heads[i] < 0).tolist():
            free = [w for w in range(n) if idle[w] > 0 and w != i and (instance.parallel_links or w not in heads[i])]
            if free:
                w = max(free, key=lambda w: (idle[w], -int((heads[i] == w).sum())))
                heads[i, k] = w
                idle[w] -= 1


def finder_starts(instance: TopologyInstance, seed: int) -> Iterator[LinkStart]:
    """The designs of TopologyFinder, where it covers the instance."""
    from ddlopt.solvers.contracts import Limits
    from ddlopt.solvers.heuristic import Clock
    from ddlopt.solvers.topology.topoopt.topology_finder import TopologyFinder

    for variant in ("paper", "released"):
        finder = TopologyFinder(variant=variant)
        if finder.refuses(instance) is not None:
            continue
        try:
            design, _ = finder.answer(instance, seed, Clock(Limits(), None), None)
        except DdloptError:
            continue
        start = design_start(instance, design, finder.name)
        if start is not None:
            yield start


def ring_traffic(job: Job, start: LinkStart) -> Floats:
    """(n, n) bytes: the traffic, and each group's hops on rings that are not closed columns."""
    demand = job.traffic.copy()
    covered = set(spanning_groups(job.instance)) if len(start.cycles) else set()
    for number, group in enumerate(job.instance.allreduce_groups):
        if number in covered:
            continue
        rings = start.rings.get(number, [group.members])
        for ring in rings:
            for a, b in hops_of(ring):
                demand[a, b] += group.hop_bytes / len(rings)
    return demand
