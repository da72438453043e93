"""Our methods beside general solvers on our formulations, on a set of instances of fixed composition.

    python benchmarks suite/baselines --time-limit 5 --keep bench/baselines.sqlite --write docs/results

*ddlopt* is the default method of the instance (``auto``). The others get the first formulation of the problem that has
all solutions, with what ddlopt does around every solver: combinatorial bounds before it, which may prove what it finds.
Every answer is checked by ``evaluate``; a run that ends without a checked solution counts as the whole time limit and a
gap of 100 %. Scores are those of the field: shifted geometric means of seconds, and gaps against the best known. A
process each, one thread. A run is kept when it is done, so that the same command goes on where it was interrupted.

CP-SAT is not among them: it takes whole numbers only, and formulations have real variables too.
"""

import platform
import shutil
import subprocess
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from statistics import mean

from benchmarks.harness import ROOT, Benchmark, Option
from benchmarks.suite.gaps import known, loss
from ddlopt import instances
from ddlopt.analysis.bench import Store, sets
from ddlopt.analysis.bench.figures.statistics import shifted_geometric_mean
from ddlopt.analysis.bench.sweep import Sweep
from ddlopt.analysis.bench.tasks import plan
from ddlopt.solvers import catalogue
from ddlopt.solvers.contracts import Status

OURS, NEAR = "ddlopt", 1e-3
"""The name of our methods in tables, and how near to the best known counts as reached."""
PASSED_OVER = {"exact", "makespan-bound", "circulant"}
"""Formulations with a choice of their own, that only bound, or that have a smaller class of solutions."""
HEAD = """# Baselines: general solvers on the formulations

How much do methods of our own bring over a general solver that gets our formulations? *ddlopt* is the default method of
each instance; the other solvers get the first formulation that has all solutions, with the combinatorial bounds that
ddlopt puts before any solver. The set is fixed ([sets](../howto/sweeps.md)), and every answer is checked. Seconds are
those of the clock, on a machine that has other work too: compare them within a row. *Proven*: solver and check
agree on an optimum, up to the tolerances of floating point. CP-SAT is not among the solvers: it takes whole numbers
only, and formulations have real variables too.

"""


def baselines(asked):
    """Of each solver: how many instances it proves, how many it brings near the best known, and how long it takes."""
    yield f"Set `{asked.set}`, {platform.machine()}, {told_versions(asked.solvers)}."
    asked.keep.parent.mkdir(parents=True, exist_ok=True)
    names = list(sets.members(asked.set))[: asked.most]
    with Store(asked.keep) as store:
        found = {solver: runs(store, names, solver, asked) for solver in (OURS, *asked.solvers)}
    shared = [name for name in names if all(name in found[solver] for solver in asked.solvers)]
    yield scores(f"{OURS}, the whole set", [found[OURS][name] for name in names], asked.time_limit)
    for solver, of_solver in found.items():
        yield scores(solver, [of_solver[name] for name in shared], asked.time_limit)
    yield "Seconds where it is proven, or else how far the solution is from the best known:"
    for name in names:
        cells = {solver: cell(of_solver.get(name)) for solver, of_solver in found.items()}
        yield {"instance": name, "formulation": formulation_of(name) or "–"} | cells


def formulation_of(name):
    """The formulation that general solvers get; None where the problem has none that fits."""
    wanted = (each for each in catalogue.formulation_names(instances.load(name)) if each not in PASSED_OVER)
    return next(wanted, None)


def runs(store, names, solver, asked):
    """By instance whether it is proven, seconds, and the distance from the best known; without those not covered."""
    found = {}
    for name in names:
        method = "auto" if solver == OURS else formulation_of(name)
        if method is None:
            continue
        task, *_ = plan([name], [method], [0], asked.limits, ("highs" if solver == OURS else solver,))
        for _ in Sweep([task], store, 1).run():
            pass
        fields = ("key", "status", "objective", "checked", "runtime_s")
        row = next(
            row for row in store.rows(fields, instance_digest=instances.load(name).digest) if row["key"] == task.key
        )
        answered = bool(row["checked"]) and row["status"] in (Status.OPTIMAL, Status.FEASIBLE)
        lost = loss(row["objective"], known(name)[0], instances.load(name)) if answered else None
        proven = answered and row["status"] == Status.OPTIMAL
        found[name] = (
            proven,
            min(row["runtime_s"], asked.time_limit),
            1.0 if lost is None else min(1.0, max(0.0, lost)),
        )
    return found


def scores(who, found, limit_s):
    """A row of the table of scores."""
    seconds = [spent if proven else limit_s for proven, spent, _ in found]
    return {
        "solver": who,
        "instances": str(len(found)),
        "proven": str(sum(proven for proven, *_ in found)),
        "within 0.1 % of the best known": str(sum(lost <= NEAR for *_, lost in found)),
        "mean distance from it": f"{mean(lost for *_, lost in found):.2%}" if found else "–",
        "seconds, shifted geometric mean": f"{shifted_geometric_mean(seconds):.2f}",
    }


def cell(run):
    """What a table says of a run."""
    if run is None:
        return "–"
    proven, spent, lost = run
    return f"{spent:.2f} s" if proven else "none" if lost >= 1 else f"{lost:.2%}"


def told_versions(solvers):
    """Names and versions of solvers."""
    told = []
    for solver in solvers:
        try:
            package = {"highs": "highspy", "scip": "pyscipopt"}[solver]
            told.append(f"{package} {version(package)}")
        except (KeyError, PackageNotFoundError):
            told.append(f"{solver} {of_program(solver)}")
    return ", ".join(told)


def of_program(solver):
    """The version that a program tells, the first number in what it prints."""
    program = shutil.which(solver)
    if program is None:
        return "(not installed)"
    ran = subprocess.run([program, "-quit"], capture_output=True, text=True, check=False, timeout=30)
    numbers = [word for word in ran.stdout.split() if word[0].isdigit()]
    return numbers[0] if numbers else "(of unknown version)"


BENCH = Benchmark(
    baselines,
    in_all=False,
    page="baselines",
    head=HEAD,
    set=Option("tiny", "set of instances"),
    solvers=Option(["highs", "scip", "cbc"], "general solvers", ["highs"], str),
    time_limit=Option(5.0, quick=1.0),
    most=Option(10_000, "instances at most", quick=2),
    keep=Option(ROOT / "bench/baselines.sqlite", quick=ROOT / "build/quick-baselines.sqlite", type=Path),
)
