"""Our own search for gangs: simulated annealing of the order in which a list schedule takes the jobs."""

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from ddlopt.frontier.scheduling.formulations.rigid_gangs.gangs import Gangs, gangs, schedule_of_starts
from ddlopt.frontier.scheduling.gangs.dispatch import CALM, HOLD, SPLIT, Placing, anneal_placed, dispatch
from ddlopt.frontier.scheduling.gangs.kernels import (
    LATE,
    Goal,
    Pooled,
    anneal_pooled,
    list_schedule,
    seed_kernels,
    serve,
)
from ddlopt.frontier.scheduling.makespan.bounds import makespan_bound_slots
from ddlopt.models.errors import NoSolutionError, OptionError
from ddlopt.models.scheduling.evaluate import evaluate
from ddlopt.models.scheduling.instance import SchedulingInstance
from ddlopt.models.scheduling.pool import pool
from ddlopt.models.scheduling.problem import PROBLEM
from ddlopt.models.scheduling.refusals import not_gangs
from ddlopt.models.scheduling.solution import Run, Schedule
from ddlopt.models.scheduling.utility import DONE
from ddlopt.models.tolerances import IMPROVEMENT_TOL, let_pass_at_least
from ddlopt.solvers.heuristic import Answer, Clock, Heuristic

Ints = np.ndarray[Any, np.dtype[np.int64]]
Floats = np.ndarray[Any, np.dtype[np.float64]]


@dataclass(frozen=True)
class Effort:
    """How long annealing goes on."""

    rounds: tuple[int, ...] = (1, 2, 4, 8, 8)
    """Moves of one annealing after another, relative to the first; the last ones are the longest."""
    first_work: float = 1.2e9
    """Steps of the kernels that the first annealing may take: some seconds."""
    first_moves_of_a_job: int = 3000
    """Moves for each job that it may take."""
    slice_s: float = 0.1
    """Seconds between looks at the clock."""
    steps_per_s: float = 3e8
    """Of the inner loop, roughly."""
    least_moves_of_a_job: int = 3000
    """Moves for each job in the shortest annealing: where there is no time for more, few long ones find more, and one
    that has fewer begins colder."""
    most_jobs: int = 10_000
    """A move passes over all jobs: beyond it there are too few moves in the time."""
    coldest: float = 0.01
    """Last temperature of an annealing, relative to its first."""
    latest: float = 0.8
    """Part of the cooling that may be left out of an annealing for which there is little time."""


_EFFORT = Effort()


@dataclass(frozen=True)
class GangSearch(Heuristic, uses=("seed", "start")):
    """Search over the order in which jobs of fixed width are put into the schedule.

    Where widths alone decide what fits, each job of the order starts as early as it fits behind those before it; some
    order gives an optimal schedule. Elsewhere a simulation starts, whenever something ends or arrives, all jobs that
    fit, in the order; each job has flags for whether it goes to several servers though one could hold it, keeps those
    behind it waiting while it waits, and avoids servers of other split jobs.

    Simulated annealing moves jobs in the order, exchanges two, or changes a flag. What guides it is, for the makespan,
    not the last end itself but the workers times slots past a target: the bound, or half-way between bound and
    incumbent. It ends as soon as the bound is reached. Budgets are counts, so that a seed gives the same schedule every
    time unless a time limit strikes.

    Parameters
    ----------
    effort : float
        Factor on the budget.
    """

    proves_infeasible: ClassVar[bool] = True

    effort: float = 1.0

    kernels: ClassVar[tuple[str, ...]] = (
        "ddlopt.frontier.scheduling.gangs.kernels",
        "ddlopt.frontier.scheduling.gangs.dispatch",
    )

    def __post_init__(self) -> None:
        if not self.effort > 0:
            raise OptionError(f"effort must be positive, got {self.effort}")

    @property
    def name(self) -> str:
        """``gang-search``."""
        return "gang-search"

    def refuses(self, instance: SchedulingInstance) -> str | None:
        """Objectives that count no ends, elastic jobs, networks, and more jobs than a list takes in seconds."""
        if len(instance.jobs) > _EFFORT.most_jobs:
            return f"there are {len(instance.jobs)} jobs, but it takes {_EFFORT.most_jobs} at most; use list-scheduling"
        return not_gangs(instance)

    def answer(self, instance: SchedulingInstance, seed: int, clock: Clock, start: Any) -> Answer[Schedule]:
        """The best schedule found; details: orders tried.

        Raises
        ------
        NoSolutionError
            If no order is found that finishes all jobs in time; InfeasibleError if it is proven that there is none.
        """
        seed_kernels(seed % 2**32)
        lists: _Lists = _PooledLists(instance) if pool(instance).exact else _PlacedLists(instance)
        search = _Search(lists, np.random.default_rng(seed), clock)
        search.run(self.effort, start)
        details = {"orders_tried": search.tried}
        given = None if start is None else evaluate(instance, start)
        if given is not None and given.feasible and float(given.objective or 0.0) < search.least * instance.slot_s:
            return start, details
        if search.least >= LATE:
            raise NoSolutionError(f"gang-search on '{instance.name}' found no schedule that finishes all jobs in time")
        return lists.schedule(), details


