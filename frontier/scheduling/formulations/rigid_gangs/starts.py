"""The rows of rigid gangs: starts of identical jobs, counted; see RigidGangs."""

import itertools
import math
from collections import defaultdict
from collections.abc import Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
import pyomo.environ as pyo

from ddlopt.frontier.scheduling.formulations.rigid_gangs.gangs import (
    Gangs,
    earliest_starts,
    gangs,
    quick_starts,
    schedule_of_starts,
    useful_starts,
)
from ddlopt.frontier.scheduling.makespan.bounds import makespan_bound_slots
from ddlopt.models.errors import SolverError
from ddlopt.models.linear import linear
from ddlopt.models.scheduling.instance import SchedulingInstance
from ddlopt.models.scheduling.solution import Schedule
from ddlopt.models.scheduling.units import objective_unit
from ddlopt.models.tolerances import FEASIBILITY_TOL
from ddlopt.models.units import unit_of

_MOST_TERMS = 1_500_000
"""Entries of the rows of the pool beyond which building alone takes minutes."""
# Beyond it the model is too large to get anywhere.
_MOST_JOBS = 2000


class Kind(NamedTuple):
    """Identical jobs: which, their length and amounts of the pool, and when they may start."""

    jobs: tuple[int, ...]
    slots: int
    taken: tuple[float, ...]
    starts: tuple[int, ...]
    weight: float
    arrival: int


class Plan(NamedTuple):
    """What the model is made of: kinds, bound and horizon in slots, and what the pool has."""

    kinds: tuple[Kind, ...]
    lowest: int
    horizon: int
    capacity: tuple[float, ...]


def too_large(instance: SchedulingInstance, achievable_s: float | None, reduced: bool = True) -> str | None:
    """Why there are too many jobs or slots; None if there are not."""
    if len(instance.jobs) > _MOST_JOBS:
        return f"there are {len(instance.jobs)} jobs, but more than {_MOST_JOBS} are too many for it; use gang-search"
    jobs = gangs(instance)
    kinds = np.unique(np.column_stack((jobs.slots, jobs.arrival, jobs.last, jobs.weight, jobs.taken)), axis=0)
    slots, arrival, last = kinds[:, :3].T
    span = np.minimum(last, _horizon(instance, jobs, achievable_s, reduced)) - arrival - slots
    terms = int((np.maximum(0, span + 1) * slots).sum())
    if terms > _MOST_TERMS:
        return (
            f"{len(kinds)} kinds of jobs have about {terms} pairs of a start and a slot, more than {_MOST_TERMS}; use "
            "longer slots or gang-search"
        )
    return None


def add(block: pyo.Block, instance: SchedulingInstance, achievable_s: float | None, reduced: bool = True) -> None:
    """Fill ``block``."""
    plan, unit = make_plan(instance, achievable_s, reduced), objective_unit(instance)
    kinds = plan.kinds
    pairs = [(k, t) for k, kind in enumerate(kinds) for t in kind.starts]
    block.STARTS = pyo.Set(dimen=2, initialize=pairs, doc="(kind, slot) at which jobs may start")
    block.KINDS = pyo.RangeSet(0, len(kinds) - 1, doc="kinds of jobs")
    block.starting = pyo.Var(
        block.STARTS, domain=pyo.Integers, bounds=lambda _, k, t: (0, len(kinds[k].jobs)), doc="jobs that start"
    )

    @block.Constraint(block.KINDS, doc="every job starts once")
    def every_job_starts(b: Any, k: int) -> Any:
        return linear([(1.0, b.starting[k, t]) for t in kinds[k].starts]) == len(kinds[k].jobs)

    running = _running(kinds)
    if instance.goal.counts_last_end:
        _add_makespan(block, plan, running)
    else:
        terms = [
            (kind.weight / unit * (t + kind.slots - kind.arrival), block.starting[k, t])
            for k, kind in enumerate(kinds)
            for t in kind.starts
        ]
        block.objective = pyo.Expression(expr=linear(terms))
    _add_pool(block, plan, running, plan.lowest if instance.goal.counts_last_end else plan.horizon)


