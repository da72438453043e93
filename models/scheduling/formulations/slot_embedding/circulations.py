"""Rings on any network: connected circulations between the places where a job has servers."""

from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import pyomo.environ as pyo

from ddlopt.models.linear import linear
from ddlopt.models.scheduling.formulations.slot_embedding.widths import SlotData
from ddlopt.models.scheduling.instance import SchedulingInstance
from ddlopt.models.scheduling.rings.rings import Arc, Ring, euler_ring
from ddlopt.models.tolerances import let_pass


@dataclass(frozen=True)
class Core:
    """A network without the links to *leaf servers*, those with one neighbour; a ring takes such a link once or never.

    Parameters
    ----------
    stations : mapping
        Node of the core with servers -> those servers: itself, leaf servers next to it.
    leaf_links : mapping
        Leaf server -> the smaller bandwidth of its link's two directions.
    arcs : mapping
        Bandwidth of the arcs of the core.
    """

    stations: Mapping[int, tuple[int, ...]]
    leaf_links: Mapping[int, float]
    arcs: Mapping[Arc, float]

    @cached_property
    def station_of(self) -> dict[int, int]:
        """The station of every server."""
        return {server: node for node, servers in self.stations.items() for server in servers}


def core_of(instance: SchedulingInstance) -> Core:
    """The core of a network."""
    network, count = instance.network, instance.server_count
    assert network is not None
    neighbours = {node: set(network.neighbours.get(node, ())) for node in range(count + network.switches)}
    for u, v in network.arcs:
        neighbours[v].add(u)
    at = {s: next(iter(neighbours[s])) for s in range(count) if len(neighbours[s]) == 1}
    at = {s: node for s, node in at.items() if len(neighbours[node]) > 1}
    stations: dict[int, list[int]] = {}
    for server in range(count):
        stations.setdefault(at.get(server, server), []).append(server)
    links = {s: min(network.arcs[s, node], network.arcs[node, s]) for s, node in at.items()}
    arcs = {(u, v): rate for (u, v), rate in sorted(network.arcs.items()) if u not in at and v not in at}
    return Core({node: tuple(servers) for node, servers in sorted(stations.items())}, links, arcs)


def scarce_leaf_links(core: Core, data: SlotData) -> dict[int, float]:
    """Bandwidth of the leaf links that cannot carry the rings of all jobs at once."""
    wanted = sum(float(data.rate[i]) for i in data.gains if data.most(i) > 1)
    return {server: rate for server, rate in core.leaf_links.items() if wanted > let_pass(rate)}


def add_circulations(block: pyo.Block, data: SlotData, core: Core, place: Mapping[int, int]) -> None:
    """Add ``passes[i, u, v]`` of each job's ring over the arcs of the core, with bandwidth rows.

    Expects ``runs[i]`` and :class:`~ddlopt.models.scheduling.formulations.tree_cuts.TreeCuts`.

    Parameters
    ----------
    place : mapping
        Station -> its servers' place among the cuts; empty if there is one station only.
    """
    at = _stops(block, data, place)
    passes: dict[tuple[int, int, int], int] = {}
    out: dict[tuple[int, int], list[Arc]] = defaultdict(list)
    into: dict[tuple[int, int], list[Arc]] = defaultdict(list)
    for i in at:
        for (u, v), bandwidth in core.arcs.items():
            # The shortest rings pass at most once between two stops.
            within = let_pass(bandwidth) // data.rate[i]
            if times := int(min(within, len(at[i]), data.most(i))):
                passes[i, u, v] = times
                out[i, u].append((u, v))
                into[i, v].append((u, v))
    block.PASSES = pyo.Set(dimen=3, initialize=list(passes), doc="job, arc with bandwidth for its ring")
    block.passes = pyo.Var(
        block.PASSES, domain=pyo.NonNegativeIntegers, bounds=lambda _, *key: (0, passes[key]), doc="of the ring"
    )
    block.RING_NODES = pyo.Set(dimen=2, initialize=sorted({*out, *into}), doc="job, node of its ring")

    @block.Constraint(block.RING_NODES, doc="a ring leaves each node as often as it enters it")
    def ring_is_closed(b: Any, i: int, v: int) -> Any:
        arriving = [(1.0, b.passes[i, *arc]) for arc in into.get((i, v), ())]
        return linear([*arriving, *((-1.0, b.passes[i, *arc]) for arc in out.get((i, v), ()))]) == 0

    block.STOPS = pyo.Set(dimen=2, initialize=[(i, v) for i in at for v in at[i]], doc="job, station with room for it")

    @block.Constraint(block.STOPS, doc="a ring leaves each station where it has some of its servers")
    def ring_visits_stations(b: Any, i: int, v: int) -> Any:
        leaving = [(1.0, b.passes[i, *arc]) for arc in out.get((i, v), ())]
        return linear([*leaving, (-1.0, b.split[i, place[v]])]) >= 0

    _add_first_stops(block, at, place)
    _add_connections(block, {i: min(len(stops), data.most(i)) - 1 for i, stops in at.items()}, into, out, place)
    block.CORE = pyo.Set(dimen=2, initialize=list(core.arcs), doc="arcs of the core")

    @block.Constraint(block.CORE, doc="rates of rings are within the bandwidth of an arc of the core")
    def core_carries_rings(b: Any, u: int, v: int) -> Any:
        limit = let_pass(core.arcs[u, v])
        terms = [(float(data.rate[i]) / limit, b.passes[i, u, v]) for i in at if (i, u, v) in b.PASSES]
        return linear(terms) <= 1 if terms else pyo.Constraint.Skip


