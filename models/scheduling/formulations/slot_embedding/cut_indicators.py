"""Rings on a tree network without flows: which links separate the workers of a job."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import inf
from typing import Any

import pyomo.environ as pyo

from ddlopt.models.linear import linear
from ddlopt.models.scheduling.formulations.slot_embedding.widths import SlotData
from ddlopt.models.scheduling.instance import SchedulingInstance
from ddlopt.models.scheduling.rings.rings import separating_links
from ddlopt.models.tolerances import FEASIBILITY_TOL


@dataclass(frozen=True)
class Cut:
    """Servers that a link separates from the others, or the whole cluster.

    ``inner`` are the cuts directly within it, by place in their list, and ``own`` its servers in none of them. The
    bandwidth is infinite where there is no one link.
    """

    servers: tuple[int, ...]
    bandwidth_bytes_per_s: float
    inner: tuple[int, ...]
    own: tuple[int, ...]


def tree_cuts(instance: SchedulingInstance, data: SlotData) -> list[Cut]:
    """The cuts of a tree network whose links cannot carry the rings of all jobs at once, and the whole cluster.

    Any two are nested or disjoint, for each is the side of its link with fewer servers.
    """
    narrowest: dict[tuple[int, ...], float] = {}
    for link in separating_links(instance):
        narrowest[link.below] = min(narrowest.get(link.below, inf), link.bandwidth_bytes_per_s)
    wanted = sum(float(data.rate[i]) for i in data.gains if data.most(i) > 1)
    scarce = {servers: rate for servers, rate in narrowest.items() if wanted > rate * (1 + FEASIBILITY_TOL)}
    return nested_cuts(scarce, instance.server_count)


def nested_cuts(bandwidth: Mapping[tuple[int, ...], float], servers: int) -> list[Cut]:
    """Cuts by their servers, smaller ones first, and the whole cluster; any two must be nested or disjoint."""
    found: list[Cut] = []
    outermost: list[int] = []
    everybody = tuple(range(servers))
    for mine in [*sorted(bandwidth, key=lambda cut: (len(cut), cut)), everybody]:
        own = set(mine)
        inner = [cut for cut in outermost if found[cut].servers[0] in own]
        for cut in inner:
            own -= set(found[cut].servers)
        outermost = [cut for cut in outermost if cut not in inner] + [len(found)]
        found.append(Cut(mine, bandwidth.get(mine, inf), tuple(inner), tuple(sorted(own))))
    return found


def add_cut_indicators(block: pyo.Block, data: SlotData, cuts: Sequence[Cut]) -> None:
    """Add ``inside[i, u]`` and ``split[i, u]`` for jobs with a ring and all cuts u but the last, the whole cluster.

    Expects ``width[i, w]``, ``runs[i]`` and ``workers[i, s]``. Links of limited bandwidth get their rows.
    """
    ringed = [i for i in data.gains if data.rate[i] > 0]
    pairs = [(i, u) for i in ringed for u, cut in enumerate(cuts[:-1]) if data.holds(i, cut.servers)]
    block.CUTS = pyo.Set(initialize=range(len(cuts) - 1), doc="links that rings may overload")
    block.JOB_CUTS = pyo.Set(dimen=2, initialize=pairs, doc="job, cut with room for it")
    block.inside = pyo.Var(block.JOB_CUTS, domain=pyo.Binary, doc="all workers of the job are within the cut")
    block.split = pyo.Var(block.JOB_CUTS, domain=pyo.Binary, doc="some, but not all of them are")
    for i, u in pairs:
        if data.rate[i] > cuts[u].bandwidth_bytes_per_s * (1 + FEASIBILITY_TOL) or data.most(i) == 1:
            block.split[i, u].fix(0)

    @block.Constraint(block.JOB_CUTS, doc="workers within a cut are all of the job, or its link separates them")
    def workers_make_a_cut(b: Any, i: int, u: int) -> Any:
        most, holds = data.most(i), data.holds(i, cuts[u].servers)
        terms = [(1.0, b.workers[i, s]) for s in cuts[u].servers if data.room[i, s]]
        return linear([*terms, (-holds, b.inside[i, u]), (-min(holds, most - 1), b.split[i, u])]) <= 0

    _add_nesting(block, data, cuts, ringed)

    @block.Constraint(block.CUTS, doc="a ring takes each separating link once")
    def rings_fit(b: Any, u: int) -> Any:
        limit = cuts[u].bandwidth_bytes_per_s
        splits = [i for i in data.gains if (i, u) in b.JOB_CUTS and not b.split[i, u].fixed]
        terms = [(float(data.rate[i]) / limit, b.split[i, u]) for i in splits]
        return linear(terms) <= 1 if terms and limit < inf else pyo.Constraint.Skip


def _add_nesting(block: pyo.Block, data: SlotData, cuts: Sequence[Cut], ringed: Sequence[int]) -> None:
    """What a cut says of those directly within it; the last cut, the whole cluster, has all workers of its jobs."""
    cluster = len(cuts) - 1
    inner = {
        (i, u): own
        for i in ringed
        for u, cut in enumerate(cuts)
        if (own := [c for c in cut.inner if (i, c) in block.JOB_CUTS])
    }
    block.NESTED = pyo.Set(
        dimen=3, initialize=[(*iu, c) for iu, own in inner.items() for c in own], doc="job, cut, one directly within it"
    )
    block.OUTER_CUTS = pyo.Set(dimen=2, initialize=list(inner), doc="job, cut with others directly within it")

    def touched(b: Any, i: int, u: int, factor: float) -> list[tuple[float, Any]]:
        """Some workers of job i are within cut u."""
        return [(factor, b.runs[i])] if u == cluster else [(factor, b.inside[i, u]), (factor, b.split[i, u])]

    @block.Constraint(
        block.NESTED,
        doc="a job with workers in cut c has some in the cut around it, and is within no sibling if it is split at c",
    )
    def cuts_are_nested(b: Any, i: int, u: int, c: int) -> Any:
        terms = [(1.0, b.inside[i, other]) for other in inner[i, u]]
        return linear([*terms, (1.0, b.split[i, c]), *touched(b, i, u, -1.0)]) <= 0

    @block.Constraint(
        block.OUTER_CUTS,
        doc="what is within a smaller cut is within the larger one; in the cluster only widths that a cut holds are",
    )
    def inside_is_nested(b: Any, i: int, u: int) -> Any:
        terms = [(1.0, b.inside[i, c]) for c in inner[i, u]]
        if u < cluster:
            return linear([*terms, (-1.0, b.inside[i, u])]) <= 0
        largest = max(data.holds(i, cuts[c].servers) for c in inner[i, u])
        return linear([*terms, *((-1.0, b.width[i, w]) for w in data.gains[i] if w <= largest)]) <= 0

    @block.Constraint(
        block.OUTER_CUTS,
        doc="a job that is in several of the cuts within u splits two of them at least; one if it has workers outside",
    )
    def rings_split_two(b: Any, i: int, u: int) -> Any:
        if any(data.room[i, s] for s in cuts[u].own):
            return pyo.Constraint.Skip
        terms = [(2.0, b.inside[i, c]) for c in inner[i, u]] + [(1.0, b.split[i, c]) for c in inner[i, u]]
        around = [(-2.0, b.runs[i])] if u == cluster else [(-2.0, b.inside[i, u]), (-1.0, b.split[i, u])]
        return linear([*terms, *around]) >= 0

    outside = [
        (i, u, s)
        for i in ringed
        for u, cut in enumerate(cuts)
        for s in cut.own
        if data.room[i, s] and ((i, u) in inner or (u < cluster and len(cut.own) > 1))
    ]
    block.OWN_SERVERS = pyo.Set(dimen=3, initialize=outside, doc="job, cut, a server of it in no smaller cut")

    @block.Constraint(
        block.OWN_SERVERS, doc="servers in no smaller cut have workers only of jobs that are not all within one"
    )
    def own_servers_are_outside(b: Any, i: int, u: int, s: int) -> Any:
        room = int(data.room[i, s])
        terms = [(room, b.inside[i, c]) for c in inner.get((i, u), ())]
        return linear([(1.0, b.workers[i, s]), *terms, *touched(b, i, u, -room)]) <= 0


def start_cut_indicators(block: pyo.Block, cuts: Sequence[Cut], used: Mapping[int, Iterable[int]]) -> None:
    """Give the indicators their values, for the servers that each job uses."""
    for i, u in block.JOB_CUTS:
        mine, servers = set(used.get(i, ())), set(cuts[u].servers)
        block.inside[i, u].set_value(int(bool(mine) and mine <= servers))
        if not block.split[i, u].fixed:
            block.split[i, u].set_value(int(bool(mine & servers) and not mine <= servers))
