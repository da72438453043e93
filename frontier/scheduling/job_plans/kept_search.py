"""Column generation over plans of jobs that lose time when they change, or may not change in every slot."""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from ddlopt.frontier.scheduling.bounds import prices as clearing_prices
from ddlopt.frontier.scheduling.job_plans import rounds
from ddlopt.frontier.scheduling.job_plans.master import Optimum, Plan, PlanMaster
from ddlopt.frontier.scheduling.job_plans.patterned_jobs import PatternedJobs
from ddlopt.frontier.scheduling.job_plans.patterned_plans import Charges, PatternedPlans
from ddlopt.frontier.scheduling.job_plans.rounds import Rounds
from ddlopt.frontier.scheduling.kept_runs import KeptRuns, widths_of
from ddlopt.frontier.scheduling.prices.plan_pricing import PlanAnswer, PlanPricing
from ddlopt.models.scheduling import Schedule, SchedulingInstance
from ddlopt.models.scheduling.pool import schedule_of_widths
from ddlopt.solvers.contracts import Limits
from ddlopt.solvers.heuristic import Clock
from ddlopt.solvers.scheduling.slot.rates import Floats, Ints

# Programs in whole plans need half of the time.
ROUNDS = rounds.Effort(coarse=1e-6, reserve=0.5, stalls=50)


@dataclass(frozen=True)
class Effort:
    """What the search does beside its rounds."""

    nearest: float = 1e-5
    """Part of the bound within which rounds end at the latest: a tenth of the gap that exact methods end at by
    default."""
    reserve: float = 0.5
    """Part of the time left that patterns of slots leave for the programs in whole plans after them."""
    diverse: int = 60
    """Answers at prices near the best before each program in whole plans: of the rounds' own, few fit together."""
    noise: tuple[float, ...] = (0.01, 0.03, 0.1)
    """By which parts these prices are off. A plan is of single slots here, so that larger parts give other plans."""
    least_gain: float = 1e-6
    """Part of the value by which a program has to gain for one more: a hundredth of the default gap."""
    most_listed: int = 20_000
    """Plans in the last program, which HiGHS has to solve in half of the time left."""
    most_beginnings: int = 3_000_000
    """Beginnings of plans among which these are found: some hundred megabytes."""
    shrinkings: int = 14
    """How often what plans may take from the bound shrinks, until they can be listed: to less than a hundredth of the
    gap, where what is proven is not worth the time."""
    shrinking: float = 0.7
    """To which part it shrinks: the number of plans mostly falls by half or more."""


EFFORT = Effort()


