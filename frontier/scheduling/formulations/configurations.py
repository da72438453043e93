"""Whole slots as choices: how many slots between two events look like which pattern of widths."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np
import pyomo.environ as pyo

from ddlopt.frontier.scheduling.formulations.pieces import add_smallest, add_utilities, pieces_of
from ddlopt.frontier.scheduling.intervals import Interval, intervals
from ddlopt.frontier.scheduling.type_rows import TypeRows
from ddlopt.models.covering import FormulationBase
from ddlopt.models.errors import SolverError
from ddlopt.models.linear import linear
from ddlopt.models.scheduling.formulations.time_indexed.runs import Choices, Terms, choices
from ddlopt.models.scheduling.instance import SchedulingInstance
from ddlopt.models.scheduling.pool import Workers, pool, schedule_of_places, schedule_of_widths
from ddlopt.models.scheduling.refusals import HASTY
from ddlopt.models.scheduling.solution import Schedule
from ddlopt.models.scheduling.units import objective_unit
from ddlopt.models.tolerances import INTEGRALITY_TOL
from ddlopt.solvers.scheduling.slot.knapsack import scarce_resources, whole_costs

Pattern = tuple[tuple[int, int], ...]
"""(job, positive width) of the jobs that run in a slot, by job."""

# Columns that are listed rather than generated.
_MOST_PATTERNS = 20_000


@dataclass(frozen=True)
class PatternPlan:
    """An instance as patterns have it.

    Parameters
    ----------
    jobs : tuple of Choices
        By job: widths, and the progress in a slot at each.
    spans : tuple of Interval
    costs : (I,) array of int
        What a worker of each job takes of the one resource that can run short, and ``capacity``, all of it.
    worker_price : float
        What the energy of a worker costs in a slot.
    """

    jobs: tuple[Choices, ...]
    spans: tuple[Interval, ...]
    costs: Any
    capacity: int
    worker_price: float
    rows: TypeRows | None = None
    """Where speeds depend on types: capacities of sets of them. A width is then that of a class, as in ``Choices``."""

    @classmethod
    def of(cls, instance: SchedulingInstance) -> "PatternPlan":
        """The plan of an instance that patterns cover; see :func:`why_no_patterns`."""
        price = instance.energy_price_per_j * instance.slot_s * float(instance.worker_w.min())
        jobs, spans = tuple(choices(instance, "all", ())), tuple(intervals(instance))
        if instance.accelerators.matter:
            rows = TypeRows.of(instance)
            assert isinstance(rows, TypeRows)
            return cls(jobs, spans, np.ones(len(jobs), dtype=np.int64), sum(rows.rooms), price, rows)
        costs, capacity = _costs(instance)
        return cls(jobs, spans, costs, capacity, price)

    @property
    def room(self) -> tuple[int, ...]:
        """All capacities."""
        return (self.capacity,) if self.rows is None else self.rows.capacity

    def weights(self, job: int, width: int) -> tuple[int, ...]:
        """What a width takes of them."""
        c = self.jobs[job]
        if self.rows is None:
            return (width * int(self.costs[job]),)
        return self.rows.weights(job, c.class_of(width), c.workers(width))

    def gains(self, pattern: Pattern) -> list[tuple[int, float]]:
        """(job, progress) in a slot with this pattern."""
        return [(job, self.jobs[job].gain(width, changed=False)) for job, width in pattern]

    def price(self, pattern: Pattern) -> float:
        """What the energy of a slot with this pattern costs."""
        return self.worker_price * sum(self.jobs[job].workers(width) for job, width in pattern)


def _costs(instance: SchedulingInstance) -> Any:
    return whole_costs(scarce_resources(pool(instance), np.array([job.max_workers for job in instance.jobs])))


def why_no_patterns(instance: SchedulingInstance) -> str | None:
    """Why patterns of widths do not cover an instance; None if they do."""
    if instance.changes.must_wait:
        return HASTY
    if instance.sense == "minimize":
        return f"the objective is {instance.objective!r}, and where a pattern is within its interval does not count"
    if not instance.preemptive:
        return "jobs run in one piece, but slots of an interval come in any order"
    if instance.changes.cost_time:
        return "changes cost time, but slots of an interval come in any order"
    if not instance.accelerators.matter and not pool(instance).exact:
        return "it matters which servers the workers are on"
    if instance.energy_price_per_j and instance.idle_w.any():
        return "servers have a power of their own"
    unfit = next((job.name for job in instance.jobs if not job.utility.concave), None)
    if unfit is not None and instance.goal.counts_utilities:
        return f"the utility of job '{unfit}' is not concave"
    found = TypeRows.of(instance) if instance.accelerators.matter else _costs(instance)
    return found if isinstance(found, str) else None


def all_patterns(plan: PatternPlan, span: Interval) -> Iterator[Pattern]:
    """Every pattern of an interval that fits; the empty one is left out."""

    def extend(place: int, left: tuple[int, ...], chosen: Pattern) -> Iterator[Pattern]:
        if place == len(span.jobs):
            if chosen:
                yield chosen
            return
        job = span.jobs[place]
        yield from extend(place + 1, left, chosen)
        for width in plan.jobs[job].widths:
            rest = tuple(room - taken for room, taken in zip(left, plan.weights(job, width), strict=True))
            if min(rest) >= 0:
                yield from extend(place + 1, rest, (*chosen, (job, width)))

    return extend(0, plan.room, ())


@dataclass(frozen=True)
class Configurations(FormulationBase):
    r"""How many slots of each interval look like which pattern of widths.

    Slots between two events (arrivals, deadlines) are interchangeable. A *pattern* p of interval k is a width
    :math:`w_{ip}` for each job that is present, with :math:`\sum_i l_i w_{ip} \le C`. Let :math:`n_k` be the number of
    slots of interval k, and :math:`y_{kp} \in \mathbb{Z}_{\ge 0}` how many of them look like p:

    .. math::
        \max\ & \textstyle\sum_i \bar u_i(q_i) - \sum_{kp} e_p\, y_{kp} \\
        & \textstyle\sum_p y_{kp} \le n_k \\
        & F_i\, q_i \le \textstyle\sum_{kp} \min(\varphi_i(w_{ip}), F_i)\, y_{kp},\qquad 0 \le q_i \le 1

    with concave :math:`u_i` replaced by pieces of tangents :math:`\bar u_i \ge u_i` (the objective is then an estimate,
    ``outer``) and :math:`e_p` the price of energy; for ``max_min`` one q stands in place of every :math:`q_i`.

    With types of accelerators a width is one on a class of types, and each set of types has a capacity
    (:class:`~ddlopt.frontier.scheduling.type_rows.TypeRows`).

    The size does not depend on the number of slots, but on that of patterns, which are legion. The linear relaxation is
    at least as strong as that of :class:`~ddlopt.models.scheduling.formulations.time_indexed.time_indexed.TimeIndexed`,
    as within a pattern the capacity is that of whole workers. Merely counting how often a job has a width in an
    interval would be a relaxation: 3 jobs of width 2 in 2 slots of 3 places take an area of 6 of 6, but only one fits
    at a time.

    Parameters
    ----------
    patterns : tuple of tuple of patterns, optional
        For each of :func:`intervals` the patterns that may be used, each ((job, width), …) by job. Default: all of
        them, where they are few.

    Ports
    -----
    ``times[k, p]``
        Slots of interval k with its pattern p, in the order of ``patterns``.
    ``fill[i, m]`` : objective ``utility``
        Progress of job i within piece m of its utility, in slots at its fastest width.
    ``smallest`` : objective ``max_min``
        The smallest part, in units.
    ``objective``
        Total utility less the price of energy, or the smallest part, in units of
        :func:`~ddlopt.models.scheduling.units.objective_unit`; to be maximised.

    References
    ----------
    P. C. Gilmore, R. E. Gomory, "A linear programming approach to the cutting-stock problem", Operations Research 9(6),
    1961, for patterns. There a pattern cuts a roll of stock, and the demand for each width is met. Here a pattern fills
    an interval between two events with jobs, and each job's gain is maximized; that use of patterns is ours.
    """

    patterns: tuple[tuple[Pattern, ...], ...] | None = None

    sense: ClassVar[Literal["minimize", "maximize"]] = "maximize"
    outer: ClassVar[bool] = True

    def refuses(self, instance: SchedulingInstance) -> str | None:
        """Where places or order matter, several resources run short, or there are too many patterns."""
        reason = why_no_patterns(instance)
        if reason is not None or self.patterns is not None:
            return reason
        plan, count = PatternPlan.of(instance), 0
        for span in plan.spans:
            for _ in all_patterns(plan, span):
                count += 1
                if count > _MOST_PATTERNS:
                    return f"there are more than {_MOST_PATTERNS} patterns; use column generation"
        return None

    def scope(self, instance: SchedulingInstance) -> str | None:
        """Schedules of the patterns given."""
        return None if self.patterns is None else "patterns given"

    def build(self, block: pyo.Block, instance: SchedulingInstance) -> None:
        """Fill ``block``."""
        plan, unit, goal = PatternPlan.of(instance), objective_unit(instance), instance.goal
        patterns = self._patterns(plan)
        uses = [(k, p) for k, here in enumerate(patterns) for p in range(len(here))]
        block.USES = pyo.Set(dimen=2, initialize=uses, doc="(interval, pattern)")
        block.times = pyo.Var(
            block.USES,
            domain=pyo.NonNegativeIntegers,
            bounds=lambda _, k, __: (0, plan.spans[k].slots),
            doc="slots of the interval that look like the pattern",
        )

        @block.Constraint(range(len(plan.spans)), doc="patterns of an interval fill its slots")
        def interval_is_long_enough(b: Any, k: int) -> Any:
            if not patterns[k]:
                return pyo.Constraint.Skip
            return linear((1.0, b.times[k, p]) for p in range(len(patterns[k]))) <= plan.spans[k].slots

        done: dict[int, Terms] = {c.job: [] for c in plan.jobs}
        terms: Terms = []
        for k, p in uses:
            for job, gain in plan.gains(patterns[k][p]):
                done[job].append((gain, block.times[k, p]))
            if plan.worker_price:
                terms.append((-plan.price(patterns[k][p]) / unit, block.times[k, p]))
        for asked, add in ((goal.counts_least_part, add_smallest), (goal.counts_utilities, add_utilities)):
            terms += add(block, instance, plan.jobs, lambda c: done[c.job]) if asked else []
        block.objective = pyo.Expression(expr=linear(terms))

    def _patterns(self, plan: PatternPlan) -> Sequence[Sequence[Pattern]]:
        if self.patterns is not None:
            return self.patterns
        return [list(all_patterns(plan, span)) for span in plan.spans]

    def start(self, block: pyo.Block, instance: SchedulingInstance, solution: Schedule) -> None:
        """How often the patterns occur in a schedule; slots that look like none of them are left to the solver."""
        plan = PatternPlan.of(instance)
        patterns = self._patterns(plan)
        places = [{pattern: p for p, pattern in enumerate(here)} for here in patterns]
        for variable in block.times.values():
            variable.set_value(0)
        whole = True
        for k, found in enumerate(patterns_of(plan, widths_of(instance, solution))):
            for pattern, count in found.items():
                whole &= pattern in places[k]
                if pattern in places[k]:
                    block.times[k, places[k][pattern]].set_value(count)
        if whole:
            _start_progress(block, instance, plan, patterns)

    def read(self, block: pyo.Block, instance: SchedulingInstance) -> Schedule:
        """The schedule in which equal patterns of an interval follow each other.

        Raises
        ------
        SolverError
            If a pattern is used in a fraction of a slot.
        """
        plan = PatternPlan.of(instance)
        patterns = self._patterns(plan)
        counts: list[dict[Pattern, int]] = [{} for _ in plan.spans]
        for (k, p), variable in block.times.items():
            value = variable.value or 0.0
            if abs(value - round(value)) > INTEGRALITY_TOL:
                raise SolverError(f"pattern {p} of interval {k} has {value:.6g} slots")
            if round(value):
                counts[k][patterns[k][p]] = round(value)
        return schedule_of_patterns(instance, plan, counts)

    def objective_value(self, instance: SchedulingInstance, value: float) -> float:
        """The instance's objective."""
        return value * objective_unit(instance)


