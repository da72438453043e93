"""Writes proofs by prices: those of column generation over plans of jobs, rounded to whole numbers."""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction

from ddlopt.certificates.scheduling import PriceCertificate
from ddlopt.certificates.scheduling.deadlines import in_time
from ddlopt.certificates.scheduling.patterns import options_of, rooms_of
from ddlopt.certificates.scheduling.relaxed import Cluster
from ddlopt.frontier.scheduling.bounds import prices as clearing_prices
from ddlopt.frontier.scheduling.bounds import work_of_plans
from ddlopt.frontier.scheduling.job_plans.job_plans import JobPlans, best_prices
from ddlopt.frontier.scheduling.job_plans.patterned_jobs import jobs_of
from ddlopt.frontier.scheduling.job_plans.patterned_plans import PatternedPlans
from ddlopt.frontier.scheduling.prices.fluid import fluid
from ddlopt.frontier.scheduling.prices.plan_pricing import PlanPricing, prices_of
from ddlopt.models.errors import NotApplicableError, RefutedError
from ddlopt.models.scheduling import Schedule, SchedulingInstance
from ddlopt.solvers.heuristic import Asked
from ddlopt.solvers.scheduling.slot.rates import Floats


@dataclass(frozen=True)
class Effort:
    """How whole numbers are chosen, and when no proof is tried."""

    units: int = 2**44
    """Of the target: a unit is nothing beside a gap, and numbers stay far below those that the checker refuses."""
    slack: float = 1e-9
    """Of a job's surplus, for what floating point is off by."""
    charged: float = 1e-7
    """Part of the target that a bound by charges leaves for rounding."""
    room: int = 20_000
    """Beginnings of plans kept for the values of its plans."""
    most_work: int = 2**30
    """In units of 25 ns, of the best plans of all jobs: more takes minutes over all rounds."""


_EFFORT = Effort()


def prove(
    instance: SchedulingInstance, solution: Schedule, target: Fraction, expired: Callable[[], bool]
) -> PriceCertificate | None:
    """The certificate that proves ``target``; None where prices do not bound utility by that, or the time is up.

    Prices are those of the combinatorial bound where column generation refuses the instance. A ratio of finish-time
    fairness is proven by deadlines that not all jobs can meet.
    """
    if target <= 0:
        return None
    if instance.goal.counts_ratios:
        asked, start, most = in_time(instance, target), None, len(instance.jobs) - Fraction(1, _EFFORT.units)
    else:
        asked, start, most = instance, solution, target
    if not asked.goal.counts_utilities or work_of_plans(asked) > _EFFORT.most_work:
        return None
    found = _best(asked, start, expired)
    if found is None or expired():
        return None
    prices, values = found
    certificate = _by_prices(instance, asked, prices, values, most, target)
    if certificate is None and not expired() and asked is instance:
        certificate = _by_charges(instance, target, expired)
    try:
        if certificate is not None:
            certificate.check(instance, expired)
    except (NotApplicableError, RefutedError):
        return None
    return None if expired() else certificate


def _by_prices(
    instance: SchedulingInstance,
    asked: SchedulingInstance,
    prices: Floats,
    values: Floats,
    most: Fraction,
    target: Fraction,
) -> PriceCertificate | None:
    """Prices in whole numbers, if what they say is enough."""
    scale = max(1, math.floor(_EFFORT.units / most))
    cluster = Cluster(asked)
    whole = [[max(0, round(price * scale)) for price in row] for row in prices.tolist()]
    income = sum((c * sum(row[r] for row in whole) for r, c in enumerate(cluster.capacity)), Fraction(0))
    surplus = _surplus(asked, values, scale, math.floor(most * scale - income))
    return None if surplus is None else PriceCertificate(instance.name, instance.digest, target, scale, whole, surplus)


def _by_charges(instance: SchedulingInstance, target: Fraction, expired: Callable[[], bool]) -> PriceCertificate | None:
    """Charges of options in slots, at which the dearest patterns are the bound, if that is enough."""
    cluster = Cluster(instance)
    jobs = jobs_of(instance)
    try:
        rooms_of(cluster)
    except NotApplicableError:
        return None
    if jobs is None:
        return None
    patterned = PatternedPlans(jobs, Asked(expired))
    try:
        patterned.improve(float(target) * (1 - _EFFORT.charged))
    finally:
        patterned.master.close()
    if patterned.best.bound > target or expired():
        return None
    values = jobs.plans_at(patterned.best.charges, patterned.best.income, _EFFORT.slack, _EFFORT.room)[1]
    scale, places = max(1, math.floor(_EFFORT.units / target)), range(len(instance.jobs))
    options = [options_of(instance, cluster, place) for place in places]
    by_job = [(jobs.options_of(place), costs) for place, costs in enumerate(jobs.by_job(patterned.best.charges))]
    charges: list[list[list[int]]] = []
    for slot in range(instance.slots):
        charges.append([])
        for place, job in enumerate(instance.jobs):
            here = job.arrival <= slot < instance.last_slot(place)
            own, costs = by_job[place]
            charges[-1].append(
                [round(_charge(each, own, costs[slot]) * scale) for each in options[place]] if here else []
            )
    free = [[0] * len(cluster.capacity)] * instance.slots
    certificate = PriceCertificate(instance.name, instance.digest, target, scale, free, [0] * len(places), charges)
    income = certificate.income(instance, cluster)
    surplus = _surplus(instance, values, scale, math.floor(target * scale - income))
    return None if surplus is None else replace(certificate, surplus=surplus)


def _charge(option: tuple[tuple[int, ...], int], own: list[tuple[tuple[int, ...], int]], costs: Floats) -> float:
    """What an option of the checker costs: what the dearest of ours costs on the same types that is no wider."""
    types, width = option
    mine = [cost for (kinds, most), cost in zip(own, costs.tolist(), strict=True) if kinds == types and most <= width]
    return max(mine, default=0.0)


def _surplus(instance: SchedulingInstance, values: Floats, scale: int, most: int) -> list[int] | None:
    """Of each job what its plans are worth at most, of ``most`` units in all; None if they are worth more."""
    least = [math.ceil(max(0.0, value) * (1 + _EFFORT.slack) * scale) + instance.slots for value in values.tolist()]
    spare = most - sum(least)
    # Plans that are nearly as good are the more, the less a job may be off by: all that is to spare is given out.
    return None if spare < 0 else [each + spare // len(least) for each in least]


def _best(
    instance: SchedulingInstance, start: Schedule | None, expired: Callable[[], bool]
) -> tuple[Floats, Floats] | None:
    """(T, K R) prices, and (I,) what the best plan of each job is worth at them; of a relaxation if more matters."""
    pricing = PlanPricing(instance)
    if pricing.keeps and start is None:
        return None
    if JobPlans().refuses(instance) is None and (instance.preemptive or not instance.accelerators.matter):
        prices = best_prices(instance, start, Asked(expired))
    else:
        prices = prices_of(fluid(instance)) if instance.accelerators.matter else clearing_prices(instance).prices
    return None if expired() else (prices, pricing.answer(prices).values)
