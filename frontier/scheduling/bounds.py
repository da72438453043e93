"""Bounds by prices on slots, by plans of jobs at these prices, and on times by what excludes deadlines best."""

import math
from dataclasses import dataclass

import numpy as np

from ddlopt.frontier.scheduling.makespan.bounds import completion_bound, makespan_bound
from ddlopt.frontier.scheduling.makespan.ratios import ratio_bound
from ddlopt.frontier.scheduling.prices.fluid import fluid
from ddlopt.frontier.scheduling.prices.lagrangian import Answer, quick_bound
from ddlopt.frontier.scheduling.prices.plan_pricing import PlanPricing, prices_of
from ddlopt.models.errors import SolverError
from ddlopt.models.remembered import remembered
from ddlopt.models.scheduling.bounds import on_grid
from ddlopt.models.scheduling.instance import SchedulingInstance
from ddlopt.models.scheduling.utility import Capped
from ddlopt.models.tolerances import ROUNDING

_PRICES = "ddlopt.frontier.scheduling.prices"


@dataclass(frozen=True)
class Effort:
    """How long a bound may take that is calculated before anything is searched for."""

    slack: float = 1e-5
    """How near to the best plans must be, as a part of their job's worth. The bound allows for it; that is far less
    than the tenth of a per cent by which it is mostly off."""
    room: int = 1000
    """Beginnings of a plan that are kept. The bound allows for those that are dropped."""
    plans: int = 4_000_000
    """Work of plain plans, :func:`work_of_plans`: a tenth of a second."""
    kept_ns: int = 300_000_000
    """Work of plans that are kept: a third of a second, and more work seldom gives a better bound."""
    typed_ns: int = 25_000_000_000
    """Work of plans on types: no other bound knows that fast types are few, so that it may take half a minute."""
    most_offers: int = 20_000
    """Of all jobs in a slot: the linear relaxation has a column for each in every interval."""
    least_weight: float = 1e-9
    """Of a job in the smallest part done, since utilities have to be positive."""


EFFORT = Effort()


@remembered
def prices(instance: SchedulingInstance) -> Answer:
    """The prices of resources in every slot, for objectives that are maximised, and the bound by fractions of widths.

    They are calculated once for an instance, with every job on its fastest type of accelerators; with 200 jobs in 100
    slots that takes a tenth of a second, with 80 000 jobs in 2 600 slots some ten seconds.
    """
    if instance.sense != "maximize":
        raise ValueError(f"objective '{instance.objective}' is not maximised")
    return quick_bound(instance.at_their_fastest())


def prices_bound(instance: SchedulingInstance) -> float | None:
    """Upper bound on utilities and on the smallest part done by :func:`prices`; None elsewhere."""
    return on_grid(instance, prices(instance).bound) if instance.sense == "maximize" else None


@remembered
def times_bound(instance: SchedulingInstance) -> float | None:
    """Lower bound on times; None for objectives that are maximised.

    Raises
    ------
    InfeasibleError
        If it proves that not all jobs can be finished in time.
    """
    fastest = instance.at_their_fastest()
    if instance.goal.counts_last_end:
        return makespan_bound(fastest)
    if instance.goal.counts_ends:
        return completion_bound(fastest)
    return ratio_bound(fastest) if instance.goal.counts_ratios else None


def kernels_of_prices(instance: SchedulingInstance) -> tuple[str, ...]:
    """What :func:`prices_bound` and :func:`times_bound` call on an instance."""
    return () if instance.goal.in_seconds else (f"{_PRICES}.lagrangian_kernels",)


def work_of_plans(instance: SchedulingInstance) -> int:
    """Of finding the best plan of every job, roughly in units of 25 ns; in long windows there are more to compare."""
    windows = ((instance.last_slot(i) - job.arrival, len(job.widths)) for i, job in enumerate(instance.jobs))
    return sum(slots * widths * (100 + slots) for slots, widths in windows)


@remembered
def plans_bound(instance: SchedulingInstance) -> float | None:
    """Upper bound on utilities, and with types on the smallest part done; None elsewhere, and where plans are many.

    At the prices of :func:`prices` jobs choose among whole widths if there are not too many, and keep them where
    changes lose time or runs have a least length
    (:class:`~ddlopt.frontier.scheduling.prices.plan_pricing.PlanPricing`). With types of accelerators it is the better
    of that with every job on its fastest one and of that by prices of types (:func:`typed_bound`).
    """
    if instance.goal.must_finish:
        return None
    found = typed_bound(instance) if instance.accelerators.matter else math.inf
    if instance.goal.counts_utilities:
        found = min(found, _whole_bound(instance))
    return found if math.isfinite(found) else None


def kernels_of_plans(instance: SchedulingInstance) -> tuple[str, ...]:
    """What :func:`plans_bound` calls on an instance."""
    if instance.goal.must_finish:
        return ()
    return (f"{_PRICES}.plan_kernels",) if instance.goal.counts_utilities or instance.accelerators.matter else ()


def _whole_bound(instance: SchedulingInstance) -> float:
    """By whole widths; endless where they are too many."""
    fastest, found = instance.at_their_fastest(), prices(instance).prices
    if work_of_plans(fastest) > EFFORT.plans:
        return math.inf
    whole = PlanPricing(fastest, keeps=False).answer(found, EFFORT.slack, EFFORT.room).bound
    if instance.changes.matter:
        pricing = PlanPricing(fastest, keeps=True)
        if pricing.work <= EFFORT.kept_ns:
            whole = min(whole, pricing.answer(found, EFFORT.slack, EFFORT.room).bound)
    return on_grid(fastest, whole)


def typed_bound(instance: SchedulingInstance) -> float:
    r"""Upper bound for ``utility`` and ``max_min`` at the prices of the linear relaxation; endless without any.

    The smallest part done is no more than :math:`\sum_i \mu_i p_i / \sum_i \mu_i`, the sum of utilities
    :math:`\mu_i p_i`, for any weights :math:`\mu_i \ge 0`: those of the relaxation.
    """
    classes = (len(instance.accelerators.classes(i)) for i in range(len(instance.jobs)))
    if sum(len(job.widths) * count for job, count in zip(instance.jobs, classes, strict=True)) > EFFORT.most_offers:
        return math.inf
    try:
        found = fluid(instance)
    except SolverError:
        return math.inf
    weight = 1.0
    if instance.goal.counts_least_part:
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
