"""Every formulation of every family on a small bundled instance, and programs that solve files."""

import shutil
import subprocess
from functools import cache

import highspy
import pytest

import ddlopt
from ddlopt.instances import library_folder
from ddlopt.solvers import catalogue
from ddlopt.solvers.backends.matrix import linear_model
from ddlopt.solvers.contracts import formulation_of
from ddlopt.solvers.exact import Exact, build_model

TIGHT = "1e-7"


FORMULATIONS = [
    (entry.family, entry.name)
    for entry in catalogue.entries()
    if entry.kind == "exact" and isinstance(entry.make("highs"), Exact)
] + [
    ("topology", "rings-and-routes:rings=all"),
    ("aggregation", "rate-levels:flows=false"),
    ("aggregation", "rate-messages:flows=false"),
]
"""(family, name) of all, then options that make another model."""

LONG = {
    "joint-milp",
    "latency-plain",
    "max-load-plain",
    "plans-and-flows",
    "rate-messages",
    "rigid-gangs",
    "slot-widths",
}
"""Those that take some solver longest, although another of their problem is quick; by the slow tests only."""


@cache
def smallest(family, formulation):
    """Name of the smallest instance whose objective is no constant; None if the formulation covers none."""
    method = catalogue.method(formulation, family)
    by_size = sorted(ddlopt.names(family), key=lambda name: (_bytes(family, name), name))
    return next((name for name in by_size if _asks_something(method, load(name))), None)


def of_smallest(family, formulation):
    """That name; the test is skipped where there is none."""
    return smallest(family, formulation) or pytest.skip("it covers no bundled instance")


def _bytes(family, name):
    return (library_folder(family) / f"{name.partition('/')[2]}.json").stat().st_size


def _asks_something(method, instance):
    if method.refuses(instance) is not None:
        return False
    formulation = formulation_of(method, instance)
    return bool(linear_model(build_model(instance.family, formulation, instance)).cost.any())


@cache
def load(name):
    return ddlopt.load(name)


@cache
def optimum(name, formulation):
    return ddlopt.solve(load(name), formulation, gap=1e-7).objective


def by_highs(model, solution, style=0):
    highs = highspy.Highs()
    highs.silent()
    highs.readModel(str(model))
    highs.setOptionValue("mip_rel_gap", float(TIGHT))
    highs.run()
    highs.writeSolution(str(solution), style)


def by_highs_table(model, solution):
    by_highs(model, solution, style=1)


def by_cbc(model, solution):
    run("cbc", model, "ratio", TIGHT, "solve", "solution", solution)


def by_glpk(model, solution):
    run("glpsol", "--lp" if model.suffix == ".lp" else "--freemps", model, "--mipgap", TIGHT, "-w", solution)


def by_glpk_printed(model, solution):
    run("glpsol", "--lp" if model.suffix == ".lp" else "--freemps", model, "--mipgap", TIGHT, "-o", solution)


def by_scip(model, solution):
    pyscipopt = pytest.importorskip("pyscipopt", reason="SCIP is not installed (pip install pyscipopt)")
    scip = pyscipopt.Model()
    scip.hideOutput()
    scip.readProblem(str(model))
    scip.optimize()
    scip.writeBestSol(str(solution))


def by_gurobi(model, solution):
    gurobipy = pytest.importorskip("gurobipy", reason="Gurobi is not installed (pip install gurobipy)")
    with gurobipy.Env(params={"OutputFlag": 0}) as env, gurobipy.read(str(model), env) as gurobi:
        gurobi.Params.MIPGap = float(TIGHT)
        try:
            gurobi.optimize()
        except gurobipy.GurobiError as problem:
            if problem.errno == gurobipy.GRB.Error.SIZE_LIMIT_EXCEEDED:
                pytest.skip("larger than Gurobi's licence for small models allows")
            raise
        gurobi.write(str(solution))


def run(program, *words):
    if shutil.which(program) is None:
        pytest.skip(f"{program} is not installed")
    return subprocess.run([program, *map(str, words)], capture_output=True, text=True, timeout=100).stdout


PROGRAMS = {
    "highs": by_highs, "highs-table": by_highs_table, "scip": by_scip, "cbc": by_cbc, "glpk": by_glpk,
    "glpk-printed": by_glpk_printed, "gurobi": by_gurobi,
}  # fmt: skip


STARTS = {
    "circulant": ("topology/all-to-all-n8-d2", "circulant"),
    "counted-slot": ("scheduling/slot-rigid", "gadget"),
    "joint-milp": ("codesign/tiny-drawn-n5-d2", "alternating:strategies=exact,topology=exact"),
}
"""Formulations, with methods whose solutions are better than what every solver finds first."""


@cache
def good_start(formulation):
    name, method = STARTS[formulation]
    return ddlopt.solve(load(name), method)
