"""Rigid gangs in the manner of SJF-BCO's evaluation: bounds, lists, SJF-BCO, our search and the exact model.

Three tables: the makespan without places (slots of 10 s, or 5 s, or 1 s), with contention on servers, and the total
completion time. Objectives and bounds are in slots; the gap is that of the search, and times are wall-clock seconds.
"""

import argparse
import dataclasses

from rich.console import Console
from rich.table import Table

from ddlopt.instances.generators.scheduling import generate
from ddlopt.models.errors import DdloptError
from ddlopt.models.scheduling.needs import needs
from ddlopt.models.scheduling.pool import pool
from ddlopt.models.scheduling.rigid_gangs import RigidGangs
from ddlopt.solvers.contracts import Limits
from ddlopt.solvers.exact import Exact
from ddlopt.solvers.scheduling.gang_search import GangSearch
from ddlopt.solvers.scheduling.list_scheduling import ListScheduling
from ddlopt.solvers.scheduling.sjf_bco import SjfBco

SIZES = ((38, 32, 10.0), (38, 32, 5.0), (80, 64, 10.0), (160, 128, 10.0), (160, 96, 10.0))
FINE = ((38, 32, 1.0), (160, 128, 1.0))
CONTENDED = ((12, 16, 20.0), (38, 32, 10.0), (80, 64, 10.0), (160, 128, 10.0))
LISTS = ListScheduling(), ListScheduling("arrival", first_fit=True)
COMPLETION = ((12, 8, 20.0), (38, 32, 20.0), (80, 64, 20.0), (160, 128, 20.0))


def instance(jobs, gpus, slot_s, seed, **options):
    return generate("sjf-bco", seed=seed, jobs=jobs, gpus=gpus, slot_s=slot_s, widest=min(32, gpus // 2), **options)


def basics(problem):
    """The longest job and the area, whichever is longer."""
    jobs = needs(problem)
    area = sum(int(p) * int(w) for p, w in zip(jobs.slots, jobs.widest, strict=True))
    return max(int((jobs.arrival + jobs.slots).max()), -(-area // int(pool(problem).capacity.sum())))


def answered(method, problem, limits, **options):
    """Objective in slots and seconds; a dash where there is none."""
    try:
        result = method.solve(problem, limits, **options)
    except DdloptError:
        return None, ["refused", "-"]
    if result.objective is None:
        return result, ["-", f"{result.runtime_s:.1f}"]
    return result, [f"{result.objective / problem.slot_s:g}", f"{result.runtime_s:.1f}"]


def compare(console, title, sizes, seeds, limits, exact, **options):
    columns = ("jobs/GPUs", "slot s", "seed", "basic", "bound", "list", "first fit", "sjf-bco", "s", "gang-search", "s")
    columns += ("gap", *(("model", "s", "model bound") if exact else ()))
    table = Table(title=title)
    for column in columns:
        table.add_column(column, justify="right")
    for jobs, gpus, slot_s in sizes:
        for seed in range(seeds):
            problem = instance(jobs, gpus, slot_s, seed, **options)
            lists = [
                answered(method, problem, limits)[1][0]
                for method in (ListScheduling(), ListScheduling("arrival", True))
            ]
            _, sjf = answered(SjfBco(), problem, limits)
            search, found = answered(GangSearch(), problem, limits, seed=seed)
            row = [f"{jobs}/{gpus}", f"{slot_s:g}", str(seed), str(basics(problem)), f"{search.bound / slot_s:g}"]
            row += [*lists, *sjf, *found, f"{search.gap:.2%}"]
            if exact:
                result, model = answered(Exact("rigid-gangs", "scheduling", RigidGangs()), problem, limits)
                bound = result.bound if result is not None else None
                row += [*model, f"{bound / slot_s:.4g}" if bound is not None else "-"]
            table.add_row(*row)
    console.print(table)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--time", type=float, default=60.0, help="seconds for each method")
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--no-model", action="store_true", help="leave the exact model out")
    given = parser.parse_args()
    console = Console(width=150)
    limits = Limits(time_s=given.time, threads=given.threads)
    exact = not given.no_model
    # Kernels are compiled before anything is timed.
    warm = dataclasses.replace(limits, time_s=1.0)
    for contention in (False, True):
        GangSearch(0.001).solve(instance(12, 16, 20.0, 1, contention=contention), warm)
    compare(console, "makespan, widths only", SIZES, given.seeds, limits, exact)
    compare(console, "makespan, widths only, fine slots", FINE, given.seeds, limits, exact)
    compare(console, "makespan, contention on servers", CONTENDED, given.seeds, limits, exact, contention=True)
    compare(
        console, "total completion time, widths only", COMPLETION, given.seeds, limits, exact, objective="completion"
    )


if __name__ == "__main__":
    main()
