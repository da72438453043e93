r"""The loop: schedule with intervals of step times, and sharpen those that the gap comes from.

**It is a bound.** Every solution is a schedule with some plans; each takes at least :math:`L_k(w)`. Leave every start
as it is, and let each job take :math:`q L` instead: at any time fewer jobs run, and each ends no later. So the optimum
of the tables L is no more than any solution's value, and neither is any bound on it.

**It ends.** Let the schedule that is the optimum for L use closed pairs (k, w) only, those with
:math:`U_k(w) = L_k(w)`: then it is a solution, and the gap is zero. Otherwise it uses an open pair, and one of these is
solved anew, with twice the seconds of last time. A method that is exact for inner problems closes a pair when the
seconds suffice; there are finitely many pairs. With gaps g of inner problems instead, and makespans, U is at most
L / (1 - g), and the same schedule, its starts stretched by the same factor, is within g as well where no job has to
wait for its arrival; stretched starts are never too early, so this holds with arrivals too.

**Where more servers may be taken for no worse** (`deployment/step`, `deployment/pipeline`: a plan says how many devices
there are *at most*), a plan for fewer is one for more, and a bound for more is one for fewer. A co-design on more
servers is another problem, in which every server takes part, and nothing is concluded.
"""

import math
from collections import defaultdict
from dataclasses import dataclass
from typing import Any, ClassVar

from ddlopt.models.cluster.jobs.bounds import jobs_bound
from ddlopt.models.cluster.jobs.evaluate import evaluate_jobs
from ddlopt.models.cluster.jobs.instance import JobsInstance, JobsSchedule
from ddlopt.models.cluster.joint.bounds import uplinks_bound
from ddlopt.models.cluster.joint.instance import JointInstance, JointPlan, Run, WorkloadPlan, runs_of
from ddlopt.models.errors import InfeasibleError, InstanceError, NoSolutionError
from ddlopt.models.problem import path_of
from ddlopt.models.tolerances import ROUNDING
from ddlopt.solvers import catalogue
from ddlopt.solvers.certify import MethodOutput
from ddlopt.solvers.cluster.jobs.list_exchange import ListSearch
from ddlopt.solvers.cluster.jobs.relaxation import Relaxed, relaxed
from ddlopt.solvers.cluster.jobs.start_order import Search
from ddlopt.solvers.cluster.joint.crew import Crew
from ddlopt.solvers.cluster.joint.fabric_search import FabricSearch, fitted, uplinks
from ddlopt.solvers.cluster.joint.plans import OPENING, Pair, Plans
from ddlopt.solvers.contracts import Limits, kernels_of, relative_gap
from ddlopt.solvers.dask_workers import executor_of
from ddlopt.solvers.heuristic import CertifiedMethod, Clock


@dataclass(frozen=True)
class Effort:
    """What a search spends, and why so much."""

    few_jobs: int = 7
    """Jobs whose schedules are searched in all orders; for more there are lists and a relaxation."""
    rounds: int = 6
    """Rounds of list search without a gain, once every plan that is wanted is closed; each goes on with other random
    numbers."""
    idle: int = 6
    """Rounds without a gain after which a list rests until plans are better: they change more than a longer search."""
    searched: float = 0.1
    """Part of the time so far that a list search may take each time: most of the gap is usually the plans'."""
    inner: float = 0.25
    """Part of the gap asked for that an inner problem may have: the rest is for the schedule."""
    least_gap: float = 1e-7
    """Least gap of an inner problem: floating-point solvers prove no more."""
    spare: float = 0.2
    """Part of the time so far that is kept for a last schedule, without which plans found late are worth nothing."""
    look_s: float = 3.0
    """Seconds of inner problems between two schedules, at least; a schedule may take that long itself."""


_EFFORT = Effort()


@dataclass(frozen=True)
class Refinement(CertifiedMethod, uses=("seed", "threads")):
    """Schedules with intervals of step times, whose inner problems are solved where the gap comes from.

    Parameters
    ----------
    kept : str
        A folder in which plans and bounds of inner problems are kept by digest, and found again; empty: none.
    cluster : str
        Address of a Dask scheduler, whose workers solve inner problems; empty: ``threads`` processes, or this one.

    References
    ----------
    Ours.
    """

    kept: str = ""
    cluster: str = ""

    name: ClassVar[str] = "refinement"
    covers: ClassVar[type[JointInstance]] = JointInstance
    kernels: ClassVar[tuple[str, ...]] = ("ddlopt.solvers.cluster.jobs.exchange_kernel",)
    proves_infeasible: ClassVar[bool] = True

    def kernels_for(self, instance: JointInstance) -> tuple[str, ...]:
        """Those of the methods that inner problems are solved by."""
        return self.kernels + kernels_of_plans(instance)

    def find(self, instance: JointInstance, limits: Limits, seed: int, clock: Clock, start: Any) -> MethodOutput:
        """The best schedule with plans, and the bound with the times that no plan is below.

        Raises
        ------
        InfeasibleError
            If a job has no plan on any number of servers.
        NoSolutionError
            If the time is up before every job has a plan.
        """
        with executor_of(self.cluster or None) as (executor, many):
            crew = Crew(many or limits.threads, executor)
            plans = Plans(instance, clock, max(limits.gap * _EFFORT.inner, _EFFORT.least_gap), seed, self.kept, crew)
            try:
                return Loop(plans, limits, seed).run()
            finally:
                crew.close()