class _Lists(ABC):
    """Orders (and flags) as schedules; remembers the best."""

    first_work: ClassVar[float] = _EFFORT.first_work

    def __init__(self, instance: SchedulingInstance) -> None:
        self.instance = instance
        self.jobs = gangs(instance)
        self.share = (self.jobs.taken / self.jobs.capacity).max(axis=1)
        size = self.share / self.share.min()
        self.goal = Goal(self.jobs.arrival, self.jobs.last, size, self.jobs.weight, instance.goal.counts_last_end)
        self.best = self.order = np.arange(len(instance.jobs))

    @property
    @abstractmethod
    def work(self) -> float:
        """Steps of one trial, roughly."""

    def more_orders(self, orders: Sequence[Ints]) -> list[Ints]:
        """The orders, and others made of them."""
        return list(orders)

    @abstractmethod
    def take(self, order: Ints, rng: np.random.Generator) -> None:
        """Go on from this order."""

    @abstractmethod
    def anneal(self, target: int, heat: float, cooling: float, moves: int, least: float) -> tuple[float, float]:
        """The least objective so far, and the cost of the order that one stage of annealing ends with."""

    @abstractmethod
    def schedule(self) -> Schedule:
        """Of the best order."""

    def heat(self) -> float:
        """The first temperature: what a move changes, roughly."""
        if self.goal.makespan:
            return 3.0 * float(np.cbrt((self.goal.size * self.jobs.slots).mean()))
        return 0.5 * float((self.jobs.weight * self.jobs.slots).mean())


class _PooledLists(_Lists):
    """Each job as early as it fits, on an exact pool."""

    def __init__(self, instance: SchedulingInstance) -> None:
        super().__init__(instance)
        self.pooled = Pooled(self.jobs.slots, self.jobs.arrival, self.jobs.taken, self.jobs.capacity)

    @property
    def work(self) -> float:
        """Every job passes over the steps of the profile."""
        return 0.25 * len(self.order) ** 2 + 20 * len(self.order)

    def more_orders(self, orders: Sequence[Ints]) -> list[Ints]:
        """Also those in which jobs start when nobody waits for a job that does not fit yet."""
        served = []
        for order in orders:
            starts = np.zeros(len(order), dtype=np.int64)
            serve(order, self.pooled, starts)
            served.append(order[np.argsort(starts[order], kind="stable")])
        return [*orders, *served]

    def take(self, order: Ints, rng: np.random.Generator) -> None:
        """See :class:`_Lists`."""
        self.order = order.copy()

    def anneal(self, target: int, heat: float, cooling: float, moves: int, least: float) -> tuple[float, float]:
        """See :class:`_Lists`."""
        found: tuple[float, float] = anneal_pooled(
            self.order, self.pooled, self.goal, target, heat, cooling, moves, self.best, least
        )
        return found

    def schedule(self) -> Schedule:
        """See :class:`_Lists`."""
        count, resources = self.jobs.taken.shape
        starts = np.zeros(count, dtype=np.int64)
        profile = np.empty(2 * count + 3, dtype=np.int64), np.empty((2 * count + 3, resources))
        list_schedule(self.best, self.pooled, *profile, starts)
        return schedule_of_starts(self.instance, starts.tolist(), self.jobs.slots.tolist())


