"""What a time-indexed model maximises: utilities, the smallest part done, or early ends."""

import math
from abc import ABC, abstractmethod
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import pyomo.environ as pyo

from ddlopt.models.errors import InfeasibleError
from ddlopt.models.linear import linear
from ddlopt.models.scheduling.concave.piecewise import Pieces, outer_pieces
from ddlopt.models.scheduling.fair_time import fair_slots
from ddlopt.models.scheduling.formulations.time_indexed.runs import (
    Choices,
    Terms,
    possible_starts,
    progress_terms,
    slot_progress_terms,
)
from ddlopt.models.scheduling.instance import SchedulingInstance
from ddlopt.models.scheduling.units import objective_unit
from ddlopt.models.scheduling.variants import goals


class Goal(ABC):
    """One objective over the choices of all unfinished jobs; deterministic, so that it can be made again to start.

    Objectives are counted in ``unit``, see :func:`~ddlopt.models.scheduling.units.objective_unit`.
    """

    def __init__(self, instance: SchedulingInstance, jobs: Sequence[Choices], done: Sequence[float]) -> None:
        self.instance = instance
        self.jobs = jobs
        self.done = done
        self.unit = objective_unit(instance, done)

    def before(self, job: int) -> float:
        """Mini-batches of a job that were done before."""
        return self.done[job] if self.done else 0.0

    def add_variables(self, block: pyo.Block) -> None:
        """Add variables that :meth:`most` refers to."""
        return

    def most(self, block: pyo.Block, c: Choices, slot: int) -> Any:
        """1, or an expression that is 0 where the job does not run in the slot."""
        return 1

    @abstractmethod
    def add(self, block: pyo.Block) -> tuple[Terms, float]:
        """Add rows; gives the terms and the constant of what is maximised."""

    @abstractmethod
    def start(self, block: pyo.Block, gains: Mapping[int, Mapping[int, float]]) -> None:
        """Values of the goal's own variables from ``gains[job][slot]``."""


class TotalUtility(Goal):
    """Sum of utilities: concave ones in pieces, ``fill[i, k]`` the part used of each; ``finished[i]`` for the rest."""

    def __init__(
        self, instance: SchedulingInstance, jobs: Sequence[Choices], done: Sequence[float], tangents: int | None
    ) -> None:
        super().__init__(instance, jobs, done)
        self._tangents = tangents
        self._concave = [c for c in jobs if not c.finishing]
        self._finishing = [c for c in jobs if c.finishing]

    def pieces(self, c: Choices) -> Pieces:
        """Outer approximation of a job's utility over what it can reach."""
        job = self.instance.jobs[c.job]
        low = self.before(c.job) / job.minibatches
        high = min(1.0, low + c.reach * c.unit / job.minibatches)
        utility = job.utility
        assert utility.kind != "all_or_nothing"
        return outer_pieces(utility, low, high, min(c.gains) * c.unit / job.minibatches, self._tangents)

    def add_variables(self, block: pyo.Block) -> None:
        """See :class:`Goal`."""
        if self.instance.preemptive:
            block.FINISHING = pyo.Set(initialize=[c.job for c in self._finishing])
            block.finished = pyo.Var(block.FINISHING, domain=pyo.Binary, doc="job is finished")

    def most(self, block: pyo.Block, c: Choices, slot: int) -> Any:
        """See :class:`Goal`."""
        return block.finished[c.job] if self.instance.preemptive and c.finishing else 1

    def add(self, block: pyo.Block) -> tuple[Terms, float]:
        """See :class:`Goal`."""
        pieces = {c.job: self.pieces(c) for c in self._concave}
        index = [(i, k) for i, piece in pieces.items() for k in range(len(piece.lengths))]
        block.PIECES = pyo.Set(dimen=2, initialize=index, doc="(job, piece of its utility)")
        block.fill = pyo.Var(block.PIECES, bounds=(0, 1), doc="part of the piece that progress takes")
        by_job = {c.job: c for c in self.jobs}

        @block.Constraint(list(pieces), doc="only progress fills the pieces of a utility")
        def progress_fills_pieces(b: Any, i: int) -> Any:
            c = by_job[i]
            scale = self.instance.jobs[i].minibatches / c.unit
            filled = [(-scale * length, b.fill[i, k]) for k, length in enumerate(pieces[i].lengths.tolist())]
            return linear(progress_terms(b, c) + filled) >= 0

        terms = [
            (slope * length / self.unit, block.fill[i, k])
            for i, piece in pieces.items()
            for k, (length, slope) in enumerate(zip(piece.lengths.tolist(), piece.slopes.tolist(), strict=True))
        ]
        terms += self._add_finishing(block)
        gone = set(range(len(self.instance.jobs))) - set(by_job)
        constant = sum(piece.base for piece in pieces.values())
        constant += sum(float(self.instance.jobs[i].utility.of(1.0)) for i in sorted(gone))
        return terms, constant / self.unit

    def _add_finishing(self, block: pyo.Block) -> Terms:
        worth = {c.job: self.instance.jobs[c.job].utility.value / self.unit for c in self._finishing}
        if not self.instance.preemptive:
            return [(worth[c.job], block.begins[c.job, w, t]) for c in self._finishing for w, t in possible_starts(c)]
        by_job = {c.job: c for c in self._finishing}

        @block.Constraint(block.FINISHING, doc="a finished job has done what was wanted")
        def finished_is_done(b: Any, i: int) -> Any:
            c = by_job[i]
            return linear([*progress_terms(b, c), (-c.wanted, b.finished[i])]) >= 0

        return [(value, block.finished[i]) for i, value in worth.items()]

    def start(self, block: pyo.Block, gains: Mapping[int, Mapping[int, float]]) -> None:
        """See :class:`Goal`."""
        for c in self._concave:
            piece = self.pieces(c)
            scale = c.unit / self.instance.jobs[c.job].minibatches
            filled = piece.filled(piece.low + sum(gains[c.job].values()) * scale) / piece.lengths
            for k, part in enumerate(filled.tolist()):
                block.fill[c.job, k].set_value(part, skip_validation=True)
        if self.instance.preemptive:
            for c in self._finishing:
                block.finished[c.job].set_value(int(sum(gains[c.job].values()) >= c.wanted), skip_validation=True)


