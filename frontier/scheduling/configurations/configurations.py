"""Column generation over slot patterns, with a certified bound in every round, and whole slots in the end."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from ddlopt.frontier.scheduling.bounds import prices as clearing_prices
from ddlopt.frontier.scheduling.configurations.master import Master, Optimum
from ddlopt.frontier.scheduling.configurations.pricing import Priced, Pricing
from ddlopt.frontier.scheduling.formulations.configurations import (
    Configurations,
    Pattern,
    PatternPlan,
    patterns_of,
    schedule_of_patterns,
    why_no_patterns,
    widths_of,
)
from ddlopt.frontier.scheduling.job_plans.patterned_jobs import bound_by_patterns
from ddlopt.frontier.scheduling.job_plans.slot_sweeps import SlotSweeps
from ddlopt.frontier.scheduling.prices.fluid import fluid
from ddlopt.frontier.scheduling.prices.lagrangian import PricedJobs
from ddlopt.frontier.scheduling.type_windows import TypeWindows
from ddlopt.models.scheduling import Schedule, SchedulingInstance
from ddlopt.solvers.backends.highs import Highs
from ddlopt.solvers.contracts import Limits
from ddlopt.solvers.exact import build_model
from ddlopt.solvers.heuristic import Answer, Clock, Heuristic
from ddlopt.solvers.scheduling.slot.rates import Floats
from ddlopt.solvers.scheduling.slot.worth import FAIREST

Counts = Sequence[Mapping[Pattern, int]]
"""For each interval, how many slots look like which pattern."""

_OWN = "ddlopt.frontier.scheduling.prices"
_PLANS, _ROWS = f"{_OWN}.plan_kernels", f"{_OWN}.row_kernels"


@dataclass(frozen=True)
class Effort:
    """What the search does beside its options."""

    smoothing: float = 0.8
    """Part of the best prices that those asked about keep; not tuned."""
    sweeps: int = 100
    """Most in a row. They end when they gain nothing, far earlier."""


EFFORT = Effort()


@dataclass(frozen=True)
class ColumnGeneration(Heuristic, uses=("seed", "start")):
    r"""Patterns of widths for the slots between events, generated as they are needed.

    The linear relaxation of :class:`~ddlopt.frontier.scheduling.formulations.configurations.Configurations` begins with
    the patterns of a greedy schedule. In each round, the worth of progress :math:`\mu` in its optimum prices the best
    pattern of every interval, by the multiple-choice knapsack, and these are added. Any :math:`\mu \ge 0` certifies a
    bound (:class:`~ddlopt.frontier.scheduling.configurations.pricing.Pricing`), which is reported; the best one is
    drawn towards, which saves rounds (smoothing), and the first comes from the prices on slots of the combinatorial
    bound.

    The way back to whole slots: sweeps of exact knapsacks over the slots, beginning at the fractions; then the integer
    program over the patterns found that can be part of something better. With types of accelerators plans of jobs
    within patterns bound best (:class:`~ddlopt.frontier.scheduling.job_plans.patterned_plans.PatternedPlans`).

    Parameters
    ----------
    tolerance : float
        Rounds end when the bound is within this part of the relaxation over the patterns found.
    gap : float, optional
        It ends when the schedule is within this part of the bound. Default: the gap of the limits.
    integer_s : float
        Seconds for the integer program, at most.

    References
    ----------
    P. C. Gilmore, R. E. Gomory, 1961 (patterns by knapsacks). A. Pessoa, R. Sadykov, E. Uchoa, F. Vanderbeck,
    "Automation and combination of linear-programming based stabilization techniques in column generation", INFORMS
    Journal on Computing 30(2), 2018 (smoothing).
    """

    # A tenth of the relative gap at which solvers stop by default.
    tolerance: float = 1e-5
    gap: float | None = None
    integer_s: float = 60.0

    kernels: ClassVar[tuple[str, ...]] = (
        "ddlopt.solvers.scheduling.slot.knapsack_kernels",
        f"{_OWN}.lagrangian_kernels",
    )

    def kernels_for(self, instance: SchedulingInstance) -> tuple[str, ...]:
        """With types, those of plans of jobs."""
        own = (*self.kernels, _ROWS)
        return (*own, _PLANS) if instance.accelerators.matter else own

    @property
    def name(self) -> str:
        """``configurations``."""
        return "configurations"

    def refuses(self, instance: SchedulingInstance) -> str | None:
        """Where places or order matter, or several resources run short."""
        return why_no_patterns(instance)

    def answer(self, instance: SchedulingInstance, seed: int, clock: Clock, start: Any) -> Answer[Schedule]:
        """The best schedule found; rounds, patterns, and the value of the relaxation over them."""
        search = _Search(self, instance, clock, seed)
        search.begin(start)
        master = Master(instance, search.plan, lambda: clock.expired)
        patterns: Sequence[Sequence[Pattern]] = ()
        try:
            optimum, figures = search.generate(master)
            if optimum is not None:
                search.round(master.shares(optimum))
                patterns = master.worth_using(optimum, max(0.0, optimum.value - search.value))
        finally:
            master.close()
        if patterns:
            search.solve_integer(patterns)
            search.improve_bound_by_plans()
        return schedule_of_patterns(instance, search.plan, search.counts), figures

    def certificate(self, instance: Any, solution: Any, clock: Clock) -> float | None:
        """The least of the bounds reported."""
        return clock.best_bound(instance.sense)


class _Search:
    """The best schedule and the best bound so far."""

    def __init__(self, options: ColumnGeneration, instance: SchedulingInstance, clock: Clock, seed: int) -> None:
        self.options, self.instance, self.clock, self.seed = options, instance, clock, seed
        self.gap = clock.gap if options.gap is None else options.gap
        self.plan = PatternPlan.of(instance)
        self.pricing = Pricing(instance, self.plan)
        self.counts: Counts = [{} for _ in self.plan.spans]
        self.value, self.bound = 0.0, math.inf
        self._slots = None if instance.accelerators.matter else SlotSweeps(_as_utility(instance))

    @property
    def is_close(self) -> bool:
        """Whether the best schedule is as near to the bound as is wanted."""
        return self.bound - self.value <= self.gap * abs(self.value)

    @property
    def _seconds(self) -> float:
        """For an integer program."""
        return min(self.options.integer_s, self.clock.left_s)

    def begin(self, start: Schedule | None) -> None:
        """The start, and a greedy schedule."""
        if start is not None:
            start.belongs_to(self.instance)
            self._offer(patterns_of(self.plan, widths_of(self.instance, start)))
        self._improve(start, TypeWindows(slots=0))
        self._sweep(np.zeros((self.instance.slots, len(self.instance.jobs))), False, 1)

    def _offer(self, counts: Counts) -> None:
        value = _value(self.instance, self.plan, counts)
        if value > self.value:
            self.value, self.counts = value, counts
            self.clock.report(self.value, self.bound if math.isfinite(self.bound) else None)

    def _improve(self, schedule: Schedule | None, method: TypeWindows) -> None:
        """What a heuristic finds that knows types, where sweeps do not."""
        if self._slots is None and not self.is_close:
            found, _ = method.answer(self.instance, self.seed, self.clock, schedule)
            self._offer(patterns_of(self.plan, widths_of(self.instance, found)))

    def _sweep(self, progress: Floats, backward: bool, most: int = EFFORT.sweeps) -> None:
        if self._slots is None:
            return
        for _, widths in self._slots.sweeps(progress, backward, most):
            rows = [{int(i): int(row[i]) for i in np.flatnonzero(row)} for row in widths]
            self._offer(patterns_of(self.plan, rows))
            if self.clock.expired or self.is_close:
                return

    def _price(self, prices: Floats) -> Priced:
        priced = self.pricing.at(prices)
        if priced.bound < self.bound:
            self.bound, self._centre = priced.bound, prices
        return priced

    def generate(self, master: Master) -> tuple[Optimum | None, dict[str, Any]]:
        """Rounds until the bound meets the relaxation or the time is up; its last optimum, and figures."""
        priced = self._price(self._first_prices())
        self.clock.report(self.value, self.bound)
        for k, pattern in enumerate(priced.patterns):
            master.add(k, pattern)
        for k, here in enumerate(self.counts):
            for pattern in here:
                master.add(k, pattern)
        optimum, rounds = None, 0
        while not self.clock.expired:
            found = master.solve()
            if found is None:
                break
            optimum, rounds = found, rounds + 1
            fresh = self._add_best(master, optimum)
            self.clock.report(self.value, self.bound)
            done = self.bound - optimum.attained <= self.options.tolerance * abs(optimum.attained)
            if done or self.is_close:
                break
            if not master.aim(optimum) and not fresh:
                break
        patterns = sum(map(len, master.patterns))
        figures = {"rounds": rounds, "patterns": patterns}
        return optimum, figures if optimum is None else {**figures, "relaxation": optimum.attained}

    def _first_prices(self) -> Floats:
        if self.instance.accelerators.matter:
            return fluid(self.instance).progress
        return PricedJobs(self.instance).worth_of_progress(clearing_prices(self.instance))

    def _add_best(self, master: Master, optimum: Optimum) -> int:
        """Add the best patterns at prices between the best ones and those of the optimum; how many are new."""
        part = EFFORT.smoothing
        while True:
            priced = self._price(part * self._centre + (1 - part) * optimum.progress_prices)
            fresh = sum(master.add(k, pattern) for k, pattern in enumerate(priced.patterns))
            if fresh or part == 0 or self.clock.expired:
                return fresh
            part = part / 2 if part > 0.2 else 0.0

    def round(self, shares: Sequence[Mapping[Pattern, float]]) -> None:
        """Whole slots from fractions."""
        progress = np.zeros((self.instance.slots, len(self.instance.jobs)))
        for span, here in zip(self.plan.spans, shares, strict=True):
            for pattern, slots in here.items():
                for job, gain in self.plan.gains(pattern):
                    done = gain * self.plan.jobs[job].unit * slots / span.slots
                    progress[span.first : span.last, job] += done
        for backward in (False, True):
            if not self.is_close and not (backward and self.clock.expired):
                self._sweep(progress, backward)

    def solve_integer(self, patterns: Sequence[Sequence[Pattern]]) -> None:
        """The integer program over ``patterns`` and those of the best schedule, from which it starts."""
        left = self._seconds
        if self.is_close or left <= 0:
            return
        used = tuple(tuple(dict.fromkeys((*some, *here))) for some, here in zip(patterns, self.counts, strict=True))
        formulation = Configurations(used)
        model = build_model("scheduling", formulation, self.instance)
        block = model.component("scheduling")
        formulation.start(block, self.instance, schedule_of_patterns(self.instance, self.plan, self.counts))
        with self.clock.lending_ctrl_c():
            outcome = Highs().solve(model, Limits(time_s=left, gap=self.gap / 2), self.seed, warm=True)
        self.clock.interrupted |= outcome.interrupted
        if outcome.objective is not None:
            widths = widths_of(self.instance, formulation.read(block, self.instance))
            self._offer(patterns_of(self.plan, widths))
            best = schedule_of_patterns(self.instance, self.plan, self.counts)
            self._improve(best, TypeWindows())
            if self._slots is not None:
                self._sweep(self._slots.progress_of(best), backward=False)

    def improve_bound_by_plans(self) -> None:
        """With types, where whole plans of jobs within patterns bound better, and take a minute."""
        if self.instance.accelerators.matter and not self.is_close:
            wanted = self.value * (1 + self.gap)
            self.bound = min(self.bound, bound_by_patterns(self.instance, self.clock, wanted))
            self.clock.report(self.value, self.bound)


def _value(instance: SchedulingInstance, plan: PatternPlan, counts: Counts) -> float:
    """The objective of schedules with ``counts`` slots of each pattern."""
    done = [0.0] * len(plan.jobs)
    energy = 0.0
    for here in counts:
        for pattern, count in here.items():
            energy += plan.price(pattern) * count
            for job, gain in plan.gains(pattern):
                done[job] += gain * count
    parts = [min(1.0, progress / c.wanted) for c, progress in zip(plan.jobs, done, strict=True)]
    if instance.goal.counts_least_part:
        return min(parts)
    return math.fsum(float(job.utility.of(part)) for job, part in zip(instance.jobs, parts, strict=True)) - energy


def _as_utility(instance: SchedulingInstance) -> SchedulingInstance:
    """The same with a sum of utilities that a fair schedule is good at, where the objective is the smallest part."""
    if instance.goal.counts_utilities:
        return instance
    jobs = tuple(job.model_copy(update={"utility": FAIREST}) for job in instance.jobs)
    return instance.changed(objective="utility", jobs=jobs)
