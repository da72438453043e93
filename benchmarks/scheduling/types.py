"""What types of accelerators are worth: the gap of schedules that ignore them, and of those that know them.

Jobs with logarithmic utility on 16 GPUs of three types, 20 slots of an hour; of a V100's speed a middling job has 0.45
on a P100 and 0.2 on a K80. ``mean speed`` is the greedy of ``type-windows`` that takes every job to be everywhere as
fast as it is on average; ``types`` is the same greedy with their speeds, ``windows`` what exact windows make of it, and
``job-plans`` begins from plans of jobs at prices by type. Gaps are to the bound of the latter; ``fastest`` is the bound
that has every job on its fastest type.
"""

from benchmarks.harness import Benchmark, Option
from ddlopt.frontier.scheduling.job_plans.job_plans import JobPlans
from ddlopt.frontier.scheduling.type_windows import TypeWindows
from ddlopt.instances.generators.scheduling import generate
from ddlopt.models.scheduling.problem import PROBLEM

TYPES = "v100:1,p100:0.45,k80:0.2"
"""Speeds of a middling job: ours, for accelerators of Gavel's cluster."""
METHODS = {
    "mean speed": TypeWindows(slots=0, ignore=True),
    "types": TypeWindows(slots=0),
    "windows": TypeWindows(),
    "job-plans": JobPlans(),
}


def gaps(asked):
    """A row for each seed."""
    jobs, slots = (8, 6) if asked.small else (20, 20)
    for seed in range(asked.seed, asked.seed + asked.seeds):
        instance = generate("elastic", seed, jobs=jobs, slots=slots, types=TYPES)
        found = {name: method.solve(instance, asked.limits) for name, method in METHODS.items()}
        highest = min(result.bound for result in found.values())
        yield {
            "seed": seed, "fastest": f"{PROBLEM.tightest_bound(instance.at_their_fastest()):.4g}",
            "bound": f"{highest:.4g}",
            **{name: f"{1 - result.objective / highest:.1%}" for name, result in found.items()},
        }  # fmt: skip


BENCH = Benchmark(
    gaps,
    time_limit=Option(30.0, quick=2.0),
    seed=Option(1),
    seeds=Option(3, "instances", quick=1),
    small=Option(0, "1: 8 jobs and 6 slots in place of 20 and 20", quick=1),
)