class _PlacedLists(_Lists):
    """Whatever fits when something ends or arrives, on servers."""

    first_work = 10 * _EFFORT.first_work  # its moves cost more

    def __init__(self, instance: SchedulingInstance) -> None:
        super().__init__(instance)
        self.placing = placing(instance, self.jobs)
        self.flags = self.best_flags = np.zeros(len(instance.jobs), dtype=np.int64)

    @property
    def work(self) -> float:
        """At every end all that wait look at the servers."""
        count, (servers, resources) = len(self.order), self.placing.capacity.shape
        return float(3 * count * (count / 2 + 10) * servers * (1 + resources))

    def take(self, order: Ints, rng: np.random.Generator) -> None:
        """See :class:`_Lists`."""
        self.order = order.copy()
        self.flags = np.full(len(order), rng.choice([0, SPLIT, SPLIT | CALM, HOLD, HOLD | SPLIT]), dtype=np.int64)

    def anneal(self, target: int, heat: float, cooling: float, moves: int, least: float) -> tuple[float, float]:
        """See :class:`_Lists`."""
        found: tuple[float, float] = anneal_placed(
            *(self.order, self.flags, self.placing, self.goal, target, heat, cooling, moves),
            *(self.best, self.best_flags, least),
        )
        return found

    def schedule(self) -> Schedule:
        """See :class:`_Lists`."""
        count = len(self.best)
        placed = np.empty((count, self.instance.server_count), dtype=np.int64)
        starts, slots = np.zeros((2, count), dtype=np.int64)
        dispatch(self.best, self.best_flags, self.placing, placed, starts, slots)
        runs = [
            Run(
                job=job,
                start=int(starts[job]),
                slots=int(slots[job]),
                workers=tuple((int(s), int(placed[job, s])) for s in np.flatnonzero(placed[job])),
            )
            for job in np.lexsort((np.arange(count), starts)).tolist()
        ]
        return Schedule(instance=self.instance.name, instance_digest=self.instance.digest, runs=tuple(runs))


def placing(instance: SchedulingInstance, jobs: Gangs) -> Placing:
    """The jobs as :func:`~ddlopt.frontier.scheduling.gangs.dispatch.dispatch` wants them."""
    unit = instance.demand.max(axis=0)
    width = np.array([job.max_workers for job in instance.jobs], dtype=np.int64)
    places = range(len(instance.jobs))
    rules = instance.contention
    if rules is None:
        alone = np.array([instance.progress(place, int(width[place])) for place in places])
        base, ring, slowdown, per_server = width / alone, np.zeros(len(places)), np.zeros(len(places) + 1), 0.0
    else:
        timings = [(job.timing, job.max_workers) for job in instance.jobs]
        within_s = [float(timing.iteration_s(w, rules.within_server_bytes_per_s)) for timing, w in timings]
        between_s = [float(timing.iteration_s(w, rules.between_servers_bytes_per_s)) for timing, w in timings]
        # Half the bandwidth doubles the time of the ring.
        halved_s = [float(timing.iteration_s(w, rules.between_servers_bytes_per_s / 2)) for timing, w in timings]
        alone = width / (np.array(within_s) + rules.server_overhead_s) * instance.slot_s
        ring = (np.array(halved_s) - np.array(between_s)) / instance.slot_s
        base = np.array(between_s) / instance.slot_s - ring
        at_once = np.maximum(1.0, rules.share * np.arange(len(places) + 1))
        slowdown = at_once + rules.degradation * (at_once - 1)
        per_server = rules.server_overhead_s / instance.slot_s
    # Half-way to what counts as finished, so that sums in another order do not matter.
    wanted = np.array([job.minibatches * (1 + float(DONE)) / 2 for job in instance.jobs])
    return Placing(
        *(width, jobs.arrival, wanted, instance.demand / unit, let_pass_at_least(instance.capacity) / unit),
        *(alone, base, ring, slowdown, per_server),
    )