class KeptSearch:
    """The best bound, the plans so far, and a schedule of them.

    Parameters
    ----------
    instance : SchedulingInstance
    clock : Clock
    gap : float
        At which the search ends.
    integer_s : float
        Seconds for the program in whole plans, at most.
    """

    def __init__(self, instance: SchedulingInstance, clock: Clock, gap: float, integer_s: float) -> None:
        self.instance, self.clock, self.gap, self.integer_s = instance, clock, gap, integer_s
        self.pricing = PlanPricing(instance)
        self.rounds = Rounds(self.pricing, clock, ROUNDS, self._note)
        self.widths: Ints = np.zeros((instance.slots, len(instance.jobs)), dtype=np.int64)
        self.value, self.bound = -math.inf, math.inf
        self.charges: Charges | None = None
        self.figures = self.rounds.figures

    @property
    def _is_done(self) -> bool:
        """Whether the best schedule is as near to the bound as is wanted, or the time is up."""
        return self.bound - self.value <= self.gap * abs(self.value) or self.clock.expired

    def answer(self, seed: int, start: Schedule | None) -> tuple[Schedule, dict[str, Any]]:
        """The best schedule that is found; rounds, plans, the value over them, and how many were listed."""
        self._sweep(seed, start)
        try:
            self.generate()
            self._choose_whole_plans(seed)
            if not self._is_done:
                self._sweep(seed, self._schedule())
            if not self._is_done and self._pattern():
                self._choose_whole_plans(seed)
        finally:
            self.rounds.master.close()
        self._list_plans(seed)
        return self._schedule(), self.figures

    def _schedule(self) -> Schedule:
        rows = ({int(job): int(row[job]) for job in np.flatnonzero(row)} for row in self.widths)
        return schedule_of_widths(self.instance, list(rows))

    def _sweep(self, seed: int, start: Schedule | None) -> None:
        found, _ = KeptRuns().answer(self.instance, seed, self.clock, start)
        self._offer(widths_of(self.instance, found))

    def _offer(self, widths: Ints) -> None:
        """Take (T, I) widths if they are better than the best ones."""
        plans = [self._plan(job, plan) for job, plan in enumerate(widths.T) if plan.any()]
        value = math.fsum(plan.worth for plan in plans)
        if value > self.value:
            self.value, self.widths = value, widths
            self.clock.report(self.value, self.bound if math.isfinite(self.bound) else None)

    def _note(self, bound: float) -> None:
        """Take a bound by prices."""
        if bound < self.bound:
            self.bound = bound
            self.clock.report(None, self.bound)

    def _plan(self, job: int, widths: Ints) -> Plan:
        offers = self.pricing.offers_at(job, widths)
        return self.rounds.plan(job, offers, self.pricing.widths_of(job, offers)[:, None])

    def generate(self) -> Optimum:
        """Rounds that begin with the best schedule, at the prices of the combinatorial bound."""
        self.rounds.add_widths(self.widths)
        first = clearing_prices(self.instance).prices.ravel()
        return self.rounds.generate(first, min(EFFORT.nearest, self.gap / 30))

    def _choose_whole_plans(self, seed: int) -> None:
        """The program in whole plans, of more and more plans than the rounds needed, for as long as that helps."""
        rng = np.random.default_rng(seed)
        improved = True
        while improved and not self._is_done:
            for _ in range(EFFORT.diverse):
                if self.clock.expired:
                    return
                self.rounds.add_near(rng.choice(EFFORT.noise), rng)
            self.rounds.add_widths(self.widths)
            before = self.value
            self._solve_integer(self.rounds.master, seed)
            improved = self.value - before > EFFORT.least_gain * abs(before)

    def _solve_integer(self, master: PlanMaster, seed: int) -> float | None:
        """The best choice of whole plans of a program, from the best schedule; its bound."""
        places = {(plan.job, plan.choices.tobytes()): place for place, plan in enumerate(master.plans)}
        mine = [self.pricing.offers_at(job, row) for job, row in enumerate(self.widths.T)]
        start = [places[job, row.tobytes()] for job, row in enumerate(mine) if (row >= 0).any()]
        with self.clock.lending_ctrl_c():
            limits = Limits(self.clock.part(0.5, self.integer_s), gap=self.gap / 5)
            plans, outcome = master.whole_plans(start, limits, seed)
        self.clock.interrupted |= outcome.interrupted
        if plans:
            rows = np.zeros_like(self.widths)
            for plan in plans:
                rows[:, plan.job] = self.pricing.widths_of(plan.job, plan.choices)
            self._offer(rows)
        return outcome.bound

    def _pattern(self) -> bool:
        """Charges for widths by patterns of slots, and the plans that are best at them; whether there are any."""
        jobs = PatternedJobs.of(self.instance, self.pricing)
        if jobs is None:
            return False
        patterned = PatternedPlans(jobs, self.clock)
        try:
            for plan in self.rounds.master.plans:
                patterned.add(jobs.plan(plan.job, plan.choices))
            reserve_s = 0.0 if self.clock.left_s == math.inf else EFFORT.reserve * self.clock.left_s
            patterned.improve(self.value * (1 + self.gap), reserve_s)
        finally:
            patterned.master.close()
        self.figures["cut_rounds"] = patterned.rounds
        if patterned.best.bound < self.bound:
            self.bound, self.charges = patterned.best.bound, patterned.best
            self.clock.report(None, self.bound)
        for one in patterned.plans:
            self.rounds.place(one.job, one.choices, self.pricing.widths_of(one.job, one.choices)[:, None])
        return True

    def _costs(self) -> tuple[list[Floats], float]:
        """Of every job the (T, W) costs of its widths at which the bound is best, and what slots bring at most."""
        jobs = None if self.charges is None else PatternedJobs.of(self.instance, self.pricing)
        if jobs is not None and self.charges is not None:
            return jobs.costs(self.charges.charges), self.charges.income
        prices = self.rounds.by_slot(self.rounds.centre)
        return self.pricing.costs(prices), float(prices.sum(axis=0) @ self.pricing.capacity)

    def _list_plans(self, seed: int) -> None:
        """Programs over all plans that take so little from the bound that a better schedule may have them."""
        costs, income = self._costs()
        certified = self.pricing.answer_to_costs(costs, income, ROUNDS.fine, ROUNDS.fine_room)
        gains = True
        while gains and not self._is_done:
            before = self.bound - self.value
            found = self._listed(costs, certified)
            if found is None:
                return
            taken, listed = found
            bound = self._best_of_listed(listed, seed)
            self.figures["listed"] = sum(map(len, listed))
            if bound is not None:
                self.bound = min(self.bound, max(bound, certified.bound - taken))
                self.clock.report(self.value, self.bound)
            gains = before - (self.bound - self.value) > EFFORT.least_gain * abs(self.value)

    def _listed(self, costs: list[Floats], certified: PlanAnswer) -> tuple[float, list[Ints]] | None:
        """What plans may take from the bound, all of the gap if they are few, and (m, T) those of each job."""
        taken = certified.bound - self.value
        for _ in range(EFFORT.shrinkings):
            if self.clock.expired:
                return None
            listed = self.pricing.near_best(costs, certified.values, taken, EFFORT.most_beginnings)
            if listed is not None and sum(map(len, listed)) <= EFFORT.most_listed:
                return taken, [self.pricing.widths_of(job, rows) for job, rows in enumerate(listed)]
            taken *= EFFORT.shrinking
        return None

    def _best_of_listed(self, listed: list[Ints], seed: int) -> float | None:
        """The best schedule of plans that are listed, and a bound on all of these."""
        master = self.rounds.new_master()
        try:
            for job, plans in enumerate(listed):
                mine = self.widths[:, job]
                for plan in {row.tobytes(): row for row in (*plans, *([mine] if mine.any() else []))}.values():
                    master.add(self._plan(job, plan))
            return self._solve_integer(master, seed)
        finally:
            master.close()


def best_kept_prices(instance: SchedulingInstance, start: Schedule, clock: Clock) -> Floats:
    """(T, R) prices at which plans that are kept bound every schedule best, as far as rounds come in time."""
    search = KeptSearch(instance, clock, 1e-4, 0.0)
    try:
        search._offer(widths_of(instance, start))
        search.generate()
        return search.rounds.by_slot(search.rounds.centre)
    finally:
        search.rounds.master.close()


def refusal(instance: SchedulingInstance) -> str | None:
    """Why plans of jobs do not cover an instance in which they are kept; None if they do."""
    return KeptRuns().refuses(instance)
