"""Where the workers of each job are in each slot, and which links of a tree network their rings cross."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

import pyomo.environ as pyo

from ddlopt.models.errors import SolverError
from ddlopt.models.linear import linear
from ddlopt.models.scheduling.formulations.on_servers import OnServers
from ddlopt.models.scheduling.formulations.time_indexed.runs import Choices, Terms, begin_terms, end_terms, width_terms
from ddlopt.models.scheduling.formulations.tree_cuts import TreeCuts, scarce_cuts
from ddlopt.models.scheduling.instance import SchedulingInstance, most_workers
from ddlopt.models.scheduling.pool import Workers
from ddlopt.models.scheduling.rings.rings import ring_rate


class Places:
    """Variables and rows of places; deterministic, so that it can be made again to start and to read."""

    def __init__(self, instance: SchedulingInstance, jobs: Sequence[Choices]) -> None:
        self.instance = instance
        self.jobs = jobs
        self.by_job = {c.job: c for c in jobs}
        self.room: dict[int, list[int]] = {}
        for c in jobs:
            room = most_workers(instance.capacity, instance.demand[c.job])
            usable = {s for own in instance.accelerators.classes(c.job) for s in own.servers}
            self.room[c.job] = [min(count, c.widest) if s in usable else 0 for s, count in enumerate(room.tolist())]
        self.present: dict[int, list[int]] = defaultdict(list)
        for c in jobs:
            for t in range(c.first, c.last):
                self.present[t].append(c.job)
        self.servers = OnServers(instance, self.room, {c.job: [(t,) for t in range(c.first, c.last)] for c in jobs})
        self.cuts = self._tree_cuts() if instance.needs_rings else None

    def _tree_cuts(self) -> TreeCuts:
        """Which links of a tree network, of those that may run short in some slot, separate workers."""
        rates = {i: ring_rate(self.instance.jobs[i]) for i, c in self.by_job.items() if c.widths[-1] > 1}
        rates = {i: rate for i, rate in rates.items() if rate > 0}
        busiest = max((sum(rates.get(i, 0.0) for i in here) for here in self.present.values()), default=0.0)
        widths = {i: self.by_job[i].widths for i in rates}
        return TreeCuts(scarce_cuts(self.instance, busiest), rates, self.room, widths, self.servers.moments)

    def add(self, block: pyo.Block) -> Terms:
        """Add everything; gives what energy costs."""
        self.servers.add_workers(block, lambda i, moment, factor: width_terms(block, self.by_job[i], moment[0], factor))
        self._add_classes(block)
        costs = self.servers.add_limits(block)
        if not self.instance.preemptive:
            self._add_stays(block)
        if block.component("kept") is not None:
            self._add_kept(block)
        if self.cuts is not None:
            self.cuts.add(block, lambda i, w, moment: block.running[i, w, *moment])
        return costs

    def _add_classes(self, block: pyo.Block) -> None:
        """Workers are on servers of the class that their job goes in, where types make a difference to it."""
        classes = {c.job: self.instance.accelerators.classes(c.job) for c in self.jobs}
        index = [
            (c.job, k, t) for c in self.jobs for k in range(1, len(classes[c.job])) for t in range(c.first, c.last)
        ]
        if not index:
            return
        mixed = self.instance.accelerators.mixed

        @block.Constraint(index, doc="workers are on types that are fast enough")
        def workers_are_fast_enough(b: Any, i: int, k: int, t: int) -> Any:
            c, faster = self.by_job[i], set(classes[i][k - 1].servers) if mixed else set()
            chosen = [w for w in c.widths if c.at_least(w, k) and (mixed or not c.at_least(w, k + 1))]
            servers = range(len(self.room[i])) if mixed else classes[i][k].servers
            row = [(1.0, b.workers[i, s, t]) for s in servers if self.room[i][s] and s not in faster]
            row += [(-float(c.workers(w)), b.running[i, w, t]) for w in chosen]
            if not row:
                return pyo.Constraint.Skip
            return linear(row) <= 0 if mixed else linear(row) == 0

    def _add_stays(self, block: pyo.Block) -> None:
        """Runs in one piece keep their places."""
        index = [(i, s, t) for i, s, t in block.PLACES if t > self.by_job[i].first]

        @block.Constraint(index, doc="workers come when their job begins")
        def workers_come_at_the_beginning(b: Any, i: int, s: int, t: int) -> Any:
            room = float(self.room[i][s])
            begins = [(-room * factor, variable) for factor, variable in begin_terms(b, self.by_job[i], t)]
            return linear([(1.0, b.workers[i, s, t]), (-1.0, b.workers[i, s, t - 1]), *begins]) <= 0

        @block.Constraint(index, doc="workers go when their job ends")
        def workers_go_at_the_end(b: Any, i: int, s: int, t: int) -> Any:
            room = float(self.room[i][s])
            ends = [(-room * factor, variable) for factor, variable in end_terms(b, self.by_job[i], t)]
            return linear([(1.0, b.workers[i, s, t - 1]), (-1.0, b.workers[i, s, t]), *ends]) <= 0

    def _add_kept(self, block: pyo.Block) -> None:
        """Jobs that are kept keep their places, or are not kept at all: half a move would cost half a change."""
        for variable in block.kept.values():
            variable.domain = pyo.Binary
        changing = {c.job for c in self.jobs if c.changing}
        index = [(i, s, t) for i, s, t in block.PLACES if i in changing and t > self.by_job[i].first]

        def unless_kept(b: Any, i: int, s: int, t: int, slot: int) -> Terms:
            """Minus the workers that the server holds, if the job runs in ``slot`` and is not kept from before t."""
            room, widths = float(self.room[i][s]), self.by_job[i].widths
            return [
                *((-room, b.running[i, w, slot]) for w in widths),
                *((room, b.kept[i, w, t]) for w in widths),
            ]

        @block.Constraint(index, doc="no workers come to a job that is kept")
        def kept_workers_were_there(b: Any, i: int, s: int, t: int) -> Any:
            moved = [(1.0, b.workers[i, s, t]), (-1.0, b.workers[i, s, t - 1])]
            return linear([*moved, *unless_kept(b, i, s, t, t)]) <= 0

        @block.Constraint(index, doc="no workers leave a job that is kept")
        def kept_workers_stay(b: Any, i: int, s: int, t: int) -> Any:
            moved = [(1.0, b.workers[i, s, t - 1]), (-1.0, b.workers[i, s, t])]
            return linear([*moved, *unless_kept(b, i, s, t, t - 1)]) <= 0

    def start(self, block: pyo.Block, places: Mapping[tuple[int, int], Mapping[int, int]]) -> None:
        """Values from ``places[job, slot][server]``."""
        by_key: dict[tuple[int, ...], Mapping[int, int]] = {(i, t): here for (i, t), here in places.items()}
        self.servers.start(block, by_key)
        if self.cuts is not None:
            self.cuts.start(block, by_key)

    def read(self, block: pyo.Block, widths: Mapping[tuple[int, int], int]) -> list[dict[int, Workers]]:
        """Workers of every job by slot.

        Raises
        ------
        SolverError
            If a server has a worker in part, or a job not the workers of its width.
        """
        found = self.servers.read(block)
        by_slot: list[dict[int, Workers]] = [{} for _ in range(self.instance.slots)]
        for (i, t), width in sorted(widths.items()):
            workers, width = found.get((i, t), ()), self.by_job[i].workers(width)
            placed = sum(count for _, count in workers)
            if placed != width:
                raise SolverError(f"job {i} has width {width} in slot {t}, but {placed} workers somewhere")
            by_slot[t][i] = workers
        return by_slot
