"""Jobs and their options in slots, for plans of jobs within patterns of slots."""

import math

import numpy as np

from ddlopt.certificates.scheduling.ring_rows import ring_rows
from ddlopt.frontier.scheduling.intervals import intervals
from ddlopt.frontier.scheduling.job_plans.patterned_plans import PatternedPlan, PatternedPlans
from ddlopt.frontier.scheduling.job_plans.slot_cuts import SlotOptions
from ddlopt.frontier.scheduling.prices.kept_plans import KeptPlanPricing
from ddlopt.frontier.scheduling.prices.type_plans import TypePlanPricing
from ddlopt.frontier.scheduling.type_rows import TypeRows
from ddlopt.models.scheduling import SchedulingInstance
from ddlopt.models.tolerances import FEASIBILITY_TOL
from ddlopt.solvers.heuristic import Clock
from ddlopt.solvers.scheduling.slot.rates import Floats, Ints


class KeptJobs:
    """Jobs whose options in a slot are widths, for ``PatternedPlans``.

    Widths fit where they do in a pool of all servers and by
    :func:`~ddlopt.certificates.scheduling.ring_rows.ring_rows`, as long as few states are left of capacities. Every
    slot is an interval of its own where jobs keep widths; where they need not, alike slots are one.

    Parameters
    ----------
    pricing : KeptPlanPricing

    Attributes
    ----------
    keeps : bool
        Whether slots are apart.
    span_of : (T,) array
        Interval of each slot, -1 where no job may run.
    """

    @classmethod
    def of(cls, instance: SchedulingInstance) -> "KeptJobs | None":
        """Those of an instance whose workers take whole numbers of few resources; None of others."""
        pricing = KeptPlanPricing(instance)
        whole = (pricing.demand == np.floor(pricing.demand)).all()
        jobs = cls(pricing) if whole else None
        return jobs if jobs is not None and jobs.options.are_few else None

    def __init__(self, pricing: KeptPlanPricing) -> None:
        self.pricing, instance = pricing, pricing.instance
        widths = pricing.widths
        self._starts: Ints = np.cumsum([0, *map(len, widths)])
        weights = [np.outer(mine, demand) for mine, demand in zip(widths, pricing.demand, strict=True)]
        capacity = np.floor(pricing.capacity + FEASIBILITY_TOL)
        self.options = SlotOptions(self._starts, np.vstack(weights).astype(np.int64), capacity.astype(np.int64))
        for row in ring_rows(instance):
            units = np.concatenate([mine[each] for mine, each in zip(row.units, widths, strict=True)])
            more = self.options.within(units, row.capacity)
            self.options = more if more.are_few else self.options
        self.keeps = instance.changes_cost or instance.runs_are_long
        self.lengths, self.span_of = _each_slot(instance) if self.keeps else _spans(instance)
        self._energy: Floats = pricing.worker_cost * np.concatenate(widths).astype(float)

    def by_job(self, charges: Floats) -> list[Floats]:
        """(T, W) of each job's widths, by those of intervals."""
        return np.split(_by_slot(charges, self.span_of), self._starts[1:-1], axis=1)

    def costs(self, charges: Floats) -> list[Floats]:
        """(T, W) of each job's widths, energy included."""
        return self.by_job(charges + self._energy)

    def options_of(self, job: int) -> list[tuple[tuple[int, ...], int]]:
        """Of each option its types, of which there is one, and its width."""
        return [((0,), width) for width in self.pricing.widths[job].tolist()]

    def plan(self, job: int, widths: Ints) -> PatternedPlan:
        """That of (T,) widths."""
        slots = np.flatnonzero(widths)
        own = self._starts[job] + np.searchsorted(self.pricing.widths[job], widths[slots])
        worth = float(self.pricing.instance.jobs[job].utility.of(self.pricing.part(job, widths)))
        energy = self.pricing.worker_cost * float(widths.sum())
        return PatternedPlan(job, self.span_of[slots] * self._starts[-1] + own, worth - energy, widths.copy())

    def plans_at(
        self, charges: Floats, income: float, slack: float, room: int
    ) -> tuple[float, Floats, list[PatternedPlan]]:
        """Bound, values and plans at charges for widths."""
        found = self.pricing.answer_to_costs(self.costs(charges), income, slack, room)
        return found.bound, found.values, [self.plan(job, row) for job, row in enumerate(found.widths)]


