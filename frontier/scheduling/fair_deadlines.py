"""Finish-time fairness: a ratio is a deadline for every job; greedies, plans and an exact model try to meet them."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from ddlopt.frontier.scheduling.bounds import work_of_plans
from ddlopt.frontier.scheduling.job_plans.job_plans import JobPlans
from ddlopt.frontier.scheduling.makespan.ratios import Ratios, ratio_bound
from ddlopt.models.errors import InfeasibleError
from ddlopt.models.scheduling import Schedule, SchedulingInstance, evaluate
from ddlopt.models.scheduling.formulations.time_indexed.time_indexed import TimeIndexed
from ddlopt.models.scheduling.instance import Objective
from ddlopt.models.scheduling.problem import PROBLEM
from ddlopt.models.scheduling.refusals import refusal
from ddlopt.models.scheduling.utility import AllOrNothing
from ddlopt.models.tolerances import ROUNDING
from ddlopt.solvers.backends import Highs
from ddlopt.solvers.contracts import Limits, Status
from ddlopt.solvers.exact import Exact
from ddlopt.solvers.heuristic import Answer, Clock, Heuristic
from ddlopt.solvers.scheduling.online.engine import Choice, State, UnfinishedError, simulate
from ddlopt.solvers.scheduling.slot.rates import Ints


@dataclass(frozen=True)
class Effort:
    """What the search spends on greedies, plans and the exact model."""

    trials: int = 30
    """Ratios that the greedies try: each halves what is open between the bound and the best schedule."""
    part: float = 0.25
    """Part of the time left that plans, or the model, of one ratio may take."""
    most_plans: int = 20_000_000
    """Work of the best plans beyond which they are not asked for: half a second a round."""
    largest: int = 400_000
    """Choices of a width in a slot up to which the exact model is built: beyond, building alone takes minutes."""
    any_gap: float = 0.999
    """Relative gap of that model: the first schedule that meets all deadlines will do."""


_EFFORT = Effort()


@dataclass(frozen=True)
class FairDeadlines(Heuristic, uses=("seed", "start")):
    r"""Bisection over the largest ratio of a job's time to that with its fair share alone.

    A ratio :math:`\rho` is a deadline for every job, :math:`\rho` times its time with a fair share after its arrival.
    Greedies fill slot after slot, jobs of least *slack* first: slots to the deadline, less those that the job takes at
    full width. One gives each job all its workers, the other the fewest that still meet its deadline, and what is left
    then to whoever comes first. Between the largest ratio that is excluded and the best found it is then asked how many
    jobs can meet their deadlines, by plans of jobs (:class:`~ddlopt.frontier.scheduling.job_plans.job_plans.JobPlans`),
    whose prices often tell that not all can; where they leave it open, the exact model is asked whether some schedule
    meets all (:class:`~ddlopt.models.scheduling.formulations.time_indexed.time_indexed.TimeIndexed`). If none does, the
    next larger ratio that a job can have is a bound. Details: ``ratios_tried``, by greedies, ``ratios_planned``, and
    ``models_solved``.

    Parameters
    ----------
    exact : bool
        Whether plans and the exact model are asked.

    References
    ----------
    That fairness in finish times is a matter of deadlines is ours; the measure is that of K. Mahajan et al., "Themis:
    fair and efficient GPU cluster scheduling", NSDI 2020.
    """

    exact: bool = True

    kernels: ClassVar[tuple[str, ...]] = ("ddlopt.frontier.scheduling.prices.lagrangian_kernels",)

    def kernels_for(self, instance: SchedulingInstance) -> tuple[str, ...]:
        """With those of plans, where these are asked."""
        ratios = Ratios(instance)
        asked = _by_deadlines(instance, ratios.due(ratios.largest), "utility")
        if not self.exact or _plans_refuse(asked):
            return self.kernels
        return (*self.kernels, *PROBLEM.kernels_for(asked), *JobPlans().kernels_for(asked))

    @property
    def name(self) -> str:
        """``fair-deadlines``."""
        return "fair-deadlines"

    def refuses(self, instance: SchedulingInstance) -> str | None:
        """Other objectives, and types of accelerators."""
        if not instance.goal.counts_ratios:
            return f"the objective is {instance.objective!r}, not 'finish_time_fairness'"
        return refusal(instance)

    def answer(self, instance: SchedulingInstance, seed: int, clock: Clock, start: Any) -> Answer[Schedule]:
        """The schedule of the least ratio.

        Raises
        ------
        UnfinishedError
            If none of the greedies finishes all jobs, whatever the ratio.
        """
        search = _Search(instance, clock)
        if isinstance(start, Schedule):
            search.take(start)
        search.try_greedies()
        if self.exact:
            search.ask_exactly(seed)
        if search.best is None:
            raise search.failure or UnfinishedError(f"'{instance.name}': the time is up before a schedule is found")
        return search.best, {
            "ratios_tried": search.tried,
            "ratios_planned": search.planned,
            "models_solved": search.solved,
        }

    def certificate(self, instance: SchedulingInstance, solution: Schedule, clock: Clock) -> float | None:
        """The largest of the bounds reported."""
        return clock.best_bound(instance.sense)


class _Search:
    """The best schedule and the best bound."""

    def __init__(self, instance: SchedulingInstance, clock: Clock) -> None:
        self.instance, self.clock = instance, clock
        self.ratios = Ratios(instance)
        self.bound = ratio_bound(instance)
        self.value = float("inf")
        self.best: Schedule | None = None
        self.failure: UnfinishedError | None = None
        self.tried = self.planned = self.solved = 0
        clock.report(None, self.bound)

    @property
    def is_done(self) -> bool:
        return self.clock.expired or self.value <= self.bound * (1 + self.clock.gap)

    def take(self, schedule: Schedule) -> float:
        """The ratio of a schedule, which is kept if it is the least."""
        found = evaluate(self.instance, schedule)
        value = float("inf") if found.objective is None or found.violations else float(found.objective)
        if value < self.value:
            self.value, self.best = value, schedule
            self.clock.report(self.value, self.bound)
        return value

    def try_greedies(self) -> None:
        """Bisection with greedies, which find out nothing about bounds."""
        low, high = self.bound, float(self.ratios.largest)
        self._greedy(high)
        high = min(high, self.value)
        for _ in range(_EFFORT.trials):
            if self.is_done or high - low <= ROUNDING * high:
                return
            middle = (low + high) / 2
            if self._greedy(middle) <= middle * (1 + ROUNDING):
                high = min(middle, self.value)
            else:
                low = middle

    def _greedy(self, ratio: float) -> float:
        self.tried += 1
        due = np.array(self.ratios.due(ratio))
        found = float("inf")
        for widths in (_full, _fewest):
            try:
                policy = _LeastSlack(due, widths)
                found = min(found, self.take(simulate(self.instance, policy, self.clock, "fair-deadlines").schedule))
            except UnfinishedError as error:
                self.failure = self.failure or error
        return found

    def ask_exactly(self, seed: int) -> None:
        """Bisection with plans and the exact model, as long as there is time."""
        if self.best is None and not self.is_done:
            self._is_excluded(float(self.ratios.largest), seed)
        unknown = self.bound
        while self.best is not None and not self.is_done:
            # The best ratio itself need not be asked for.
            middle = min((max(self.bound, unknown) + self.value) / 2, self.value * (1 - 4 * ROUNDING))
            if middle <= max(self.bound, unknown):
                return
            proven = self._is_excluded(middle, seed)
            if proven is None:
                unknown = middle
            elif proven:
                self.bound = max(self.bound, float(self.ratios.next(middle)) * (1 - ROUNDING))
                self.clock.report(self.value, self.bound)

    def _is_excluded(self, ratio: float, seed: int) -> bool | None:
        """Whether no schedule has the ratio; None if that is open. One that has is kept."""
        by_plans = self._by_plans(ratio, seed)
        return self._by_model(ratio, seed) if by_plans is None else by_plans

    @property
    def _time_s(self) -> float | None:
        return self.clock.part(_EFFORT.part)

    def _by_plans(self, ratio: float, seed: int) -> bool | None:
        """The same by the most jobs that can meet their deadlines."""
        asked = _by_deadlines(self.instance, self.ratios.due(ratio), "utility")
        if _plans_refuse(asked):
            return None
        self.planned += 1
        everybody = len(asked.jobs)
        with self.clock.lending_ctrl_c():
            # The last job is the half of a gap.
            limits = Limits(time_s=self._time_s, gap=0.5 / everybody)
            found = JobPlans(wanted=everybody).solve(asked, limits, seed)
        if found.bound is not None and found.bound < everybody:
            return True
        return self._has(found.solution, ratio)

    def _has(self, solution: Any, ratio: float) -> bool | None:
        """False if a schedule with deadlines has the ratio, which is kept; None if it has not."""
        if not isinstance(solution, Schedule):
            return None
        mine = Schedule(instance=self.instance.name, instance_digest=self.instance.digest, runs=solution.runs)
        return False if self.take(mine) <= ratio * (1 + 4 * ROUNDING) else None

    def _by_model(self, ratio: float, seed: int) -> bool | None:
        """The same by the exact model."""
        choices = sum(
            (self.instance.last_slot(i) - job.arrival) * len(job.widths) for i, job in enumerate(self.instance.jobs)
        )
        if choices > _EFFORT.largest or TimeIndexed().refuses(self.instance) is not None:
            return None
        asked = _by_deadlines(self.instance, self.ratios.due(ratio), "makespan")
        self.solved += 1
        try:
            with self.clock.lending_ctrl_c():
                found = Exact("time-indexed", "scheduling", TimeIndexed(), Highs()).solve(
                    asked, Limits(time_s=self._time_s, gap=_EFFORT.any_gap), seed
                )
        except InfeasibleError:
            return True
        return True if found.status is Status.INFEASIBLE else self._has(found.solution, ratio)


def _by_deadlines(instance: SchedulingInstance, due: list[int], objective: Objective) -> SchedulingInstance:
    """The jobs with deadlines, all to be finished, or, where the objective is utility, as many as possible."""
    each = {"utility": AllOrNothing()}
    jobs = (job.model_copy(update={**each, "deadline": end}) for job, end in zip(instance.jobs, due, strict=True))
    return instance.changed(jobs=tuple(jobs), slots=max(due), objective=objective)


def _plans_refuse(asked: SchedulingInstance) -> bool:
    return JobPlans().refuses(asked) is not None or work_of_plans(asked) > _EFFORT.most_plans


@dataclass(frozen=True)
class _LeastSlack:
    """The policy: least slack first, at the widths that ``widths`` says.

    ``due`` (I,): slot before which each job has to end.
    """

    due: Ints
    widths: Callable[[State, Ints, Ints], Ints]

    def choose(self, state: State) -> Choice:
        """The wanted widths, then as wide as there is room."""
        jobs = state.active
        left = self.due[jobs] - state.slot
        widest = state.rates.widest[jobs]
        order = np.lexsort((jobs, left - state.left / state.rates(jobs, widest)))
        jobs, left = jobs[order], left[order]
        admitted = state.admit(jobs, self.widths(state, jobs, left), shrink=True)
        chosen = {job: width for job, width in admitted.items() if isinstance(width, int)}
        taken = sum((np.asarray(width * state.pool.demand[job]) for job, width in chosen.items()), np.zeros(1))
        room = state.capacity - taken
        for job in jobs.tolist():
            more, need = int(state.rates.widest[job]) - int(chosen.get(job, 0)), state.pool.demand[job]
            fits = int(((room[need > 0] * (1 + ROUNDING)) // need[need > 0]).min())
            width = chosen.get(job, 0) + min(more, max(0, fits))
            if width >= state.rates.narrowest[job] and width > chosen.get(job, 0):
                room = room - (width - chosen.get(job, 0)) * need
                chosen[job] = width
        return chosen


def _full(state: State, jobs: Ints, left: Ints) -> Ints:
    """All workers that each job may have."""
    return state.rates.widest[jobs]


def _fewest(state: State, jobs: Ints, left: Ints) -> Ints:
    """The fewest workers with which each job still meets its deadline, ``left`` slots from now."""
    needed = np.divide(state.wanted[jobs] - state.done[jobs], np.maximum(left, 1))
    widths = state.rates.widest[jobs].copy()
    for place, (job, rate) in enumerate(zip(jobs.tolist(), needed.tolist(), strict=True)):
        narrow = np.arange(state.rates.narrowest[job], widths[place])
        enough = state.rates(np.full(len(narrow), job), narrow) >= rate
        if enough.any():
            widths[place] = narrow[int(enough.argmax())]
    return widths
