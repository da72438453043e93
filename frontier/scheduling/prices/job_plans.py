"""Whole plans of single jobs as choices: what the best of them are worth when workers have a price in every slot."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ddlopt.frontier.scheduling.prices import plan_kernels as kernels
from ddlopt.models.scheduling.fastest import fastest_rates, least_energy_j, upper_envelope
from ddlopt.models.scheduling.instance import SchedulingInstance
from ddlopt.models.scheduling.pool import pool
from ddlopt.models.scheduling.prices.priced_jobs import kernel_utility
from ddlopt.models.scheduling.utility import DONE, AllOrNothing
from ddlopt.models.tolerances import BOUND_MARGIN

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

# Beginnings of plans kept in memory for one job.
_ROOM = 50_000


@dataclass(frozen=True)
class PlanAnswer:
    """An upper bound on the objective of every schedule, and the (I, T) widths of plans that jobs would choose.

    ``values`` (I,): worth less cost of each plan.
    """

    bound: float
    values: Floats
    widths: Ints


class PlanPricing:
    r"""The relaxation in which every job may take any *whole* workers in any slot of its window, for a price.

    With prices :math:`\lambda_{tr} \ge 0` on resource r in slot t, every schedule has at most the objective

    .. math::
        \sum_{tr} \lambda_{tr} C_r + \sum_i \max_{w_i \in W_i^T}
        \Bigl[u_i\Bigl(\min\bigl(1, \tfrac{1}{F_i} \textstyle\sum_t \hat\varphi_i(w_{it})\bigr)\Bigr)
        - \sum_t w_{it} \Bigl(e + \sum_r \lambda_{tr} l_{ir}\Bigr)\Bigr]

    as in :class:`~ddlopt.models.scheduling.prices.lagrangian.PricedJobs`, but with the widths :math:`W_i` that a job
    may have in place of fractions of them: a job that would like 4.5 slots has to do with four or five. The least such
    bound is that of the column generation over plans of jobs (Dantzig-Wolfe); on contended instances it closes most of
    the gap between the linear relaxation and the optimum. All-or-nothing utilities are themselves. The best plan of
    each job is found exactly (:func:`~ddlopt.frontier.scheduling.prices.plan_kernels.best_plan`).

    Parameters
    ----------
    instance : SchedulingInstance
        With objective ``utility``. Where places matter, or jobs run in one piece, that is relaxed.
    """

    def __init__(self, instance: SchedulingInstance) -> None:
        if instance.objective != "utility":
            raise ValueError(f"the objective is {instance.objective!r}, not 'utility'")
        self.instance = instance
        cluster = pool(instance)
        self.capacity: Floats = cluster.capacity
        self.demand: Floats = cluster.demand
        self.worker_cost = instance.energy_price_per_j * least_energy_j(instance)
        """Least cost of a worker's energy in a slot."""
        self._jobs = _plan_jobs(instance)

    # The slack is a thousandth of the gap that exact methods end at by default, so that it costs them nothing.
    def answer(self, prices: Floats, slack: float = 1e-8, room: int = _ROOM) -> PlanAnswer:
        """Bound and plans at ``prices`` (T, R) >= 0; each plan may be off by ``slack`` times the worth of its job.

        What it may be off by is part of the bound, and so are beginnings of plans beyond ``room``, which are dropped.
        """
        instance = self.instance
        costs = self.demand @ prices.T + self.worker_cost
        slots: list[Ints] = []
        starts = [0]
        for i, job in enumerate(instance.jobs):
            order = np.argsort(costs[i, job.arrival : instance.last_slot(i)], kind="stable")
            slots.append(order + job.arrival)
            starts.append(starts[-1] + len(order))
        where, owner = np.concatenate(slots), np.repeat(np.arange(len(instance.jobs)), np.diff(starts))
        values, bounds, plans = kernels.all_best_plans(self._jobs, np.array(starts), costs[owner, where], slack, room)
        widths = np.zeros((len(instance.jobs), instance.slots), dtype=np.int64)
        widths[owner, where] = plans
        income, total = float(prices.sum(axis=0) @ self.capacity), float(bounds.sum())
        margin = BOUND_MARGIN * (total + 2 * income + float((costs[owner, where] * plans).sum()))
        return PlanAnswer(total + income + margin, values, widths)


def _plan_jobs(instance: SchedulingInstance) -> kernels.PlanJobs:
    """Widths that make more progress than all smaller ones, with their progress as a part of what is wanted."""
    widths: list[int] = []
    gains: list[float] = []
    corners: list[bool] = []
    firsts = [0]
    needed = [float(DONE) if isinstance(job.utility, AllOrNothing) else 0.0 for job in instance.jobs]
    for i, job in enumerate(instance.jobs):
        mine, parts = [0], [0.0]
        for width, rate in zip(job.widths, fastest_rates(instance, i), strict=True):
            part = min(rate / job.minibatches, needed[i] or 1.0)
            if part > parts[-1]:
                mine.append(width)
                parts.append(part)
        on = set(upper_envelope(np.array(mine), np.array(parts)).tolist())
        widths += mine[1:]
        gains += parts[1:]
        corners += [place in on for place in range(1, len(mine))]
        firsts.append(len(widths))
    return utilities_of(instance)._replace(
        firsts=np.array(firsts),
        widths=np.array(widths, dtype=np.int64),
        gains=np.array(gains, dtype=float),
        corners=np.array(corners, dtype=bool),
    )


def utilities_of(instance: SchedulingInstance) -> kernels.PlanJobs:
    """Jobs as the kernels of plans take them, without widths."""
    worths = [kernel_utility(job.utility) for job in instance.jobs]
    kinds, values, shapes, offsets = (np.array(column) for column in zip(*worths, strict=True))
    nothing = np.zeros(0, dtype=np.int64)
    return kernels.PlanJobs(
        firsts=np.zeros(len(worths) + 1, dtype=np.int64),
        widths=nothing,
        gains=np.zeros(0),
        corners=np.zeros(0, dtype=np.bool_),
        kinds=kinds.astype(np.int64),
        values=values.astype(np.float64),
        shapes=shapes.astype(np.float64),
        offsets=offsets.astype(np.float64),
        worths=np.array([job.utility.value for job in instance.jobs], dtype=np.float64),
        needed=np.array([float(DONE) if isinstance(job.utility, AllOrNothing) else 0.0 for job in instance.jobs]),
    )
