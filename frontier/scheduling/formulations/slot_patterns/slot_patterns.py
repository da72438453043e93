"""Whole slots as choices where speeds depend on places: contention, networks of any shape, unequal servers."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, ClassVar, Literal

import numpy as np
import pyomo.environ as pyo

from ddlopt.frontier.scheduling.formulations.pieces import add_smallest, add_utilities
from ddlopt.frontier.scheduling.formulations.slot_patterns.listing import Floats, Listing, listing
from ddlopt.frontier.scheduling.formulations.slot_patterns.options import TooManyError
from ddlopt.frontier.scheduling.intervals import Interval, intervals
from ddlopt.models.covering import FormulationBase
from ddlopt.models.errors import InfeasibleError, SolverError
from ddlopt.models.linear import linear
from ddlopt.models.scheduling.formulations.time_indexed.runs import Choices, Terms
from ddlopt.models.scheduling.instance import SchedulingInstance
from ddlopt.models.scheduling.pool import Workers, schedule_of_places
from ddlopt.models.scheduling.refusals import refusal
from ddlopt.models.scheduling.rings.rings import Ring
from ddlopt.models.scheduling.solution import Schedule
from ddlopt.models.scheduling.units import objective_unit
from ddlopt.models.scheduling.utility import DONE
from ddlopt.models.tolerances import INTEGRALITY_TOL

_MOST_JOBS = 8
"""Jobs that may run at once beyond which nobody waits for a list."""
_MOST_SERVERS = 8
"""The same for servers: places are listed, too, equal servers apart."""
_MOST_COLUMNS = 200_000
"""Patterns of all intervals together."""


@dataclass(frozen=True)
class SlotPatterns(FormulationBase):
    r"""How many slots of each interval look like which pattern of speeds.

    A *pattern* of a slot says where the workers of each job are, and over which arcs its ring passes. From it follow
    the mini-batches :math:`\varphi_{ip}` that job i does, the contention with all others included, and the price
    :math:`e_p` of the energy; nothing else of a slot matters to others. Listed are the patterns that none is better
    than in all of these (:mod:`~ddlopt.frontier.scheduling.formulations.slot_patterns.listing`): of rings, only the
    least ones, and of places only what remains when equal servers are exchanged. That no job does more than it wants is
    not counted. Slots between two events (arrivals, deadlines) are interchangeable;
    :math:`y_{kp} \in \mathbb{Z}_{\ge 0}` of the :math:`n_k` slots of interval k look like p:

    .. math::
        \max\ & \textstyle\sum_i \bar u_i(q_i) - \sum_{kp} e_p\, y_{kp} \\
        & \textstyle\sum_p y_{kp} \le n_k,\qquad F_i\, q_i \le \sum_{kp} \varphi_{ip}\, y_{kp},\qquad 0 \le q_i \le 1

    with concave :math:`u_i` replaced by pieces of tangents :math:`\bar u_i \ge u_i` (``outer``), and a binary
    :math:`q_i` for all-or-nothing jobs. ``max_min``: one q in place of all. Where ends count, every slot is an interval
    of its own and every job is to be finished. ``makespan``: :math:`\sum_p y_{tp} \le m_t \le m_{t-1}`, with the fewest
    :math:`m_t`. ``completion``: :math:`F_i\, e_{it} \le \sum_{t' \le t, p} \varphi_{ip}\, y_{t'p}` for binaries
    :math:`e_{it} \ge e_{i,t-1}`, job i having ended with slot t.

    As whole slots are listed, its linear relaxation is that of Dantzig and Wolfe. It suits some six jobs on three
    servers.

    *What a host must not couple to.* Where workers are and over what rings: a pattern stands for all that are as fast
    for every job and as cheap, and for those that are slower or dearer than it.

    Ports
    -----
    ``times[k, p]``
        Slots of interval k that look like its pattern p.
    ``fill[i, m]`` : objective ``utility``
        Progress of job i within piece m of its utility, in slots at its fastest speed.
    ``finished[i]`` : objective ``utility``
        1 if the all-or-nothing job i is finished.
    ``smallest`` : objective ``max_min``
        q in units.
    ``busy[t]`` : objective ``makespan``
        m: 1 if some job is not finished before slot t.
    ``ended[i, k]`` : objective ``completion``
        e: 1 if job i has ended with interval k, which is a slot.
    ``objective``
        Total utility less the price of energy, the smallest part, minus the busy slots, or minus the weighted slots
        from arrival to end, in units of :func:`~ddlopt.models.scheduling.units.objective_unit`; to be maximised.

    References
    ----------
    The contention is that of SJF-BCO (MobiHoc 2022), rings and progress are those of GADGET (INFOCOM 2022), in our
    reading. Patterns are those of P. C. Gilmore and R. E. Gomory (Operations Research 9(6), 1961); that they are
    patterns of speeds is ours.
    """

    sense: ClassVar[Literal["minimize", "maximize"]] = "maximize"
    outer: ClassVar[bool] = True

    def refuses(self, instance: SchedulingInstance) -> str | None:
        """Jobs in one piece, changes that cost time, bandwidth that is shared out, and too many patterns."""
        if (reason := refusal(instance)) is not None:
            return reason
        if not instance.preemptive:
            return "jobs run in one piece, but its slots come in any order; use one-piece"
        if instance.changes.cost_time:
            return "changes cost time, but its slots come in any order; use time-indexed"
        if instance.goal.counts_ratios:
            return "the objective is a ratio of times, which it does not know; use time-indexed"
        if instance.bandwidth == "shared" and instance.server_count > 1:
            return "bandwidth is shared, but it reserves the bandwidth that each job's timing names"
        if instance.server_count > _MOST_SERVERS:
            return f"there are {instance.server_count} servers, but it lists the patterns of {_MOST_SERVERS} at most"
        spans = _spans(instance)
        most = max((len(span.jobs) for span in spans), default=0)
        if most > _MOST_JOBS:
            return f"{most} jobs may run at once, but it lists the patterns of {_MOST_JOBS} at most"
        try:
            columns = sum(len(listing(instance, span.jobs).gains) for span in spans)
        except TooManyError as error:
            return str(error)
        if columns > _MOST_COLUMNS:
            return f"there are {columns} patterns, more than {_MOST_COLUMNS}"
        return None

    def build(self, block: pyo.Block, instance: SchedulingInstance) -> None:
        """Fill ``block``.

        Raises
        ------
        InfeasibleError
            If a job must be finished that no pattern of any slot runs. The patterns of a slot have every choice of
            places and rings of its jobs that fits, up to those that another one does as much as; so no schedule runs
            it.
        """
        plan, unit = _plan(instance), objective_unit(instance)
        uses = [(k, p) for k, lists in enumerate(plan.lists) for p in range(len(lists.gains))]
        block.USES = pyo.Set(dimen=2, initialize=uses, doc="(interval, pattern)")
        block.times = pyo.Var(
            block.USES,
            domain=pyo.NonNegativeIntegers,
            bounds=lambda _, k, __: (0, plan.spans[k].slots),
            doc="slots of the interval that look like the pattern",
        )
        terms = [(-plan.lists[k].cost[p] / unit, block.times[k, p]) for k, p in uses if plan.lists[k].cost[p]]
        goal = {"utility": _add_utilities, "max_min": _add_smallest, "makespan": _add_makespan}
        terms += goal.get(instance.objective, _add_completion)(block, instance, plan)
        busy = instance.goal.counts_last_end

        @block.Constraint(range(len(plan.spans)), doc="patterns of an interval fill its slots")
        def interval_is_long_enough(b: Any, k: int) -> Any:
            row = [(1.0, b.times[k, p]) for p in range(len(plan.lists[k].gains))]
            if busy:
                return linear([*row, (-1.0, b.busy[plan.spans[k].first])]) <= 0
            return linear(row) <= plan.spans[k].slots

        constant = 0.0
        if instance.goal.counts_ends:
            constant = -sum(w / unit * (c.last - c.first) for w, c in zip(_weights(instance), plan.jobs, strict=True))
        block.objective = pyo.Expression(expr=linear(terms, constant))

    def start(self, block: pyo.Block, instance: SchedulingInstance, solution: Schedule) -> None:
        """How often patterns no worse than the schedule's occur; nothing where some slot has none."""
        plan = _plan(instance)
        gains, costs = _slots_of(instance, solution)
        counts: dict[tuple[int, int], int] = {}
        for k, (span, lists) in enumerate(zip(plan.spans, plan.lists, strict=True)):
            for slot in range(span.first, span.last):
                if not gains[slot, list(span.jobs)].any():
                    continue  # a pattern would make it a busy slot
                pattern = lists.no_slower(gains[slot, list(span.jobs)], costs[slot])
                if pattern is None:
                    return
                counts[k, pattern] = counts.get((k, pattern), 0) + 1
        for key, variable in block.times.items():
            variable.set_value(counts.get(key, 0))

    def read(self, block: pyo.Block, instance: SchedulingInstance) -> Schedule:
        """The schedule in which equal patterns of an interval follow each other.

        Raises
        ------
        SolverError
            If a pattern has a fraction of a slot.
        """
        plan = _plan(instance)
        places: list[dict[int, Workers]] = [{} for _ in range(instance.slots)]
        rings: list[dict[int, Ring]] = [{} for _ in range(instance.slots)]
        following = [span.first for span in plan.spans]
        for (k, p), variable in block.times.items():
            value = variable.value or 0.0
            if abs(value - round(value)) > INTEGRALITY_TOL:
                raise SolverError(f"pattern {p} of interval {k} has {value:.6g} slots")
            for slot in range(following[k], following[k] + round(value)):
                for job, option in zip(plan.lists[k].jobs, plan.lists[k].chosen[p], strict=True):
                    if option is not None:
                        places[slot][job], rings[slot][job] = option.workers, option.ring
            following[k] += round(value)
        return schedule_of_places(instance, places, rings)

    def objective_value(self, instance: SchedulingInstance, value: float) -> float:
        """Utility or part; seconds for minus a number of slots."""
        value = value * objective_unit(instance)
        return value if instance.sense == "maximize" else -value * instance.slot_s