class SmallestPart(Goal):
    """The smallest part done of all jobs, ``smallest``.

    No job counts for more than the part ``top`` that the least of them may come to, so that each slot of a job does no
    more than it then still needs: rows of jobs with few mini-batches have no large coefficients.
    """

    def _part(self, c: Choices) -> tuple[float, float]:
        """Progress for all mini-batches of the job, and the part of them that is within reach."""
        whole = self.instance.jobs[c.job].minibatches / c.unit
        return whole, min(1.0, (whole - c.wanted + c.reach) / whole)

    @property
    def _top(self) -> float:
        return min((self._part(c)[1] for c in self.jobs), default=1.0)

    def add(self, block: pyo.Block) -> tuple[Terms, float]:
        """See :class:`Goal`."""
        top = self._top
        block.smallest = pyo.Var(bounds=(0, top / self.unit), doc="smallest part done, in units")
        wanting = {c.job: c for c in self.jobs if self._part(c)[0] * top > self._part(c)[0] - c.wanted}

        @block.Constraint(list(wanting), doc="no job has done a smaller part")
        def part_is_no_smaller(b: Any, i: int) -> Any:
            c = wanting[i]
            whole, scale = self._part(c)[0], self._part(c)[0] * self.unit
            need = whole * top - (whole - c.wanted)
            gains, changed = (tuple(min(g, need) / scale for g in each) for each in (c.gains, c.changed_gains))
            parts = progress_terms(b, replace(c, gains=gains, changed_gains=changed))
            return linear([*parts, (-1.0, b.smallest)], (whole - c.wanted) / scale) >= 0

        return [(1.0, block.smallest)], 0.0

    def start(self, block: pyo.Block, gains: Mapping[int, Mapping[int, float]]) -> None:
        """See :class:`Goal`."""
        parts = [self._top]
        for c in self.jobs:
            whole, _ = self._part(c)
            parts.append((whole - c.wanted + sum(gains[c.job].values())) / whole)
        block.smallest.set_value(min(parts) / self.unit, skip_validation=True)


