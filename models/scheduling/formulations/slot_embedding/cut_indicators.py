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
    rows = _Rows(block, data, cuts)
    ringed = [i for i in data.gains if data.rate[i] > 0]
    pairs = [(i, u) for i in ringed for u, cut in enumerate(cuts[:-1]) if data.holds(i, cut.servers)]
    block.CUTS = pyo.Set(initialize=range(len(cuts) - 1), doc="links that rings may overload")
    block.JOB_CUTS = pyo.Set(dimen=2, initialize=pairs, doc="job, cut with room for it")
    block.inside = pyo.Var(block.JOB_CUTS, domain=pyo.Binary, doc="all workers of the job are within the cut")
    block.split = pyo.Var(block.JOB_CUTS, domain=pyo.Binary, doc="some, but not all of them are")
    for i, u in pairs:
        if data.rate[i] > cuts[u].bandwidth_bytes_per_s * (1 + FEASIBILITY_TOL) or data.most(i) == 1:
            block.split[i, u].fix(0)
    block.workers_make_a_cut = pyo.Constraint(
        block.JOB_CUTS,
        rule=rows.workers_make_a_cut,
        doc="workers within a cut are all of the job, or its link separates them",
    )
    nested = [(i, u, c) for i in ringed for u in range(len(cuts)) for c in rows.inner(i, u)]
    block.NESTED = pyo.Set(dimen=3, initialize=nested, doc="job, cut, a cut directly within it")
    block.cuts_are_nested = pyo.Constraint(
        block.NESTED,
        rule=rows.cuts_are_nested,
        doc="a job with workers in cut c has some in the cut around it, and is within no sibling if it is split at c",
    )
    outer = list(dict.fromkeys((i, u) for i, u, _ in nested))
    block.OUTER_CUTS = pyo.Set(dimen=2, initialize=outer, doc="job, cut with others directly within it")
    block.inside_is_nested = pyo.Constraint(
        block.OUTER_CUTS,
        rule=rows.inside_is_nested,
        doc="what is within a smaller cut is within the larger one; in the cluster only widths that a cut holds are",
    )
    block.rings_split_two = pyo.Constraint(
        block.OUTER_CUTS,
        rule=rows.rings_split_two,
        doc="a job that is in several of the cuts within u splits two of them at least; one if it has workers outside",
    )
    own = [
        (i, u, s)
        for i in ringed
        for u, cut in enumerate(cuts)
        for s in cut.own
        if data.room[i, s] and ((i, u) in block.OUTER_CUTS or (u < len(cuts) - 1 and len(cut.own) > 1))
    ]
    block.OWN_SERVERS = pyo.Set(dimen=3, initialize=own, doc="job, cut, a server of it in no smaller cut")
    block.own_servers_are_outside = pyo.Constraint(
        block.OWN_SERVERS,
        rule=rows.own_servers_are_outside,
        doc="servers in no smaller cut have workers only of jobs that are not all within one",
    )
    block.rings_fit = pyo.Constraint(block.CUTS, rule=rows.rings_fit, doc="a ring takes each separating link once")


def start_cut_indicators(block: pyo.Block, cuts: Sequence[Cut], used: Mapping[int, Iterable[int]]) -> None:
    """Give the indicators their values, for the servers that each job uses."""
    for i, u in block.JOB_CUTS:
        mine, servers = set(used.get(i, ())), set(cuts[u].servers)
        block.inside[i, u].set_value(int(bool(mine) and mine <= servers))
        if not block.split[i, u].fixed:
            block.split[i, u].set_value(int(bool(mine & servers) and not mine <= servers))


@dataclass(frozen=True)
class _Rows:
    """The rules of the constraints."""

    block: Any
    data: SlotData
    cuts: Sequence[Cut]

    def inner(self, i: int, u: int) -> list[int]:
        """The cuts directly within cut u that hold workers of job i."""
        return [c for c in self.cuts[u].inner if (i, c) in self.block.JOB_CUTS]

    def _is_all(self, u: int) -> bool:
        """Whether cut u is the whole cluster."""
        return u == len(self.cuts) - 1

    def _touched(self, i: int, u: int, factor: float = 1.0) -> list[tuple[float, Any]]:
        """Terms of: some workers of job i are within cut u."""
        if self._is_all(u):
            return [(factor, self.block.runs[i])]
        return [(factor, self.block.inside[i, u]), (factor, self.block.split[i, u])]

    def workers_make_a_cut(self, b: Any, i: int, u: int) -> Any:
        """Workers within a cut are all of the job, or its link separates them."""
        servers = self.cuts[u].servers
        most, holds = self.data.most(i), self.data.holds(i, servers)
        terms = [(1.0, b.workers[i, s]) for s in servers if self.data.room[i, s]]
        return linear([*terms, (-holds, b.inside[i, u]), (-min(holds, most - 1), b.split[i, u])]) <= 0

    def cuts_are_nested(self, b: Any, i: int, u: int, c: int) -> Any:
        """A job with workers in cut c has some in the cut around it, and is within no sibling if it is split at c."""
        terms = [(1.0, b.inside[i, other]) for other in self.inner(i, u)]
        return linear([*terms, (1.0, b.split[i, c]), *self._touched(i, u, -1.0)]) <= 0

    def inside_is_nested(self, b: Any, i: int, u: int) -> Any:
        """What is within a smaller cut is within the larger one; in the cluster only widths that a cut holds are."""
        inner = self.inner(i, u)
        terms = [(1.0, b.inside[i, c]) for c in inner]
        if not self._is_all(u):
            return linear([*terms, (-1.0, b.inside[i, u])]) <= 0
        largest = max(self.data.holds(i, self.cuts[c].servers) for c in inner)
        return linear([*terms, *((-1.0, b.width[i, w]) for w in self.data.gains[i] if w <= largest)]) <= 0

    def rings_split_two(self, b: Any, i: int, u: int) -> Any:
        """A job that is in several of the cuts within u splits two of them at least; one if it has workers outside."""
        if any(self.data.room[i, s] for s in self.cuts[u].own):
            return pyo.Constraint.Skip
        inner = self.inner(i, u)
        terms = [(2.0, b.inside[i, c]) for c in inner] + [(1.0, b.split[i, c]) for c in inner]
        around = [(-2.0, b.runs[i])] if self._is_all(u) else [(-2.0, b.inside[i, u]), (-1.0, b.split[i, u])]
        return linear([*terms, *around]) >= 0

    def own_servers_are_outside(self, b: Any, i: int, u: int, s: int) -> Any:
        """Servers in no smaller cut have workers only of jobs that are not all within one."""
        room = int(self.data.room[i, s])
        terms = [(room, b.inside[i, c]) for c in self.inner(i, u)]
        return linear([(1.0, b.workers[i, s]), *terms, *self._touched(i, u, -room)]) <= 0

    def rings_fit(self, b: Any, u: int) -> Any:
        """Rates as parts of the link's bandwidth."""
        limit = self.cuts[u].bandwidth_bytes_per_s
        terms = [
            (float(self.data.rate[i]) / limit, b.split[i, u])
            for i in self.data.gains
            if (i, u) in b.JOB_CUTS and not b.split[i, u].fixed
        ]
        return linear(terms) <= 1 if terms and limit < inf else pyo.Constraint.Skip
