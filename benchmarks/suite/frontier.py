"""What the frontier is worth: gaps and seconds of the default method with it and without, problem by problem.

Each solve is a process of its own, with ``DDLOPT_NO_FRONTIER`` set or not. The instances are those of the library whose
default method asks the frontier, evenly spread over their sizes; the seconds are mean ones, and end at the limit.
"""

import json
import os
import subprocess
import sys

from benchmarks.harness import DDLOPT, Benchmark, Option
from ddlopt import instances
from ddlopt.models import plugins
from ddlopt.models.catalogue import problem_of, problems

METHODS = (
    "import sys, ddlopt; from ddlopt.solvers import catalogue, contracts\n"
    "for name in sys.argv[1:]:\n"
    "    instance = ddlopt.load(name); default = ddlopt.default_method(instance)\n"
    "    method = catalogue.method(default, instance.family)\n"
    "    print(name, default, *sorted(set(contracts.kernels_of(method, instance))))"
)


def worth(asked):
    """A row for each problem that the frontier has something for."""
    with_it, without = (defaults(asked, hidden) for hidden in (False, True))
    for path in problems():
        names = spread([name for name in by_problem(path) if with_it[name] != without[name]], asked.most)
        if names:
            found = {hidden: [solve(name, asked, hidden) for name in names] for hidden in (False, True)}
            gaps, seconds = (
                {hidden: sum(each[place] for each in runs) / len(runs) for hidden, runs in found.items()}
                for place in (0, 1)
            )
            yield {
                "problem": path, "instances": len(names), "gap": f"{gaps[False]:.2%}", "without": f"{gaps[True]:.2%}",
                "s": f"{seconds[False]:.1f}", "s without": f"{seconds[True]:.1f}",
            }  # fmt: skip


def spread(names: list[str], most: int) -> list[str]:
    """From the middle of each of ``most`` equal parts of the list; all, where there are no more."""
    return names if len(names) <= most else [names[len(names) * (2 * k + 1) // (2 * most)] for k in range(most)]


def by_problem(path: str) -> list[str]:
    """Bundled instances of a problem, the smallest first."""
    loaded = {name: instances.load(name) for name in instances.names(path.partition("/")[0])}
    mine = {name: each for name, each in loaded.items() if problem_of(each).path == path}
    return sorted(mine, key=lambda name: len(mine[name].model_dump_json()))


def environment(hidden: bool) -> dict[str, str]:
    """With the frontier, or without."""
    return os.environ | {plugins.HIDDEN: "1" if hidden else "0"}


def defaults(asked, hidden: bool) -> dict[str, str]:
    """Of every instance the default method and what it calls."""
    names = [name for path in problems() for name in by_problem(path)]
    told = [sys.executable, "-c", METHODS, *names]
    done = subprocess.run(told, env=environment(hidden), capture_output=True, text=True, check=True)
    return dict(line.split(" ", 1) for line in done.stdout.splitlines())


def solve(name: str, asked, hidden: bool) -> tuple[float, float]:
    """Gap (1 where there is none) and seconds."""
    line = [*DDLOPT, "solve", name, "--time-limit", str(asked.time_limit), "--json"]
    # Some bundled timelines have compressors and no budget: they are about the method alone.
    instance = instances.load(name)
    unlimited = problem_of(instance).path == "compression/timeline" and instance.error_budget is None
    line += ["--accept-error", "1"] if unlimited else []
    done = subprocess.run(line, env=environment(hidden), capture_output=True, text=True)
    told = json.loads(done.stdout) if done.stdout else {}
    gap = told.get("gap")
    return (1.0 if gap is None else gap), told.get("runtime_s", asked.time_limit)


BENCH = Benchmark(
    worth,
    in_all=False,
    time_limit=Option(60.0, quick=2.0),
    most=Option(3, "instances of a problem", quick=1),
)
