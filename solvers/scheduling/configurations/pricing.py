"""The best pattern of every interval at given prices of progress, and the bound that these certify."""

import math
from typing import NamedTuple

import numpy as np

from ddlopt.models.scheduling import SchedulingInstance
from ddlopt.models.scheduling.formulations.configurations import Pattern, PatternPlan
from ddlopt.models.scheduling.prices import lagrangian_kernels as kernels
from ddlopt.models.scheduling.prices.knapsack_kernels import choose_widths
from ddlopt.models.scheduling.prices.priced_jobs import kernel_utility
from ddlopt.models.tolerances import BOUND_MARGIN
from ddlopt.solvers.scheduling.slot.rates import Floats, Ints


class Priced(NamedTuple):
    """Upper bound on the objective, and for each interval the worth of its best pattern and that pattern."""

    bound: float
    worths: Floats
    patterns: list[Pattern]


class Pricing:
    r"""The Lagrangian relaxation that prices progress.

    With a price :math:`\mu_i \ge 0` on the progress of each job, for all its mini-batches, no schedule has more than

    .. math::
        \sum_i \max_{0 \le q \le 1} [u_i(q) - \mu_i q]
        + \sum_k n_k \max_p \Bigl[\sum_i \mu_i \min(\varphi_i(w_{ip}) / F_i, 1) - e_p\Bigr] ,

    where the patterns p of interval k are found by the multiple-choice knapsack. For ``max_min`` the first sum is
    :math:`\max(0, 1 - \sum_i \mu_i)`.

    Parameters
    ----------
    instance : SchedulingInstance
    plan : PatternPlan
        Of the same instance.
    """

    def __init__(self, instance: SchedulingInstance, plan: PatternPlan) -> None:
        self._plan = plan
        self._by_part = instance.objective == "max_min"
        self._utilities = [kernel_utility(job.utility) for job in instance.jobs]
        self._most: list[float] = [min(1.0, c.reach / c.wanted) for c in plan.jobs]
        rows = []
        for c in plan.jobs:
            row = np.full(c.widths[-1] + 1, -np.inf)
            row[0] = 0.0
            row[list(c.widths)] = np.array(c.gains) / c.wanted
            rows.append(row)
        self._parts: Floats = np.concatenate(rows)
        """Part of its mini-batches that a job does in a slot at a width, all jobs one after the other."""
        lengths = np.array([len(row) for row in rows])
        first = np.concatenate(([0], np.cumsum(lengths)))
        self._job: Ints = np.repeat(np.arange(len(rows)), lengths)
        widths = np.arange(first[-1]) - np.repeat(first[:-1], lengths)
        self._energy: Floats = plan.worker_price * widths
        self._spans: list[tuple[Ints, Ints, Ints, Ints]] = []
        for span in plan.spans:
            jobs = np.array(span.jobs)
            places = np.concatenate([np.arange(first[i], first[i + 1]) for i in span.jobs])
            starts = np.concatenate(([0], np.cumsum(lengths[jobs])))
            self._spans.append((jobs, places, starts, plan.costs[jobs]))

    def at(self, prices: Floats) -> Priced:
        """The answer to ``prices`` (I,) of the progress of each job, at least 0."""
        # Where nothing is paid, nothing is done; 0 times the -inf of a width that there is not would be no number.
        values = np.where(np.isfinite(self._parts), prices[self._job] * np.maximum(self._parts, 0.0), -np.inf)
        values -= self._energy
        worths, patterns = np.zeros(len(self._spans)), []
        for k, (jobs, places, starts, costs) in enumerate(self._spans):
            worths[k], widths = choose_widths(starts, values[places], costs, self._plan.capacity)
            running = np.flatnonzero(widths)
            patterns.append(tuple(zip(jobs[running].tolist(), widths[running].tolist(), strict=True)))
        rest = self._rest(prices.tolist())
        total = rest + math.fsum(span.slots * worth for span, worth in zip(self._plan.spans, worths, strict=True))
        return Priced(total * (1 + BOUND_MARGIN), worths, patterns)

    def _rest(self, prices: list[float]) -> float:
        """What utilities are worth at most beyond the prices of the progress that they take."""
        if self._by_part:
            return max(0.0, 1.0 - math.fsum(prices)) * min(self._most)
        rest = 0.0
        for utility, most, price in zip(self._utilities, self._most, prices, strict=True):
            part = min(most, max(0.0, kernels.part_worth(*utility, price)))
            rest += max(0.0, kernels.utility(*utility, part) - price * part)
        return rest
