"""Rings on a tree network in every slot: which links separate the workers of a job."""

from collections.abc import Mapping, Sequence
from itertools import accumulate
from math import inf
from typing import Any

import pyomo.environ as pyo

from ddlopt.models.linear import linear
from ddlopt.models.scheduling.formulations.slot_embedding.cut_indicators import Cut, nested_cuts
from ddlopt.models.scheduling.formulations.time_indexed.runs import Choices, Terms
from ddlopt.models.scheduling.instance import SchedulingInstance
from ddlopt.models.scheduling.rings.rings import ring_rate, separating_links
from ddlopt.models.tolerances import NEGLIGIBLE_COEFFICIENT


class TreeRings:
    """Indicators of the cuts that links may run out of bandwidth for; the last cut is the whole cluster.

    Parameters
    ----------
    instance : SchedulingInstance
        On a tree network.
    jobs : sequence of Choices
    room : mapping
        Workers of a job that each server holds.
    present : mapping
        Jobs that may run in each slot.
    """

    def __init__(
        self,
        instance: SchedulingInstance,
        jobs: Sequence[Choices],
        room: Mapping[int, Sequence[int]],
        present: Mapping[int, Sequence[int]],
    ) -> None:
        rates = {c.job: ring_rate(instance.jobs[c.job]) if c.widths[-1] > 1 else 0.0 for c in jobs}
        self.rates = {i: rate for i, rate in rates.items() if rate > 0}
        self.ringed = [c for c in jobs if c.job in self.rates]
        self.by_job = {c.job: c for c in jobs}
        self.room = room
        self.present = present
        busiest = max((sum(rates[i] for i in here) for here in present.values()), default=0.0)
        narrowest: dict[tuple[int, ...], float] = {}
        for link in separating_links(instance):
            if link.bandwidth_bytes_per_s < busiest:
                narrowest[link.below] = min(narrowest.get(link.below, inf), link.bandwidth_bytes_per_s)
        self.cuts: list[Cut] = nested_cuts(narrowest, instance.server_count) if self.ringed and narrowest else []

    def add(self, block: pyo.Block) -> None:
        """Add ``solo[i, u, t]``, ``cut[i, u, t]`` and their rows; expects ``running`` and ``workers``."""
        if not self.cuts:
            return
        everything = len(self.cuts) - 1
        index = [(c.job, u, t) for c in self.ringed for u in range(everything) for t in range(c.first, c.last)]
        block.CUTS = pyo.Set(dimen=3, initialize=index, doc="(job, cut, slot)")
        block.solo = pyo.Var(block.CUTS, domain=pyo.Binary, doc="all workers of the job are within the cut")
        block.cut = pyo.Var(block.CUTS, domain=pyo.Binary, doc="some, but not all of them are")
        self._add_workers_within(block)
        self._add_nesting(block)
        self._add_bandwidth(block)

    def _add_workers_within(self, block: pyo.Block) -> None:
        @block.Constraint(block.CUTS, doc="workers within a cut are all of the job's, or it is cut")
        def workers_make_a_cut(b: Any, i: int, u: int, t: int) -> Any:
            servers = self.cuts[u].servers
            widest, holds = self.by_job[i].widths[-1], self._holds(i, u)
            row = [(1.0, b.workers[i, s, t]) for s in servers if self.room[i][s]]
            row.append((-float(min(holds, widest)), b.solo[i, u, t]))
            return linear([*row, (-float(min(holds, widest - 1)), b.cut[i, u, t])]) <= 0

        own = [
            (c.job, u, s, t)
            for c in self.ringed
            for u, cut in enumerate(self.cuts)
            if cut.inner or len(cut.own) > 1
            for s in cut.own
            if self.room[c.job][s]
            for t in range(c.first, c.last)
        ]

        @block.Constraint(own, doc="servers in no smaller cut are empty where a job is all within one, or elsewhere")
        def other_servers_are_empty(b: Any, i: int, u: int, s: int, t: int) -> Any:
            room = float(self.room[i][s])
            inner = [(room, b.solo[i, v, t]) for v in self.cuts[u].inner]
            return linear([(1.0, b.workers[i, s, t]), *inner, *self._touched(b, i, u, t, -room)]) <= 0

    def _touched(self, block: pyo.Block, job: int, u: int, slot: int, factor: float) -> Terms:
        """Some workers are within the cut."""
        if u == len(self.cuts) - 1:
            return [(factor, block.running[job, w, slot]) for w in self.by_job[job].widths]
        return [(factor, block.solo[job, u, slot]), (factor, block.cut[job, u, slot])]

    def _add_nesting(self, block: pyo.Block) -> None:
        slots = [(c.job, t) for c in self.ringed for t in range(c.first, c.last)]
        everything = len(self.cuts) - 1
        outer = [u for u, cut in enumerate(self.cuts) if cut.inner]
        around = {v: u for u in outer for v in self.cuts[u].inner}

        @block.Constraint(block.CUTS, doc="a cut lies within a larger one, and no job is all within one beside it")
        def cuts_are_nested(b: Any, i: int, v: int, t: int) -> Any:
            u = around[v]
            solos = [(1.0, b.solo[i, other, t]) for other in self.cuts[u].inner]
            return linear([(1.0, b.cut[i, v, t]), *solos, *self._touched(b, i, u, t, -1.0)]) <= 0

        @block.Constraint([(i, u, t) for i, t in slots for u in outer], doc="all within a cut is all within one around")
        def whole_is_nested(b: Any, i: int, u: int, t: int) -> Any:
            solos = [(1.0, b.solo[i, v, t]) for v in self.cuts[u].inner]
            if u < everything:
                return linear([*solos, (-1.0, b.solo[i, u, t])]) <= 0
            largest = max(self._holds(i, v) for v in self.cuts[u].inner)
            narrow = [(-1.0, b.running[i, w, t]) for w in self.by_job[i].widths if w <= largest]
            return linear([*solos, *narrow]) <= 0

        full = [u for u in outer if not self.cuts[u].own]

        @block.Constraint([(i, u, t) for i, t in slots for u in full], doc="a ring in several cuts cuts two or more")
        def rings_cut_several(b: Any, i: int, u: int, t: int) -> Any:
            row = [(2.0, b.solo[i, v, t]) for v in self.cuts[u].inner]
            row += [(1.0, b.cut[i, v, t]) for v in self.cuts[u].inner]
            if u < everything:
                return linear([*row, (-2.0, b.solo[i, u, t]), (-1.0, b.cut[i, u, t])]) >= 0
            widths = self.by_job[i].widths
            return linear([*row, *((-self._fewest_cuts(i, w), b.running[i, w, t]) for w in widths)]) >= 0

    def _holds(self, job: int, u: int) -> int:
        """Workers of a job that fit into a cut."""
        return sum(self.room[job][s] for s in self.cuts[u].servers)

    def _fewest_cuts(self, job: int, width: int) -> float:
        """The least number of outermost cuts that the workers take if not all are in one of them; else 2."""
        fullest = sorted((self._holds(job, v) for v in self.cuts[-1].inner), reverse=True)
        return max(2.0, 1.0 + sum(held < width for held in accumulate(fullest)))

    def _add_bandwidth(self, block: pyo.Block) -> None:
        @block.Constraint([(u, t) for u in range(len(self.cuts) - 1) for t in self.present], doc="rings share a link")
        def link_is_wide_enough(b: Any, u: int, t: int) -> Any:
            whole = self.cuts[u].bandwidth_bytes_per_s
            shares = [(self.rates[i] / whole, b.cut[i, u, t]) for i in self.present[t] if i in self.rates]
            if sum(share for share, _ in shares) <= 1:
                return pyo.Constraint.Skip
            return linear([pair for pair in shares if pair[0] > NEGLIGIBLE_COEFFICIENT]) <= 1

    def start(self, block: pyo.Block, places: Mapping[tuple[int, int], Mapping[int, int]]) -> None:
        """Values from ``places[job, slot][server]``."""
        for i, u, t in block.CUTS if self.cuts else ():
            here, within = places.get((i, t), {}).keys(), set(self.cuts[u].servers)
            block.solo[i, u, t].set_value(int(bool(here) and here <= within), skip_validation=True)
            crosses = bool(here & within) and not here <= within
            block.cut[i, u, t].set_value(int(crosses), skip_validation=True)
