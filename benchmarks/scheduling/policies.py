"""Gavel's policies against optima of the schedule, not of the shares of time, each for the objective that it has.

Gangs on GPUs of three types, rounds of six minutes, arrivals in the first part. ``max_min``: the smallest progress over
a fixed horizon, relative to a part of every type of one's own, is to be large. ``makespan``: all jobs end early.
``finish_time``: the largest time from arrival to end over that with a part of the cluster of one's own is to be small.
``cost``: all jobs are finished at the least price of GPU hours. Cells are how much worse a policy is than the best
schedule found; ``gavel`` has the goal of the row, its shares anew and its rounds as in its simulator, and the others
put each job on the fastest type that has room. The best schedule and the bound are those of ``time-indexed`` and of
prices.

``trace``: Gavel's own trace of 100 jobs on 8 V100, 16 P100 and 24 K80, from a copy of its repository.
"""

from pathlib import Path

import numpy as np

from benchmarks.harness import Benchmark, Option, Skipped
from ddlopt.instances import convert
from ddlopt.instances.generators.scheduling import generate
from ddlopt.models.errors import DdloptError, InfeasibleError
from ddlopt.models.scheduling import AllOrNothing, SchedulingInstance, evaluate
from ddlopt.models.scheduling.problem import PROBLEM
from ddlopt.solvers.catalogue import method
from ddlopt.solvers.contracts import Limits
from ddlopt.solvers.scheduling.online.type_places import TypePlaces
from ddlopt.solvers.scheduling.online.typed_rounds import isolated_shares

TYPES = "v100:1,p100:0.45,k80:0.2"
"""Speeds of a middling job: ours."""
HOURLY = {"v100": 3.0, "p100": 1.5, "k80": 0.5}
"""Price of a GPU hour: ours; a P100 is dear for what a middling job does on it, a K80 about right."""
ROUND_S = 360.0
"""Gavel's."""
GOALS = ("max_min", "makespan", "finish_time", "cost")
OTHERS = ("fifo", "las", "srtf")
ROOM = 4
"""Jobs want four times what an equal share does, so that none is finished when progress is compared."""


def made(instance, **fields):
    """The instance with other fields, checked."""
    data = {name: getattr(instance, name) for name in SchedulingInstance.model_fields}
    return SchedulingInstance(**{**data, **fields})


def alone(instance):
    """Mini-batches in a slot of every job with its part of the cluster of its own."""
    places = TypePlaces(instance)
    widths = np.array([job.max_workers for job in instance.jobs], dtype=float)
    shares = isolated_shares(widths, places.accelerators[:, 0])
    rates = np.array([instance.progress(i, job.max_workers) for i, job in enumerate(instance.jobs)])
    return rates * (shares * places.paces).sum(axis=1)


def posed(base, goal):
    """The instance whose objective is the goal (of ``finish_time``: all jobs finish)."""
    longer = {"slots": 6 * base.slots}
    if goal == "max_min":
        rates = alone(base)
        jobs = [
            job.model_copy(update={"minibatches": float(ROOM * rate * (base.slots - job.arrival))})
            for job, rate in zip(base.jobs, rates, strict=True)
        ]
        return made(base, jobs=tuple(jobs), objective="max_min")
    if goal != "cost":
        return made(base, objective="makespan", **longer)
    servers = [group.model_copy(update={"worker_w": HOURLY[group.type]}) for group in base.servers]
    dear = max(HOURLY.values()) * sum(group.count * group.capacity["gpu"] for group in servers) * base.slots / 10
    jobs = [job.model_copy(update={"utility": AllOrNothing(value=dear)}) for job in base.jobs]
    # A slot of six minutes is a tenth of an hour.
    priced = {"energy_price_per_j": 0.1 / ROUND_S, "objective": "utility"}
    return made(base, jobs=tuple(jobs), servers=tuple(servers), **priced, **longer)


def figure(instance, goal, schedule):
    """What a schedule is worth for the goal; None if it leaves a job unfinished that has to be."""
    found = evaluate(instance, schedule)
    assert found.feasible
    if goal == "max_min":
        return ROOM * float(found.objective)
    if found.details["finished_jobs"] < len(instance.jobs):
        return None
    if goal == "makespan":
        return float(found.objective) / ROUND_S
    if goal == "cost":
        return sum(job.utility.value for job in instance.jobs) - float(found.objective)
    ends = np.zeros(len(instance.jobs))
    for run in schedule.runs:
        ends[run.job] = max(ends[run.job], run.end)
    return float(max((ends - arrivals(instance)) / slots_alone(instance)))


def arrivals(instance):
    """(I,) slots."""
    return np.array([job.arrival for job in instance.jobs])


def slots_alone(instance):
    """(I,) that jobs take with a part of the cluster of their own."""
    return np.array([job.minibatches for job in instance.jobs]) / alone(instance)


