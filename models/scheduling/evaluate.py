"""The independent check of a schedule, written from the problem statement; it knows no formulation."""

import itertools
import math
from collections import Counter, defaultdict
from dataclasses import dataclass
from fractions import Fraction
from typing import NamedTuple

import numpy as np

from ddlopt.models.contracts import Evaluation, Number, Violation
from ddlopt.models.scheduling.fair_time import fair_s
from ddlopt.models.scheduling.instance import SchedulingInstance
from ddlopt.models.scheduling.solution import Run, Schedule
from ddlopt.models.scheduling.sweep import Peak, contention_levels, energy_j, peaks
from ddlopt.models.scheduling.utility import DONE
from ddlopt.models.scheduling.variants.goals import Figures
from ddlopt.models.tolerances import let_pass


class Piece(NamedTuple):
    """Consecutive slots in which a job advances at one rate."""

    start: int
    slots: int
    minibatches_per_slot: Number


@dataclass
class Outcome:
    """What becomes of one job: mini-batches done, the part of those wanted, and the slot after its last needed one."""

    minibatches: Number
    part: Number
    end: int | None


def evaluate(instance: SchedulingInstance, solution: Schedule, exact: bool = False) -> Evaluation:
    """Objective of a schedule and every constraint that it violates.

    Parameters
    ----------
    exact : bool
        Calculate in rational numbers; utilities with logarithms or powers are rounded once.

    Returns
    -------
    Evaluation
        The objective as the instance has it (None where a run makes no sense, or a job is not finished that must be).
        Details: ``utility``, ``energy_j``, ``finished_jobs``, ``smallest_part`` (of the mini-batches wanted),
        ``makespan_s``, ``mean_jct_s`` (arrival to end, of the finished jobs) and ``busy_part`` (time and space average
        of the resource used most); ``changes``, of all jobs, where they cost time; ``unfair_jobs``, which take longer
        than with their fair share alone, and the ``mean_ratio`` of the two, where that is the objective.

    Raises
    ------
    SolutionError
        If the schedule says that it answers another instance.
    """
    solution.belongs_to(instance)
    number: type[Fraction] | type[float] = Fraction if exact else float
    checker = _Checker(instance, solution, number)
    checker.runs()
    if checker.broken:
        return Evaluation(None, tuple(checker.violations))
    checker.capacities()
    checker.rings()
    if checker.broken:
        return Evaluation(None, tuple(checker.violations))
    outcomes = _outcomes(instance, solution, number)
    objective, details = _figures(instance, solution, outcomes, number)
    if instance.changes.must_wait:
        _check_lengths(instance, solution, checker)
    if instance.goal.must_finish:
        for job, outcome in enumerate(outcomes):
            if outcome.end is None:
                wanted = number(instance.jobs[job].minibatches)
                checker.fail("job_is_finished", checker.job(job), outcome.minibatches, wanted)
    return Evaluation(objective, tuple(checker.violations), details)