def set_values(
    block: pyo.Block, instance: SchedulingInstance, solution: Schedule, achievable_s: float | None, reduced: bool = True
) -> None:
    """Starts of a schedule, ``reduced`` to the earliest in its order; none where they are past the horizon."""
    plan, jobs = make_plan(instance, achievable_s, reduced), gangs(instance)
    given = {run.job: run.start for run in solution.runs}
    if reduced:
        starts = earliest_starts(jobs, sorted(given, key=lambda job: (given[job], job)))
    else:
        starts = np.array([given[job] for job in range(len(instance.jobs))])
    counts: dict[tuple[int, int], int] = defaultdict(int)
    for k, kind in enumerate(plan.kinds):
        for job in kind.jobs:
            counts[k, int(starts[job])] += 1
    if any(pair not in block.starting for pair in counts):
        return
    for pair, variable in block.starting.items():
        variable.set_value(counts.get(pair, 0))
    end = int((starts + jobs.slots).max())
    for slot in range(plan.horizon) if instance.goal.counts_last_end else ():
        block.busy[slot].set_value(int(slot < end))


def read(block: pyo.Block, instance: SchedulingInstance) -> Schedule:
    """The schedule of the starts, jobs of a kind in their order."""
    found: dict[int, list[int]] = defaultdict(list)
    for (k, t), variable in block.starting.items():
        found[k] += [t] * round(variable.value or 0.0)
    jobs = gangs(instance)
    starts: dict[int, int] = {}
    for k, kind in enumerate(_kinds(instance, jobs, instance.slots)):
        if len(found[k]) != len(kind.jobs):
            raise SolverError(f"'{instance.name}': {len(found[k])} of the {len(kind.jobs)} jobs of a kind have a start")
        starts.update(zip(kind.jobs, sorted(found[k]), strict=True))
    return schedule_of_starts(instance, starts, jobs.slots.tolist())


@lru_cache(maxsize=4)
def make_plan(instance: SchedulingInstance, achievable_s: float | None, reduced: bool = True) -> Plan:
    """Kinds, bound and horizon.

    Raises
    ------
    InfeasibleError
        If it is proven that not all jobs can be finished in time.
    """
    jobs = gangs(instance)
    lowest = makespan_bound_slots(instance)
    horizon = max(lowest, _horizon(instance, jobs, achievable_s, reduced))
    kinds = _kinds(instance, jobs, horizon, reduced)
    if instance.goal.counts_ends and achievable_s is not None:
        kinds = _cheap(kinds, achievable_s / instance.slot_s)
    return Plan(tuple(kinds), lowest, horizon, tuple(jobs.capacity.tolist()))


def _horizon(instance: SchedulingInstance, jobs: Gangs, achievable_s: float | None, reduced: bool) -> int:
    """Slots after which no job need run."""
    too_long = bool((jobs.arrival + jobs.slots > jobs.last).any())
    if too_long or (not reduced and achievable_s is None):
        return instance.slots
    if instance.goal.counts_ends:
        return min(instance.slots, int(jobs.arrival.max() + jobs.slots.sum()))
    if achievable_s is not None:
        return min(instance.slots, math.floor(achievable_s / instance.slot_s * (1 + FEASIBILITY_TOL)))
    starts = quick_starts(jobs)
    ends = starts + jobs.slots
    return min(instance.slots, int(ends.max())) if (ends <= jobs.last).all() else instance.slots


def _kinds(instance: SchedulingInstance, jobs: Gangs, horizon: int, reduced: bool = True) -> list[Kind]:
    useful = useful_starts(jobs, horizon) if reduced else -1
    members: dict[Any, list[int]] = defaultdict(list)
    for job in range(len(jobs.slots)):
        weight = float(jobs.weight[job]) if instance.goal.counts_ends else 1.0
        taken = tuple(jobs.taken[job].tolist())
        members[int(jobs.slots[job]), taken, weight, int(jobs.arrival[job]), int(jobs.last[job])].append(job)
    kinds = []
    for (slots, taken, weight, arrival, last), same in members.items():
        starts = [t for t in range(arrival, min(last, horizon) - slots + 1) if useful >> t & 1]
        kinds.append(Kind(tuple(same), slots, taken, tuple(starts), weight, arrival))
    return kinds