def _start_progress(
    block: pyo.Block, instance: SchedulingInstance, plan: PatternPlan, patterns: Sequence[Sequence[Pattern]]
) -> None:
    done = [0.0] * len(plan.jobs)
    for (k, p), variable in block.times.items():
        for job, gain in plan.gains(patterns[k][p]) if variable.value else ():
            done[job] += gain * variable.value
    if instance.goal.counts_least_part:
        parts = (d / c.wanted for c, d in zip(plan.jobs, done, strict=True))
        block.smallest.set_value(min(block.smallest.ub, *(part / objective_unit(instance) for part in parts)))
        return
    for c, progress in zip(plan.jobs, done, strict=True):
        for m, filled in enumerate(pieces_of(instance, c).filled(progress / c.wanted).tolist()):
            block.fill[c.job, m].set_value(filled * c.wanted)


def patterns_of(plan: PatternPlan, widths: Sequence[Mapping[int, int]]) -> list[dict[Pattern, int]]:
    """How often each pattern occurs in the intervals, of positive widths by slot and job.

    Widths that do no more than smaller ones shrink.
    """
    found: list[dict[Pattern, int]] = []
    for span in plan.spans:
        counts: dict[Pattern, int] = {}
        for slot in range(span.first, span.last):
            here = [(job, plan.jobs[job].shrunk(width)) for job, width in sorted(widths[slot].items())]
            pattern = tuple((job, width) for job, width in here if width)
            if pattern:
                counts[pattern] = counts.get(pattern, 0) + 1
        found.append(counts)
    return found


