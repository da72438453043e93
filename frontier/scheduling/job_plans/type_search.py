"""Column generation over plans of jobs where accelerators are of several types."""

import math
from typing import Any

import numpy as np

from ddlopt.frontier.scheduling.job_plans import rounds
from ddlopt.frontier.scheduling.job_plans.master import Optimum
from ddlopt.frontier.scheduling.job_plans.patterned_jobs import bound_by_patterns
from ddlopt.frontier.scheduling.job_plans.rounds import Rounds
from ddlopt.frontier.scheduling.prices.fluid import fluid
from ddlopt.frontier.scheduling.prices.plan_pricing import PlanPricing, prices_of
from ddlopt.frontier.scheduling.type_windows import TypeWindows
from ddlopt.models.scheduling import Schedule, SchedulingInstance, evaluate
from ddlopt.models.scheduling.instance import workers_within
from ddlopt.models.scheduling.pool import Workers, on_few_servers, schedule_of_places
from ddlopt.models.scheduling.refusals import HASTY
from ddlopt.models.tolerances import let_pass_at_least
from ddlopt.solvers.contracts import Limits
from ddlopt.solvers.heuristic import Clock
from ddlopt.solvers.scheduling.slot.rates import Floats

# With several types beginnings of plans are many; bounds are only a little weaker if few are kept.
ROUNDS = rounds.Effort(coarse=1e-6, room=20, fine_room=2_000, reserve=0.4, stalls=30)

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
        self.rounds = Rounds(self.pricing, clock, ROUNDS, self._note)
        self.bound = math.inf
        self.figures = self.rounds.figures

    def answer(self, seed: int, start: Schedule | None) -> tuple[Schedule, dict[str, Any]]:
        """The best schedule that is found; rounds, plans, the value over them, and what windows did."""
        try:
            self.generate()
            candidates = [start] if start is not None else []
            if self.clock.left_s > 0:
                candidates.append(self._whole_plans(seed))
        finally:
            self.rounds.master.close()
        best = max(candidates, key=lambda one: _worth(self.instance, one), default=None)
        found, more = TypeWindows().answer(self.instance, seed, self.clock, best)
        value = _worth(self.instance, found)
        if self.bound - value > self.gap * abs(value):
            self.bound = min(self.bound, bound_by_patterns(self.instance, self.clock, value * (1 + self.gap)))
            self.clock.report(None, self.bound)
        return found, {**self.figures, **more}

    def _note(self, bound: float) -> None:
        """Take a bound by prices."""
        self.bound = bound
        self.clock.report(None, bound)

    def generate(self) -> Optimum:
        """Rounds that begin at the prices of the linear relaxation."""
        first = prices_of(fluid(self.instance))
        return self.rounds.generate(first[self.rounds.firsts].ravel(), self.gap / 30)

    def _whole_plans(self, seed: int) -> Schedule:
        """Of the program in whole plans, packed into slots."""
        with self.clock.lending_ctrl_c():
            limits = Limits(self.clock.part(1 / 3, 30.0), gap=self.gap / 5)
            plans, outcome = self.rounds.master.whole_plans([], limits, seed)
        self.clock.interrupted |= outcome.interrupted
        place_of = {id(plan): place for place, plan in enumerate(self.rounds.master.plans)}
        slots: list[dict[int, Workers]] = [{} for _ in range(self.instance.slots)]
        for k, first in enumerate(self.rounds.firsts.tolist()):
            mine = range(first, first + int(self.rounds.lengths[k]))
            items = [
                (plan.job, tuple(self.rounds.workers[place_of[id(plan)]][t].tolist()))
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
        free = np.repeat(let_pass_at_least(self.pricing.cluster.capacity)[None], slots, axis=0)
        found: list[list[Item]] = [[] for _ in range(slots)]
        for job, workers in sorted(items, key=lambda item: -sum(item[1])):
            need = np.outer(workers, demand[job])
            fitting = [
                t for t in range(slots) if (need <= free[t]).all() and all(other != job for other, _ in found[t])
            ]
            if fitting:
                t = max(fitting, key=lambda t: float(free[t].sum()))
                free[t] -= need
                found[t].append((job, workers))
        return found

    def _placed(self, items: list[Item]) -> dict[int, Workers]:
        """Workers on servers: of each type on the fullest server that holds them all, else on the emptiest ones."""
        instance, of_server = self.instance, self.instance.accelerators.of_server
        free = let_pass_at_least(instance.capacity)
        found: dict[int, Workers] = {}
        for job, by_type in items:
            where: list[tuple[int, int]] = []
            for k, count in enumerate(by_type):
                servers = np.flatnonzero(of_server == k).tolist()
                for place, taken in on_few_servers(workers_within(free[servers], instance.demand[job]), count) or ():
                    where.append((servers[place], taken))
                    free[servers[place]] -= taken * instance.demand[job]
            found[job] = tuple(sorted(where))
        return found


def best_type_prices(instance: SchedulingInstance, clock: Clock) -> Floats:
    """(T, K R) prices at which plans of jobs bound every schedule best, as far as rounds come in time."""
    search = TypeSearch(instance, clock, 1e-4)
    try:
        search.generate()
        return search.rounds.by_slot(search.rounds.centre)
    finally:
        search.rounds.master.close()


def refusal(instance: SchedulingInstance) -> str | None:
    """Why plans of jobs do not cover an instance with types; None if they do."""
    if instance.changes.must_wait:
        return HASTY
    if not instance.goal.counts_utilities:
        return f"the objective is {instance.objective!r}, but plans of jobs on types of accelerators have utilities"
    if (reason := TypeWindows().refuses(instance)) is not None:
        return reason
    if not PlanPricing(instance).cluster.exact:
        return "where workers are decides more than their types: what fits, or what power servers take; use exact"
    return None


def _worth(instance: SchedulingInstance, schedule: Schedule) -> float:
    found = evaluate(instance, schedule)
    return float(found.objective) if found.feasible and found.objective is not None else -math.inf