def kernels_of_plans(instance: JointInstance) -> tuple[str, ...]:
    """Modules with the kernels of all methods that inner problems are solved by, and of places in a fabric."""
    found: dict[str, None] = {}
    if instance.fabric is not None:
        found["ddlopt.solvers.cluster.joint.fabric_kernel"] = None
    for inner in instance.problems:
        for method in (catalogue.default(inner), catalogue.method(OPENING[path_of(inner)], inner.family)):
            found |= dict.fromkeys(kernels_of(method, inner))
    return tuple(found)


class Loop:
    """One run.

    Parameters
    ----------
    plans : Plans
    limits : Limits
    seed : int
    """

    def __init__(self, plans: Plans, limits: Limits, seed: int) -> None:
        self.plans, self.limits, self.seed = plans, limits, seed
        self.instance, self.clock = plans.instance, plans.clock
        self.bound, self.value = 0.0, math.inf
        self.best: JointPlan | None = None
        self.small: ListSearch | None = None
        self.list: ListSearch | None = None
        self.tuned: JobsInstance | None = None
        self.loose: Relaxed | None = None
        self.exact_s, self.schedule_s, self.rounds = 2.0, 0.0, 0

    def run(self) -> MethodOutput:
        """Until the gap is as asked for, the time is up, or nothing more is to be found."""
        idle = 0
        while True:
            began = self.clock.elapsed_s
            wanted = self._below()
            self._above()
            self.schedule_s = self.clock.elapsed_s - began
            # What is found at the end is worth nothing without a schedule.
            self.plans.spare_s = min(self.schedule_s, _EFFORT.spare * self.clock.elapsed_s)
            self.rounds += 1
            self.clock.report(None if self.best is None else self.value, self.bound, self.best)
            if self._enough() or self.clock.expired:
                break
            until = self.clock.elapsed_s + max(_EFFORT.look_s, self.schedule_s)
            done = self.plans.sharpen(wanted, lambda until=until: self.clock.elapsed_s > until)  # type: ignore[misc]
            idle = 0 if done else idle + 1
            if idle > _EFFORT.rounds:
                break
        if self.best is None:
            raise NoSolutionError("the time is up, and not every job has a plan yet")
        return MethodOutput(self.best, self._details(), self.bound)

    def _enough(self) -> bool:
        gap = relative_gap(self.value, self.bound) if self.best is not None else None
        return gap is not None and gap <= self.limits.gap

    def _below(self) -> list[Pair]:
        """Bound what is below; pairs that the bound's schedules use and that are open, the most promising first."""
        try:
            low = self.plans.low()
        except InstanceError as fault:  # every problem of some job is closed, and has no plan
            told = str(fault).partition(": ")[2].partition(":")[0]
            raise InfeasibleError(f"'{self.instance.name}': {told}: no number of servers has a plan") from fault
        self.bound = max(self.bound, jobs_bound(low), uplinks_bound(self.instance, low))
        if self.clock.expired:
            return []
        if self.small is None or self.small.instance != low:
            self.small = ListSearch(low, self.seed)
            self.small.run(1, self.clock.left_s)
            self.loose = relaxed(low, self.small.end_s, self.clock.left_s, uplinks(self.instance))
            self.bound = max(self.bound, self.loose.value)
            self.small.round_off(self.loose)
        self.small.run(1, self.clock.left_s)
        assert self.loose is not None
        uses = [*self.loose.shares, *({width: 1.0} for width in self.small.widths)]
        if len(low.jobs) <= _EFFORT.few_jobs and not self._enough() and not self.clock.expired:
            search = Search(low, Clock(Limits(max(0.01, min(self.exact_s, self.clock.left_s))), None))
            self.bound = max(self.bound, float(search.run()) * (1 - ROUNDING))
            uses += [{run.servers: 4.0} for (run,) in search.best.runs]
            self.exact_s *= 2
        weight: defaultdict[Pair, float] = defaultdict(float)
        for place, shares in enumerate(uses):
            job = self.instance.jobs[place % len(low.jobs)]
            for width, share in shares.items():
                weight[job.workload, width] += self._worth((job.workload, width), share * job.iterations)
        wanted = sorted((pair for pair, worth in weight.items() if worth > 0), key=lambda pair: -weight[pair])
        planned = {pair[0] for pair in self.plans.pairs if self.plans.runs(pair)}
        return sorted(wanted, key=lambda pair: pair[0] in planned)  # first of all every job is to have one

    def _worth(self, pair: Pair, times: float) -> float:
        """Seconds that an interval is wide, of all iterations, for a second of the next solve."""
        own = self.plans.known(pair)
        if own is None or own.closed:
            return 0.0
        width = own.upper - own.lower if math.isfinite(own.upper) else own.lower
        # An interval that is nearly closed is still worth more than one that is closed.
        return max(width, 1e-15) * times / (own.budget_s if own.opened else 0.5)

    def _above(self) -> None:
        """The best schedule with the plans that are known."""
        high = self.plans.high()
        if high is None:
            return
        if self.tuned != high or self.list is None:
            before, self.list, self.tuned = self.list, self._search(high), high
            if before is not None:
                self.list.follow(before.order, before.widths)
        if self.loose is not None:
            self.list.round_off(self.loose)
        until = self.clock.elapsed_s + max(_EFFORT.look_s, _EFFORT.searched * self.clock.elapsed_s) * (self.rounds > 0)
        idle = 0
        while idle < _EFFORT.idle and not self._enough():
            idle = 0 if self.list.run(1, self.clock.left_s) else idle + 1
            if self.clock.expired or self.clock.elapsed_s > until:
                break
        runs = self.list.runs() if isinstance(self.list, FabricSearch) else None
        self._learn(with_plans(self.plans, self.list.schedule()) if runs is None else with_runs(self.plans, runs))
        if len(high.jobs) <= _EFFORT.few_jobs and not self._enough() and not self.clock.expired:
            search = Search(high, Clock(Limits(max(0.01, min(self.exact_s, self.clock.left_s))), None))
            search.run()
            if isinstance(self.list, FabricSearch):
                self.list.follow_starts(search.best)
            self._learn(with_plans(self.plans, search.best))

    def _search(self, high: JobsInstance) -> ListSearch:
        seed = self.seed + self.rounds
        return ListSearch(high, seed) if self.instance.fabric is None else FabricSearch(high, self.instance, seed)

    def _learn(self, found: JointPlan) -> None:
        value = evaluate_jobs(self.instance.reserved(found), found.schedule(), exact=True).objective
        if value is not None and float(value) < self.value:
            self.value, self.best = float(value), found

    def _details(self) -> dict[str, float]:
        """Where the gap comes from: the schedule's part is what stays with the plans' times as bounds."""
        details = {"inner_solves": float(self.plans.solves), "rounds": float(self.rounds)}
        if self.plans.crew.lost:
            details["lost_workers"] = float(self.plans.crew.lost)
        return details


