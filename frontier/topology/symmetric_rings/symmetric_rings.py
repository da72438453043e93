"""Our heuristic for jobs that look the same from every server: Cayley graphs, and rings in all their translates."""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import islice, pairwise, zip_longest
from typing import Any, ClassVar

import numpy as np

from ddlopt.frontier.topology.blocks.bounds import congestion_bounds
from ddlopt.frontier.topology.symmetric_rings.orbit_design import NEGLIGIBLE, balance_of, routed
from ddlopt.frontier.topology.symmetric_rings.orbit_search import OrbitSearch, best_orbits
from ddlopt.frontier.topology.symmetric_rings.orbits import Orbits, all_orbits
from ddlopt.frontier.topology.symmetric_rings.quotient import Column, Quotient
from ddlopt.frontier.topology.symmetric_rings.search import GeneratorSearch, Ports, best_of
from ddlopt.frontier.topology.symmetric_rings.sight import Ints, Sight, sights
from ddlopt.frontier.topology.symmetry.cayley import AbelianGroup
from ddlopt.models.errors import NoSolutionError, OptionError
from ddlopt.models.topology import Path, TopologyDesign, TopologyInstance
from ddlopt.solvers.heuristic import Answer, Clock, Heuristic
from ddlopt.solvers.topology.balance.balance import Balance
from ddlopt.solvers.topology.balance.path_kernels import seed_kernels

MOST_SERVERS = 256
"""With more servers there are millions of hops of rings to write down."""
_GROUPS = 8
"""Groups of translations that are tried."""
_ORBITS = 4
"""Most orbits of servers: with twice as many a trial takes four times as long."""
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

    Blocks that exchange traffic inside and rings that leave them share the ports best where not all servers have as
    many links into their block. So, with traffic and one-way links, a half to a quarter of the translations are taken,
    too: each of their orbits has generators of its own (:class:`~.orbit_program.OrbitProgram`), as many into every
    orbit as out of it.

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
    ports = Ports(instance.degree, instance.optics == "duplex", instance.parallel_links)

    def search_of(sight: Sight) -> GeneratorSearch[Quotient]:
        subgroups = [family.subgroup for family in sight.families]
        return GeneratorSearch(sight.group, subgroups, ports, partial(Quotient, sight), rng, clock, enough)

    orbits = list(_orbits(instance, seen))
    best, least, judged = best_of([search_of(sight) for sight in seen], trials if not orbits else (trials + 1) // 2)
    found = None if best is None else written(best)
    if least > enough:
        searches = [OrbitSearch(each, rng, clock, enough) for each in orbits]
        program, load, more = best_orbits(searches, trials - judged)
        judged += more
        if program is not None and load < least:
            found, least = balance_of(program), load
    return found, judged


def _orbits(instance: TopologyInstance, seen: Sequence[Sight]) -> Iterator[Orbits]:
    """Of a half to a quarter of the translations, where there is traffic and links are one-way."""
    if instance.optics == "one_way" and instance.traffic_bytes.any():
        found = [list(all_orbits(sight, _ORBITS)) for sight in seen]
        queues = [[o for each in found for o in each if len(o.first) == number] for number in range(2, _ORBITS + 1)]
        yield from (each for turn in zip_longest(*queues) for each in turn if each is not None)


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
        if share <= NEGLIGIBLE:
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
    return routed(instance, heads, flow, rings, length)


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