@dataclass(frozen=True)
class _Plan:
    """Intervals, the patterns of each, and what jobs want, in slots at their fastest speed.

    A job that no pattern runs has no gains, and wants one slot of a speed that it never has.
    """

    spans: tuple[Interval, ...]
    lists: tuple[Listing, ...]
    jobs: tuple[Choices, ...]

    def done(self, block: pyo.Block, c: Choices, until: int | None = None) -> Terms:
        """Progress of a job, up to an interval."""
        found = []
        for k, lists in enumerate(self.lists if until is None else self.lists[: until + 1]):
            if c.job in lists.jobs:
                gains = lists.gains[:, lists.jobs.index(c.job)].tolist()
                found += [(gain / c.unit, block.times[k, p]) for p, gain in enumerate(gains) if gain]
        return found


def _spans(instance: SchedulingInstance) -> list[Interval]:
    """Intervals, each a single slot where it matters when a job ends."""
    spans = intervals(instance)
    if instance.sense == "maximize":
        return spans
    return [Interval(slot, slot + 1, span.jobs) for span in spans for slot in range(span.first, span.last)]


@lru_cache(maxsize=8)
def _plan(instance: SchedulingInstance) -> _Plan:
    spans = _spans(instance)
    lists = tuple(listing(instance, span.jobs) for span in spans)
    jobs = []
    for i, job in enumerate(instance.jobs):
        speeds = np.unique(np.concatenate([each.gains[:, each.jobs.index(i)] for each in lists if i in each.jobs]))
        speeds = speeds[speeds > 0]
        if not len(speeds) and instance.goal.must_finish:
            raise InfeasibleError(f"'{instance.name}': jobs[{i}] '{job.name}' must finish, but it runs in no slot")
        unit = float(speeds[-1]) if len(speeds) else job.minibatches
        finishing = instance.goal.counts_whole(job)
        wanted = job.minibatches * (float(DONE) if finishing else 1.0) / unit
        gains = tuple((speeds / unit).tolist())
        jobs.append(
            Choices(i, job.arrival, instance.last_slot(i), tuple(range(len(gains))), gains, unit, wanted, finishing)
        )
    return _Plan(tuple(spans), lists, tuple(jobs))