class TypeJobs:
    """Jobs whose options in a slot are widths on classes of types, for ``PatternedPlans``.

    Parameters
    ----------
    pricing : TypePlanPricing
    rows : TypeRows
        Of the same instance.
    """

    @classmethod
    def of(cls, instance: SchedulingInstance) -> "TypeJobs | None":
        """Those of an instance in which classes of types and widths say what fits; None of others."""
        rows = TypeRows.of(instance)
        return None if isinstance(rows, str) else cls(TypePlanPricing(instance), rows)

    def __init__(self, pricing: TypePlanPricing, rows: TypeRows) -> None:
        self._pricing = pricing
        self._starts: Ints = np.cumsum([0, *(len(each.widths) for each in pricing.offers)])
        weights = [
            rows.weights(job, kind, width)
            for job, each in enumerate(pricing.offers)
            for kind, width in zip(each.of_class.tolist(), each.widths.tolist(), strict=True)
        ]
        self.options = SlotOptions(self._starts, np.array(weights, dtype=np.int64), np.array(rows.capacity))
        self.lengths, self._span_of = _spans(pricing.instance)
        # Classes say nothing of types, so that rows are only there where a worker's energy is the same on all.
        self._energy: Floats = pricing.cluster.worker_cost[0] * np.concatenate([each.widths for each in pricing.offers])

    def by_job(self, charges: Floats) -> list[Floats]:
        """(T, O) of each job's offers, by those of intervals."""
        return np.split(_by_slot(charges, self._span_of), self._starts[1:-1], axis=1)

    def options_of(self, job: int) -> list[tuple[tuple[int, ...], int]]:
        """Of each offer its types, as places in their order, and its width."""
        own = self._pricing.offers[job]
        return [(own.types[k], width) for k, width in zip(own.of_class.tolist(), own.widths.tolist(), strict=True)]

    def plan(self, job: int, offers: Ints) -> PatternedPlan:
        """That of (T,) offers, -1 for none."""
        slots = np.flatnonzero(offers >= 0)
        own = self._starts[job] + offers[slots]
        wanted = self._pricing.instance.jobs[job]
        part = min(1.0, float(self._pricing.offers[job].gains[offers[slots]].sum()) / wanted.minibatches)
        worth = float(wanted.utility.of(part)) - float(self._energy[own].sum())
        return PatternedPlan(job, self._span_of[slots] * self._starts[-1] + own, worth, offers.copy())

    def plans_at(
        self, charges: Floats, income: float, slack: float, room: int
    ) -> tuple[float, Floats, list[PatternedPlan]]:
        """Bound, values and plans at charges for offers."""
        found = self._pricing.plans_at_costs(self.by_job(charges + self._energy), income, slack, room)
        return found.bound, found.values, [self.plan(job, row) for job, row in enumerate(found.offers)]


def _each_slot(instance: SchedulingInstance) -> tuple[Ints, Ints]:
    """Every slot as an interval: (T,) lengths, and (T,) the interval of each."""
    return np.ones(instance.slots, dtype=np.int64), np.arange(instance.slots)


def _spans(instance: SchedulingInstance) -> tuple[Ints, Ints]:
    """Alike slots as intervals: (K,) lengths, and (T,) the interval of each slot, -1 where no job may run."""
    spans, span_of = intervals(instance), np.full(instance.slots, -1)
    for k, span in enumerate(spans):
        span_of[span.first : span.last] = k
    return np.array([span.slots for span in spans]), span_of


def _by_slot(charges: Floats, span_of: Ints) -> Floats:
    """(T, O) charges by those of the intervals, (K, O)."""
    found: Floats = np.vstack([charges, np.zeros((1, charges.shape[1]))])[span_of]
    return found


def jobs_of(instance: SchedulingInstance) -> KeptJobs | TypeJobs | None:
    """Those of an instance whose utility plans within patterns bound: with types, or whole numbers of few resources."""
    if instance.objective != "utility":
        return None
    return TypeJobs.of(instance) if instance.typed else KeptJobs.of(instance)


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
