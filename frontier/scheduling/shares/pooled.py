"""A bound from slots that are counted together, all servers as one pool."""

import numpy as np
import pyomo.environ as pyo

from ddlopt.frontier.scheduling.intervals import intervals
from ddlopt.models.scheduling import SchedulingInstance
from ddlopt.models.scheduling.fastest import fastest_rates
from ddlopt.models.scheduling.pool import pool
from ddlopt.models.tolerances import FEASIBILITY_TOL
from ddlopt.solvers.backends.highs import Highs
from ddlopt.solvers.backends.matrix import linear_model
from ddlopt.solvers.contracts import Limits

_MOST_CHOICES = 20_000
"""Choices of a width in an interval beyond which the integer program does not get below its relaxation."""


def covers(instance: SchedulingInstance) -> bool:
    """Whether the objective is a sum of capped utilities, and the program is small enough."""
    choices = sum(len(instance.jobs[i].widths) for span in intervals(instance) for i in span.jobs)
    capped = all(job.utility.kind == "capped" for job in instance.jobs)
    return instance.objective == "utility" and capped and choices <= _MOST_CHOICES


def pooled_bound(instance: SchedulingInstance, limits: Limits, seed: int = 0) -> float | None:
    r"""Bound on the utility of every schedule of an instance that :func:`covers` accepts; None if time is too short.

    With :math:`n_k` slots in interval k, :math:`d_{ir}` of resource r for a worker of job i, :math:`C_r` in all
    servers together, and :math:`\Phi_i(w)` the progress in a slot at the placement and bandwidth that suit w workers
    best,

    .. math::
        \max\ & \textstyle\sum_i v_i p_i \\
        & \textstyle\sum_w x_{ikw} \le n_k,\qquad \sum_{iw} d_{ir} w\, x_{ikw} \le n_k C_r,\qquad
          x_{ikw} \in \mathbb{Z}_{\ge 0}, \\
        & p_i \le \textstyle\sum_{kw} \min\bigl(1, \Phi_i(w) / F_i\bigr)\, x_{ikw},\qquad 0 \le p_i \le 1.

    Proof: given a schedule, let :math:`x_{ikw}` count the slots of interval k in which job i has w workers. A job has
    one width in a slot and the workers of a slot fit into all servers, which sum to the first two rows over the slots
    of an interval. What it does in a slot is :math:`\Phi_i(w)` at most, so that :math:`p_i`, the part of its
    mini-batches that is done and not more than 1, is at most the sum of all slots' parts, each cut at 1.
    Energy only costs.
    """
    resources, spans = pool(instance), intervals(instance)
    rates = [fastest_rates(instance, i) for i in range(len(instance.jobs))]
    parts = {
        (i, w): min(1.0, rate / job.minibatches)
        for i, job in enumerate(instance.jobs)
        for w, rate in zip(job.widths, rates[i], strict=True)
        if w > 0
    }
    choices = [(i, k, w) for k, span in enumerate(spans) for i, w in parts if i in span.jobs]
    model = pyo.ConcreteModel()
    model.x = pyo.Var(choices, domain=pyo.NonNegativeIntegers, bounds=lambda _, i, k, w: (0, spans[k].slots))
    model.p = pyo.Var(range(len(instance.jobs)), bounds=(0, 1))
    model.rows = pyo.ConstraintList()
    for k, span in enumerate(spans):
        here = [(i, w) for i, other, w in choices if other == k]
        for i in span.jobs:
            model.rows.add(sum(model.x[i, k, w] for j, w in here if j == i) <= span.slots)
        for r in range(len(resources.capacity)):
            most = float(resources.capacity[r]) * (1 + FEASIBILITY_TOL) * span.slots
            if any(resources.demand[i, r] > 0 for i in span.jobs):
                model.rows.add(sum(float(resources.demand[i, r]) * w * model.x[i, k, w] for i, w in here) <= most)
    for i in range(len(instance.jobs)):
        model.rows.add(model.p[i] <= sum(parts[i, w] * model.x[j, k, w] for j, k, w in choices if j == i))
    values = np.array([job.utility.value for job in instance.jobs])
    model.utility = pyo.Objective(expr=sum(float(v) * model.p[i] for i, v in enumerate(values)), sense=pyo.maximize)
    return Highs().solve_linear(linear_model(model), limits, seed).bound
