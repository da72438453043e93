"""Column generation over plans of jobs that lose time when they change, or may not change in every slot."""

import math
from collections.abc import Iterable
from typing import Any

import numpy as np

from ddlopt.frontier.scheduling.job_plans.master import Optimum, Plan, PlanMaster
from ddlopt.frontier.scheduling.job_plans.patterned_jobs import PatternedJobs
from ddlopt.frontier.scheduling.job_plans.patterned_plans import Charges, PatternedPlans
from ddlopt.frontier.scheduling.kept_runs import KeptRuns, widths_of
from ddlopt.frontier.scheduling.prices.plan_pricing import PlanAnswer, PlanPricing
from ddlopt.models.scheduling import Schedule, SchedulingInstance
from ddlopt.models.scheduling.bounds import prices as clearing_prices
from ddlopt.models.scheduling.pool import schedule_of_widths
from ddlopt.solvers.contracts import Limits
from ddlopt.solvers.heuristic import Clock
from ddlopt.solvers.scheduling.slot.rates import Floats, Ints

_COARSE, _FINE = 1e-6, 1e-8
"""What each plan may be off by in the rounds, and in the last answer at the best prices."""
_ROOM, _FINE_ROOM = 100, 20_000
"""Beginnings of a plan kept at one width in the rounds, and in the last answer."""
_NEAREST = 1e-5
"""Part of the bound within which rounds end at the latest: a tenth of the gap that exact methods end at by default."""
_TO_ROUND = 0.5
"""Part of the time left that the rounds leave for schedules."""
_SMOOTHING = 0.5
"""Part of the best prices that those asked for keep."""
_STALLS, _LEAST_GAIN = 50, 1e-6
"""Rounds without a bound that is better by this part, after which they end."""
_DIVERSE, _NOISE = 60, (0.01, 0.03, 0.1)
"""Answers at prices that are off by so much, for more plans to choose from before each program in whole plans."""
_MOST_LISTED, _MOST_BEGINNINGS = 20_000, 3_000_000
"""Plans in the last program, and beginnings of plans among which they are found."""
_SHRINKINGS, _SHRINKING = 14, 0.7
"""Of what plans may take from the bound, until they can be listed."""


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
        self.master = self._new_master()
        self.widths: Ints = np.zeros((instance.slots, len(instance.jobs)), dtype=np.int64)
        self.value, self.bound, self.centre = -math.inf, math.inf, np.zeros(0)
        self.charges: Charges | None = None
        self.figures: dict[str, Any] = {}
        self._known: set[tuple[int, bytes]] = set()

    def _new_master(self) -> PlanMaster:
        return PlanMaster(np.tile(self.pricing.capacity, self.instance.slots), len(self.instance.jobs))

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
            self.master.close()
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

    def _price(self, prices: Floats, slack: float = _COARSE, room: int = _ROOM) -> PlanAnswer:
        """Plans at (T R,) prices."""
        answer = self.pricing.answer(prices.reshape(self.instance.slots, -1), slack, room)
        if answer.bound < self.bound:
            self.bound, self.centre = answer.bound, prices
            self.clock.report(None, self.bound)
        return answer

    def _plan(self, job: int, widths: Ints) -> Plan:
        part, cost = self.pricing.part(job, self.pricing.offers_at(job, widths)), self.pricing.cluster.worker_cost[0]
        worth = float(self.instance.jobs[job].utility.of(part))
        uses = np.outer(widths, self.pricing.cluster.demand[job]).ravel()
        return Plan(job, widths.copy(), uses, worth - cost * float(widths.sum()))

    def _add(self, widths: Iterable[Ints]) -> int:
        """Add a plan for every job, (T,) widths each; how many are new."""
        before = len(self._known)
        for job, plan in enumerate(widths):
            if plan.any() and (job, plan.tobytes()) not in self._known:
                self._known.add((job, plan.tobytes()))
                self.master.add(self._plan(job, plan))
        return len(self._known) - before

    def generate(self) -> Optimum:
        """Rounds until the bound meets the value over the plans found, or most of the time is up."""
        reserve_s = 0.0 if self.clock.left_s == math.inf else _TO_ROUND * self.clock.left_s
        self._add(self.widths.T)
        self._add(self._price(clearing_prices(self.instance).prices.ravel()).widths)
        rounds, stalled = 0, 0
        while True:
            optimum = self.master.solve()
            rounds += 1
            near = self.bound - optimum.value <= min(_NEAREST, self.gap / 30) * abs(self.bound)
            if self.clock.left_s <= reserve_s or near or stalled >= _STALLS:
                break
            before = self.bound
            between = _SMOOTHING * self.centre + (1 - _SMOOTHING) * optimum.prices
            if not self._add(self._price(between).widths) and not self._add(self._price(optimum.prices).widths):
                break
            stalled = 0 if before - self.bound > _LEAST_GAIN * abs(self.bound) else stalled + 1
        if self.clock.left_s > reserve_s:
            self._price(self.centre, _FINE, _FINE_ROOM)
        self.figures |= {"rounds": rounds, "plans": len(self.master.plans), "relaxation": optimum.value}
        return optimum

    def _choose_whole_plans(self, seed: int) -> None:
        """The program in whole plans, of more and more plans than the rounds needed, for as long as that helps."""
        rng = np.random.default_rng(seed)
        improved = True
        while improved and not self._is_done:
            for _ in range(_DIVERSE):
                if self.clock.expired:
                    return
                noise = rng.normal(0.0, rng.choice(_NOISE), len(self.centre))
                self._add(self._price(self.centre * np.maximum(0.0, 1 + noise)).widths)
            self._add(self.widths.T)
            before = self.value
            self._solve_integer(self.master, seed)
            improved = self.value - before > _LEAST_GAIN * abs(before)

    def _solve_integer(self, master: PlanMaster, seed: int) -> float | None:
        """The best choice of whole plans of a program, from the best schedule; its bound."""
        left = math.inf if self.clock.left_s == math.inf else self.clock.left_s / 2
        places = {(plan.job, plan.choices.tobytes()): place for place, plan in enumerate(master.plans)}
        start = [places[job, row.tobytes()] for job, row in enumerate(self.widths.T) if row.any()]
        with self.clock.lending_ctrl_c():
            limits = Limits(time_s=max(1e-3, min(self.integer_s, left)), gap=self.gap / 5)
            plans, outcome = master.whole_plans(start, limits, seed)
        self.clock.interrupted |= outcome.interrupted
        if plans:
            rows = np.zeros_like(self.widths)
            for plan in plans:
                rows[:, plan.job] = plan.choices
            self._offer(rows)
        return outcome.bound

    def _pattern(self) -> bool:
        """Charges for widths by patterns of slots, and the plans that are best at them; whether there are any."""
        jobs = PatternedJobs.of(self.instance, self.pricing)
        if jobs is None:
            return False
        patterned = PatternedPlans(jobs, self.clock)
        try:
            for plan in self.master.plans:
                patterned.add(jobs.plan(plan.job, self.pricing.offers_at(plan.job, plan.choices)))
            reserve_s = 0.0 if self.clock.left_s == math.inf else _TO_ROUND * self.clock.left_s
            patterned.improve(self.value * (1 + self.gap), reserve_s)
        finally:
            patterned.master.close()
        self.figures["cut_rounds"] = patterned.rounds
        if patterned.best.bound < self.bound:
            self.bound, self.charges = patterned.best.bound, patterned.best
            self.clock.report(None, self.bound)
        rows = np.zeros_like(self.widths.T)
        for one in patterned.plans:
            rows[:] = 0
            rows[one.job] = self.pricing.widths_of(one.job, one.choices)
            self._add(rows)
        return True

    def _costs(self) -> tuple[list[Floats], float]:
        """Of every job the (T, W) costs of its widths at which the bound is best, and what slots bring at most."""
        jobs = None if self.charges is None else PatternedJobs.of(self.instance, self.pricing)
        if jobs is not None and self.charges is not None:
            return jobs.costs(self.charges.charges), self.charges.income
        prices = self.centre.reshape(self.instance.slots, -1)
        return self.pricing.costs(prices), float(prices.sum(axis=0) @ self.pricing.capacity)

    def _list_plans(self, seed: int) -> None:
        """Programs over all plans that take so little from the bound that a better schedule may have them."""
        costs, income = self._costs()
        certified = self.pricing.answer_to_costs(costs, income, _FINE, _FINE_ROOM)
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
            gains = before - (self.bound - self.value) > _LEAST_GAIN * abs(self.value)

    def _listed(self, costs: list[Floats], certified: PlanAnswer) -> tuple[float, list[Ints]] | None:
        """What plans may take from the bound, all of the gap if they are few, and (m, T) those of each job."""
        taken = certified.bound - self.value
        for _ in range(_SHRINKINGS):
            if self.clock.expired:
                return None
            listed = self.pricing.near_best(costs, certified.values, taken, _MOST_BEGINNINGS)
            if listed is not None and sum(map(len, listed)) <= _MOST_LISTED:
                return taken, [self.pricing.widths_of(job, rows) for job, rows in enumerate(listed)]
            taken *= _SHRINKING
        return None

    def _best_of_listed(self, listed: list[Ints], seed: int) -> float | None:
        """The best schedule of plans that are listed, and a bound on all of these."""
        master = self._new_master()
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
        return search.centre.reshape(instance.slots, -1)
    finally:
        search.master.close()


def refusal(instance: SchedulingInstance) -> str | None:
    """Why plans of jobs do not cover an instance in which they are kept; None if they do."""
    return KeptRuns().refuses(instance)
