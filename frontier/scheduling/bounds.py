"""Bounds by plans of jobs: each job chooses among whole widths at the prices that fractions of widths have."""

import math

from ddlopt.frontier.scheduling.prices.job_plans import PlanPricing
from ddlopt.frontier.scheduling.prices.kept_plans import KeptPlanPricing
from ddlopt.frontier.scheduling.prices.type_plans import typed_bound
from ddlopt.models.remembered import remembered
from ddlopt.models.scheduling.bounds import on_grid, prices, work_of_plans
from ddlopt.models.scheduling.instance import SchedulingInstance
from ddlopt.models.scheduling.types import at_their_fastest

_PRICES = "ddlopt.frontier.scheduling.prices"
_SLACK, _ROOM = 1e-5, 300
"""How near to the best its plans must be, and how many beginnings of one are kept: the bound allows for both."""
_PLANS_WORK = 4_000_000
"""Work of the best plans up to which they are asked for: a tenth of a second."""
_KEPT_WORK = 300_000_000
"""The same where changes lose time or runs have a least length: half a second."""


@remembered
def plans_bound(instance: SchedulingInstance) -> float | None:
    """Upper bound on utilities, and with types on the smallest part done; None elsewhere, and where plans are many.

    At the prices of :mod:`~ddlopt.models.scheduling.prices.lagrangian` jobs choose among whole widths if there are not
    too many (:class:`~ddlopt.frontier.scheduling.prices.job_plans.PlanPricing`), and keep them where changes lose time
    or runs have a least length (:class:`~ddlopt.frontier.scheduling.prices.kept_plans.KeptPlanPricing`). With types of
    accelerators it is the better of that with every job on its fastest one and of that by prices of types
    (:func:`~ddlopt.frontier.scheduling.prices.type_plans.typed_bound`).
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
    plans = (f"{_PRICES}.plan_kernels",) if instance.objective == "utility" else ()
    offers = (f"{_PRICES}.offer_kernels",) if instance.typed else ()
    keeps = instance.objective == "utility" and (instance.changes_cost or instance.runs_are_long)
    return (*plans, *offers, f"{_PRICES}.kept_kernels") if keeps else (*plans, *offers)


def _whole_bound(instance: SchedulingInstance) -> float:
    """By whole widths; endless where they are too many."""
    fastest, found = at_their_fastest(instance) if instance.typed else instance, prices(instance).prices
    if work_of_plans(fastest) > _PLANS_WORK:
        return math.inf
    whole = PlanPricing(fastest).answer(found, _SLACK, _ROOM).bound
    if instance.changes_cost or instance.runs_are_long:
        pricing = KeptPlanPricing(fastest)
        if pricing.work <= _KEPT_WORK:
            whole = min(whole, pricing.answer(found, _SLACK, _ROOM).bound)
    return on_grid(fastest, whole)
