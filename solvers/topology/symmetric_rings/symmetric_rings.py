"""Our heuristic for jobs that look the same from every server: Cayley graphs, and rings in all their translates."""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice, pairwise
from typing import Any, ClassVar

import numpy as np

from ddlopt.models.errors import NoSolutionError, OptionError
from ddlopt.models.topology import Path, TopologyDesign, TopologyInstance
from ddlopt.models.topology.bounds import congestion_bounds
from ddlopt.models.topology.symmetry.cayley import AbelianGroup
from ddlopt.solvers.heuristic import Answer, Clock, Heuristic
from ddlopt.solvers.topology.balance.balance import Balance, Job
from ddlopt.solvers.topology.balance.path_kernels import capacities, seed_kernels
from ddlopt.solvers.topology.symmetric_rings.quotient import Column, Quotient
from ddlopt.solvers.topology.symmetric_rings.sight import Ints, Sight, sights

UsedRing = tuple[int, tuple[int, ...], float, tuple[Path, ...]]
"""Group, members in ring order, share, and a path for each hop, as of :class:`.Balance`."""

MOST_SERVERS = 256
"""Beyond so many servers there are millions of hops of rings to write down."""
_GROUPS = 8
"""Groups of translations that are tried."""
# Rounds of columns and kicks of each ring: of a trial, and of the best generators.
_TRIAL, _FINAL = (8, 5), (60, 50)
_HOPELESS = 1.1
"""Load, in that of the generators before, above which a trial ends."""
_FAILURES = 25
"""Exchanges of a generator in a row that do not help, after which others are drawn."""
_NEGLIGIBLE = 1e-9
"""Shares up to which a ring is not used."""
REACHED = 1e-7
"""Relative distance from the bound at which there is nothing left to search for."""


@dataclass(frozen=True)
class SymmetricRings(Heuristic, uses=("seed",)):
    """Links of a Cayley graph, and rings and routes that are used together with all their translates.

    A job looks the same from every server if some abelian group acts on the servers so that traffic is kept and the
    all-reduce groups are all cosets of subgroups: blocks and cosets of strategies are. Then so may the links: every
    server x has links to x + g, for as many generators g as there are ports. Generators are drawn from the subgroups,
    and exchanged one by one for as long as that helps; each set of them is judged by a linear program over rings and
    paths, with a row for each generator (:class:`~.quotient.Quotient`). Where a job only all-reduces, the best such
    design often loads every link the same and no ring takes a detour, which is optimal. A little traffic may differ
    from server to server; generators are then chosen by its mean.

    Parameters
    ----------
    trials : int
        Sets of generators that are judged.
    """

    trials: int = 3000

    name: ClassVar[str] = "symmetric-rings"
    kernels: ClassVar[tuple[str, ...]] = (
        "ddlopt.solvers.topology.balance.ring_kernels",
        "ddlopt.solvers.topology.balance.path_kernels",
    )

    def __post_init__(self) -> None:
        if self.trials < 1:
            raise OptionError(f"trials must be at least 1, got {self.trials}")

    def refuses(self, instance: TopologyInstance) -> str | None:
        """Jobs that do not look the same from every server."""
        return why_not(instance)

    def answer(self, instance: TopologyInstance, seed: int, clock: Clock, start: Any) -> Answer[TopologyDesign]:
        """The best generators found; details: how many sets were judged."""
        found, judged = symmetric(instance, seed, clock, self.trials)
        if found is None:
            raise NoSolutionError(f"{self.name} met no generators that join the servers of '{instance.name}'")
        return found.design(), {"trials": judged}


def why_not(instance: TopologyInstance) -> str | None:
    """Why a job has no such design that is worth a search; None if it has."""
    reason = _out_of_reach(instance)
    if reason is None and next(sights(instance), None) is None:
        return "its all-reduce groups or its traffic do not look the same from every server under any abelian group"
    return reason


def _out_of_reach(instance: TopologyInstance) -> str | None:
    if not instance.host_forwarding:
        return "rings and routes pass through other servers, which the hosts do not forward"
    if instance.servers > MOST_SERVERS:
        return f"there are {instance.servers} servers, and it is for {MOST_SERVERS} at most"
    return None