class _Search:
    """One run: rounds of annealing, each from another list."""

    def __init__(self, lists: _Lists, rng: np.random.Generator, clock: Clock) -> None:
        self.lists, self.rng, self.clock = lists, rng, clock
        self.instance = lists.instance
        self.tried = 0
        self.least = np.inf
        self.bound_s = PROBLEM.tightest_bound(self.instance) or 0.0
        self.lowest = makespan_bound_slots(self.instance)

    @property
    def done(self) -> bool:
        """Whether the bound is reached or the time is up."""
        return self.clock.expired or self.least * self.instance.slot_s <= self.bound_s * (1 + IMPROVEMENT_TOL)

    def run(self, effort: float, given: Schedule | None) -> None:
        """All lists once, then annealing from one after another, the best first."""
        ranked: list[tuple[float, Ints]] = []
        for order in self.lists.more_orders(self._orders(given)):
            for _ in range(1 if isinstance(self.lists, _PooledLists) else 4):
                self.lists.take(order, self.rng)
                ranked.append((self._stage(self.lowest, IMPROVEMENT_TOL, 1.0, 0), order))
                if self.done:
                    return
        lists = [order for _, order in sorted(ranked, key=lambda pair: pair[0])]
        first = effort * min(
            self.lists.first_work / self.lists.work, _EFFORT.first_moves_of_a_job * len(self.lists.order)
        )
        rounds = self._rounds()
        for number, length in enumerate(rounds):
            target = self.lowest
            if number % 2 and self.goal_is_makespan:
                target = int(self.lowest + min(self.least, 2 * self.lowest)) // 2
            self.lists.take(lists[number % len(lists)], self.rng)
            self._anneal(target, max(100, int(first * length)), length / sum(rounds[number:]))
            if self.done:
                return

    def _rounds(self) -> tuple[int, ...]:
        """The annealings that there is time for."""
        rounds = _EFFORT.rounds
        while len(rounds) > 1 and self._affordable(rounds[0] / sum(rounds)) < 1:
            rounds = rounds[1:]
        return rounds

    def _affordable(self, share: float) -> float:
        """Moves in a share of the time that is left, of those that an annealing is to have at least."""
        moves = share * self.clock.left_s * _EFFORT.steps_per_s / self.lists.work
        return moves / (_EFFORT.least_moves_of_a_job * len(self.lists.order))

    @property
    def goal_is_makespan(self) -> bool:
        """Whether there is a target."""
        return self.lists.goal.makespan

    def _anneal(self, target: int, moves: int, share: float) -> None:
        """One annealing, in stages that look at the clock; it cools in its share of the time that is left.

        Without that a limit would strike while it is hot, when it finds nothing.
        """
        heat, cooling = self.lists.heat(), _EFFORT.coldest ** (1 / moves)
        stage = max(1, min(moves, int(_EFFORT.slice_s * _EFFORT.steps_per_s / self.lists.work)))
        began_s, seconds = self.clock.elapsed_s, self.clock.part(share) or math.inf
        affordable = min(1.0, max(_EFFORT.coldest, self._affordable(share)))
        skipped, tried, part = min(_EFFORT.latest, math.log(affordable, _EFFORT.coldest)), 0, 0.0
        while part < 1 and not self.done:
            now = heat * _EFFORT.coldest ** (skipped + (1 - skipped) * part)
            if self._stage(target, now, cooling, min(stage, moves - tried)) <= 0:
                return
            tried += stage
            part = max(tried / moves, (self.clock.elapsed_s - began_s) / seconds)

    def _stage(self, target: int, heat: float, cooling: float, moves: int) -> float:
        least, cost = self.lists.anneal(target, heat, cooling, moves, self.least)
        self.tried += moves + 1
        if least < self.least:
            self.least = least
            if least < LATE:
                self.clock.report(least * self.instance.slot_s, self.bound_s)
        return cost

    def _orders(self, given: Schedule | None) -> list[Ints]:
        """Lists to begin with: that of the schedule given, then those by size, length and weight."""
        jobs, share = self.lists.jobs, self.lists.share
        area = share * jobs.slots
        orders = [
            np.lexsort((-jobs.slots, -share)),
            np.lexsort((-share, -jobs.slots)),
            np.argsort(-area, kind="stable"),
            np.lexsort((jobs.slots, jobs.arrival)),
        ]
        if not self.goal_is_makespan:
            by_weight = np.argsort(-jobs.weight / area, kind="stable"), np.argsort(-jobs.weight / jobs.slots)
            orders = [*by_weight, *orders]
        if given is not None:
            first = {run.job: run.start for run in reversed(given.runs)}
            orders.insert(0, np.array(sorted(range(len(area)), key=lambda job: (first.get(job, 0), job))))
        return orders
