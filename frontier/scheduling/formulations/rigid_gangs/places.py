"""The form of rigid gangs that places workers on servers, where they slow each other down; see RigidGangs."""

from collections import defaultdict
from typing import Any

import pyomo.environ as pyo

from ddlopt.frontier.scheduling.formulations.rigid_gangs.gang_places import (
    GangPlaces,
    equal_jobs,
    equal_servers,
    renumbered,
    widest,
)
from ddlopt.frontier.scheduling.formulations.rigid_gangs.starts import add_busy
from ddlopt.frontier.scheduling.makespan.bounds import makespan_bound_slots
from ddlopt.frontier.scheduling.makespan.needs import least_slots
from ddlopt.models.errors import SolverError
from ddlopt.models.linear import linear
from ddlopt.models.scheduling.instance import SchedulingInstance
from ddlopt.models.scheduling.solution import Run, Schedule
from ddlopt.models.scheduling.units import objective_unit
from ddlopt.models.scheduling.utility import DONE
from ddlopt.models.tolerances import FEASIBILITY_TOL
from ddlopt.models.units import unit_of

# Beyond it the model is too large to get anywhere.
_MOST_VARIABLES = 100_000


def too_large(instance: SchedulingInstance) -> str | None:
    """Why there are too many jobs, servers or slots; None if there are not."""
    jobs, slots = len(instance.jobs), instance.slots
    variables = jobs * slots * (2 * instance.server_count + (jobs if instance.contention else 1))
    if variables > _MOST_VARIABLES:
        return (
            f"{jobs} jobs on {instance.server_count} servers in {slots} slots are about {variables} variables, more "
            f"than {_MOST_VARIABLES}; use gang-search"
        )
    return None


def add(block: pyo.Block, instance: SchedulingInstance, achievable_s: float | None, reduced: bool = True) -> None:
    """Fill ``block``."""
    lowest = makespan_bound_slots(instance)
    places = _places(instance, achievable_s, lowest)
    _add_servers(block, places)
    _add_runs(block, places)
    _add_loads(block, places)
    if instance.contention is not None:
        _add_levels(block, places)
    if reduced:
        _add_symmetry(block, places)
    if instance.objective == "makespan":
        _add_makespan(block, places, lowest)
    else:
        terms, constant, unit = [], 0.0, objective_unit(instance)
        for j, job in enumerate(instance.jobs):
            terms += [(job.utility.value / unit * (t + 1), block.ends[j, t]) for t in places.slots(j)]
            constant -= job.utility.value / unit * job.arrival
        block.objective = pyo.Expression(expr=linear(terms, constant))


def set_values(
    block: pyo.Block, instance: SchedulingInstance, solution: Schedule, achievable_s: float | None, reduced: bool = True
) -> None:
    """Servers and slots of a schedule; what is left follows from them. None where equal servers or jobs are swapped."""
    lowest = makespan_bound_slots(instance)
    places = _places(instance, achievable_s, lowest)
    runs = {run.job: run for run in solution.runs}
    if len(runs) < len(places.jobs) or any(run.end > places.slots(j).stop for j, run in runs.items()):
        return
    if reduced:
        runs = renumbered(places, runs)
    for j, run in runs.items():
        held = dict(run.workers)
        for s in places.servers:
            block.workers[j, s].set_value(held.get(s, 0))
            block.used[j, s].set_value(int(s in held))
        for t in places.slots(j):
            block.running[j, t].set_value(int(run.start <= t < run.end))
            block.begins[j, t].set_value(int(t == run.start))