def symmetric(instance: TopologyInstance, seed: int, clock: Clock, trials: int) -> tuple[Balance | None, int]:
    """The best design of a Cayley graph, and how many were judged; None where there is none."""
    seen = [] if _out_of_reach(instance) else list(islice(sights(instance), _GROUPS))
    if not seen:
        return None, 0
    seed_kernels(seed)
    rng = np.random.default_rng(seed)
    enough = max(congestion_bounds(instance).values()) * (1 + REACHED)
    searches = [_Search(sight, rng, clock, enough) for sight in seen]
    searches = [search for search in searches if search.pools]
    best, least, judged = None, np.inf, 0
    while searches and judged < trials and least > enough and not clock.expired:
        search = searches.pop(0)
        searches.append(search)
        quotient, load = search.ascent(trials - judged)
        judged += search.judged
        if load < least:
            best, least = quotient, load
    return None if best is None else written(best), judged


class _Search:
    """Local search over the generators of one group.

    A choice is a tuple of elements, each of which takes a port, or two with duplex links unless it is its own inverse.
    """

    def __init__(self, sight: Sight, rng: np.random.Generator, clock: Clock, enough: float) -> None:
        self.sight, self.rng, self.clock, self.enough = sight, rng, clock, enough
        instance, group = sight.instance, sight.group
        self.duplex, self.judged = instance.optics == "duplex", 0
        everybody = np.arange(group.order)
        inverse = group.negate(everybody)
        self.ports = np.where(self.duplex & (inverse != everybody), 2, 1)
        # A duplex link is in a matching, so that its cycle is even.
        usable = everybody > 0 if not self.duplex else (everybody > 0) & (group.element_orders % 2 == 0)
        pools = [family.subgroup for family in sight.families]
        pools.append(everybody)
        self.pools = [pool[usable[pool]] for pool in pools if usable[pool].any()]

    def ascent(self, trials: int) -> tuple[Quotient | None, float]:
        """Generators drawn, and exchanged one by one until none helps; their program and its load."""
        self.judged = failures = 0
        chosen = self._drawn()
        load, quotient = self._judged(chosen, np.inf)
        while failures < _FAILURES and self.judged < trials and not self.clock.expired and load > self.enough:
            other = self._exchanged(chosen)
            found, program = self._judged(other, load * _HOPELESS)
            failures += 1
            if found < load:
                chosen, load, quotient, failures = other, found, program, 0
        if quotient is not None and np.isfinite(load) and load > self.enough:
            load = min(load, quotient.solve(*_FINAL, self.enough, np.inf))
        return quotient, load

    def _drawn(self) -> tuple[int, ...]:
        chosen: list[int] = []
        left = self.sight.instance.degree
        while left > 0:
            element = self._element(left)
            if element is None:
                break
            chosen.append(element)
            left -= int(self.ports[element])
        return tuple(chosen)

    def _exchanged(self, chosen: tuple[int, ...]) -> tuple[int, ...]:
        if not chosen:
            return self._drawn()
        place = int(self.rng.integers(len(chosen)))
        ports = int(self.ports[chosen[place]])
        other = self._element(ports, ports)
        return chosen if other is None else (*chosen[:place], other, *chosen[place + 1 :])

    def _element(self, most_ports: int, least_ports: int = 1) -> int | None:
        """One of a pool at random, if it has any with so many ports."""
        for _ in range(_FAILURES):
            pool = self.pools[int(self.rng.integers(len(self.pools)))]
            element = int(pool[int(self.rng.integers(len(pool)))])
            if least_ports <= self.ports[element] <= most_ports:
                return element
        return None

    def _judged(self, chosen: tuple[int, ...], hopeless: float) -> tuple[float, Quotient | None]:
        self.judged += 1
        elements = list(chosen)
        if self.duplex:
            elements += [int(self.sight.group.negate(g)) for g in chosen if self.ports[g] == 2]
        generators, counts = np.unique(np.array(elements, dtype=np.int64), return_counts=True)
        if not len(generators) or (counts.max() > 1 and not self.sight.instance.parallel_links):
            return np.inf, None
        quotient = Quotient(self.sight, generators, counts)
        return quotient.solve(*_TRIAL, self.enough, hopeless), quotient