class EarlyEnds(Goal):
    """Every job is finished, each no sooner than in ``soonest[job]`` slots from the beginning of the window."""

    def __init__(self, instance: SchedulingInstance, jobs: Sequence[Choices], done: Sequence[float]) -> None:
        super().__init__(instance, jobs, done)
        self.soonest: dict[int, int] = {}
        for c in jobs:
            name = f"jobs[{c.job}] '{instance.jobs[c.job].name}'"
            if instance.preemptive:
                self.soonest[c.job] = c.first + math.ceil(c.wanted)
            else:
                lengths = [c.slots_to_finish(gain) for gain in c.gains]
                self.soonest[c.job] = c.first + min(lengths)
            if self.soonest[c.job] > c.last:
                raise InfeasibleError(
                    f"{name} must be finished, but from slot {c.first} on that takes {self.soonest[c.job] - c.first} "
                    f"slots, and it has {c.last - c.first}"
                )

    def add_finishing_rows(self, block: pyo.Block) -> None:
        """Every job is finished in the end."""
        by_job = {c.job: c for c in self.jobs}

        @block.Constraint(list(by_job), doc="every job is finished")
        def job_is_finished(b: Any, i: int) -> Any:
            c = by_job[i]
            if not self.instance.preemptive:
                return linear([(1.0, b.begins[i, w, t]) for w, t in possible_starts(c)]) == 1
            return linear(progress_terms(b, c)) >= c.wanted


class Makespan(EarlyEnds):
    """Minus the number of slots until all jobs are finished: ``busy[t]`` is 1 up to there."""

    def add_variables(self, block: pyo.Block) -> None:
        """See :class:`Goal`."""
        least = max(self.soonest.values(), default=0)
        last = max((c.last for c in self.jobs), default=0)
        block.SLOTS = pyo.RangeSet(0, last - 1)
        block.busy = pyo.Var(block.SLOTS, domain=pyo.Binary, doc="some job is not finished before the slot")
        for t in range(least):
            block.busy[t].setlb(1)

    def most(self, block: pyo.Block, c: Choices, slot: int) -> Any:
        """See :class:`Goal`."""
        return 1 if block.busy[slot].lb == 1 else block.busy[slot]

    def add(self, block: pyo.Block) -> tuple[Terms, float]:
        """See :class:`Goal`."""
        self.add_finishing_rows(block)

        @block.Constraint(block.SLOTS, doc="the busy slots come first")
        def busy_slots_are_first(b: Any, t: int) -> Any:
            return b.busy[t] <= b.busy[t - 1] if t else pyo.Constraint.Skip

        return [(-1.0, block.busy[t]) for t in block.SLOTS], 0.0

    def start(self, block: pyo.Block, gains: Mapping[int, Mapping[int, float]]) -> None:
        """See :class:`Goal`."""
        until = max((t + 1 for slots in gains.values() for t in slots), default=0)
        for t in block.SLOTS:
            block.busy[t].set_value(int(t < until), skip_validation=True)


class CompletionTime(EarlyEnds):
    """Minus the weighted sum of slots from arrival to end: ``ended[i, t]`` is 1 from the last needed slot on."""

    def __init__(self, instance: SchedulingInstance, jobs: Sequence[Choices], done: Sequence[float]) -> None:
        super().__init__(instance, jobs, done)
        self.weight = {c.job: instance.jobs[c.job].utility.value / self.unit for c in jobs}

    def _ends(self, c: Choices) -> range:
        """Slots in which the job may end, but for the last one."""
        return range(self.soonest[c.job] - 1, c.last - 1)

    def add_variables(self, block: pyo.Block) -> None:
        """See :class:`Goal`."""
        if self.instance.preemptive:
            index = [(c.job, t) for c in self.jobs for t in self._ends(c)]
            block.ENDS = pyo.Set(dimen=2, initialize=index, doc="(job, slot in which it may end before its last)")
            block.ended = pyo.Var(block.ENDS, domain=pyo.Binary, doc="job ends in the slot or before")

    def most(self, block: pyo.Block, c: Choices, slot: int) -> Any:
        """See :class:`Goal`."""
        if self.instance.preemptive and slot >= self.soonest[c.job]:
            return 1 - block.ended[c.job, slot - 1]
        return 1

    def add(self, block: pyo.Block) -> tuple[Terms, float]:
        """See :class:`Goal`."""
        self.add_finishing_rows(block)
        if not self.instance.preemptive:
            return self._ends_of_pieces(block), 0.0
        by_job = {c.job: c for c in self.jobs}
        index = [(c.job, t) for c in self.jobs for t in range(c.first, c.last - 1)]
        block.SO_FAR = pyo.Set(dimen=2, initialize=index)
        block.so_far = pyo.Var(block.SO_FAR, bounds=(0, None), doc="progress up to the end of the slot")

        @block.Constraint(block.SO_FAR, doc="progress adds up")
        def progress_adds_up(b: Any, i: int, t: int) -> Any:
            c = by_job[i]
            row = [*slot_progress_terms(b, c, t), (-1.0, b.so_far[i, t])]
            if t > c.first:
                row.append((1.0, b.so_far[i, t - 1]))
            return linear(row) == 0

        @block.Constraint(block.ENDS, doc="a job that has ended has done what was wanted")
        def ended_is_done(b: Any, i: int, t: int) -> Any:
            return linear([(1.0, b.so_far[i, t]), (-by_job[i].wanted, b.ended[i, t])]) >= 0

        @block.Constraint(block.ENDS, doc="a job that has ended stays so")
        def ended_stays(b: Any, i: int, t: int) -> Any:
            return b.ended[i, t] <= b.ended[i, t + 1] if (i, t + 1) in b.ended else pyo.Constraint.Skip

        terms = [(self.weight[i], block.ended[i, t]) for i, t in block.ENDS]
        return terms, -sum(self.weight[c.job] * (c.last - c.first) for c in self.jobs)

    def _ends_of_pieces(self, block: pyo.Block) -> Terms:
        return [(-self.weight[c.job] * slots, start) for c in self.jobs for slots, start in self._ends_of(block, c)]

    def _ends_of(self, block: pyo.Block, c: Choices) -> Terms:
        """Slots from arrival to end of a job in one piece, by its beginning."""
        gains = dict(zip(c.widths, c.gains, strict=True))
        return [(t + c.slots_to_finish(gains[w]) - c.first, block.begins[c.job, w, t]) for w, t in possible_starts(c)]

    def start(self, block: pyo.Block, gains: Mapping[int, Mapping[int, float]]) -> None:
        """See :class:`Goal`."""
        if not self.instance.preemptive:
            return
        so_far: dict[tuple[int, int], float] = defaultdict(float)
        for c in self.jobs:
            total = 0.0
            for t in range(c.first, c.last - 1):
                total += gains[c.job].get(t, 0.0)
                so_far[c.job, t] = total
                block.so_far[c.job, t].set_value(total, skip_validation=True)
                if (c.job, t) in block.ended:
                    block.ended[c.job, t].set_value(int(total >= c.wanted), skip_validation=True)


