"""Rounds of column generation over plans of jobs: on one type of accelerators or several, kept or not."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from ddlopt.frontier.engines.columns import Priced, Smoothing
from ddlopt.frontier.scheduling.intervals import intervals
from ddlopt.frontier.scheduling.job_plans.master import Optimum, Plan, PlanMaster
from ddlopt.frontier.scheduling.prices.plan_pricing import PlanAnswer, PlanPricing
from ddlopt.models.scheduling import SchedulingInstance
from ddlopt.solvers.heuristic import Clock
from ddlopt.solvers.scheduling.slot.rates import Floats, Ints


@dataclass(frozen=True)
class Effort:
    """How exactly rounds are played, and when they end."""

    coarse: float = 5e-7
    """What each plan may be off by in the rounds, as a part of its job's worth. Rounds end when the bound is within
    some 1e-6 to 1e-5 of the value over the plans, and must be able to get there."""
    fine: float = 1e-8
    """The same in the last answer at the best prices, which is one answer among many."""
    room: int = 50_000
    """Beginnings of a plan kept in the rounds. Those that are dropped weaken the bound, not the plans' worth."""
    fine_room: int = 50_000
    """The same in the last answer, whose bound is the one that counts."""
    reserve: float = 0.3
    """Part of the time left that the rounds leave for schedules, which begin at their fractions."""
    smoothing: float = 0.5
    """Part of the best prices that those asked about keep: halfway, and not tuned."""
    stalls: int = 1_000_000
    """Rounds in a row without a bound that is better by ``least_gain``, after which they end. Plain rounds are over in
    a second or less, and never end so."""
    least_gain: float = 1e-6
    """A hundredth of the gap that exact methods end at by default."""


