"""All plans of jobs that are nearly as good as the best ones at charges, and the best schedule of such plans."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from ddlopt.frontier.scheduling.job_plans.master import Plan
from ddlopt.frontier.scheduling.job_plans.patterned_jobs import PatternedJobs
from ddlopt.frontier.scheduling.job_plans.patterned_plans import PatternedPlans
from ddlopt.models.tolerances import BOUND_MARGIN, ROUNDING
from ddlopt.solvers.contracts import Limits
from ddlopt.solvers.heuristic import Clock
from ddlopt.solvers.scheduling.slot.rates import Floats, Ints


@dataclass(frozen=True)
class Effort:
    """How many plans are listed, and how large a program of them may be."""

    listed: int = 20_000
    """Plans in the program, of all jobs."""
    beginnings: int = 300_000
    """Beginnings of plans of one job among which they are found: each is a row of choices, tens of megabytes in all."""
    coefficients_a_second: int = 40_000
    """Of a program, for each second that it has: HiGHS does not look at its clock while it makes a program smaller."""
    shrinkings: int = 14
    """How often what plans may take from the bound shrinks, until they can be listed and the program is small enough:
    to less than a hundredth of the gap, where what is proven is not worth the time."""
    shrinking: float = 0.7
    """To which part it shrinks: the number of plans mostly falls by half or more."""
    steps: int = 2**14
    """Of progress, in the look ahead, rounded up: with fewer, more plans look near enough than are."""
    slack: float = 1e-9
    """What the best plan of each job may be off by, as a part of its worth: it is taken from what others may take."""
    room: int = 20_000
    """Beginnings of a best plan that are kept. The bound allows for those that are dropped."""


EFFORT = Effort()


class Nearest(NamedTuple):
    """The best whole plans: (T, I) ``widths`` those of interchangeable slots in any order, and a bound on all."""

    widths: Ints
    bound: float
    listed: int


class NearPlans:
    r"""Whole plans that take so little from a bound by charges that a schedule may be better than one that is known.

    At charges a schedule is worth B, the bound, less what its plans are worth less than the best ones and what its
    patterns pay less than the dearest ones. One with a plan that takes :math:`\delta` is worth :math:`B - \delta` at
    most. All others have plans that are listed here, and the program over these, within capacities and cuts of
    slots, bounds them; of an interval it has the sum of all slots. What it chooses, if it fits into slots, is optimal.

    Plans count interchangeable slots together, and those that go on after the job has finished are left out.

    Parameters
    ----------
    jobs : PatternedJobs
        That need not keep their widths, with concave utilities.
    patterned : PatternedPlans
        Of the same jobs, after ``improve``.

    Attributes
    ----------
    bound : float
        By the charges alone.
    """

    def __init__(self, jobs: PatternedJobs, patterned: PatternedPlans) -> None:
        assert not jobs.pricing.keeps
        self._jobs, self._pricing, self._patterned = jobs, jobs.pricing, patterned
        best = patterned.best
        self._costs = jobs.costs(best.charges)
        found = jobs.pricing.answer_to_costs(self._costs, best.income, EFFORT.slack, EFFORT.room)
        self.bound, self._values = found.bound, found.values

    def nearest(self, value: float, clock: Clock, limits: Limits, seed: int) -> Nearest | None:
        """The best schedule in whole plans, if they can be listed; ``value`` is what one has that is known."""
        taken = self.bound - value
        most = np.inf if limits.time_s is None else EFFORT.coefficients_a_second * limits.time_s
        for _ in range(EFFORT.shrinkings):
            if clock.expired or taken <= 0:
                return None
            listed = self._listed(taken)
            # A plan has two coefficients at least, so that columns are made of what may be small enough alone.
            if listed is not None and 2 * sum(np.count_nonzero((rows >= 0).any(axis=1)) for rows in listed) <= most:
                columns = self._columns(listed)
                if sum(1 + np.count_nonzero(column.uses) for column in columns) <= most:
                    return self._best_of(columns, taken, limits, seed)
            taken *= EFFORT.shrinking
        return None

    def _columns(self, listed: list[Ints]) -> list[Plan]:
        """Those of the program; plans that do nothing need none."""
        return [
            self._patterned.as_column(self._jobs.plan(job, row))
            for job, rows in enumerate(listed)
            for row in rows[(rows >= 0).any(axis=1)]
        ]

    def _best_of(self, columns: list[Plan], taken: float, limits: Limits, seed: int) -> Nearest | None:
        instance = self._pricing.instance
        master = self._patterned.all_rows()
        try:
            for column in columns:
                master.add(column)
            plans, outcome = master.whole_plans([], limits, seed)
        finally:
            master.close()
        if outcome.bound is None:
            return None
        widths = np.zeros((instance.slots, len(instance.jobs)), dtype=np.int64)
        for plan in plans:
            widths[:, plan.job] = self._pricing.widths_of(plan.job, plan.choices)
        return Nearest(widths, max(outcome.bound, self.bound - taken), len(columns))

    def _listed(self, taken: float) -> list[Ints] | None:
        """Of every job (m, T) offers of all plans that take ``taken`` at most; None if they are too many."""
        found, left = [], EFFORT.listed
        for job in range(len(self._values)):
            rows = self._listed_of(job, taken)
            if rows is None or len(rows) > left:
                return None
            left -= len(rows)
            found.append(rows)
        return found

    def _listed_of(self, job: int, taken: float) -> Ints | None:
        instance, wanted = self._pricing.instance, self._pricing.instance.jobs[job]
        first, last = wanted.arrival, instance.last_slot(job)
        parts, costs = self._pricing.parts[job], self._costs[job][first:last]
        span_of = self._jobs.span_of[first:last]
        margin = BOUND_MARGIN * (abs(self._values[job]) + float(costs.max(axis=1).sum()))
        bar = self._values[job] - taken - margin
        ahead = _ahead(
            np.array([float(wanted.utility.of(s / EFFORT.steps)) for s in range(EFFORT.steps + 1)]), parts, costs
        )
        # Labels are part, cost and (n,) choices, those of interchangeable slots in increasing order and idle ones last.
        idle = len(parts)
        done, paid, chosen = np.zeros(1), np.zeros(1), np.zeros((1, 0), dtype=np.int64)
        for t in range(last - first):
            before = chosen[:, -1] if t and span_of[t] == span_of[t - 1] else np.zeros(len(done), dtype=np.int64)
            ends = [(done, paid, np.arange(len(done)), np.full(len(done), idle))]
            for option in range(idle):
                on = np.flatnonzero((before <= option) & (done < 1 - ROUNDING))
                ends.append((done[on] + parts[option], paid[on] + costs[t, option], on, np.full(len(on), option)))
            done, paid, origin, option_of = (np.concatenate(column) for column in zip(*ends, strict=True))
            near = ahead[t + 1, _step(done)] - paid >= bar
            done, paid = done[near], paid[near]
            chosen = np.column_stack((chosen[origin[near]], option_of[near]))
            if len(done) > EFFORT.beginnings:
                return None
        rows = np.full((len(done), instance.slots), -1, dtype=np.int64)
        rows[:, first:last] = np.where(chosen == idle, -1, chosen)
        return rows


def _step(parts: Floats) -> Ints:
    """Steps of progress, rounded up."""
    return np.minimum(EFFORT.steps, np.ceil(parts * (EFFORT.steps * (1 + ROUNDING)))).astype(np.int64)


def _ahead(worth: Floats, parts: Floats, costs: Floats) -> Floats:
    """(n + 1, steps + 1) what a job may still be worth, less cost, from each slot on with so much progress."""
    steps, places = _step(parts).tolist(), np.arange(len(worth))
    table = np.tile(worth, (len(costs) + 1, 1))
    for t in range(len(costs) - 1, -1, -1):
        table[t] = table[t + 1]
        for step, cost in zip(steps, costs[t].tolist(), strict=True):
            np.maximum(table[t], table[t + 1, np.minimum(EFFORT.steps, places + step)] - cost, out=table[t])
    return table
