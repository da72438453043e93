"""Column generation over plans of jobs: the sharpest bound there is here, and schedules near it."""

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from ddlopt.frontier.scheduling.bounds import prices as clearing_prices
from ddlopt.frontier.scheduling.job_plans import rounds
from ddlopt.frontier.scheduling.job_plans.job_windows import JobWindows
from ddlopt.frontier.scheduling.job_plans.kept_search import KeptSearch, best_kept_prices
from ddlopt.frontier.scheduling.job_plans.kept_search import refusal as kept_refusal
from ddlopt.frontier.scheduling.job_plans.master import Optimum
from ddlopt.frontier.scheduling.job_plans.packing import Packer
from ddlopt.frontier.scheduling.job_plans.rounds import Rounds
from ddlopt.frontier.scheduling.job_plans.slot_sweeps import SlotSweeps
from ddlopt.frontier.scheduling.job_plans.type_search import TypeSearch, best_type_prices
from ddlopt.frontier.scheduling.job_plans.type_search import refusal as type_refusal
from ddlopt.frontier.scheduling.lp_guided import LpGuided, choices_of_relaxation
from ddlopt.frontier.scheduling.prices.plan_pricing import PlanPricing
from ddlopt.models.scheduling import Schedule, SchedulingInstance
from ddlopt.models.scheduling.bounds import on_grid
from ddlopt.models.scheduling.pool import schedule_of_widths
from ddlopt.models.tolerances import ZERO_TOL
from ddlopt.solvers.contracts import Limits
from ddlopt.solvers.heuristic import Answer, Clock, Heuristic
from ddlopt.solvers.scheduling.slot.rates import Floats, Ints

_OWN = "ddlopt.frontier.scheduling.prices"
_PLANS, _KEPT, _ROWS = f"{_OWN}.plan_kernels", f"{_OWN}.kept_kernels", f"{_OWN}.row_kernels"
ROUNDS = rounds.Effort()


@dataclass(frozen=True)
class Effort:
    """What the search does beside its options."""

    sweeps: int = 100
    """Most in a row. They end when they gain nothing, far earlier."""
    diverse: int = 12
    """Answers at prices near the best, for more plans to choose whole ones from: of the rounds' own, few fit
    together."""
    noise: tuple[float, ...] = (0.01, 0.03)
    """By which parts these prices are off: within them plans are other ones, but still nearly the best."""
    to_guide: float = 0.4
    """Part of the time for the linear relaxation and its sweeps, which seldom take it."""
    small: int = 8_000
    """Choices of a width up to which the rounds are quick, and need no guide."""
    largest: int = 600_000
    """Columns of the slots' program. Beyond, the rounds take minutes, and ``lp-guided`` finds more in them."""


EFFORT = Effort()