def _cheap(kinds: Sequence[Kind], achievable: float) -> list[Kind]:
    """Kinds without starts that cost too much by themselves, where all other jobs are as quick as can be."""
    least = sum(kind.weight * kind.slots * len(kind.jobs) for kind in kinds)
    kept = []
    for kind in kinds:
        longest = (achievable * (1 + FEASIBILITY_TOL) - least) / kind.weight
        kept.append(kind._replace(starts=tuple(t for t in kind.starts if t - kind.arrival <= longest)))
    return kept


def _running(kinds: Sequence[Kind]) -> dict[int, list[tuple[int, int]]]:
    """By slot, the (kind, start) of jobs that run in it."""
    found: dict[int, list[tuple[int, int]]] = defaultdict(list)
    for k, kind in enumerate(kinds):
        for start in kind.starts:
            for t in range(start, start + kind.slots):
                found[t].append((k, start))
    return found


def _add_makespan(block: pyo.Block, plan: Plan, running: dict[int, list[tuple[int, int]]]) -> None:
    late = list(range(plan.lowest, plan.horizon))
    kinds, capacity = plan.kinds, plan.capacity
    _add_busy(block, plan.lowest, plan.horizon)
    by_kind = {
        (k, t): [start for _, start in group]
        for t in late
        for k, group in itertools.groupby(running.get(t, ()), key=lambda pair: pair[0])
    }

    @block.Constraint(late[1:], doc="busy slots come first")
    def busy_slots_come_first(b: Any, t: int) -> Any:
        return b.busy[t] <= b.busy[t - 1]

    @block.Constraint(list(by_kind), doc="jobs run in busy slots only")
    def jobs_run_in_busy_slots(b: Any, k: int, t: int) -> Any:
        together = min(int(c // a) for a, c in zip(kinds[k].taken, capacity, strict=True) if a)
        most = min(len(kinds[k].jobs), together)
        return linear([(1.0, b.starting[k, start]) for start in by_kind[k, t]]) <= most * b.busy[t]


def _add_busy(block: pyo.Block, lowest: int, horizon: int) -> None:
    """``busy[t]`` of all slots, certainly of those before the bound ``lowest``, and ``objective``."""
    block.SLOTS = pyo.RangeSet(0, horizon - 1, doc="slots")
    block.busy = pyo.Var(
        block.SLOTS, domain=pyo.Binary, bounds=lambda _, t: (int(t < lowest), 1), doc="the last end is after the slot"
    )
    block.objective = pyo.Expression(expr=linear((1.0, block.busy[t]) for t in block.SLOTS))


def _add_pool(block: pyo.Block, plan: Plan, running: dict[int, list[tuple[int, int]]], late: int) -> None:
    """The pool is large enough wherever something may start; from slot ``late`` on it has only what busy slots have."""
    slots = sorted({t for kind in plan.kinds for t in kind.starts} | set(range(late, plan.horizon)))
    kinds = plan.kinds
    # Of 1e-11 of something in 4e-12 of it solvers make nothing.
    units = [unit_of(max((kind.taken[r] for kind in kinds), default=0.0), parts=1) for r in range(len(plan.capacity))]
    capacity = [room / unit for room, unit in zip(plan.capacity, units, strict=True)]

    @block.Constraint(range(len(capacity)), slots, doc="the pool is large enough")
    def pool_is_large_enough(b: Any, r: int, t: int) -> Any:
        taken = [(kinds[k].taken[r] / units[r], start, k) for k, start in running.get(t, ()) if kinds[k].taken[r]]
        if not taken:
            return pyo.Constraint.Skip
        room = capacity[r] * b.busy[t] if t >= late else capacity[r]
        return linear([(amount, b.starting[k, start]) for amount, start, k in taken]) <= room