def read(block: pyo.Block, instance: SchedulingInstance) -> Schedule:
    """The schedule that the values describe.

    Raises
    ------
    SolverError
        If a job does not run in one piece.
    """
    slots: dict[int, list[int]] = defaultdict(list)
    for (j, t), variable in block.running.items():
        if round(variable.value or 0.0):
            slots[j].append(t)
    runs = []
    for j, job in enumerate(instance.jobs):
        held = [(s, round(block.workers[j, s].value or 0.0)) for s in range(instance.server_count)]
        mine = sorted(slots[j])
        if not mine or mine[-1] - mine[0] + 1 != len(mine):
            raise SolverError(f"'{instance.name}': jobs[{j}] '{job.name}' does not run in one piece")
        workers = tuple(pair for pair in held if pair[1])
        runs.append(Run(job=j, start=mine[0], slots=len(mine), workers=workers))
    runs.sort(key=lambda run: (run.start, run.job))
    return Schedule(instance=instance.name, instance_digest=instance.digest, runs=tuple(runs))


def _places(instance: SchedulingInstance, achievable_s: float | None, lowest: int) -> GangPlaces:
    horizon = instance.slots
    if achievable_s is not None and instance.objective == "makespan":
        horizon = min(horizon, max(lowest, int(achievable_s / instance.slot_s * (1 + FEASIBILITY_TOL))))
    return GangPlaces(instance, horizon)


def _add_servers(block: pyo.Block, places: GangPlaces) -> None:
    """Workers of every job on every server, and on how many servers it is."""
    pairs = [(j, s) for j in places.jobs for s in places.servers]
    hosts = [(j, n) for j in places.jobs for n in places.hosts(j)]
    block.PAIRS = pyo.Set(dimen=2, initialize=pairs, doc="(job, server)")
    block.HOSTS = pyo.Set(dimen=2, initialize=hosts, doc="(job, number of servers)")
    block.workers = pyo.Var(
        block.PAIRS, domain=pyo.Integers, bounds=lambda _, j, s: (0, places.room[j][s]), doc="workers on the server"
    )
    block.used = pyo.Var(block.PAIRS, domain=pyo.Binary, doc="job has workers on the server")
    block.spread = pyo.Var(block.HOSTS, domain=pyo.Binary, doc="job is on this number of servers")

    @block.Constraint(places.jobs, doc="a job has its width")
    def width_is_met(b: Any, j: int) -> Any:
        return linear([(1.0, b.workers[j, s]) for s in places.servers]) == places.width(j)

    @block.Constraint(block.PAIRS, doc="workers are on servers in use")
    def workers_use_servers(b: Any, j: int, s: int) -> Any:
        return b.workers[j, s] <= places.room[j][s] * b.used[j, s]

    @block.Constraint(block.PAIRS, doc="servers in use have workers")
    def used_servers_have_workers(b: Any, j: int, s: int) -> Any:
        return b.used[j, s] <= b.workers[j, s]

    @block.Constraint(places.jobs, doc="a job is on some number of servers")
    def spread_is_chosen(b: Any, j: int) -> Any:
        return linear([(1.0, b.spread[j, n]) for n in places.hosts(j)]) == 1

    @block.Constraint(places.jobs, doc="at least as many servers are in use")
    def spread_is_reached(b: Any, j: int) -> Any:
        return _used(b, places, j) >= linear([(float(n), b.spread[j, n]) for n in places.hosts(j)])

    @block.Constraint(places.jobs, doc="at most as many servers are in use")
    def spread_is_kept(b: Any, j: int) -> Any:
        most = {n: n if n == 1 or places.hosts_matter else len(places.servers) for n in places.hosts(j)}
        return _used(b, places, j) <= linear([(float(most[n]), b.spread[j, n]) for n in places.hosts(j)])


def _used(block: pyo.Block, places: GangPlaces, job: int) -> Any:
    return linear([(1.0, block.used[job, s]) for s in places.servers])