@dataclass(frozen=True)
class JobPlans(Heuristic, uses=("seed", "start")):
    r"""Whole plans for every job, generated as they are needed.

    Slots between the same two arrivals or deadlines are interchangeable, and form an interval k of :math:`L_k` slots.
    A plan q of a job says how often it has which width in each interval; it uses :math:`a_{qk}` of a resource there and
    is worth :math:`U_q`, its utility less the energy of its workers:

    .. math::
        \max \sum_q U_q \lambda_q \quad\text{with}\quad \sum_q a_{qk} \lambda_q \le C L_k,\qquad
        \sum_{q \text{ of } i} \lambda_q \le 1,\qquad \lambda \ge 0 .

    The prices of its capacities ask every job for its best plan, and
    :class:`~ddlopt.frontier.scheduling.prices.plan_pricing.PlanPricing` makes any prices a bound. The
    first prices are those of the combinatorial bound; later ones are drawn towards the best so far (smoothing).

    Schedules come from the fractions by sweeps of exact knapsacks over the slots. Some jobs at a time are then given
    their best plans together, beside those of all others
    (:class:`~ddlopt.frontier.scheduling.job_plans.job_windows.JobWindows`), packed into slots and swept; and all jobs
    by the program in whole plans (:math:`\lambda` integer). A schedule that is not near enough to the bound is improved
    over and over: some slots go back to the fractions, and are swept in random order with all others; then jobs at a
    time again.

    Where speeds depend on the type of accelerators, capacities are those of each type, and a plan says on which types
    its workers are (:class:`~ddlopt.frontier.scheduling.prices.plan_pricing.PlanPricing`); whole plans are then
    improved as ``type-windows`` does.

    Where changes lose time, or runs have a least length, slots of an interval differ, and a plan says in which
    slots it has which width (the same, with plans that are kept). Sweeps are those
    of ``kept-runs``. Widths are then charged for by what fits into a slot, which bounds better than prices of
    capacities (:class:`~ddlopt.frontier.scheduling.job_plans.patterned_plans.PatternedPlans`; with types too). Plans
    are listed in the end that take no more from the bound B than :math:`\delta`, so that a
    schedule with any other has at most :math:`B - \delta`: if they are few for a :math:`\delta` as large as the gap,
    the program over them proves the optimum.

    Parameters
    ----------
    tolerance : float, optional
        Rounds end when the bound is within this part of the value over the plans found. Default: a thirtieth of the
        gap asked for, at most 1e-5.
    gap : float, optional
        The search ends where the schedule is as near to the bound. Default: the gap asked for.
    integer_s : float
        Seconds for the program in whole plans, at most.
    stalls : int
        Improvements of either kind in a row that may fail.
    wanted : float, optional
        The search also ends where no schedule is worth so much; not where types or changes matter.

    References
    ----------
    C. Barnhart et al., "Branch-and-price: column generation for solving huge integer programs", Operations Research
    46(3), 1998 (the technique). Plans of jobs as columns, and the search for the best plan, are ours.
    """

    tolerance: float | None = None
    gap: float | None = None
    integer_s: float = 30.0
    stalls: int = 100
    wanted: float | None = None

    most_modelled: ClassVar[int] = 50_000
    """Choices of a width in a slot up to which a model is asked after it: in a minute a larger one adds nothing to its
    schedule, and takes two thirds of the time."""
    kernels: ClassVar[tuple[str, ...]] = ("ddlopt.solvers.scheduling.slot.knapsack_kernels",)

    @property
    def name(self) -> str:
        """``job-plans``."""
        return "job-plans"

    def kernels_for(self, instance: SchedulingInstance) -> tuple[str, ...]:
        """With types, or where plans are kept, those of such plans."""
        if instance.accelerators.matter:
            return (_PLANS, _ROWS)
        keeps = instance.changes.matter
        return (*self.kernels, _PLANS, _KEPT, _ROWS) if keeps else self.kernels

    def refuses(self, instance: SchedulingInstance) -> str | None:
        """Whatever is not a sum of utilities over jobs that the knapsack of widths places, and what is too large."""
        choices = sum((instance.last_slot(i) - job.arrival) * len(job.widths) for i, job in enumerate(instance.jobs))
        if choices > EFFORT.largest:
            return (
                f"there are {choices} widths of jobs in slots; from {EFFORT.largest} on it takes minutes; use lp-guided"
            )
        if instance.accelerators.matter:
            return type_refusal(instance)
        if instance.changes.matter:
            return kept_refusal(instance)
        return LpGuided().refuses(instance)

    def answer(self, instance: SchedulingInstance, seed: int, clock: Clock, start: Any) -> Answer[Schedule]:
        """The best schedule; rounds, plans, and the value over them."""
        if instance.accelerators.matter:
            gap = clock.gap if self.gap is None else self.gap
            return TypeSearch(instance, clock, gap).answer(seed, start)
        if instance.changes.matter:
            gap = clock.gap if self.gap is None else self.gap
            return KeptSearch(instance, clock, gap, self.integer_s).answer(seed, start)
        search = _Search(self, instance, clock, seed)
        try:
            search.begin(start if start is not None else _guide(instance, seed, clock))
            optimum = search.generate()
            search.round(optimum)
            search.improve(self.stalls // 4)
            search.improve_jobs(self.stalls // 10)
            search.choose_whole_plans()
            search.improve(self.stalls)
            search.improve_jobs(self.stalls)
        finally:
            search.rounds.master.close()
        rows = ({int(i): int(row[i]) for i in np.flatnonzero(row)} for row in search.widths)
        return schedule_of_widths(instance, list(rows)), search.figures

    def certificate(self, instance: Any, solution: Any, clock: Clock) -> float | None:
        """The least of the bounds reported."""
        return clock.best_bound(instance.sense)


def best_prices(instance: SchedulingInstance, start: Schedule | None, clock: Clock) -> Floats:
    """(T, K R) prices at which plans of jobs bound every schedule best, as far as rounds come in time."""
    if instance.accelerators.matter:
        return best_type_prices(instance, clock)
    if start is not None and (instance.changes.matter):
        return best_kept_prices(instance, start, clock)
    search = _Search(JobPlans(), instance, clock, 0)
    try:
        search.begin(start)
        search.generate()
        return search.rounds.by_slot(search.rounds.centre)
    finally:
        search.rounds.master.close()


def _guide(instance: SchedulingInstance, seed: int, clock: Clock) -> Schedule | None:
    """What the linear relaxation leads to, of an instance so large that the rounds may take most of the time."""
    if not EFFORT.small < choices_of_relaxation(instance) <= EFFORT.largest or clock.expired:
        return None
    with clock.lending_ctrl_c():
        found = LpGuided().solve(instance, Limits(clock.part(EFFORT.to_guide)), seed)
    return found.solution if isinstance(found.solution, Schedule) else None


class _Search:
    """The best schedule, the best bound and the plans so far."""

    def __init__(self, options: JobPlans, instance: SchedulingInstance, clock: Clock, seed: int) -> None:
        self.options, self.instance, self.clock = options, instance, clock
        self.gap = clock.gap if options.gap is None else options.gap
        # A thirtieth of the gap leaves the rest for what the search has to close.
        self.tolerance = min(1e-5, self.gap / 30) if options.tolerance is None else options.tolerance
        self.seed, self.rng = seed, np.random.default_rng(seed)
        self.slots = SlotSweeps(instance)
        self.rounds = Rounds(PlanPricing(instance), clock, ROUNDS, self._note)
        self.value, self.bound = -math.inf, math.inf
        self.widths: Ints = np.zeros((instance.slots, len(instance.jobs)), dtype=np.int64)
        self.fractions: Floats = np.zeros(self.widths.shape)
        self.packer = Packer(instance, self.rng)
        self.by_jobs = JobWindows(self.rounds, self.rng)
        self.figures = self.rounds.figures

    @property
    def is_done(self) -> bool:
        """Whether the best schedule is as near to the bound as is wanted, or the time is up."""
        near = self.bound - self.value <= self.gap * abs(self.value)
        return near or self.is_excluded or self.clock.expired

    @property
    def is_excluded(self) -> bool:
        """Whether no schedule is worth what was wanted."""
        return self.options.wanted is not None and self.bound < self.options.wanted

    def begin(self, start: Schedule | None) -> None:
        """The greedy over slots, and the start."""
        self._sweep(np.zeros(self.widths.shape), most=1)
        if start is not None:
            self._sweep(self.slots.progress_of(start))

    def _sweep(
        self, progress: Floats, backward: bool = False, most: int = EFFORT.sweeps, order: Ints | None = None
    ) -> bool:
        """Sweeps from ``progress``; whether the schedule is a better one after them."""
        before = self.value
        for value, widths in self.slots.sweeps(progress, backward, most, order):
            self._offer(value, widths)
            if self.is_done:
                break
        return self.value > before

    def _offer(self, value: float, widths: Ints) -> None:
        if value > self.value:
            self.value, self.widths = value, widths.copy()
            self.clock.report(self.value, self.bound if math.isfinite(self.bound) else None)

    def _note(self, bound: float) -> None:
        """Take a bound by prices."""
        self.bound = on_grid(self.instance, bound)
        self.clock.report(self.value, self.bound)

    def generate(self) -> Optimum:
        """Rounds that begin with the best schedule, at the prices of the combinatorial bound."""
        self.rounds.add_widths(self.widths)
        first = self.rounds.by_span(clearing_prices(self.instance).prices)
        return self.rounds.generate(first, self.tolerance, lambda: self.is_excluded)

    def round(self, optimum: Optimum) -> None:
        """Sweeps that begin at the fractions, spread over the slots of each interval."""
        shares = optimum.shares
        for place in np.flatnonzero(shares > ZERO_TOL):
            plan = self.rounds.master.plans[place]
            jobs, widths = np.full(self.instance.slots, plan.job), self.rounds.workers[place][:, 0]
            self.fractions[:, plan.job] += shares[place] * self.slots.rates(jobs, widths)
        for first, length in zip(self.rounds.firsts.tolist(), self.rounds.lengths.tolist(), strict=True):
            self.fractions[first : first + length] = self.fractions[first : first + length].mean(axis=0)
        for backward in (False, True):
            if not self.is_done:
                self._sweep(self.fractions, backward)

    def choose_whole_plans(self) -> None:
        """The program in whole plans, of more plans than the rounds needed; packed into slots, and swept."""
        for _ in range(EFFORT.diverse):
            if self.is_done:
                return
            self.rounds.add_near(self.rng.choice(EFFORT.noise), self.rng)
        start = [self.rounds.place_widths(i, plan) for i, plan in enumerate(self.widths.T) if plan.any()]
        left = min(self.options.integer_s, self.clock.left_s / 2)
        if self.is_done or left <= 0:
            return
        with self.clock.lending_ctrl_c():
            limits = Limits(time_s=left, gap=self.gap / 5)
            plans, outcome = self.rounds.master.whole_plans(start, limits, self.seed)
        self.clock.interrupted |= outcome.interrupted
        if outcome.objective is not None and not self.is_done:
            self.figures["whole_plans"] = outcome.objective
            whole = np.zeros_like(self.widths)
            for plan in plans:
                whole[:, plan.job] = self.rounds.pricing.widths_of(plan.job, plan.choices)
            self._pack(whole)

    def _pack(self, whole: Ints) -> bool:
        """Put (T, I) widths that fit into intervals into their slots, and sweep; whether that is a better schedule.

        Intervals that are as in the best schedule stay as they are.
        """
        before = self.value
        widths = self.widths.copy()
        for first, length in zip(self.rounds.firsts.tolist(), self.rounds.lengths.tolist(), strict=True):
            mine = slice(first, first + length)
            if not np.array_equal(np.sort(whole[mine], axis=0), np.sort(widths[mine], axis=0)):
                wanted = {
                    int(i): whole[mine, i][whole[mine, i] > 0].tolist() for i in np.flatnonzero(whole[mine].any(0))
                }
                widths[mine] = self.packer.pack(wanted, length)
        self._offer(self.slots.worth(widths), widths)
        self._sweep(self.slots.progress_at(widths))
        return self.value > before

    def improve(self, stalls: int) -> None:
        """Put some slots back to the fractions and sweep, until that has failed so often in a row."""
        failed = 0
        while not self.is_done and failed < stalls:
            progress = self.slots.progress_at(self.widths)
            share = self.rng.uniform(0.05, 0.5)
            count = max(min(2, self.instance.slots), int(share * self.instance.slots))
            chosen = self.rng.choice(self.instance.slots, count, replace=False)
            progress[chosen] = self.fractions[chosen]
            better = self._sweep(progress, order=self.rng.permutation(self.instance.slots))
            failed = 0 if better else failed + 1

    def improve_jobs(self, stalls: int) -> None:
        """Give some jobs at a time their best plans together, until that has failed so often in a row."""
        failed = 0
        while not self.is_done and failed < stalls:
            better = self._pack(self.by_jobs.changed(self.widths, self._losses(), self.clock))
            failed = 0 if better else failed + 1
        self.figures["windows_of_jobs"] = self.by_jobs.tried

    def _losses(self) -> Floats:
        """(I,) what each job's plan is worth less than the best one at the best prices."""
        rounds, pricing = self.rounds, self.rounds.pricing
        prices = rounds.by_slot(rounds.centre)
        losses = np.zeros(len(self.instance.jobs)) if rounds.best is None else rounds.best.values.copy()
        for i, job in enumerate(self.instance.jobs):
            here = np.flatnonzero(self.widths[:, i])
            widths = self.widths[here, i]
            progress = float(self.slots.rates(np.full(len(here), i), widths).sum())
            costs = prices[here] @ pricing.cluster.demand[i] + pricing.cluster.worker_cost[0]
            losses[i] -= float(job.utility.of(min(1.0, progress / job.minibatches))) - float(widths @ costs)
        return losses
