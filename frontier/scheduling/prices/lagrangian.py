"""Upper bounds on utility and fairness from prices on the cluster's resources in every slot."""

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from ddlopt.frontier.scheduling.prices import lagrangian_kernels as kernels
from ddlopt.frontier.scheduling.prices.priced_jobs import jobs_as_arrays
from ddlopt.models.scheduling.fastest import least_energy_j
from ddlopt.models.scheduling.instance import SchedulingInstance
from ddlopt.models.scheduling.pool import pool
from ddlopt.models.tolerances import BOUND_MARGIN, ROUNDING

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Effort:
    """How the descent of prices steps, and how long it may take."""

    first_step: float = 0.05
    """What is hoped to be gained on the bound at first, as a part of it."""
    last_step: float = 1e-6
    """The same when the descent ends: a hundredth of the gap at which solvers stop by default."""
    patience: int = 10
    """Prices without progress, at least, before that hope shrinks: a subgradient need not lead down at once."""
    shrink: float = 0.7
    """Factor by which it then shrinks."""
    quick_work: float = 1.5e9
    """Steps that a quick bound may take: seconds."""


_EFFORT = Effort()


class Answer(NamedTuple):
    """An upper bound, the prices (T, R) that give it, and a subgradient there."""

    bound: float
    prices: Floats
    subgradient: Floats


class PricedJobs:
    r"""The relaxation in which a job may take any workers in any slot of its window, for a price.

    With prices :math:`\lambda_{tr} \ge 0` on resource r in slot t, every schedule has at most the objective

    .. math::
        \sum_{tr} \lambda_{tr} C_r + \sum_i \max_{w}
        \Bigl[u_i\Bigl(\min\bigl(1, \tfrac{1}{F_i} \sum_t \hat\varphi_i(w_{it})\bigr)\Bigr)
        - \sum_t w_{it} \Bigl(e + \sum_r \lambda_{tr} l_{ir}\Bigr)\Bigr]

    where :math:`\hat\varphi_i` is the concave envelope of :math:`\min(\varphi_i, F_i)` with the fastest progress at any
    placement, C the resources of all servers together and e the least price of a worker's energy. The inner problems
    are solved exactly: a job buys the cheapest progress first. The least such bound is that of the linear relaxation
    over widths, slots and the pool of resources. A utility that is not concave is replaced by v p, or 0 if the job
    cannot finish at all.

    For ``max_min`` the bound is the largest p at which the cheapest purchases of the part p by all jobs together cost
    no more than all resources, :math:`\sum_{tr} \lambda_{tr} C_r`.

    Parameters
    ----------
    instance : SchedulingInstance
        With objective ``utility`` or ``max_min``.
    """

    def __init__(self, instance: SchedulingInstance) -> None:
        if instance.sense != "maximize":
            raise ValueError(f"objective '{instance.objective}' is not maximised")
        cluster = pool(instance)
        self.slots = instance.slots
        self.capacity: Floats = cluster.capacity
        demand, kind_of = np.unique(cluster.demand, axis=0, return_inverse=True)
        self.demand: Floats = demand
        """(K, R) what a worker of each kind takes."""
        self._energy_price = instance.energy_price_per_j * least_energy_j(instance)
        self._by_part = instance.goal.counts_least_part
        self._instance = instance
        self._jobs, self._places, self._highest = jobs_as_arrays(instance, kind_of.ravel())
        self.evaluations = 0
        """How many prices have been answered."""

    @property
    def work(self) -> int:
        """Steps of one evaluation, roughly."""
        windows = len(self._jobs.group_worker)
        return (windows + 10 * len(self.demand)) * self.slots + 10 * len(self._jobs.kinds)

    def answer(self, prices: Floats) -> Answer:
        """Upper bound at ``prices`` (T, R) >= 0; for ``max_min`` at the multiple of them that serves best."""
        self.evaluations += 1
        worker_prices = self.demand @ prices.T + self._energy_price
        income = float(prices.sum(axis=0) @ self.capacity)
        if self._by_part:
            return self._largest_part(prices, worker_prices, income)
        found = kernels.respond(self._jobs, worker_prices, -1.0)
        margin = BOUND_MARGIN * (found.total + 2 * found.costs + income)
        return Answer(found.total + income + margin, prices, self.capacity - found.used.T @ self.demand)

    def _largest_part(self, prices: Floats, worker_prices: Floats, income: float) -> Answer:
        """Newton's method from above on the costs, which are convex in the part: it never passes the root."""
        # At the very end a job has bought all that it can, and the last of it has no price.
        part, bound = self._highest * (1 - 1e-7), self._highest
        found = kernels.respond(self._jobs, worker_prices, part)
        slope = float(found.ends.sum())
        while found.costs > income * (1 + ROUNDING) and math.isfinite(slope):
            bound = part = part - (found.costs - income) / slope
            found = kernels.respond(self._jobs, worker_prices, part)
            slope = float(found.ends.sum())
        scaled = prices / slope if 0 < slope < math.inf else prices
        return Answer(bound * (1 + BOUND_MARGIN), scaled, self.capacity - found.used.T @ self.demand)

    def worth_of_progress(self, answer: Answer) -> Floats:
        """(I,) what progress of each job is worth at the prices of an ``answer``, for all its mini-batches.

        That is what it last paid, or what more would be worth to it; 0 for jobs that are worth nothing.
        """
        worker_prices = self.demand @ answer.prices.T + self._energy_price
        # At the very end a job has bought all that it can, and the last of it has no price.
        goal = answer.bound / (1 + BOUND_MARGIN) * (1 - 1e-7) if self._by_part else -1.0
        found = kernels.respond(self._jobs, worker_prices, goal)
        worth = np.zeros(len(self._instance.jobs))
        for place, part, end in zip(self._places, found.parts, found.ends, strict=True):
            slope = math.inf if self._by_part else self._instance.jobs[place].utility.slope(float(part))
            worth[place] = min(end, slope)
        return worth