def _add_runs(block: pyo.Block, places: GangPlaces) -> None:
    """Runs in one piece, in some mode in every slot, until all is done."""
    instance = places.instance
    runs = [(j, t) for j in places.jobs for t in places.slots(j)]
    modes = [(j, mode.servers, mode.level, t) for j in places.jobs for mode in places.modes(j) for t in places.slots(j)]
    block.RUNS = pyo.Set(dimen=2, initialize=runs, doc="(job, slot)")
    block.MODES = pyo.Set(dimen=4, initialize=modes, doc="(job, servers, contention level, slot)")
    block.running = pyo.Var(block.RUNS, domain=pyo.Binary, doc="job runs in the slot")
    block.begins = pyo.Var(block.RUNS, domain=pyo.Binary, doc="job begins with the slot")
    block.ends = pyo.Var(block.RUNS, bounds=(0, 1), doc="job ends with the slot")
    block.mode = pyo.Var(
        block.MODES, domain=pyo.Binary, doc="job is on this number of servers at this contention level"
    )

    @block.Constraint(block.RUNS, doc="a run begins, goes on, and ends")
    def run_is_in_one_piece(b: Any, j: int, t: int) -> Any:
        before = b.running[j, t - 1] - b.ends[j, t - 1] if t > instance.jobs[j].arrival else 0
        return b.running[j, t] == before + b.begins[j, t]

    @block.Constraint(block.RUNS, doc="only what runs can end")
    def only_runs_end(b: Any, j: int, t: int) -> Any:
        return b.ends[j, t] <= b.running[j, t]

    @block.Constraint(places.jobs, doc="a job begins once")
    def job_begins_once(b: Any, j: int) -> Any:
        return linear([(1.0, b.begins[j, t]) for t in places.slots(j)]) == 1

    @block.Constraint(places.jobs, doc="a job ends once")
    def job_ends_once(b: Any, j: int) -> Any:
        return linear([(1.0, b.ends[j, t]) for t in places.slots(j)]) == 1

    @block.Constraint(block.RUNS, doc="a job that runs is in some mode")
    def running_job_has_a_mode(b: Any, j: int, t: int) -> Any:
        return linear([(1.0, b.mode[j, n, k, t]) for n, k in places.modes(j)]) == b.running[j, t]

    @block.Constraint(
        [(j, n, t) for j in places.jobs for n in places.hosts(j) for t in places.slots(j)],
        doc="a mode over n servers is of a job that is spread over n",
    )
    def mode_has_its_servers(b: Any, j: int, n: int, t: int) -> Any:
        return linear([(1.0, b.mode[j, m, k, t]) for m, k in places.modes(j) if m == n]) <= b.spread[j, n]

    @block.Constraint(places.jobs, doc="all mini-batches are done")
    def job_is_done(b: Any, j: int) -> Any:
        parts = {mode: places.part(j, mode) for mode in places.modes(j)}
        terms = [(part, b.mode[j, n, k, t]) for (n, k), part in parts.items() for t in places.slots(j)]
        # Half-way to what counts as finished: solvers leave about as much.
        return linear(terms) >= (1 + float(DONE)) / 2

    @block.Constraint(places.jobs, doc="a job takes its fewest slots at least")
    def job_takes_time(b: Any, j: int) -> Any:
        return linear([(1.0, b.running[j, t]) for t in places.slots(j)]) >= least_slots(instance, j)


