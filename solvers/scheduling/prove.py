"""Writes proofs by prices: those of column generation over plans of jobs, rounded to whole numbers."""

import math
from collections.abc import Callable
from fractions import Fraction

from ddlopt.models.errors import NotApplicableError, RefutedError
from ddlopt.models.scheduling import Schedule, SchedulingInstance
from ddlopt.models.scheduling.bounds import prices as clearing_prices
from ddlopt.models.scheduling.bounds import work_of_plans
from ddlopt.models.scheduling.certificate import PriceCertificate
from ddlopt.models.scheduling.certificate.deadlines import in_time
from ddlopt.models.scheduling.certificate.relaxed import Cluster
from ddlopt.models.scheduling.certificate.typed import TypedCluster
from ddlopt.models.scheduling.prices.fluid import fluid
from ddlopt.models.scheduling.prices.job_plans import PlanPricing
from ddlopt.models.scheduling.prices.kept_plans import KeptPlanPricing
from ddlopt.models.scheduling.prices.type_plans import TypePlanPricing, prices_of
from ddlopt.solvers.heuristic import Asked
from ddlopt.solvers.scheduling.job_plans.job_plans import JobPlans, best_prices
from ddlopt.solvers.scheduling.job_plans.type_search import best_type_prices
from ddlopt.solvers.scheduling.slot.rates import Floats

_UNITS = 2**44
"""Of the target: a unit is nothing beside a gap, and numbers stay far below those that the checker refuses."""
_SLACK = 1e-9
"""Of a job's surplus, for what floating point is off by."""

_MOST_WORK = 2**30
"""In units of 25 ns, of the best plans of all jobs: more takes minutes over all rounds."""


def prove(
    instance: SchedulingInstance, solution: Schedule, target: Fraction, expired: Callable[[], bool]
) -> PriceCertificate | None:
    """The certificate that proves ``target``; None where prices do not bound utility by that, or the time is up.

    Prices are those of the combinatorial bound where column generation refuses the instance. A ratio of finish-time
    fairness is proven by deadlines that not all jobs can meet.
    """
    if target <= 0:
        return None
    if instance.objective == "finish_time_fairness":
        asked, start, most = in_time(instance, target), None, len(instance.jobs) - Fraction(1, _UNITS)
    else:
        asked, start, most = instance, solution, target
    if asked.objective != "utility" or work_of_plans(asked) > _MOST_WORK:
        return None
    found = _typed(asked, expired) if asked.typed else _untyped(asked, start, expired)
    if found is None or expired():
        return None
    prices, values = found
    scale = max(1, math.floor(_UNITS / most))
    cluster = TypedCluster(asked) if asked.typed else Cluster(asked)
    whole = [[max(0, round(price * scale)) for price in row] for row in prices.tolist()]
    income = sum(c * sum(row[r] for row in whole) for r, c in enumerate(cluster.capacity))
    least = [math.ceil(max(0.0, value) * (1 + _SLACK) * scale) + asked.slots for value in values.tolist()]
    spare = math.floor(most * scale - income) - sum(least)
    if spare < 0:
        return None
    # Plans that are nearly as good are the more, the less a job may be off by: all that is to spare is given out.
    surplus = [each + spare // len(least) for each in least]
    try:
        certificate = PriceCertificate(instance.name, instance.digest, target, scale, whole, surplus)
        certificate.check(instance, expired)
    except (NotApplicableError, RefutedError):
        return None
    return None if expired() else certificate


def _untyped(
    instance: SchedulingInstance, start: Schedule | None, expired: Callable[[], bool]
) -> tuple[Floats, Floats] | None:
    """(T, R) prices, and (I,) what the best plan of each job is worth at them."""
    keeps = instance.changes_cost or instance.runs_are_long
    if keeps and start is None:
        return None
    pricing = KeptPlanPricing(instance) if keeps else PlanPricing(instance)
    if JobPlans().refuses(instance) is None:
        prices = best_prices(instance, start, Asked(expired))
    else:
        prices = clearing_prices(instance).prices
    return None if expired() else (prices, pricing.answer(prices).values)


def _typed(instance: SchedulingInstance, expired: Callable[[], bool]) -> tuple[Floats, Floats] | None:
    """The same by type, (T, K R); of a relaxation if types are not all that matters."""
    if instance.preemptive and JobPlans().refuses(instance) is None:
        prices = best_type_prices(instance, Asked(expired))
    else:
        prices = prices_of(fluid(instance))
    return None if expired() else (prices, TypePlanPricing(instance).plans(prices).values)