class _Checker:
    """Collects violations; ``broken`` once progress can no longer be computed."""

    def __init__(self, instance: SchedulingInstance, schedule: Schedule, number: type[Fraction] | type[float]) -> None:
        self.instance = instance
        self.schedule = schedule
        self.number = number
        self.violations: list[Violation] = []
        self.broken = False

    def fail(self, kind: str, where: str, lhs: Number, rhs: Number, breaks: bool = False) -> None:
        self.violations.append(Violation(kind, where, lhs, rhs))
        self.broken |= breaks

    def job(self, job: int) -> str:
        return f"jobs[{job}] '{self.instance.jobs[job].name}'"

    def runs(self) -> None:
        """Jobs, servers and slots exist; widths, arrivals, deadlines; one run at a time."""
        last_end: dict[int, int] = {}
        times: Counter[int] = Counter()
        order = sorted(range(len(self.schedule.runs)), key=lambda place: self.schedule.runs[place].start)
        for place in order:
            run = self.schedule.runs[place]
            where = f"runs[{place}]"
            if run.job >= len(self.instance.jobs):
                self.fail("job_exists", where, run.job, len(self.instance.jobs) - 1, breaks=True)
                continue
            self._workers(run, where)
            job = self.instance.jobs[run.job]
            where = f"{where}, {self.job(run.job)}"
            if run.start < job.arrival:
                self.fail("job_has_arrived", where, run.start, job.arrival)
            if run.end > self.instance.last_slot(run.job):
                self.fail("deadline_is_kept", where, run.end, self.instance.last_slot(run.job))
            if run.workers and run.width < job.min_workers:
                self.fail("width_is_enough", where, run.width, job.min_workers)
            if run.width > job.max_workers:
                self.fail("width_is_allowed", where, run.width, job.max_workers)
            if run.start < last_end.get(run.job, 0):
                self.fail("job_runs_once_at_a_time", where, run.start, last_end[run.job])
            last_end[run.job] = max(run.end, last_end.get(run.job, 0))
            times[run.job] += 1
            self._bandwidth(run, where)
            self._types(run, where)
        if not self.instance.preemptive:
            for number, count in sorted(times.items()):
                if count > 1:
                    self.fail("job_runs_in_one_piece", self.job(number), count, 1)

    def _workers(self, run: Run, where: str) -> None:
        if not run.workers:
            self.fail("run_has_workers", where, 0, 1, breaks=True)
        for server, count in run.workers:
            if not 0 <= server < self.instance.server_count:
                self.fail("server_exists", where, server, self.instance.server_count - 1, breaks=True)
            if count < 1:
                self.fail("count_is_positive", f"{where}, server {server}", count, 1, breaks=True)
        distinct = len({server for server, _ in run.workers})
        if distinct < len(run.workers):
            self.fail("server_is_named_once", where, len(run.workers), distinct, breaks=True)

    def _types(self, run: Run, where: str) -> None:
        accelerators = self.instance.accelerators
        if not accelerators.matter_to(run.job):
            return
        servers = [server for server, _ in run.workers if 0 <= server < self.instance.server_count]
        here = {accelerators.type_of(server): server for server in servers}
        for name, server in sorted(here.items()):
            if not accelerators.pace(run.job, [server]):
                self.fail("type_suits_the_job", f"{where}, type '{name}'", 0, 1)
        if len(here) > 1 and not accelerators.mixed:
            self.fail("workers_are_of_one_type", where, len(here), 1)

    def _bandwidth(self, run: Run, where: str) -> None:
        given = run.bandwidth_bytes_per_s is not None
        if self.instance.bandwidth == "reserved" and given:
            self.fail("bandwidth_is_the_jobs", where, run.bandwidth_bytes_per_s or 0, 0)
        if self.instance.bandwidth == "shared" and not given and len(run.workers) > 1:
            self.fail("ring_has_bandwidth", where, 0, 1, breaks=True)

    def capacities(self) -> None:
        """No server gives more of a resource than it has."""
        demand, capacity = self.instance.demand, self.instance.capacity
        for column, name in enumerate(self.instance.resources):
            uses = [
                (server, run.start, run.end, count * self.number(float(demand[run.job, column])))
                for run in self.schedule.runs
                if demand[run.job, column]
                for server, count in run.workers
            ]
            for peak in peaks(uses, self.number):
                self._limit("capacity", f"server {peak.key}, {name}", peak, float(capacity[peak.key, column]))

    def _limit(self, kind: str, where: str, peak: Peak, limit: float) -> None:
        if peak.amount > let_pass(limit):
            self.fail(kind, f"{where}, slot {peak.slot}", peak.amount, self.number(limit))

    def rings(self) -> None:
        """Rings follow arcs and visit the job's servers; no arc carries more than its bandwidth."""
        if not self.instance.needs_rings:
            for place, run in enumerate(self.schedule.runs):
                if run.ring:
                    self.fail("no_ring_without_a_network", f"runs[{place}]", len(run.ring), 0)
            return
        network = self.instance.network
        assert network is not None
        uses = []
        for place, run in enumerate(self.schedule.runs):
            where = f"runs[{place}], {self.job(run.job)}"
            passes = Counter(itertools.pairwise((*run.ring, run.ring[0]))) if run.ring else Counter()
            for u, v in passes:
                if (u, v) not in network.arcs:
                    self.fail("ring_follows_links", f"{where}: hop {u} -> {v}", 0, 1, breaks=True)
            if len(run.workers) > 1:
                visited = {server for server, _ in run.workers} & set(run.ring)
                if len(visited) < len(run.workers):
                    self.fail("ring_visits_its_servers", where, len(visited), len(run.workers))
            rate = self.number(self._rate(run))
            uses += [(arc, run.start, run.end, rate * count) for arc, count in passes.items()]
        if not self.broken:
            for peak in peaks(uses, self.number):
                self._limit("bandwidth", f"arc {peak.key[0]} -> {peak.key[1]}", peak, network.arcs[peak.key])

    def _rate(self, run: Run) -> float:
        if run.bandwidth_bytes_per_s is not None:
            return run.bandwidth_bytes_per_s
        timing = self.instance.jobs[run.job].timing
        return timing.bandwidth_bytes_per_s if timing.kind == "ring" else 0.0


def _outcomes(instance: SchedulingInstance, schedule: Schedule, number: type[Fraction] | type[float]) -> list[Outcome]:
    """What becomes of every job."""
    pieces: dict[int, list[Piece]] = defaultdict(list)
    slot_s = number(instance.slot_s)
    rates: dict[tuple[int, int, float | None, float], Number] = {}
    changed = _changes(instance, schedule)
    for run, start, slots, competitors in contention_levels(instance, schedule):
        if instance.contention is None:
            own = run.bandwidth_bytes_per_s if len(run.workers) > 1 else None
            key = run.job, run.width, own, instance.accelerators.pace(run.job, [server for server, _ in run.workers])
            if key not in rates:
                bandwidth = None if own is None else number(own)
                rate = instance.jobs[run.job].timing.minibatches_per_s(run.width, bandwidth, number) * slot_s
                rates[key] = rate * number(key[3])
            rate = rates[key]
        else:
            timing, servers = instance.jobs[run.job].timing, len(run.workers)
            rate = instance.contention.minibatches_per_s(timing, run.width, servers, competitors, number) * slot_s
        if (run.job, start) in changed:
            pieces[run.job].append(Piece(start, 1, rate * instance.changes.left(run.job, number)))
            start, slots = start + 1, slots - 1
        if slots:
            pieces[run.job].append(Piece(start, slots, rate))
    return [_outcome(number(job.minibatches), sorted(pieces[i])) for i, job in enumerate(instance.jobs)]


