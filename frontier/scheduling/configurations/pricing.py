"""The best pattern of every interval at given prices of progress, and the bound that these certify."""

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from ddlopt.frontier.scheduling.formulations.configurations import Pattern, PatternPlan
from ddlopt.frontier.scheduling.prices import lagrangian_kernels as kernels
from ddlopt.frontier.scheduling.prices.priced_jobs import kernel_utility
from ddlopt.frontier.scheduling.prices.row_kernels import choose_options
from ddlopt.models.scheduling import SchedulingInstance
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

    where the patterns p of interval k are found by the multiple-choice knapsack, with types of accelerators one with
    capacities of sets of types (:class:`~ddlopt.frontier.scheduling.type_rows.TypeRows`). For ``max_min`` the first sum
    is :math:`\max(0, 1 - \sum_i \mu_i)`.

    Parameters
    ----------
    instance : SchedulingInstance
    plan : PatternPlan
        Of the same instance.
    """

    def __init__(self, instance: SchedulingInstance, plan: PatternPlan) -> None:
        self._plan = plan
        self._by_part = instance.goal.counts_least_part
        self._utilities = [kernel_utility(job.utility) for job in instance.jobs]
        self._most: list[float] = [min(1.0, c.reach / c.wanted) for c in plan.jobs]
        self._spans = [Options.of(plan, span.jobs) for span in plan.spans]
        self._capacity = np.array(plan.room, dtype=np.int64)

    def at(self, prices: Floats) -> Priced:
        """The answer to ``prices`` (I,) of the progress of each job, at least 0."""
        worths, patterns = self._best(prices)
        rest = self._rest(prices.tolist())
        total = rest + math.fsum(span.slots * worth for span, worth in zip(self._plan.spans, worths, strict=True))
        return Priced(total * (1 + BOUND_MARGIN), worths, patterns)

    def _best(self, prices: Floats) -> tuple[Floats, list[Pattern]]:
        """Of each interval the worth of its best pattern and that pattern, by a table over what may be left of rows."""
        worths, patterns = np.zeros(len(self._spans)), []
        for k, (span, options) in enumerate(zip(self._plan.spans, self._spans, strict=True)):
            values = options.values(self._plan, prices)
            worths[k], chosen = choose_options(self._capacity, options.starts, values, options.weights)
            pairs = zip(span.jobs, chosen.tolist(), strict=True)
            patterns.append(tuple((job, int(options.widths[o])) for job, o in pairs if o >= 0))
        return worths, patterns

    def _rest(self, prices: list[float]) -> float:
        """What utilities are worth at most beyond the prices of the progress that they take."""
        if self._by_part:
            return max(0.0, 1.0 - math.fsum(prices)) * min(self._most)
        rest = 0.0
        for utility, most, price in zip(self._utilities, self._most, prices, strict=True):
            part = min(most, max(0.0, kernels.part_worth(*utility, price)))
            rest += max(0.0, kernels.utility(*utility, part) - price * part)
        return rest


class Options(NamedTuple):
    """All widths of some jobs, with types those of classes.

    ``starts`` (J + 1,) of each job; of each of n options its job in ``jobs``, its width, its part of all that the job
    wants, and (n, rows) ``weights``.
    """

    starts: Ints
    jobs: Ints
    widths: Ints
    parts: Floats
    weights: Ints

    @classmethod
    def of(cls, plan: PatternPlan, jobs: Sequence[int]) -> "Options":
        """Those of ``jobs``."""
        mine = [plan.jobs[job] for job in jobs]
        starts = np.concatenate(([0], np.cumsum([len(c.widths) for c in mine]))).astype(np.int64)
        return cls(
            starts=starts,
            jobs=np.repeat(np.array(jobs, dtype=np.int64), np.diff(starts)),
            widths=np.array([width for c in mine for width in c.widths], dtype=np.int64),
            parts=np.array([gain / c.wanted for c in mine for gain in c.gains]),
            weights=np.array([plan.weights(c.job, width) for c in mine for width in c.widths], dtype=np.int64),
        )

    def values(self, plan: PatternPlan, prices: Floats) -> Floats:
        """(n,) worth of each at prices of progress, less its energy."""
        workers = np.array([plan.jobs[job].workers(width) for job, width in zip(self.jobs, self.widths, strict=True)])
        found: Floats = prices[self.jobs] * self.parts - plan.worker_price * workers
        return found
