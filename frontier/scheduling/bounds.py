"""Bounds by plans of jobs: each job chooses among whole widths at the prices that fractions of widths have."""

import math
from dataclasses import dataclass

import numpy as np

from ddlopt.frontier.scheduling.prices.fluid import fluid
from ddlopt.frontier.scheduling.prices.plan_pricing import PlanPricing, prices_of
from ddlopt.models.errors import SolverError
from ddlopt.models.remembered import remembered
from ddlopt.models.scheduling.bounds import on_grid, prices, work_of_plans
from ddlopt.models.scheduling.instance import SchedulingInstance
from ddlopt.models.scheduling.types import at_their_fastest
from ddlopt.models.scheduling.utility import Capped
from ddlopt.models.tolerances import ROUNDING

_PRICES = "ddlopt.frontier.scheduling.prices"


@dataclass(frozen=True)
class Effort:
    """How long a bound may take that is calculated before anything is searched for."""

    slack: float = 1e-5
    """How near to the best plans must be, as a part of their job's worth. The bound allows for it; that is far less
    than the tenth of a per cent by which it is mostly off."""
    room: int = 300
    """Beginnings of a plan that are kept. The bound allows for those that are dropped."""
    plans: int = 4_000_000
    """Work of plain plans, :func:`~ddlopt.models.scheduling.bounds.work_of_plans`: a tenth of a second."""
    kept_ns: int = 300_000_000
    """Work of plans that are kept: a third of a second, and they seldom say more where there are so many."""
    typed_ns: int = 25_000_000_000
    """Work of plans on types: no other bound knows that fast types are few, so that it may take half a minute."""
    most_offers: int = 20_000
    """Of all jobs in a slot: the linear relaxation has a column for each in every interval."""
    least_weight: float = 1e-9
    """Of a job in the smallest part done, since utilities have to be positive."""


EFFORT = Effort()


@remembered
def plans_bound(instance: SchedulingInstance) -> float | None:
    """Upper bound on utilities, and with types on the smallest part done; None elsewhere, and where plans are many.

    At the prices of :mod:`~ddlopt.models.scheduling.prices.lagrangian` jobs choose among whole widths if there are not
    too many, and keep them where changes lose time or runs have a least length
    (:class:`~ddlopt.frontier.scheduling.prices.plan_pricing.PlanPricing`). With types of accelerators it is the better
    of that with every job on its fastest one and of that by prices of types (:func:`typed_bound`).
    """
    if instance.objective not in ("utility", "max_min"):
        return None
    found = typed_bound(instance) if instance.typed else math.inf
    if instance.objective == "utility":
        found = min(found, _whole_bound(instance))
    return found if math.isfinite(found) else None


def kernels_of_plans(instance: SchedulingInstance) -> tuple[str, ...]:
    """What :func:`plans_bound` calls on an instance."""
    if instance.objective not in ("utility", "max_min"):
        return ()
    plans = (f"{_PRICES}.plan_kernels",) if instance.objective == "utility" or instance.typed else ()
    keeps = instance.objective == "utility" and (instance.changes_cost or instance.runs_are_long)
    return (*plans, f"{_PRICES}.kept_kernels") if keeps else plans


def _whole_bound(instance: SchedulingInstance) -> float:
    """By whole widths; endless where they are too many."""
    fastest, found = at_their_fastest(instance) if instance.typed else instance, prices(instance).prices
    if work_of_plans(fastest) > EFFORT.plans:
        return math.inf
    whole = PlanPricing(fastest, keeps=False).answer(found, EFFORT.slack, EFFORT.room).bound
    if instance.changes_cost or instance.runs_are_long:
        pricing = PlanPricing(fastest, keeps=True)
        if pricing.work <= EFFORT.kept_ns:
            whole = min(whole, pricing.answer(found, EFFORT.slack, EFFORT.room).bound)
    return on_grid(fastest, whole)


def typed_bound(instance: SchedulingInstance) -> float:
    r"""Upper bound for ``utility`` and ``max_min`` at the prices of the linear relaxation; endless without any.

    The smallest part done is no more than :math:`\sum_i \mu_i p_i / \sum_i \mu_i`, the sum of utilities
    :math:`\mu_i p_i`, for any weights :math:`\mu_i \ge 0`: those of the relaxation.
    """
    if sum(len(job.widths) * len(job.speeds or "1") for job in instance.jobs) > EFFORT.most_offers:
        return math.inf
    try:
        found = fluid(instance)
    except SolverError:
        return math.inf
    weight = 1.0
    if instance.objective == "max_min":
        weights = np.maximum(found.progress, EFFORT.least_weight)
        weight = float(weights.sum())
        jobs = [
            job.model_copy(update={"utility": Capped(value=float(each))})
            for job, each in zip(instance.jobs, weights, strict=True)
        ]
        instance = instance.changed(objective="utility", jobs=tuple(jobs))
    pricing = PlanPricing(instance)
    if pricing.work > EFFORT.typed_ns:
        return math.inf
    return pricing.answer(prices_of(found), EFFORT.slack, EFFORT.room).bound / weight * (1 + ROUNDING)