def _changes(instance: SchedulingInstance, schedule: Schedule) -> set[tuple[int, int]]:
    """(job, slot) of every change that costs time.

    A job that has run before changes in a slot in which it runs, unless it ran in the slot before with as many workers
    on every server. Its ring and the bandwidth of it may differ.
    """
    if not instance.changes.cost_time:
        return set()
    before: dict[int, Run] = {}
    found = set()
    for run in sorted(schedule.runs, key=lambda run: run.start):
        last = before.get(run.job)
        if last is not None and (last.end != run.start or sorted(last.workers) != sorted(run.workers)):
            found.add((run.job, run.start))
        before[run.job] = run
    return {(job, slot) for job, slot in found if instance.changes.cost(job)}


def _check_lengths(instance: SchedulingInstance, schedule: Schedule, checker: _Checker) -> None:
    """Stretches with the same workers are long enough, but for those that a job's end, or that of its window, cuts."""
    ends = [outcome.end for outcome in _outcomes(instance, schedule, checker.number)]
    for job in range(len(instance.jobs)):
        least = instance.changes.least(job)
        mine = sorted((run for run in schedule.runs if run.job == job), key=lambda run: run.start)
        stretches: list[tuple[int, int, list[tuple[int, int]]]] = []
        for run in mine:
            workers = sorted(run.workers)
            if stretches and stretches[-1][1:] == (run.start, workers):
                stretches[-1] = stretches[-1][0], run.end, workers
            else:
                stretches.append((run.start, run.end, workers))
        finished = ends[job]
        for start, end, _ in stretches:
            over = end >= instance.last_slot(job) or (finished is not None and finished <= end)
            if end - start < least and not over:
                checker.fail("run_is_long_enough", f"{checker.job(job)}, slot {start}", end - start, least)


def _outcome(wanted: Number, pieces: list[Piece]) -> Outcome:
    done: Number = wanted * 0
    enough = wanted * (DONE if isinstance(wanted, Fraction) else float(DONE))
    end = None
    for piece in pieces:
        gain = piece.minibatches_per_slot * piece.slots
        if end is None and done + gain >= enough and piece.minibatches_per_slot > 0:
            needed = max(1, math.ceil((enough - done) / piece.minibatches_per_slot))
            end = piece.start + min(needed, piece.slots)
        done += gain
    part = min(done / wanted, wanted * 0 + 1)
    return Outcome(done, part, end)


def _figures(
    instance: SchedulingInstance, schedule: Schedule, outcomes: list[Outcome], number: type[Fraction] | type[float]
) -> tuple[Number | None, dict[str, Number]]:
    """The objective, None where it needs a job's end that there is not, and the details."""
    pairs = list(zip(instance.jobs, outcomes, strict=True))
    spans = [outcome.end - job.arrival for job, outcome in pairs if outcome.end is not None]
    slot_s, energy = number(instance.slot_s), energy_j(instance, schedule, number)
    figures = Figures(
        jobs=instance.jobs,
        slot_s=slot_s,
        utility=sum((job.utility.of(outcome.part) for job, outcome in pairs), start=number(0)),
        energy_cost=number(instance.energy_price_per_j) * energy,
        smallest_part=min(outcome.part for outcome in outcomes),
        spans=spans,
        fair_s=lambda job: fair_s(instance, job, number),
    )
    details: dict[str, Number] = {
        "utility": figures.utility,
        "energy_j": energy,
        "finished_jobs": len(spans),
        "smallest_part": figures.smallest_part,
        "busy_part": _busy_part(instance, schedule),
    }
    if instance.changes.cost_time:
        details["changes"] = len(_changes(instance, schedule))
    if spans:
        details["makespan_s"] = max(outcome.end for outcome in outcomes if outcome.end is not None) * slot_s
        details["mean_jct_s"] = sum(spans) * slot_s / len(spans)
    if instance.goal.must_finish and len(spans) < len(outcomes):
        return None, details
    objective, more = instance.goal.value(figures)
    return objective, details | more


def _busy_part(instance: SchedulingInstance, schedule: Schedule) -> float:
    """Time and space average of the resource that is used most."""
    room = instance.capacity.sum(axis=0) * instance.slots
    used = np.zeros(len(instance.resources))
    for run in schedule.runs:
        used += instance.demand[run.job] * (run.width * run.slots)
    return float((used / room).max(initial=0.0))