class Rounds:
    """The master, the plans so far, and the best bound by prices.

    Parameters
    ----------
    pricing : PlanPricing
    clock : Clock
    effort : Effort
    noted : callable
        Told of every bound that is better than all before.

    Attributes
    ----------
    lengths, firsts : (K,) array
        Slots, and the first of them, of intervals in which interchangeable slots are counted together. Where plans are
        kept, each slot is one.
    span_of : (T,) array
        Interval of each slot, -1 where no job may run.
    workers : list of (T, K) array
        Of every plan of the master, by type.
    best : PlanAnswer or None
        That of the best bound.
    """

    def __init__(
        self, pricing: PlanPricing, clock: Clock, effort: Effort, noted: Callable[[float], None] = lambda _: None
    ) -> None:
        self.pricing, self.clock, self.effort, self._noted = pricing, clock, effort, noted
        spans_of = each_slot if pricing.keeps else interchangeable_slots
        self.lengths, self.span_of = spans_of(pricing.instance)
        self.firsts: Ints = np.array([np.argmax(self.span_of == k) for k in range(len(self.lengths))])
        self.master = self.new_master()
        self.workers: list[Ints] = []
        self.best: PlanAnswer | None = None
        self.figures: dict[str, Any] = {}
        self._smoothing = Smoothing(effort.smoothing)
        self._known: dict[tuple[int, bytes], int] = {}

    def new_master(self) -> PlanMaster:
        """A program of the same capacities, without plans."""
        return PlanMaster(np.outer(self.lengths, self.pricing.capacity).ravel(), len(self.pricing.instance.jobs))

    @property
    def bound(self) -> float:
        """The best by prices."""
        return math.inf if self.best is None else self.best.bound

    @property
    def centre(self) -> Floats:
        """(rows,) prices of the intervals' capacities at which the bound is best."""
        return np.zeros(0) if self._smoothing.prices is None else self._smoothing.prices

    def by_slot(self, prices: Floats) -> Floats:
        """(T, K R) prices of slots, by those of the intervals."""
        by_span = np.vstack([prices.reshape(len(self.lengths), -1), np.zeros((1, len(self.pricing.capacity)))])
        return by_span[self.span_of]

    def by_span(self, prices: Floats) -> Floats:
        """(rows,) means over the intervals of (T, K R) prices of slots."""
        inside, sums = self.span_of >= 0, np.zeros((len(self.lengths), prices.shape[1]))
        np.add.at(sums, self.span_of[inside], prices[inside])
        return (sums / self.lengths[:, None]).ravel()

    def price(self, prices: Floats, slack: float | None = None, room: int | None = None) -> PlanAnswer:
        """Plans at (rows,) prices of the intervals' capacities."""
        near, most = self.effort.coarse if slack is None else slack, self.effort.room if room is None else room
        answer = self.pricing.answer(self.by_slot(prices), near, most)
        if self._smoothing.note(-answer.bound, prices):
            self.best = answer
            self._noted(answer.bound)
        return answer

    def plan(self, job: int, offers: Ints, workers: Ints) -> Plan:
        """That of (T,) offers, with (T, K) workers by type."""
        here = np.flatnonzero(offers >= 0)
        uses = np.zeros((len(self.lengths), len(self.pricing.capacity)))
        each = np.einsum("tk,r->tkr", workers[here], self.pricing.cluster.demand[job]).reshape(len(here), -1)
        np.add.at(uses, self.span_of[here], each)
        worth = float(self.pricing.instance.jobs[job].utility.of(self.pricing.part(job, offers)))
        cost = float((workers[here] @ self.pricing.cluster.worker_cost).sum())
        return Plan(job, offers.copy(), uses.ravel(), worth - cost)

    def place(self, job: int, offers: Ints, workers: Ints) -> int:
        """Place of a plan among those of the master, which gets it if it is new."""
        here = np.flatnonzero(offers >= 0)
        rows = np.column_stack((self.span_of[here], offers[here], workers[here]))
        key = job, rows[np.lexsort(rows.T)].tobytes()
        if key not in self._known:
            self._known[key] = len(self.master.plans)
            self.master.add(self.plan(job, offers, workers))
            self.workers.append(workers.copy())
        return self._known[key]

    def place_widths(self, job: int, widths: Ints) -> int:
        """The same of (T,) widths, where there is one type of accelerators."""
        offers = self.pricing.offers_at(job, widths)
        return self.place(job, offers, self.pricing.widths_of(job, offers)[:, None])

    def add(self, answer: PlanAnswer) -> int:
        """Add its plans; how many are new."""
        before = len(self.master.plans)
        for job, (offers, workers) in enumerate(zip(answer.offers, answer.workers, strict=True)):
            if (offers >= 0).any():
                self.place(job, offers, workers)
        return len(self.master.plans) - before

    def add_widths(self, widths: Ints) -> int:
        """Add a plan for every job, (T, I) widths where there is one type of accelerators; how many are new."""
        before = len(self.master.plans)
        for job, row in enumerate(widths.T):
            if row.any():
                self.place_widths(job, row)
        return len(self.master.plans) - before

    def add_near(self, noise: float, rng: np.random.Generator) -> int:
        """Add plans at prices that are off by some per cent from the best, for more to choose from."""
        off = rng.normal(0.0, noise, len(self.centre))
        return self.add(self.price(self.centre * np.maximum(0.0, 1 + off)))

    def generate(self, first: Floats, tolerance: float, is_over: Callable[[], bool] = lambda: False) -> Optimum:
        """Rounds until the bound meets the value over the plans found; the last optimum.

        Parameters
        ----------
        first : (rows,) array
            Prices to begin with.
        tolerance : float
            Part of the bound within which the value is met.
        is_over : callable
            Whether nothing more is wanted.
        """
        reserve_s = 0.0 if self.clock.left_s == math.inf else self.effort.reserve * self.clock.left_s
        self.add(self.price(first))
        rounds, stalled = 0, 0
        while True:
            optimum = self.master.solve()
            rounds += 1
            near = self.bound - optimum.value <= tolerance * abs(self.bound)
            if near or is_over() or self.clock.left_s <= reserve_s or stalled >= self.effort.stalls:
                break
            before = self.bound
            if not self._smoothing.ask(optimum.prices, self._answered):
                break
            stalled = 0 if before - self.bound > self.effort.least_gain * abs(self.bound) else stalled + 1
        if self.clock.left_s > reserve_s:
            self.price(self.centre, self.effort.fine, self.effort.fine_room)
        self.figures |= {"rounds": rounds, "plans": len(self.master.plans), "relaxation": optimum.value}
        return optimum

    def _answered(self, prices: Floats) -> Priced:
        answer = self.price(prices)
        return Priced(-answer.bound, self.add(answer))


def each_slot(instance: SchedulingInstance) -> tuple[Ints, Ints]:
    """Every slot as an interval: (T,) lengths, and (T,) the interval of each."""
    return np.ones(instance.slots, dtype=np.int64), np.arange(instance.slots)


def interchangeable_slots(instance: SchedulingInstance) -> tuple[Ints, Ints]:
    """Interchangeable slots as intervals: (K,) lengths, and (T,) the interval of each, -1 where no job may run."""
    spans, span_of = intervals(instance), np.full(instance.slots, -1)
    for k, span in enumerate(spans):
        span_of[span.first : span.last] = k
    return np.array([span.slots for span in spans]), span_of