class LargestRatio(CompletionTime):
    """Minus the largest ratio of slots from arrival to end and slots with a fair share alone, ``worst``, in units."""

    def __init__(self, instance: SchedulingInstance, jobs: Sequence[Choices], done: Sequence[float]) -> None:
        super().__init__(instance, jobs, done)
        self.fair = [slots * self.unit for slots in fair_slots(instance)]

    def add(self, block: pyo.Block) -> tuple[Terms, float]:
        """See :class:`Goal`."""
        super().add(block)
        least = max(((self.soonest[c.job] - c.first) / self.fair[c.job] for c in self.jobs), default=0.0)
        block.worst = pyo.Var(bounds=(least, None), doc="largest ratio of a job's time to that with its fair share")
        by_job = {c.job: c for c in self.jobs}

        @block.Constraint(list(by_job), doc="no job has a larger ratio")
        def ratio_is_no_larger(b: Any, i: int) -> Any:
            c = by_job[i]
            if not self.instance.preemptive:
                return linear([*self._ends_of(b, c), (-self.fair[i], b.worst)]) <= 0
            saved = [(-1.0, b.ended[i, t]) for t in self._ends(c)]
            return linear([*saved, (-self.fair[i], b.worst)], c.last - c.first) <= 0

        return [(-1.0, block.worst)], 0.0

    def start(self, block: pyo.Block, gains: Mapping[int, Mapping[int, float]]) -> None:
        """See :class:`Goal`."""
        super().start(block, gains)
        taken = [(max(gains[c.job]) + 1 - c.first) / self.fair[c.job] for c in self.jobs if gains[c.job]]
        block.worst.set_value(max([float(block.worst.lb), *taken]), skip_validation=True)


def goal(instance: SchedulingInstance, jobs: Sequence[Choices], done: Sequence[float], tangents: int | None) -> Goal:
    """The goal of an instance.

    Raises
    ------
    InfeasibleError
        If a job must be finished that cannot be.
    """
    if instance.goal.counts_utilities:
        return TotalUtility(instance, jobs, done, tangents)
    return _ROWS[type(instance.goal)](instance, jobs, done)


_ROWS: dict[type[goals.Goal], Callable[[SchedulingInstance, Sequence[Choices], Sequence[float]], Goal]] = {
    goals.SmallestPart: SmallestPart,
    goals.Makespan: Makespan,
    goals.CompletionTime: CompletionTime,
    goals.LargestRatio: LargestRatio,
}
