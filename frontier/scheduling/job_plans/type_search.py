"""Column generation over plans of jobs where accelerators are of several types."""

import math
from collections import Counter
from typing import Any

import numpy as np

from ddlopt.frontier.scheduling.intervals import intervals
from ddlopt.frontier.scheduling.job_plans.master import Optimum, Plan, PlanMaster
from ddlopt.frontier.scheduling.job_plans.patterned_jobs import bound_by_patterns
from ddlopt.frontier.scheduling.prices.fluid import fluid
from ddlopt.frontier.scheduling.prices.plan_pricing import PlanAnswer, PlanPricing, prices_of
from ddlopt.frontier.scheduling.type_windows import TypeWindows
from ddlopt.models.scheduling import Schedule, SchedulingInstance, evaluate
from ddlopt.models.scheduling.instance import most_workers
from ddlopt.models.scheduling.pool import Workers, schedule_of_places
from ddlopt.models.scheduling.types import HASTY
from ddlopt.models.tolerances import FEASIBILITY_TOL
from ddlopt.solvers.contracts import Limits
from ddlopt.solvers.heuristic import Clock
from ddlopt.solvers.scheduling.slot.rates import Floats, Ints

_COARSE, _FINE = 1e-6, 1e-8
"""What each plan may be off by in the rounds, and in the last answer at the best prices."""
_ROOM, _FINE_ROOM = 20, 2_000
"""Beginnings of a plan kept in the rounds, and in the last answer: without them the bound is a little weaker."""
_TO_ROUND = 0.4
"""Part of the time left that the rounds leave for schedules."""
_STALLS, _LEAST_GAIN = 30, 1e-6
"""Rounds without a bound that is better by this part, after which they end."""

Item = tuple[int, tuple[int, ...]]
"""Job, workers by type."""