def lagrangian_bound(instance: SchedulingInstance, iterations: int = 1000) -> Answer:
    """Upper bound on the objective of every schedule, and prices that certify it.

    A subgradient descent whose steps aim at a part less than the best bound so far (Polyak); what it aims at comes
    closer whenever it is not reached. It always takes the same steps, whatever the time.

    Parameters
    ----------
    instance : SchedulingInstance
        With objective ``utility`` or ``max_min``.
    iterations : int
        Most prices that are tried; it ends earlier once there is nothing to be gained.
    """
    return _descend(PricedJobs(instance), iterations, max(_EFFORT.patience, iterations // 40))


def quick_bound(instance: SchedulingInstance) -> Answer:
    """The same with 100 to 500 prices, as the work allows: seconds for 80 000 jobs in 2 600 slots."""
    jobs = PricedJobs(instance)
    return _descend(jobs, int(min(500, max(100, _EFFORT.quick_work / jobs.work))), _EFFORT.patience)


def _descend(jobs: PricedJobs, iterations: int, patience: int) -> Answer:
    """At first with prices that are the same in all slots, for it is slow to find out which resource is scarce."""
    best = _first(jobs)
    together = jobs.evaluations + (iterations // 20 if len(jobs.capacity) == 1 else iterations // 5)
    best = _descend_in_blocks(jobs, best, 1, together, patience)
    return _descend_in_blocks(jobs, best, jobs.slots, iterations, patience)


def _descend_in_blocks(jobs: PricedJobs, best: Answer, blocks: int, iterations: int, patience: int) -> Answer:
    firsts = np.arange(blocks) * jobs.slots // blocks
    lengths = np.diff([*firsts, jobs.slots])
    here, hope, stalled = best, _EFFORT.first_step, 0  # steps go on from where they led, not from the best prices
    while jobs.evaluations < iterations and hope > _EFFORT.last_step and best.bound > 0:
        # In units of all that there is of a resource, prices and subgradients of different resources compare.
        values, slope = here.prices * jobs.capacity, here.subgradient / jobs.capacity
        if blocks < jobs.slots:
            slope = np.repeat(np.add.reduceat(slope, firsts) / lengths[:, None], lengths, axis=0)
        slope[(values <= 0) & (slope > 0)] = 0.0
        length = float((slope * slope).sum())
        if length == 0:
            break
        step = (here.bound - best.bound * (1 - hope)) / length
        here = jobs.answer(np.maximum(0.0, values - step * slope) / jobs.capacity)
        stalled = 0 if here.bound < best.bound * (1 - 0.1 * hope) else stalled + 1
        if here.bound < best.bound:
            best = here
        if stalled >= patience:
            hope, stalled = hope * _EFFORT.shrink, 0
    return best


def _first(jobs: PricedJobs) -> Answer:
    """The best of no prices and prices that are the same in all slots: the bound is convex in their size."""
    best = free = jobs.answer(np.zeros((jobs.slots, len(jobs.capacity))))
    size = 16 * free.bound / jobs.slots
    last = math.inf
    for _ in range(25):
        here = jobs.answer(np.full(free.prices.shape, size) / jobs.capacity)
        if here.bound >= last:
            break
        last = here.bound
        if here.bound < best.bound:
            best = here
        size /= 2
    return best