def _weights(instance: SchedulingInstance) -> list[float]:
    return [job.utility.value for job in instance.jobs]


def _add_utilities(block: pyo.Block, instance: SchedulingInstance, plan: _Plan) -> Terms:
    pieced = [c for c in plan.jobs if not c.finishing and c.gains]
    terms = add_utilities(block, instance, pieced, lambda c: plan.done(block, c))
    block.FINISHING = pyo.Set(initialize=[c.job for c in plan.jobs if c.finishing])
    block.finished = pyo.Var(block.FINISHING, domain=pyo.Binary, doc="job is finished")

    @block.Constraint(block.FINISHING, doc="a finished job has done what was wanted")
    def finished_is_done(b: Any, i: int) -> Any:
        return linear([*plan.done(b, plan.jobs[i]), (-plan.jobs[i].wanted, b.finished[i])]) >= 0

    unit = objective_unit(instance)
    return terms + [(instance.jobs[i].utility.value / unit, block.finished[i]) for i in block.FINISHING]


def _add_smallest(block: pyo.Block, instance: SchedulingInstance, plan: _Plan) -> Terms:
    return add_smallest(block, instance, plan.jobs, lambda c: plan.done(block, c))


def _add_all_finished(block: pyo.Block, plan: _Plan) -> None:
    @block.Constraint([c.job for c in plan.jobs], doc="every job is finished")
    def job_is_finished(b: Any, i: int) -> Any:
        return linear(plan.done(b, plan.jobs[i])) >= plan.jobs[i].wanted