def with_plans(plans: Plans, schedule: JobsSchedule) -> JointPlan:
    """A schedule of :meth:`Plans.high` with the plans that it runs with; in a fabric places are found afterwards."""
    high = plans.high()
    if plans.instance.fabric is None or high is None:
        return with_runs(plans, runs_of(schedule))
    return with_runs(plans, fitted(high, plans.instance, schedule))


def with_runs(plans: Plans, runs: tuple[Run, ...]) -> JointPlan:
    """Runs with their plans; a step time is a run's own where it is not the plan's."""
    instance = plans.instance
    used = sorted({(job.workload, run.servers) for job, run in zip(instance.jobs, runs, strict=True)})
    made = []
    for workload, servers in used:
        own, choice = plans.known((workload, servers)), plans.pairs[workload, servers]
        if own is None:
            assert choice.step_s is not None
            made.append(WorkloadPlan(workload=workload, servers=servers, step_s=choice.step_s, least_s=choice.step_s))
        else:
            made.append(
                WorkloadPlan(workload=workload, servers=servers, step_s=own.upper, least_s=own.lower, answer=own.answer)
            )
    steps = {(plan.workload, plan.servers): plan.step_s for plan in made}
    return JointPlan(instance=instance.name, runs=slowed(instance, runs, steps), plans=tuple(made))


def slowed(instance: JointInstance, runs: tuple[Run, ...], steps: dict[Pair, float]) -> tuple[Run, ...]:
    """The runs, with a step time only where it is more than that of the plan."""
    found = []
    for job, run in zip(instance.jobs, runs, strict=True):
        planned = run.step_s is None or run.step_s <= steps[job.workload, run.servers]
        found.append(run.model_copy(update={"step_s": None}) if planned else run)
    return tuple(found)
