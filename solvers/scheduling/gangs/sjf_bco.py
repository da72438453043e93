"""Smallest jobs first, with balanced contention and overhead: after SJF-BCO."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from ddlopt.models.errors import OptionError, SolverError
from ddlopt.models.scheduling.evaluate import evaluate
from ddlopt.models.scheduling.instance import SchedulingInstance, most_workers
from ddlopt.models.scheduling.pool import pool
from ddlopt.models.scheduling.refusals import refusal
from ddlopt.models.scheduling.solution import Schedule
from ddlopt.solvers.contracts import better
from ddlopt.solvers.heuristic import Answer, Clock, Heuristic
from ddlopt.solvers.scheduling.gangs.list_scheduling import FixedWidths, lengths
from ddlopt.solvers.scheduling.online.engine import ENOUGH, Choice, Policy, State, simulate
from ddlopt.solvers.scheduling.slot.packing import Packer, Place
from ddlopt.solvers.scheduling.slot.rates import Floats, Ints

_MOST_PLANS = 12
"""Plans that are simulated, those for the least limits."""


@dataclass(frozen=True)
class SjfBco(Heuristic, uses=()):
    """Smallest jobs first: few workers are packed tightly, many go to the least busy servers.

    Our reconstruction of SJF-BCO from a description of it, not from its paper; what it leaves open is ours. Jobs are
    taken by width, then length. A *plan* gives each job as many GPUs as it has workers, and notes for every GPU the
    estimated time of all its jobs, which must not exceed a limit theta. A job of at most kappa workers goes to the
    server that has the fewest GPUs below the limit that hold it, else to those with most (FA-FFP: fragment-aware
    first-fit packing); a wider one to the servers with the least average time, as many as have ``spare`` times its
    workers, and there to the least busy GPUs (LBSGF: least busy server, GPUs first). The estimate is the time of the
    job alone. Bisection lowers theta as long as some kappa has a plan. In truth a job starts when all jobs before it on
    its GPUs have ended, at the speed that the others leave it; the best of the last plans, so simulated, is the answer.

    That is for jobs that are all there from the start, take equal workers, and are to be finished. With arrivals,
    deadlines that are worth missing, several resources or a network, jobs are given places when there is room for them,
    in the same order and by the same two rules for every kappa; rings where a network asks for them. Elastic jobs have
    their largest width: the heuristic knows one width only. Runs are in one piece, also where the instance would allow
    pauses, and end at the deadline.

    Parameters
    ----------
    spare : float
        How many GPUs the least busy servers for a wide job have, for each of its workers; at least 1.

    References
    ----------
    SJF-BCO ("smallest job first with balanced contention and overhead"), MobiHoc 2022.
    """

    spare: float = 1.0

    def __post_init__(self) -> None:
        if not self.spare >= 1:
            raise OptionError(f"spare must be at least 1, got {self.spare}")

    @property
    def name(self) -> str:
        """``sjf-bco``."""
        return "sjf-bco"

    def refuses(self, instance: SchedulingInstance) -> str | None:
        """Types of accelerators."""
        return refusal(instance)

    def answer(self, instance: SchedulingInstance, seed: int, clock: Clock, start: Any) -> Answer[Schedule]:
        """The best over all kappa; details: schedules simulated."""
        best: tuple[float, Schedule] | None = None
        failure: SolverError | None = None
        simulated = 0
        for policy in self._policies(instance, clock):
            if best is not None and clock.expired:
                break
            try:
                schedule = simulate(instance, policy, clock, self.name).schedule
            except SolverError as problem:
                failure = failure or problem
                continue
            simulated += 1
            objective = evaluate(instance, schedule).objective
            assert objective is not None
            if best is None or better(float(objective), best[0], instance.sense):
                best = float(objective), schedule
                clock.report(best[0], None, schedule)
        if best is None:
            raise failure or SolverError(f"sjf-bco on '{instance.name}' found no schedule")
        return best[1], {"schedules_simulated": simulated}

    def _policies(self, instance: SchedulingInstance, clock: Clock) -> Iterator[Policy]:
        widths = sorted({job.max_workers for job in instance.jobs})
        if _is_planned(instance):
            planner = _Planner(instance, self.spare)
            for plan in _plans(planner, widths, clock):
                yield _Planned(plan, planner.server_of)
            return
        order = np.lexsort((lengths(instance), np.array([job.max_workers for job in instance.jobs])))
        rank = np.empty(len(order), dtype=np.int64)
        rank[order] = np.arange(len(order))
        if pool(instance).exact:
            yield FixedWidths(rank, None)
            return
        for kappa in widths:
            yield FixedWidths(rank, _Balanced(instance, kappa, self.spare))


def _is_planned(instance: SchedulingInstance) -> bool:
    return (
        instance.sense == "minimize"
        and not instance.needs_rings
        and bool((instance.demand == instance.demand[0]).all())
        and not any(job.arrival for job in instance.jobs)
    )


Plan = tuple[tuple[int, tuple[int, ...]], ...]
"""Jobs in their order, each with its GPUs."""


class _Planner:
    """Assigns jobs to GPUs up to a limit on the time of each GPU."""

    def __init__(self, instance: SchedulingInstance, spare: float) -> None:
        self.spare = spare
        places = most_workers(instance.capacity, instance.demand[0])
        self.server_of: Ints = np.repeat(np.arange(len(places)), places)
        self.places = places
        self.width = np.array([job.max_workers for job in instance.jobs], dtype=np.int64)
        self.length: Floats = np.ceil(_alone(instance, places))
        self.order = np.lexsort((self.length, self.width)).tolist()

    def plan(self, limit: float, kappa: int) -> Plan | None:
        """All jobs on GPUs whose time is within the limit; None if some job finds too few."""
        busy = np.zeros(len(self.server_of))
        found = []
        for job in self.order:
            width = int(self.width[job])
            below = busy + self.length[job] <= limit
            chosen = self._packed(busy, below, width) if width <= kappa else self._balanced(busy, below, width)
            if chosen is None:
                return None
            busy[chosen] += self.length[job]
            found.append((job, tuple(chosen.tolist())))
        return tuple(found)

    def _packed(self, busy: Floats, below: npt.NDArray[np.bool_], width: int) -> Ints | None:
        """The server that has the fewest GPUs below the limit, but enough; else those that have most."""
        room = np.bincount(self.server_of[below], minlength=len(self.places))
        if room.sum() < width:
            return None
        enough = np.flatnonzero(room >= width)
        order = enough[np.argsort(room[enough], kind="stable")][:1] if len(enough) else np.argsort(-room, kind="stable")
        rank = np.full(len(room), len(room))
        rank[order] = np.arange(len(order))
        gpus = np.flatnonzero(below)
        return gpus[np.lexsort((busy[gpus], rank[self.server_of[gpus]]))][:width]

    def _balanced(self, busy: Floats, below: npt.NDArray[np.bool_], width: int) -> Ints | None:
        """The least busy GPUs of the least busy servers, as many servers as it takes."""
        if below.sum() < width:
            return None
        average = np.bincount(self.server_of, busy, len(self.places)) / np.maximum(1, self.places)  # some hold none
        order = np.argsort(average, kind="stable")
        room = np.bincount(self.server_of[below], minlength=len(self.places))[order]
        several = np.searchsorted(np.cumsum(self.places[order]), self.spare * width)
        enough = np.searchsorted(np.cumsum(room), width)
        kept = np.isin(self.server_of, order[: max(several, enough) + 1]) & below
        gpus = np.flatnonzero(kept)
        return gpus[np.argsort(busy[gpus], kind="stable")][:width]


def _plans(planner: _Planner, kappas: Sequence[int], clock: Clock) -> list[Plan]:
    """Plans for limits that bisection finds, the least limit first; several kappa may give the same plan."""
    low, high = int(planner.length.max()) - 1, int(planner.length.sum())
    best = [plan for kappa in kappas if (plan := planner.plan(high, kappa)) is not None]
    while high - low > 1 and not clock.expired:
        limit = (low + high) // 2
        found = [plan for kappa in kappas if (plan := planner.plan(limit, kappa)) is not None]
        if found:
            best, high = found + best, limit
        else:
            low = limit
    return list(dict.fromkeys(best))[:_MOST_PLANS]


def _alone(instance: SchedulingInstance, places: Ints) -> Floats:
    """(I,) slots of each job by itself, on one server if that holds it, else on as few as do."""
    if instance.contention is None:
        return lengths(instance)
    held = np.cumsum(np.sort(places)[::-1])
    found = []
    for number, job in enumerate(instance.jobs):
        width = job.max_workers
        servers = int(np.searchsorted(held, width)) + 1
        rate = instance.rate(number, width, servers, int(servers > 1))
        found.append(job.minibatches / rate)
    return np.array(found)


class _Planned:
    """The policy that follows a plan: a job starts when it is the next one on all its GPUs."""

    def __init__(self, plan: Plan, server_of: Ints) -> None:
        self.places: dict[int, Place] = {}
        self.gpus = dict(plan)
        self.queues: dict[int, list[int]] = {}
        for job, gpus in reversed(plan):
            on, counts = np.unique(server_of[list(gpus)], return_counts=True)
            self.places[job] = Place(tuple(zip(on.tolist(), counts.tolist(), strict=True)))
            for gpu in gpus:
                self.queues.setdefault(gpu, []).append(job)

    def choose(self, state: State) -> Choice:
        """Jobs at the head of all their queues."""
        finished = state.done >= state.wanted * ENOUGH
        for queue in self.queues.values():
            while queue and finished[queue[-1]]:
                queue.pop()
        return {
            job: self.places[job]
            for job in state.active.tolist()
            if all(self.queues[gpu][-1] == job for gpu in self.gpus[job])
        }


class _Balanced(Packer):
    """Packs narrow jobs tightly and puts wide ones on the servers that have been least busy."""

    def __init__(self, instance: SchedulingInstance, kappa: int, spare: float) -> None:
        super().__init__(instance)
        self.kappa, self.spare = kappa, spare
        self._length = lengths(instance)
        self._time = np.zeros(instance.server_count)

    def find(self, job: int, width: int, room: Ints | None = None) -> Place | None:
        """See :class:`~ddlopt.solvers.scheduling.slot.packing.Packer`."""
        room = self._room(job) if room is None else room
        if width > self.kappa and room.sum() >= width:
            order = np.argsort(self._time, kind="stable")
            enough = int(np.searchsorted(np.cumsum(room[order]), self.spare * width)) + 1
            calm = np.zeros_like(room)
            calm[order[:enough]] = room[order[:enough]]
            place = super().find(job, width, calm)
            if place is not None:
                return place
        return super().find(job, width, room)

    def put(self, job: int, place: Place) -> None:
        """Note the time that the job will take on its servers."""
        super().put(job, place)
        whole = np.maximum(most_workers(self.instance.capacity, self.instance.demand[job]), 1)
        for server, count in place.workers:
            self._time[server] += count * self._length[job] / whole[server]