def _add_loads(block: pyo.Block, places: GangPlaces) -> None:
    """Workers of the jobs that run fit on every server."""
    instance = places.instance
    demand, capacity = instance.demand.tolist(), instance.capacity.tolist()
    units = [unit_of(max(demand[j][r] for j in places.jobs), parts=1) for r in range(len(instance.resources))]
    loads = [(j, s, t) for j in places.jobs for s in places.servers if places.room[j][s] for t in places.slots(j)]
    block.LOADS = pyo.Set(dimen=3, initialize=loads, doc="(job, server, slot)")
    block.load = pyo.Var(
        block.LOADS, bounds=lambda _, j, s, t: (0, places.room[j][s]), doc="workers on the server in the slot"
    )
    at: dict[tuple[int, int], list[int]] = defaultdict(list)
    for j, s, t in loads:
        at[s, t].append(j)

    @block.Constraint(block.RUNS, doc="the workers of a job that runs are somewhere")
    def running_job_has_its_workers(b: Any, j: int, t: int) -> Any:
        terms = [(1.0, b.load[j, s, t]) for s in places.servers if places.room[j][s]]
        return linear(terms) == places.width(j) * b.running[j, t]

    @block.Constraint(block.LOADS, doc="workers stay where they are")
    def workers_stay(b: Any, j: int, s: int, t: int) -> Any:
        return b.load[j, s, t] <= b.workers[j, s]

    @block.Constraint(sorted(at), range(len(instance.resources)), doc="servers are large enough")
    def servers_are_large_enough(b: Any, s: int, t: int, r: int) -> Any:
        terms = [(demand[j][r] / units[r], b.load[j, s, t]) for j in at[s, t] if demand[j][r]]
        most = capacity[s][r] / units[r] * (1 + FEASIBILITY_TOL)
        return linear(terms) <= most if terms else pyo.Constraint.Skip


def _add_levels(block: pyo.Block, places: GangPlaces) -> None:
    """Split jobs that meet on a server are at a level of at least their number."""
    splittable = places.splittable
    most = len(splittable)
    meetings = [(j, s, t) for j, s, t in block.LOADS if j in splittable]
    block.MEETINGS = pyo.Set(dimen=3, initialize=meetings, doc="(job, server, slot)")
    block.meets = pyo.Var(block.MEETINGS, domain=pyo.Binary, doc="split job has workers on the server in the slot")
    at: dict[tuple[int, int], list[int]] = defaultdict(list)
    for j, s, t in meetings:
        at[s, t].append(j)

    @block.Constraint(block.MEETINGS, doc="split jobs meet others on all their servers")
    def split_jobs_meet(b: Any, j: int, s: int, t: int) -> Any:
        alone = b.spread[j, 1] if (j, 1) in b.HOSTS else 0
        return b.meets[j, s, t] >= b.used[j, s] + b.running[j, t] - 1 - alone

    @block.Constraint(block.MEETINGS, doc="a job's level counts those it meets")
    def level_counts_meetings(b: Any, j: int, s: int, t: int) -> Any:
        others = linear([(1.0, b.meets[i, s, t]) for i in at[s, t] if i != j])
        level = linear([(float(k), b.mode[j, n, k, t]) for n, k in places.modes(j) if k])
        return others <= level - 1 + most * (1 - b.meets[j, s, t])


def _add_symmetry(block: pyo.Block, places: GangPlaces) -> None:
    """Equal servers in the order of the widest job's workers on them, equal jobs in the order of their starts."""
    first = widest(places)

    @block.Constraint(list(equal_servers(places)), doc="of equal servers the first has most of the widest job")
    def equal_servers_are_ordered(b: Any, s: int, following: int) -> Any:
        return b.workers[first, s] >= b.workers[first, following]

    @block.Constraint(list(equal_jobs(places)), doc="of equal jobs the first begins first")
    def equal_jobs_are_ordered(b: Any, j: int, following: int) -> Any:
        one, other = ([(float(t), b.begins[i, t]) for t in places.slots(i) if t] for i in (j, following))
        return linear(one) <= linear(other)


def _add_makespan(block: pyo.Block, places: GangPlaces, lowest: int) -> None:
    late = list(range(lowest, places.horizon))
    add_busy(block, lowest, places.horizon)

    @block.Constraint(late[1:], doc="busy slots come first")
    def busy_slots_come_first(b: Any, t: int) -> Any:
        return b.busy[t] <= b.busy[t - 1]

    @block.Constraint([(j, t) for j, t in block.RUNS if t >= lowest], doc="jobs run in busy slots only")
    def jobs_run_in_busy_slots(b: Any, j: int, t: int) -> Any:
        return b.running[j, t] <= b.busy[t]