def written(quotient: Quotient) -> Balance:
    """Links, all translates of the rings and routes in use, and lengths of the links."""
    sight = quotient.sight
    instance, group = sight.instance, sight.group
    heads = _heads(group, quotient.generators, quotient.counts, instance.optics == "duplex", instance.degree)
    n, d = heads.shape
    ends = group.translations[quotient.generators].T
    first = (heads[:, None, :] == ends[:, :, None]).argmax(axis=2)
    length = np.full((n, d), np.inf)
    np.put_along_axis(length, first, np.broadcast_to(quotient.length, first.shape), axis=1)
    flow = np.zeros((n, n, d))
    rings: dict[tuple[int, tuple[int, ...], tuple[Path, ...]], float] = defaultdict(float)
    for column, share in zip(quotient.columns, quotient.shares.tolist(), strict=True):
        if share <= _NEGLIGIBLE:
            continue
        if column.row < len(sight.families):
            for key in _translates(quotient, column):
                rings[key] += share / len(column.ring)
            continue
        offset = int(column.ring[1])
        for source in range(n):
            path = quotient.path(column.before, source, offset)
            for tail, head in pairwise(path):
                sent = instance.traffic_bytes[source, group.translations[source, offset]]
                flow[source, tail, int((heads[tail] == head).argmax())] += share * sent
    kept = _whole([(number, members, share, paths) for (number, members, paths), share in rings.items()])
    loads = flow.sum(axis=0)
    for number, _, share, paths in kept:
        for path in paths:
            for tail, head in pairwise(path):
                loads[tail, int((heads[tail] == head).argmax())] += share * instance.allreduce_groups[number].hop_bytes
    capacity = capacities(heads)
    used = capacity > 0
    load = float((loads.ravel()[used] / capacity[used]).max())
    return Balance(Job(instance), heads, load, flow.reshape(n, n * d), kept, length.ravel())


def _translates(quotient: Quotient, column: Column) -> Iterator[tuple[int, tuple[int, ...], tuple[Path, ...]]]:
    """Of one ring, all that the groups of its family have: (group, members, paths), the least server first."""
    sight = quotient.sight
    family = sight.families[column.row]
    move = sight.group.translations
    hops = [int(v) for v in move[sight.group.negate(column.ring), np.roll(column.ring, -1)]]
    for number in family.numbers:
        for source in sight.instance.allreduce_groups[number].members:
            members = move[source, column.ring].tolist()
            begin = members.index(min(members))
            turned = members[begin:] + members[:begin]
            along = hops[begin:] + hops[:begin]
            paths = tuple(quotient.path(column.before, s, v) for s, v in zip(turned, along, strict=True))
            yield number, tuple(turned), paths


def _whole(rings: Sequence[UsedRing]) -> tuple[UsedRing, ...]:
    """The same rings with shares of every group that sum to one."""
    total: dict[int, float] = defaultdict(float)
    for number, _, share, _ in rings:
        total[number] += share
    return tuple((number, members, share / total[number], paths) for number, members, share, paths in rings)


def _heads(group: AbelianGroup, generators: Ints, counts: Ints, duplex: bool, degree: int) -> Ints:
    """(n, d) table of link ends; with duplex links each column is a matching, two for every even cycle."""
    everybody = np.arange(group.order)
    columns: list[Ints] = []
    for g, count in zip(generators.tolist(), counts.tolist(), strict=True):
        ahead = group.translations[g, everybody]
        if not duplex or group.element_orders[g] == 2:
            columns += [ahead] * count
        elif g < int(group.negate(g)):
            odd = _places(group, g) % 2 == 1
            behind = group.translations[int(group.negate(g)), everybody]
            columns += [np.where(odd, behind, ahead), np.where(odd, ahead, behind)] * count
    columns += [np.full(group.order, -1, dtype=np.int64)] * (degree - len(columns))
    return np.ascontiguousarray(np.stack(columns, axis=1))


def _places(group: AbelianGroup, g: int) -> Ints:
    """(n,) place of each element in its cycle of the generator, counted from the cycle's least."""
    found = np.full(group.order, -1, dtype=np.int64)
    for v in range(group.order):
        place = 0
        while found[v] < 0:
            found[v] = place
            place += 1
            v = int(group.translations[g, v])
    return found
