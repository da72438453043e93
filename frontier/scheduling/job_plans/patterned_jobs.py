"""Jobs and their options in slots, for plans of jobs within patterns of slots."""

import math

import numpy as np

from ddlopt.certificates.scheduling.ring_rows import ring_rows
from ddlopt.frontier.scheduling.job_plans.patterned_plans import PatternedPlan, PatternedPlans
from ddlopt.frontier.scheduling.job_plans.rounds import each_slot, interchangeable_slots
from ddlopt.frontier.scheduling.job_plans.slot_cuts import SlotOptions
from ddlopt.frontier.scheduling.prices.plan_pricing import PlanPricing
from ddlopt.frontier.scheduling.type_rows import TypeRows
from ddlopt.models.scheduling import SchedulingInstance
from ddlopt.models.tolerances import let_pass
from ddlopt.solvers.heuristic import Clock
from ddlopt.solvers.scheduling.slot.rates import Floats, Ints


class PatternedJobs:
    """Jobs whose options in a slot are the offers of a pricing, for ``PatternedPlans``.

    Offers on types fit by :class:`~ddlopt.frontier.scheduling.type_rows.TypeRows`. Widths fit where they do in a pool
    of all servers and by :func:`~ddlopt.certificates.scheduling.ring_rows.ring_rows`, as long as few states are left of
    capacities. Every slot is an interval of its own where jobs keep widths; where they need not, interchangeable slots
    are one.

    Parameters
    ----------
    pricing : PlanPricing
    options : SlotOptions
        What the offers of all jobs take of a slot.

    Attributes
    ----------
    span_of : (T,) array
        Interval of each slot, -1 where no job may run.
    """

    @classmethod
    def of(cls, instance: SchedulingInstance, pricing: PlanPricing | None = None) -> "PatternedJobs | None":
        """Those of an instance in which whole numbers of few resources say what fits; None of others."""
        mine = PlanPricing(instance) if pricing is None else pricing
        options = _offers_on_types(mine) if instance.accelerators.matter else _widths_in_pool(mine)
        return None if options is None else cls(mine, options)

    def __init__(self, pricing: PlanPricing, options: SlotOptions) -> None:
        self.pricing, self.options, instance = pricing, options, pricing.instance
        self._starts: Ints = np.array(options.starts)
        self.lengths, self.span_of = each_slot(instance) if pricing.keeps else interchangeable_slots(instance)
        # Where classes have several types, their offers say what fits only if a worker's energy is the same on all.
        each = pricing.cluster.worker_cost[0]
        self._energy: Floats = each * np.concatenate([own.widths for own in pricing.offers]).astype(float)

    def by_job(self, charges: Floats) -> list[Floats]:
        """(T, O) of each job's offers, by those of intervals."""
        return np.split(_by_slot(charges, self.span_of), self._starts[1:-1], axis=1)

    def costs(self, charges: Floats) -> list[Floats]:
        """(T, O) of each job's offers, energy included."""
        return self.by_job(charges + self._energy)

    def options_of(self, job: int) -> list[tuple[tuple[int, ...], int]]:
        """Of each offer its types, as places in their order, and its width."""
        own = self.pricing.offers[job]
        return [(own.types[k], width) for k, width in zip(own.of_class.tolist(), own.widths.tolist(), strict=True)]

    def plan(self, job: int, offers: Ints) -> PatternedPlan:
        """That of (T,) offers, -1 for none."""
        slots = np.flatnonzero(offers >= 0)
        own = self._starts[job] + offers[slots]
        worth = float(self.pricing.instance.jobs[job].utility.of(self.pricing.part(job, offers)))
        places = self.span_of[slots] * self._starts[-1] + own
        return PatternedPlan(job, places, worth - float(self._energy[own].sum()), offers.copy())

    def plans_at(
        self, charges: Floats, income: float, slack: float, room: int
    ) -> tuple[float, Floats, list[PatternedPlan]]:
        """Bound, values and plans at charges for offers."""
        found = self.pricing.answer_to_costs(self.costs(charges), income, slack, room)
        return found.bound, found.values, [self.plan(job, row) for job, row in enumerate(found.offers)]


def _widths_in_pool(pricing: PlanPricing) -> SlotOptions | None:
    """What widths take of a pool and of cuts that rings leave; None if workers take parts, or states are many."""
    demand, capacity = pricing.cluster.demand, np.floor(let_pass(pricing.capacity))
    if (demand != np.floor(demand)).any():
        return None
    widths = [own.widths for own in pricing.offers]
    weights = [np.outer(mine, taken) for mine, taken in zip(widths, demand, strict=True)]
    options = SlotOptions(_starts(pricing), np.vstack(weights).astype(np.int64), capacity.astype(np.int64))
    for row in ring_rows(pricing.instance):
        units = np.concatenate([mine[each] for mine, each in zip(row.units, widths, strict=True)])
        more = options.within(units, row.capacity)
        options = more if more.are_few else options
    return options if options.are_few else None


def _offers_on_types(pricing: PlanPricing) -> SlotOptions | None:
    """What offers take of sets of types; None where these do not say what fits."""
    rows = TypeRows.of(pricing.instance)
    if isinstance(rows, str):
        return None
    weights = [
        rows.weights(job, kind, width)
        for job, own in enumerate(pricing.offers)
        for kind, width in zip(own.of_class.tolist(), own.widths.tolist(), strict=True)
    ]
    return SlotOptions(_starts(pricing), np.array(weights, dtype=np.int64), np.array(rows.capacity))


def _starts(pricing: PlanPricing) -> Ints:
    found: Ints = np.cumsum([0, *(len(own.widths) for own in pricing.offers)])
    return found


def _by_slot(charges: Floats, span_of: Ints) -> Floats:
    """(T, O) charges by those of the intervals, (K, O)."""
    found: Floats = np.vstack([charges, np.zeros((1, charges.shape[1]))])[span_of]
    return found


def jobs_of(instance: SchedulingInstance) -> PatternedJobs | None:
    """Those of an instance whose utility plans within patterns bound: with types, or whole numbers of few resources."""
    return PatternedJobs.of(instance) if instance.goal.counts_utilities else None


def bound_by_patterns(instance: SchedulingInstance, clock: Clock, wanted: float, reserve_s: float = 0.0) -> float:
    """Bound on utility by plans of jobs within patterns of slots, ``wanted`` if it can be; endless where none is known.

    All but ``reserve_s`` seconds of the time left are for it.
    """
    jobs = jobs_of(instance)
    if jobs is None or clock.left_s <= reserve_s:
        return math.inf
    patterned = PatternedPlans(jobs, clock)
    try:
        patterned.improve(wanted, reserve_s)
    finally:
        patterned.master.close()
    return patterned.best.bound
