"""Rings on any network: connected circulations between the places where a job has servers."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import pyomo.environ as pyo

from ddlopt.models.linear import linear
from ddlopt.models.scheduling.formulations.slot_embedding.cut_indicators import Cut, add_cut_indicators
from ddlopt.models.scheduling.formulations.slot_embedding.widths import SlotData
from ddlopt.models.scheduling.instance import SchedulingInstance
from ddlopt.models.scheduling.rings.rings import Arc, Ring, euler_ring
from ddlopt.models.tolerances import FEASIBILITY_TOL


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
    return {server: rate for server, rate in core.leaf_links.items() if wanted > rate * (1 + FEASIBILITY_TOL)}


def add_circulations(
    block: pyo.Block, data: SlotData, core: Core, cuts: Sequence[Cut], place: Mapping[int, int]
) -> None:
    """Add cut indicators and ``passes[i, u, v]`` of each job's ring over the arcs of the core, with bandwidth rows.

    Expects ``width[i, w]``, ``runs[i]`` and ``workers[i, s]``.

    Parameters
    ----------
    place : mapping
        Station -> its servers' place in ``cuts``; empty if there is one station only.
    """
    add_cut_indicators(block, data, cuts)
    rows = _Rows(block, data, core, place)
    at = rows.at
    passes = {(i, *arc): n for i in at for arc, rate in core.arcs.items() if (n := rows.times(i, rate))}
    block.PASSES = pyo.Set(dimen=3, initialize=list(passes), doc="job, arc with bandwidth for its ring")
    block.passes = pyo.Var(
        block.PASSES, domain=pyo.NonNegativeIntegers, bounds=lambda _, *key: (0, passes[key]), doc="of the ring"
    )
    for i, u, v in passes:
        rows.out.setdefault((i, u), []).append((u, v))
        rows.into.setdefault((i, v), []).append((u, v))
    block.RING_NODES = pyo.Set(dimen=2, initialize=sorted({*rows.out, *rows.into}), doc="job, node of its ring")
    block.ring_is_closed = pyo.Constraint(
        block.RING_NODES, rule=rows.ring_is_closed, doc="a ring leaves each node as often as it enters it"
    )
    block.STOPS = pyo.Set(dimen=2, initialize=[(i, v) for i in at for v in at[i]], doc="job, station with room for it")
    block.ring_visits_stations = pyo.Constraint(
        block.STOPS, rule=rows.ring_visits_stations, doc="a ring leaves each station where it has some of its servers"
    )
    _add_connections(block, rows)
    block.CORE = pyo.Set(dimen=2, initialize=list(core.arcs), doc="arcs of the core")
    block.core_carries_rings = pyo.Constraint(
        block.CORE, rule=rows.core_carries_rings, doc="rates of rings are within the bandwidth of an arc of the core"
    )


def _add_connections(block: pyo.Block, rows: "_Rows") -> None:
    """From the first station of a ring one unit goes to each other station of it, over arcs that the ring passes."""
    block.first = pyo.Var(block.STOPS, bounds=(0, 1), doc="the station is the ring's first")
    block.supply = pyo.Var(block.STOPS, bounds=lambda _, i, v: (0, rows.others(i)), doc="units that start there")
    block.reach = pyo.Var(block.PASSES, bounds=lambda _, i, u, v: (0, rows.others(i)), doc="units to stations")
    block.first_is_a_stop = pyo.Constraint(
        block.STOPS, rule=rows.first_is_a_stop, doc="the first station has some of the ring's servers"
    )
    block.first_comes_first = pyo.Constraint(
        block.STOPS,
        rule=rows.first_comes_first,
        doc="no station of the ring comes before its first; there is a first one where the ring has several",
    )
    block.units_start_at_first = pyo.Constraint(
        block.STOPS, rule=rows.units_start_at_first, doc="units start at the ring's first station"
    )
    block.REACH_NODES = pyo.Set(
        dimen=2, initialize=sorted({*block.RING_NODES, *block.STOPS}), doc="job, node of its ring or station"
    )
    block.units_arrive = pyo.Constraint(
        block.REACH_NODES, rule=rows.units_arrive, doc="a unit arrives at each station of the ring but the first"
    )
    block.units_follow_the_ring = pyo.Constraint(
        block.PASSES, rule=rows.units_follow_the_ring, doc="units take arcs that the ring passes"
    )


class _Rows:
    """The rules of the constraints.

    ``at[i]`` are the stations where a job may have workers, in order, for jobs that may be at several; ``into`` and
    ``out`` the arcs with bandwidth for a job's ring at each node.
    """

    def __init__(self, block: Any, data: SlotData, core: Core, cut: Mapping[int, int]) -> None:
        self.data, self.core, self.cut = data, core, cut
        stops = {
            i: [v for v in cut if (i, cut[v]) in block.JOB_CUTS]
            for i in data.gains
            if data.rate[i] > 0 and data.most(i) > 1
        }
        self.at = {i: there for i, there in stops.items() if len(there) > 1}
        self.into: dict[tuple[int, int], list[Arc]] = {}
        self.out: dict[tuple[int, int], list[Arc]] = {}

    def times(self, i: int, bandwidth: float) -> int:
        """How often a ring of job i may pass over an arc; the shortest do so at most once between two stops."""
        return int(min(bandwidth * (1 + FEASIBILITY_TOL) // self.data.rate[i], len(self.at[i]), self.data.most(i)))

    def others(self, i: int) -> int:
        """How many stations the ring of job i has at most, apart from its first."""
        return min(len(self.at[i]), self.data.most(i)) - 1

    def ring_is_closed(self, b: Any, i: int, v: int) -> Any:
        """A ring leaves each node as often as it enters it."""
        arriving = [(1.0, b.passes[i, *arc]) for arc in self.into.get((i, v), ())]
        return linear([*arriving, *((-1.0, b.passes[i, *arc]) for arc in self.out.get((i, v), ()))]) == 0

    def ring_visits_stations(self, b: Any, i: int, v: int) -> Any:
        """A ring leaves each station where it has some of its servers."""
        leaving = [(1.0, b.passes[i, *arc]) for arc in self.out.get((i, v), ())]
        return linear([*leaving, (-1.0, b.split[i, self.cut[v]])]) >= 0

    def first_is_a_stop(self, b: Any, i: int, v: int) -> Any:
        """The first station has some of the ring's servers."""
        return b.first[i, v] <= b.split[i, self.cut[v]]

    def first_comes_first(self, b: Any, i: int, v: int) -> Any:
        """No station of the ring comes before its first; there is a first one where the ring has several."""
        at = self.at[i]
        firsts = [(1.0, b.first[i, p]) for p in at[: at.index(v) + 1]]
        if v == at[-1]:
            return linear([*firsts, (-1.0, b.runs[i]), *((1.0, b.inside[i, self.cut[p]]) for p in at)]) == 0
        return linear([*firsts, (-1.0, b.split[i, self.cut[v]])]) >= 0

    def units_start_at_first(self, b: Any, i: int, v: int) -> Any:
        """Units start at the ring's first station."""
        return linear([(1.0, b.supply[i, v]), (-float(self.others(i)), b.first[i, v])]) <= 0

    def units_arrive(self, b: Any, i: int, v: int) -> Any:
        """A unit arrives at each station of the ring but the first."""
        terms = [(1.0, b.reach[i, *arc]) for arc in self.into.get((i, v), ())]
        terms += [(-1.0, b.reach[i, *arc]) for arc in self.out.get((i, v), ())]
        if (i, v) in b.STOPS:
            terms += [(1.0, b.supply[i, v]), (1.0, b.first[i, v]), (-1.0, b.split[i, self.cut[v]])]
        return linear(terms) == 0

    def units_follow_the_ring(self, b: Any, i: int, u: int, v: int) -> Any:
        """Units take arcs that the ring passes."""
        return linear([(1.0, b.reach[i, u, v]), (-float(self.others(i)), b.passes[i, u, v])]) <= 0

    def core_carries_rings(self, b: Any, u: int, v: int) -> Any:
        """Rates as parts of the arc's bandwidth."""
        limit = self.core.arcs[u, v]
        terms = [(float(self.data.rate[i]) / limit, b.passes[i, u, v]) for i in self.at if (i, u, v) in b.PASSES]
        return linear(terms) <= 1 if terms else pyo.Constraint.Skip


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