def widths_of(instance: SchedulingInstance, schedule: Schedule) -> list[dict[int, int]]:
    """Positive widths by slot and job, where types matter those of classes, as patterns have them."""
    widths: list[dict[int, int]] = [{} for _ in range(instance.slots)]
    for run in schedule.runs:
        k = instance.accelerators.class_of(run.job, (server for server, _ in run.workers))
        for slot in range(run.start, run.end):
            widths[slot][run.job] = run.width + (instance.jobs[run.job].max_workers + 1) * k
    return widths


def schedule_of_patterns(
    instance: SchedulingInstance, plan: PatternPlan, counts: Sequence[Mapping[Pattern, int]]
) -> Schedule:
    """The schedule in which each pattern has its number of slots of its interval; equal ones follow each other."""
    widths: list[Mapping[int, int]] = [{}] * instance.slots
    for span, here in zip(plan.spans, counts, strict=True):
        slot = span.first
        for pattern, count in sorted(here.items()):
            widths[slot : slot + count] = [dict(pattern)] * count
            slot += count
    if plan.rows is not None:
        return schedule_of_places(instance, [_places(instance, plan, here) for here in widths])
    return schedule_of_widths(instance, widths)


def _places(instance: SchedulingInstance, plan: PatternPlan, widths: Mapping[int, int]) -> dict[int, Workers]:
    assert plan.rows is not None
    chosen = [(job, plan.jobs[job].class_of(width), plan.jobs[job].workers(width)) for job, width in widths.items()]
    return plan.rows.places(instance, chosen)