def _add_makespan(block: pyo.Block, instance: SchedulingInstance, plan: _Plan) -> Terms:
    _add_all_finished(block, plan)
    last = max(span.last for span in plan.spans)
    block.SLOTS = pyo.RangeSet(0, last - 1)
    block.busy = pyo.Var(block.SLOTS, domain=pyo.Binary, doc="some job is not finished before the slot")

    @block.Constraint(block.SLOTS, doc="the busy slots come first")
    def busy_slots_are_first(b: Any, t: int) -> Any:
        return b.busy[t] <= b.busy[t - 1] if t else pyo.Constraint.Skip

    return [(-1.0, block.busy[t]) for t in block.SLOTS]


def _add_completion(block: pyo.Block, instance: SchedulingInstance, plan: _Plan) -> Terms:
    _add_all_finished(block, plan)
    index = [
        (c.job, k)
        for c in plan.jobs
        for k, span in enumerate(plan.spans)
        if c.first + c.wanted - 1 <= span.first + INTEGRALITY_TOL and span.first < c.last - 1
    ]
    block.ENDS = pyo.Set(dimen=2, initialize=index, doc="(job, interval) with which it may end before its last slot")
    block.ended = pyo.Var(block.ENDS, domain=pyo.Binary, doc="job has ended with the interval")

    @block.Constraint(block.ENDS, doc="a job that has ended has done what was wanted")
    def ended_is_done(b: Any, i: int, k: int) -> Any:
        return linear([*plan.done(b, plan.jobs[i], k), (-plan.jobs[i].wanted, b.ended[i, k])]) >= 0

    @block.Constraint(block.ENDS, doc="a job that has ended stays so")
    def ended_stays(b: Any, i: int, k: int) -> Any:
        return b.ended[i, k] <= b.ended[i, k + 1] if (i, k + 1) in b.ended else pyo.Constraint.Skip

    weights, unit = _weights(instance), objective_unit(instance)
    return [(weights[i] / unit, block.ended[i, k]) for i, k in index]


def _slots_of(instance: SchedulingInstance, schedule: Schedule) -> tuple[Floats, Sequence[float]]:
    """(T, I) mini-batches that jobs do in each slot, no more than they want, and the price of each slot's energy."""
    gains = np.zeros((instance.slots, len(instance.jobs)))
    costs = [0.0] * instance.slots
    for slot in range(instance.slots):
        here = [run for run in schedule.runs if run.start <= slot < run.end]
        crowd = Counter(server for run in here if len(run.workers) > 1 for server, _ in run.workers)
        for run in here:
            level = max(crowd[server] for server, _ in run.workers) if len(run.workers) > 1 else 0
            rate = instance.rate(run.job, run.width, len(run.workers), level)
            gains[slot, run.job] = min(rate, instance.jobs[run.job].minibatches)
        placed = [pair for run in here for pair in run.workers]
        watts = sum(float(instance.idle_w[server]) for server in {server for server, _ in placed})
        watts += sum(count * float(instance.worker_w[server]) for server, count in placed)
        costs[slot] = watts * instance.slot_s * instance.energy_price_per_j
    return gains, costs
