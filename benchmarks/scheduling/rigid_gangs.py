"""Rigid gangs in the manner of SJF-BCO's evaluation: bounds, lists, SJF-BCO, our search and the exact model.

Objectives and bounds are in slots; the gap is that of the search, and times are wall-clock seconds.
"""

from benchmarks.harness import Benchmark, Option, shown, solved
from ddlopt.frontier.scheduling.formulations.rigid_gangs.rigid_gangs import RigidGangs
from ddlopt.frontier.scheduling.gangs.gang_search import GangSearch
from ddlopt.frontier.scheduling.makespan.needs import needs
from ddlopt.instances.generators.scheduling import generate
from ddlopt.models.scheduling.pool import pool
from ddlopt.solvers.exact import Exact
from ddlopt.solvers.scheduling.gangs.list_scheduling import ListScheduling
from ddlopt.solvers.scheduling.gangs.sjf_bco import SjfBco

WIDE = ((38, 32, 10.0), (38, 32, 5.0), (80, 64, 10.0), (160, 128, 10.0), (160, 96, 10.0))
"""Jobs, GPUs, seconds of a slot."""
FINE = ((38, 32, 1.0), (160, 128, 1.0))
CONTENDED = ((12, 16, 20.0), (38, 32, 10.0), (80, 64, 10.0), (160, 128, 10.0))
COMPLETION = ((12, 8, 20.0), (38, 32, 20.0), (80, 64, 20.0), (160, 128, 20.0))
METHODS = {
    "list": ListScheduling(),
    "first fit": ListScheduling("arrival", first_fit=True),
    "sjf-bco": SjfBco(),
    "gang-search": GangSearch(),
    "model": Exact("rigid-gangs", "scheduling", RigidGangs()),
}
TIMED = ("sjf-bco", "gang-search", "model")


def basic(problem) -> int:
    """The longest job and the area, whichever is longer."""
    jobs = needs(problem)
    area = sum(int(p) * int(w) for p, w in zip(jobs.slots, jobs.widest, strict=True))
    return max(int((jobs.arrival + jobs.slots).max()), -(-area // int(pool(problem).capacity.sum())))


def compare(asked, sizes, **options):
    for jobs, gpus, slot_s in sizes[: asked.sizes]:
        for seed in range(asked.seeds):
            widest = min(32, gpus // 2)
            drawn = {"jobs": jobs, "gpus": gpus, "slot_s": slot_s, "widest": widest, **options}
            problem = generate("sjf-bco", seed=seed, **drawn)
            results = {name: solved(method, problem, asked.limits, seed if name == "gang-search" else 0)
                       for name, method in METHODS.items() if asked.model or name != "model"}  # fmt: skip
            search = results["gang-search"]
            row = {"jobs/GPUs": f"{jobs}/{gpus}", "slot s": f"{slot_s:g}", "seed": seed, "basic": basic(problem)}
            row["bound"] = f"{search.bound / slot_s:g}"
            for name, result in results.items():
                missing = "refused" if result is None else None
                row[name] = missing if result is None or result.objective is None else f"{result.objective / slot_s:g}"
                if name in TIMED:
                    row[f"{name} s"] = result and f"{result.runtime_s:.1f}"
            row["gap"] = f"{search.gap:.2%}"
            if asked.model:
                model = results["model"]
                bound = None if model is None or model.bound is None else model.bound / slot_s
                row["model bound"] = shown(bound, ".4g")
            yield row


def makespan(asked):
    """Makespan, widths only."""
    yield from compare(asked, WIDE)


def fine_slots(asked):
    """Makespan, widths only, slots of a second."""
    yield from compare(asked, FINE)


def contention(asked):
    """Makespan, contention on servers."""
    yield from compare(asked, CONTENDED, contention=True)


def completion(asked):
    """Total completion time, widths only."""
    yield from compare(asked, COMPLETION, objective="completion")


BENCH = Benchmark(
    makespan, fine_slots, contention, completion,
    time_limit=Option(60.0, "seconds for each method", quick=1.0),
    seeds=Option(1),
    threads=Option(2),
    sizes=Option(5, "how many sizes of a table", quick=1),
    model=Option(1, "0 leaves the exact model out"),
)  # fmt: skip