def _stops(block: Any, data: SlotData, place: Mapping[int, int]) -> dict[int, list[int]]:
    """The stations where a job may have workers, in order, of jobs that may be at several."""
    ringed = [i for i in data.gains if data.rate[i] > 0 and data.most(i) > 1]
    found = {i: [v for v in place if (i, place[v]) in block.JOB_CUTS] for i in ringed}
    return {i: there for i, there in found.items() if len(there) > 1}


def _add_first_stops(block: pyo.Block, at: Mapping[int, list[int]], place: Mapping[int, int]) -> None:
    """Which station of a ring comes first."""
    block.first = pyo.Var(block.STOPS, bounds=(0, 1), doc="the station is the ring's first")

    @block.Constraint(block.STOPS, doc="the first station has some of the ring's servers")
    def first_is_a_stop(b: Any, i: int, v: int) -> Any:
        return b.first[i, v] <= b.split[i, place[v]]

    @block.Constraint(
        block.STOPS,
        doc="no station of the ring comes before its first; there is a first one where the ring has several",
    )
    def first_comes_first(b: Any, i: int, v: int) -> Any:
        firsts = [(1.0, b.first[i, p]) for p in at[i][: at[i].index(v) + 1]]
        if v == at[i][-1]:
            return linear([*firsts, (-1.0, b.runs[i]), *((1.0, b.inside[i, place[p]]) for p in at[i])]) == 0
        return linear([*firsts, (-1.0, b.split[i, place[v]])]) >= 0


def _add_connections(
    block: pyo.Block,
    others: Mapping[int, int],
    into: Mapping[tuple[int, int], list[Arc]],
    out: Mapping[tuple[int, int], list[Arc]],
    place: Mapping[int, int],
) -> None:
    """From the first station of a ring one unit goes to each other station of it, over arcs that the ring passes.

    Parameters
    ----------
    others : mapping
        How many stations the ring of each job has at most, apart from its first.
    into, out : mapping
        Arcs with bandwidth for a job's ring at each node.
    """
    block.supply = pyo.Var(block.STOPS, bounds=lambda _, i, v: (0, others[i]), doc="units that start there")
    block.reach = pyo.Var(block.PASSES, bounds=lambda _, i, u, v: (0, others[i]), doc="units to stations")

    @block.Constraint(block.STOPS, doc="units start at the ring's first station")
    def units_start_at_first(b: Any, i: int, v: int) -> Any:
        return linear([(1.0, b.supply[i, v]), (-float(others[i]), b.first[i, v])]) <= 0

    block.REACH_NODES = pyo.Set(
        dimen=2, initialize=sorted({*block.RING_NODES, *block.STOPS}), doc="job, node of its ring or station"
    )

    @block.Constraint(block.REACH_NODES, doc="a unit arrives at each station of the ring but the first")
    def units_arrive(b: Any, i: int, v: int) -> Any:
        terms = [(1.0, b.reach[i, *arc]) for arc in into.get((i, v), ())]
        terms += [(-1.0, b.reach[i, *arc]) for arc in out.get((i, v), ())]
        if (i, v) in b.STOPS:
            terms += [(1.0, b.supply[i, v]), (1.0, b.first[i, v]), (-1.0, b.split[i, place[v]])]
        return linear(terms) == 0

    @block.Constraint(block.PASSES, doc="units take arcs that the ring passes")
    def units_follow_the_ring(b: Any, i: int, u: int, v: int) -> Any:
        return linear([(1.0, b.reach[i, u, v]), (-float(others[i]), b.passes[i, u, v])]) <= 0


def start_circulations(block: pyo.Block, rings: Mapping[int, Ring]) -> None:
    """Give ``passes`` the values of these rings, by job; the rest follows."""
    counts: dict[int, Counter[Arc]] = {
        i: Counter(zip(ring, (*ring[1:], *ring[:1]), strict=True)) for i, ring in rings.items()
    }
    for i, u, v in block.PASSES:
        block.passes[i, u, v].set_value(counts[i][u, v] if i in counts else 0, skip_validation=True)


def read_circulation(block: pyo.Block, core: Core, job: int, servers: list[int]) -> Ring:
    """The ring of a job with workers on these servers.

    Raises
    ------
    SolverError
        If the values are no ring through them.
    """
    known = block.component("PASSES") or ()
    passes: dict[Arc, int] = {
        (u, v): round(block.passes[job, u, v].value or 0.0) for u, v in core.arcs if (job, u, v) in known
    }
    for server in servers:
        if server in core.leaf_links:
            station = core.station_of[server]
            passes[server, station] = passes[station, server] = 1
    return euler_ring(passes, servers)