class TypeSearch:
    """The best bound, the plans so far, and a schedule of them.

    Parameters
    ----------
    instance : SchedulingInstance
    clock : Clock
    gap : float
        At which the search ends.
    """

    def __init__(self, instance: SchedulingInstance, clock: Clock, gap: float) -> None:
        self.instance, self.clock, self.gap = instance, clock, gap
        self.pricing = PlanPricing(instance)
        spans = intervals(instance)
        self.firsts: Ints = np.array([span.first for span in spans])
        self.lengths: Ints = np.array([span.slots for span in spans])
        self.span_of: Ints = np.full(instance.slots, -1)
        for k, span in enumerate(spans):
            self.span_of[span.first : span.last] = k
        self.master = PlanMaster(np.outer(self.lengths, self.pricing.capacity).ravel(), len(instance.jobs))
        self.workers: list[Ints] = []
        """(T, K) of every plan of the master."""
        self._known: dict[Any, int] = {}
        self.bound, self.centre = math.inf, np.zeros(0)
        self.figures: dict[str, Any] = {}

    def answer(self, seed: int, start: Schedule | None) -> tuple[Schedule, dict[str, Any]]:
        """The best schedule that is found; rounds, plans, the value over them, and what windows did."""
        try:
            self.generate()
            candidates = [start] if start is not None else []
            if self.clock.left_s > 0:
                candidates.append(self._whole_plans(seed))
        finally:
            self.master.close()
        best = max(candidates, key=lambda one: _worth(self.instance, one), default=None)
        found, more = TypeWindows().answer(self.instance, seed, self.clock, best)
        value = _worth(self.instance, found)
        if self.bound - value > self.gap * abs(value):
            self.bound = min(self.bound, bound_by_patterns(self.instance, self.clock, value * (1 + self.gap)))
            self.clock.report(None, self.bound)
        return found, {**self.figures, **more}

    def by_slot(self, prices: Floats) -> Floats:
        """(T, K R) prices of slots, by those of the intervals."""
        by_span = np.vstack([prices.reshape(len(self.lengths), -1), np.zeros((1, len(self.pricing.capacity)))])
        return by_span[self.span_of]

    def _price(self, prices: Floats, slack: float = _COARSE, room: int = _ROOM) -> PlanAnswer:
        answer = self.pricing.answer(self.by_slot(prices), slack, room)
        if answer.bound < self.bound:
            self.bound, self.centre = answer.bound, prices
            self.clock.report(None, self.bound)
        return answer

    def _add(self, answer: PlanAnswer) -> int:
        """Add the plans; how many are new."""
        before = len(self._known)
        for i, (offers, workers) in enumerate(zip(answer.offers, answer.workers, strict=True)):
            here = np.flatnonzero(offers >= 0)
            if not len(here):
                continue
            rows = zip(
                self.span_of[here].tolist(), offers[here].tolist(), map(tuple, workers[here].tolist()), strict=True
            )
            key = i, tuple(sorted(Counter(rows).items()))
            if key not in self._known:
                self._known[key] = len(self.master.plans)
                self._add_plan(i, offers, workers)
        return len(self._known) - before

    def _add_plan(self, job: int, offers: Ints, workers: Ints) -> None:
        here = np.flatnonzero(offers >= 0)
        uses = np.zeros((len(self.lengths), len(self.pricing.capacity)))
        each = np.einsum("tk,r->tkr", workers[here], self.pricing.cluster.demand[job]).reshape(len(here), -1)
        np.add.at(uses, self.span_of[here], each)
        wanted = self.instance.jobs[job]
        part = min(1.0, float(self.pricing.offers[job].gains[offers[here]].sum()) / wanted.minibatches)
        cost = float((workers[here] @ self.pricing.cluster.worker_cost).sum())
        self.master.add(Plan(job, offers.copy(), uses.ravel(), float(wanted.utility.of(part)) - cost))
        self.workers.append(workers.copy())

    def generate(self) -> Optimum:
        """Rounds until the bound meets the value over the plans found, or most of the time is up."""
        reserve_s = 0.0 if self.clock.left_s == math.inf else _TO_ROUND * self.clock.left_s
        first = prices_of(fluid(self.instance))
        self._add(self._price(first[self.firsts].ravel()))
        rounds, stalled = 0, 0
        while True:
            optimum = self.master.solve()
            rounds += 1
            near = self.bound - optimum.value <= self.gap / 30 * abs(self.bound)
            if self.clock.left_s <= reserve_s or near or stalled >= _STALLS:
                break
            before = self.bound
            new = self._add(self._price((self.centre + optimum.prices) / 2))
            if not new and not self._add(self._price(optimum.prices)):
                break
            stalled = 0 if before - self.bound > _LEAST_GAIN * abs(self.bound) else stalled + 1
        if self.clock.left_s > reserve_s:
            self._price(self.centre, _FINE, _FINE_ROOM)
        self.figures |= {"rounds": rounds, "plans": len(self.master.plans), "relaxation": optimum.value}
        return optimum

    def _whole_plans(self, seed: int) -> Schedule:
        """Of the program in whole plans, packed into slots."""
        with self.clock.lending_ctrl_c():
            left = math.inf if self.clock.left_s == math.inf else self.clock.left_s / 3
            limits = Limits(time_s=min(30.0, left), gap=self.gap / 5)
            plans, outcome = self.master.whole_plans([], limits, seed)
        self.clock.interrupted |= outcome.interrupted
        place_of = {id(plan): place for place, plan in enumerate(self.master.plans)}
        slots: list[dict[int, Workers]] = [{} for _ in range(self.instance.slots)]
        for k, first in enumerate(self.firsts.tolist()):
            mine = range(first, first + int(self.lengths[k]))
            items = [
                (plan.job, tuple(self.workers[place_of[id(plan)]][t].tolist()))
                for plan in plans
                for t in mine
                if plan.choices[t] >= 0
            ]
            for t, chosen in zip(mine, self._packed(items, len(mine)), strict=True):
                slots[t] = self._placed(chosen)
        return schedule_of_places(self.instance, slots)

    def _packed(self, items: list[Item], slots: int) -> list[list[Item]]:
        """Items by slot, a job once in each, as far as they fit: large ones first, each where most room is left."""
        demand = self.pricing.cluster.demand
        free = np.repeat(self.pricing.cluster.capacity[None], slots, axis=0)
        found: list[list[Item]] = [[] for _ in range(slots)]
        for job, workers in sorted(items, key=lambda item: -sum(item[1])):
            need = np.outer(workers, demand[job])
            fitting = [
                t
                for t in range(slots)
                if (need <= free[t] + FEASIBILITY_TOL).all() and all(other != job for other, _ in found[t])
            ]
            if fitting:
                t = max(fitting, key=lambda t: float(free[t].sum()))
                free[t] -= need
                found[t].append((job, workers))
        return found

    def _placed(self, items: list[Item]) -> dict[int, Workers]:
        """Workers on servers: of each type on the fullest server that holds them all, else on the emptiest ones."""
        instance, names = self.instance, self.pricing.cluster.names
        free = instance.capacity.copy()
        found: dict[int, Workers] = {}
        for job, by_type in items:
            where: list[tuple[int, int]] = []
            for name, count in zip(names, by_type, strict=True):
                servers = [server for server, own in enumerate(instance.types) if own == name]
                room = most_workers(np.maximum(free[servers] + FEASIBILITY_TOL, 0.0), instance.demand[job])
                whole = [place for place in np.argsort(room, kind="stable").tolist() if room[place] >= count]
                left = count
                for place in whole[:1] or np.argsort(-room, kind="stable").tolist():
                    taken = min(left, int(room[place]))
                    if taken:
                        where.append((servers[place], taken))
                        free[servers[place]] -= taken * instance.demand[job]
                        left -= taken
            found[job] = tuple(sorted(where))
        return found


def best_type_prices(instance: SchedulingInstance, clock: Clock) -> Floats:
    """(T, K R) prices at which plans of jobs bound every schedule best, as far as rounds come in time."""
    search = TypeSearch(instance, clock, 1e-4)
    try:
        search.generate()
        return search.by_slot(search.centre)
    finally:
        search.master.close()


def refusal(instance: SchedulingInstance) -> str | None:
    """Why plans of jobs do not cover an instance with types; None if they do."""
    if instance.runs_are_long:
        return HASTY
    if instance.objective != "utility":
        return f"the objective is {instance.objective!r}, but plans of jobs on types of accelerators have utilities"
    if (reason := TypeWindows().refuses(instance)) is not None:
        return reason
    if not PlanPricing(instance).cluster.exact:
        return "where workers are decides more than their types: what fits, or what power servers take; use exact"
    return None


def _worth(instance: SchedulingInstance, schedule: Schedule) -> float:
    found = evaluate(instance, schedule)
    return float(found.objective) if found.feasible and found.objective is not None else -math.inf