def fairest(instance, known, limits):
    """(best, bound) of the largest ratio, by halving the ratios that there are: is there a schedule with deadlines?"""
    last = np.arange(1, instance.slots + 1)
    ratios = np.unique((last[None, :] / slots_alone(instance)[:, None]).ravel())
    low, high, open_from = -1, int(np.searchsorted(ratios, known * (1 + 1e-9))) - 1, None
    while high - low > 1 and open_from is None:
        middle = (low + high) // 2
        found = within(instance, float(ratios[middle]), limits)
        if found is None:
            open_from = low + 1
        elif found:
            high = middle
        else:
            low = middle
    return float(ratios[high]), float(ratios[low + 1])


def within(instance, ratio, limits):
    """Whether all jobs can end within a ratio; None if that is not known."""
    spans = np.floor(ratio * slots_alone(instance) * (1 + 1e-9)).astype(int)
    if (spans < 1).any():
        return False
    due = np.minimum(arrivals(instance) + spans, instance.slots)
    jobs = [job.model_copy(update={"deadline": int(end)}) for job, end in zip(instance.jobs, due, strict=True)]
    asked = made(instance, jobs=tuple(jobs), slots=int(due.max()), objective="utility")
    # All parts done: a utility of 1 for each job. Where prices leave less, there is no such schedule.
    if PROBLEM.tightest_bound(asked) < len(jobs) * (1 - 1e-6):
        return False
    try:
        result = method("time-indexed", "scheduling").solve(made(asked, objective="makespan"), limits)
    except InfeasibleError:
        return False
    except DdloptError:
        return None
    return True if result.solution is not None else None


def best(instance, goal, known, limits):
    """(best, bound) for the goal, from what policies found."""
    if goal == "finish_time":
        return fairest(instance, min(known), limits)
    result = method("exact", "scheduling").solve(instance, limits)
    found = [figure(instance, goal, result.solution)] if result.solution is not None else []
    found = [each for each in (*found, *known) if each is not None]
    if goal == "max_min":
        return max(found), ROOM * float(result.bound)
    if goal == "makespan":
        return min(found), float(result.bound) / ROUND_S
    return min(found), sum(job.utility.value for job in instance.jobs) - float(result.bound)


def loss(value, reference, goal):
    """How much worse, as a cell."""
    if value is None:
        return "not all finished"
    worse = 1 - value / reference if goal == "max_min" else value / reference - 1
    return f"{abs(worse) if abs(worse) < 5e-4 else worse:.1%}"


def schedules(asked):
    """A row for each goal and seed."""
    for goal in GOALS:
        for seed in range(asked.seed, asked.seed + asked.seeds):
            base = generate(
                "elastic", seed, jobs=asked.jobs, slots=asked.slots, slot_s=ROUND_S, gpus=12, gpus_per_server=4,
                widest=4, rigid=True, load=0.5, arrival_part=0.5, types=TYPES, utility="capped",
            )  # fmt: skip
            base = made(base, mixed_types=False, jobs=tuple(_of_one(job) for job in base.jobs))
            instance = posed(base, goal)
            values = {}
            for name in (f"gavel:goal={goal},reset_s={asked.reset}", *OTHERS):
                result = method(name, "scheduling").solve(instance, Limits())
                values[name.partition(":")[0]] = figure(instance, goal, result.solution)
            reference, limit = best(
                instance, goal, [each for each in values.values() if each is not None], asked.limits
            )
            yield {
                "goal": goal, "seed": seed, "bound": f"{limit:.4g}", "best schedule": f"{reference:.4g}",
                **{name: loss(value, reference, goal) for name, value in values.items()},
            }  # fmt: skip


def _of_one(job):
    """Worth 1, as all are to Gavel without priorities."""
    return job.model_copy(update={"utility": job.utility.model_copy(update={"value": 1.0})})


def trace(asked):
    """A row for each policy."""
    if not asked.gavel:
        raise Skipped("give a copy of Gavel's repository, --gavel FOLDER")
    folder = Path(asked.gavel) / "scheduler"
    instance = convert(
        folder / "traces" / "physical_cluster" / "minimize_makespan.trace", "gavel",
        throughputs=folder / "simulation_throughputs.json", types="v100:8,p100:16,k80:24", objective="makespan",
    )  # fmt: skip
    least = PROBLEM.tightest_bound(instance)
    for name in ("gavel:goal=makespan", "gavel", "gavel:goal=finish_time", *OTHERS):
        result = method(name, "scheduling").solve(instance, Limits())
        found = evaluate(instance, result.solution)
        mean_s = float(found.details["mean_jct_s"])
        yield {
            "policy": name, "bound": f"{least:.0f} s", "makespan": f"{found.objective:.0f} s",
            "over": f"{float(found.objective) / least - 1:.1%}", "mean time": f"{mean_s:.0f} s",
        }  # fmt: skip


BENCH = Benchmark(
    schedules,
    trace,
    jobs=Option(10, "of an instance", quick=5),
    slots=Option(24, "of the horizon of max_min; the others may take longer", quick=8),
    time_limit=Option(60.0, quick=3.0),
    reset=Option(1920.0, "seconds between new shares of gavel at least; 0: whenever a job comes or goes"),
    seed=Option(1),
    seeds=Option(3, "instances", quick=1),
    gavel=Option("", "a copy of github.com/stanford-futuredata/gavel, for the trace"),
)
