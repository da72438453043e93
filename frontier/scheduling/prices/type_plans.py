"""Plans of single jobs where accelerators are of several types: what the best are worth at prices by type and slot."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ddlopt.frontier.scheduling.prices import offer_kernels
from ddlopt.frontier.scheduling.prices.fluid import Fluid, fluid
from ddlopt.frontier.scheduling.prices.job_plans import utilities_of
from ddlopt.frontier.scheduling.prices.offers import costs_of, offers_of, typed_pool, workers_of
from ddlopt.models.errors import SolverError
from ddlopt.models.scheduling.instance import SchedulingInstance
from ddlopt.models.scheduling.prices.lagrangian import Answer
from ddlopt.models.scheduling.utility import Capped
from ddlopt.models.tolerances import BOUND_MARGIN, ROUNDING

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

_ROOM = 50_000
"""Beginnings of plans kept in memory for one job."""
_MOST_OFFERS, _MOST_WORK = 20_000, 1_000_000_000
"""Of all jobs in a slot, and of their plans, up to which a bound is calculated: half a minute."""
_LEAST_WEIGHT = 1e-9
"""Of a job in the smallest part: utilities are positive."""
_QUICK_SLACK, _QUICK_ROOM = 1e-5, 300
"""How near to the best plans must be while prices descend, and how many beginnings of one are kept."""


@dataclass(frozen=True)
class TypePlanAnswer:
    """An upper bound on the objective of every schedule, and plans that jobs would choose at the prices.

    ``values`` (I,): worth less cost of each plan; ``offers`` (I, T): its offer in each slot, -1 for none; ``workers``
    (I, T, K): its workers by type.
    """

    bound: float
    values: Floats
    offers: Ints
    workers: Ints


class TypePlanPricing:
    r"""The relaxation in which every job may take any offer in any slot of its window, for a price by type.

    An *offer* is a width on a class of types, at the pace of the slowest of the class (where types do not mix, a class
    is a type); its workers are on the cheapest types of the class that have room. With prices :math:`\lambda_{tkr} \ge
    0` on resource r of type k in slot t, every schedule has at most the objective

    .. math::
        \sum_{tkr} \lambda_{tkr} C_{kr} + \sum_i \max
        \Bigl[u_i\Bigl(\min\bigl(1, \tfrac{1}{F_i} \textstyle\sum_t \varphi_{ic(t)}(w_{it})\bigr)\Bigr)
        - \sum_{tk} n_{itk} \Bigl(e_k + \sum_r \lambda_{tkr} l_{ir}\Bigr)\Bigr]

    over plans of job i: a class c and a width w in each slot, with :math:`n_{itk}` workers on type k. The least such
    bound is that of the column generation over plans of jobs. The best plan of each job is found exactly
    (:func:`~ddlopt.frontier.scheduling.prices.offer_kernels.best_offers`). With one type it is
    :class:`~ddlopt.frontier.scheduling.prices.job_plans.PlanPricing`.

    Parameters
    ----------
    instance : SchedulingInstance
        With objective ``utility``. Where places matter, or jobs run in one piece, that is relaxed.
    """

    def __init__(self, instance: SchedulingInstance) -> None:
        if instance.objective != "utility":
            raise ValueError(f"the objective is {instance.objective!r}, not 'utility'")
        self.instance = instance
        self.cluster = typed_pool(instance)
        self.slots = instance.slots
        self.capacity: Floats = self.cluster.capacity.ravel()
        """(K R,) of each type in turn."""
        self.offers = [offers_of(instance, self.cluster, place) for place in range(len(instance.jobs))]
        self.evaluations = 0
        """How many prices have been answered."""
        self._utilities = utilities_of(instance)
        self._parts = [
            np.minimum(each.gains / job.minibatches, needed or 1.0)
            for each, job, needed in zip(self.offers, instance.jobs, self._utilities.needed, strict=True)
        ]

    @property
    def work(self) -> int:
        """Of one answer, roughly, in units of 25 ns; in long windows there are more beginnings to compare."""
        spans = (self.instance.last_slot(i) - job.arrival for i, job in enumerate(self.instance.jobs))
        return sum(span * len(own.widths) * (100 + span) for span, own in zip(spans, self.offers, strict=True))

    def worker_prices(self, job: int, prices: Floats) -> Floats:
        """(T, K) of a worker of a job by type, at ``prices`` (T, K R)."""
        by_type = prices.reshape(len(prices), *self.cluster.capacity.shape)
        found: Floats = by_type @ self.cluster.demand[job] + self.cluster.worker_cost
        return found

    # The slack is a thousandth of the gap that exact methods end at by default, so that it costs them nothing.
    def plans(self, prices: Floats, slack: float = 1e-8, room: int = _ROOM) -> TypePlanAnswer:
        """Bound and plans at ``prices`` (T, K R) >= 0; each plan may be off by ``slack`` times the worth of its job.

        What it may be off by is part of the bound, and so are beginnings of plans beyond ``room``, which are dropped.
        """
        rooms, costs, each = self.cluster.rooms, [], []
        for i, offers in enumerate(self.offers):
            each.append(self.worker_prices(i, prices))
            costs.append(costs_of(offers, rooms[i], each[-1]))
        found = self.plans_at_costs(costs, float(prices.sum(axis=0) @ self.capacity), slack, room)
        for i, own in enumerate(self.offers):
            found.workers[i] = workers_of(own, rooms[i], each[i], found.offers[i])
        return found

    def plans_at_costs(self, costs: Sequence[Floats], income: float, slack: float, room: int) -> TypePlanAnswer:
        """The same where offers have costs of their own: by job (T, O) >= 0, of which schedules pay ``income`` at most.

        Workers stay 0: nothing says on which types of its class they are.
        """
        instance = self.instance
        shape = len(instance.jobs), instance.slots
        chosen = np.full(shape, -1, dtype=np.int64)
        values, total, paid = np.zeros(len(instance.jobs)), 0.0, 0.0
        for i, job in enumerate(instance.jobs):
            window, parts = slice(job.arrival, instance.last_slot(i)), self._parts[i]
            mine = costs[i][window]
            order = np.argsort((mine / parts).min(axis=1), kind="stable")
            values[i], most, plan = offer_kernels.best_offers(
                self._utilities, i, np.ascontiguousarray(mine[order]), parts, slack * job.utility.value, room
            )
            here = np.full(len(order), -1, dtype=np.int64)
            here[order] = plan
            chosen[i, window] = here
            total += most
            paid += float(mine[np.flatnonzero(here >= 0), here[here >= 0]].sum())
        margin = BOUND_MARGIN * (total + 2 * income + paid)
        workers = np.zeros((*shape, len(self.cluster.names)), dtype=np.int64)
        return TypePlanAnswer(total + income + margin, values, chosen, workers)

    def answer(self, prices: Floats) -> Answer:
        """The bound at ``prices`` with a subgradient, for a descent."""
        self.evaluations += 1
        found = self.plans(prices, _QUICK_SLACK, _QUICK_ROOM)
        used = np.einsum("itk,ir->tkr", found.workers, self.cluster.demand).reshape(len(prices), -1)
        return Answer(found.bound, prices, self.capacity - used)


def typed_bound(instance: SchedulingInstance) -> float:
    r"""Upper bound for ``utility`` and ``max_min`` at the prices of the linear relaxation; endless without any.

    The smallest part done is no more than :math:`\sum_i \mu_i p_i / \sum_i \mu_i`, the sum of utilities
    :math:`\mu_i p_i`, for any weights :math:`\mu_i \ge 0`: those of the relaxation.
    """
    if sum(len(job.widths) * len(job.speeds or "1") for job in instance.jobs) > _MOST_OFFERS:
        return math.inf
    try:
        found = fluid(instance)
    except SolverError:
        return math.inf
    weight = 1.0
    if instance.objective == "max_min":
        weights = np.maximum(found.progress, _LEAST_WEIGHT)
        weight = float(weights.sum())
        jobs = [
            job.model_copy(update={"utility": Capped(value=float(each))})
            for job, each in zip(instance.jobs, weights, strict=True)
        ]
        instance = instance.changed(objective="utility", jobs=tuple(jobs))
    pricing = TypePlanPricing(instance)
    if pricing.work > _MOST_WORK:
        return math.inf
    return pricing.plans(prices_of(found), _QUICK_SLACK, _QUICK_ROOM).bound / weight * (1 + ROUNDING)


def prices_of(found: Fluid) -> Floats:
    """(T, K R) prices of slots by those of the blocks of the relaxation."""
    return np.repeat(found.prices.reshape(len(found.prices), -1), np.diff(found.firsts), axis=0)
