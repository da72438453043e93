"""Models and starts as files: the same bytes every time, and the same problem for whoever reads them."""

import json
from dataclasses import dataclass
from typing import Any

import highspy
import pyomo.environ as pyo
import pytest
from export_cases import STARTS, good_start, load, run
from volume import spread

import ddlopt
from ddlopt.models.errors import NotApplicableError, OptionError, SolutionError
from ddlopt.solvers.backends.files import read_solution, write_model
from ddlopt.solvers.backends.start_files import START_SOLVERS, write_start
from ddlopt.solvers.catalogue import formulation_named
from ddlopt.solvers.contracts import better


@pytest.mark.parametrize("kind", ["mps", "lp", "nl"])
def test_same_bytes_every_time(cover, tmp_path, kind):
    first = write_model(cover.minimise(), cover.instance, tmp_path / f"a.{kind}")
    second = write_model(cover.minimise(), cover.instance, tmp_path / f"b.{kind}")
    assert [path.read_bytes() for path in first] == [path.read_bytes() for path in second]
    assert {*first, *second} == set(tmp_path.iterdir())


@pytest.mark.parametrize("kind", ["mps", "lp"])
@pytest.mark.parametrize("sense", ["minimise", "maximise"])
def test_another_solver_reads_the_same_problem(cover, tmp_path, kind, sense):
    path, names, *_ = write_model(getattr(cover, sense)(), cover.instance, tmp_path / f"a.{kind}")
    highs = highspy.Highs()
    highs.silent()
    highs.readModel(str(path))
    highs.run()
    expected = 18 if sense == "minimise" else 39 - 18
    assert highs.getObjectiveValue() == pytest.approx(-expected if (sense, kind) == ("maximise", "mps") else expected)
    variables = json.loads(names.read_text())["variables"]
    values = highs.getSolution().col_value
    taken = {variables.get(name) for name, value in zip(highs.getLp().col_names_, values, strict=True) if value > 0.5}
    taken.discard(None)  # a column of the writer's own, for the constant of the objective
    assert taken == {"cover.take[0]", "cover.take[1]", "cover.take[3]"}


def test_names_of_constraints(cover, tmp_path):
    _, names, *_ = write_model(cover.minimise(), cover.instance, tmp_path / "a.lp")
    assert list(json.loads(names.read_text())["constraints"].values()) == ["cover.enough"]


def test_the_format_asked_for_comes_before_the_ending_and_mps_says_nothing_of_its_sense(cover, tmp_path):
    for form in (cover.minimise(), cover.maximise()):
        (path, *_) = write_model(form, cover.instance, tmp_path / "a.lp", "mps")
        text = path.read_text()
        assert (path.name, "ROWS\n" in text, "OBJSENSE" in text) == ("a.lp", True, False)
    with pytest.raises(OptionError, match="not as 'txt'"):
        write_model(cover.minimise(), cover.instance, tmp_path / "a.lp", "txt")


@pytest.mark.parametrize("constant", ["ONE_VAR_CONSTANT 1", "objconstant 39"])
def test_the_column_of_the_constant_says_nothing(cover, tmp_path, constant):
    taken = "".join(f"cover_take({k}) 1\n" for k in (0, 1, 3))
    (tmp_path / "a.sol").write_text(f"objective value: 21\n{taken}{constant}\n")
    assert read_solution(cover.maximise(), cover.instance, tmp_path / "a.sol").chosen == (0, 1, 3)


def test_refusals_write_nothing(cover, tmp_path):
    with pytest.raises(OptionError, match=r"written as mps, lp, nl, json, not as 'txt' \(a.txt\)"):
        write_model(cover.minimise(), cover.instance, tmp_path / "a.txt")
    with pytest.raises(OptionError, match="cannot be written: No such file or directory"):
        write_model(cover.minimise(), cover.instance, tmp_path / "nowhere" / "a.lp")
    empty = cover.Instance(name="empty", weights=(), costs=(), need=1)
    with pytest.raises(NotApplicableError, match="nothing to choose from"):
        write_model(cover.minimise(), empty, tmp_path / "a.lp")
    with pytest.raises(NotApplicableError, match="nothing to choose from"):
        read_solution(cover.minimise(), empty, tmp_path / "a.sol")
    with pytest.raises(NotApplicableError, match="nothing to choose from"):
        write_start(cover.minimise(), empty, cover.Solution(instance="empty", chosen=()), tmp_path / "a.lp")
    assert not list(tmp_path.iterdir())


@dataclass(frozen=True)
class Spare:
    """A formulation with a variable that occurs nowhere and cannot be zero, and one that is fixed."""

    of: Any

    def __getattr__(self, name):
        return getattr(self.of, name)

    def build(self, block, instance):
        self.of.build(block, instance)
        block.unused = pyo.Var(bounds=(4, 7))
        block.given = pyo.Var(initialize=2)
        block.given.fix()
        block.also = pyo.Constraint(expr=block.given + block.take[0] >= 1)

    def read(self, block, instance):
        assert 4 <= block.unused.value <= 7
        assert block.given.value == 2
        return self.of.read(block, instance)


def test_variables_that_are_in_no_file(cover, tmp_path):
    (tmp_path / "a.sol").write_text("objective value: 18\n" + "".join(f"cover_take({k}) 1\n" for k in (0, 1, 3)))
    assert read_solution(Spare(cover.minimise()), cover.instance, tmp_path / "a.sol").chosen == (0, 1, 3)


def in_highs(model, start):
    highs = highspy.Highs()
    highs.silent()
    highs.readModel(str(model))
    highs.setOptionValue("mip_max_improving_sols", 1)
    if start:
        assert highs.readSolution(str(start), 0) == highspy.HighsStatus.kOk
    highs.run()
    return highs.getObjectiveValue()


def in_scip(model, start):
    pyscipopt = pytest.importorskip("pyscipopt", reason="SCIP is not installed (pip install pyscipopt)")
    scip = pyscipopt.Model()
    scip.hideOutput()
    scip.readProblem(str(model))
    scip.setParam("limits/solutions", 1)
    if start:
        assert scip.addSol(scip.readSolFile(str(start)))
    scip.optimize()
    return scip.getObjVal()


def in_cbc(model, start):
    log = run("cbc", model, *(("mipstart", start) if start else ()), "maxSolutions", 1, "solve")
    assert ("MIPStart provided solution with cost" in log) == bool(start)
    return float(next(line for line in log.splitlines() if line.startswith("Objective value:")).split()[-1])


def in_gurobi(model, start):
    gurobipy = pytest.importorskip("gurobipy", reason="Gurobi is not installed (pip install gurobipy)")
    with gurobipy.Env(params={"OutputFlag": 0}) as env, gurobipy.read(str(model), env) as gurobi:
        gurobi.Params.SolutionLimit = 1
        if start:
            gurobi.read(str(start))
        gurobi.optimize()
        return gurobi.ObjVal


FIRST = {"highs": in_highs, "scip": in_scip, "cbc": in_cbc, "gurobi": in_gurobi}
"""The objective of the first solution that a solver comes to, with a start and without."""


@pytest.mark.parametrize("solver", START_SOLVERS)
@pytest.mark.parametrize("formulation", spread(STARTS, 3))
def test_the_start_is_the_first_solution(formulation, solver, tmp_path):
    found, instance = good_start(formulation), load(STARTS[formulation][0])
    form = formulation_named(formulation, instance)
    kind = "lp" if solver in ("scip", "cbc") else "mps"
    model = write_model(form, instance, tmp_path / f"model.{kind}")[0]
    (start,) = write_start(form, instance, found.solution, model, solvers=[solver])
    sign = -1 if kind == "mps" and form.sense == "maximize" else 1
    warm, cold = (form.objective_value(instance, sign * FIRST[solver](model, given)) for given in (start, None))
    slack = 1e-6 * found.objective
    assert not better(found.objective, warm + (slack if found.sense == "maximize" else -slack), found.sense)
    if solver != "cbc":  # it is far before it counts solutions
        assert better(found.objective, cold, found.sense)


@pytest.mark.parametrize("kind", ["mps", "lp", "nl", "json"])
def test_a_start_is_a_solution(kind, tmp_path):
    """What is read back from the files for HiGHS and SCIP is the heuristic's answer, in every format of the model."""
    found, instance = good_start("counted-slot"), load(STARTS["counted-slot"][0])
    form = formulation_named("counted-slot", instance)
    for file in write_start(form, instance, found.solution, tmp_path / f"model.{kind}", solvers=["highs", "scip"]):
        evaluation = ddlopt.check(instance, read_solution(form, instance, file))
        assert evaluation.feasible
        assert float(evaluation.objective) == pytest.approx(found.objective)


def taken(column):
    return f"cover_take({column})"


@pytest.mark.parametrize(
    ("sense", "kind", "worth", "constant"),
    [("minimise", "mps", 18, False), ("minimise", "lp", 18, False), ("maximise", "mps", -21, True),
     ("maximise", "lp", 21, True)],
)  # fmt: skip
def test_a_start_is_written_as_each_solver_reads_it(cover, tmp_path, sense, kind, worth, constant):
    """Of what is to be minimised in MPS, whatever the model does; the constant has a column of its own."""
    start = cover.Solution(instance="small", chosen=(0, 1, 3))
    files = write_start(getattr(cover, sense)(), cover.instance, start, tmp_path / f"m.{kind}")
    assert [file.name for file in files] == ["m.cbc.sol", "m.gurobi.mst", "m.highs.sol", "m.scip.sol"]
    cbc, gurobi, highs, scip = (file.read_text() for file in files)
    one = ["ONE_VAR_CONSTANT 1.0"] * constant
    every = [f"{taken(k)} {k in (0, 1, 3):.1f}" for k in range(5)] + one
    assert cbc.splitlines() == [f"Stopped on iterations - objective value {worth:.1f}"] + [
        f"{place} {taken(k)} 1.0 0" for place, k in enumerate((0, 1, 3))
    ]
    assert gurobi.splitlines() == ["# MIP start", *every]
    assert highs.splitlines() == [
        "Model status", "Unknown", "", "# Primal solution values", "Feasible", f"Objective {worth:.1f}",
        f"# Columns {5 + constant}", *every, "# Rows 0",
    ]  # fmt: skip
    assert scip.splitlines() == [f"objective value: {worth:.1f}", *(f"{taken(k)} 1.0" for k in (0, 1, 3)), *one]


def test_refused_starts_write_nothing(tmp_path):
    name = "topology/all-to-all-n6-d2"
    form, solution = formulation_named("circulant", load(name)), ddlopt.solve(load(name), "ocs-greedy").solution
    with pytest.raises(OptionError, match=r"^'glpk' takes no start; these do: cbc, gurobi, highs, scip$"):
        write_start(form, load(name), solution, tmp_path / "model.mps", solvers=["glpk"])
    with pytest.raises(OptionError, match=r"^'cplex' reads no start from a file; these do: "):
        write_start(form, load(name), solution, tmp_path / "model.mps", solvers=["highs", "cplex"])
    with pytest.raises(SolutionError, match=r"^nothing completes the solution to one of CirculantDesign for '"):
        write_start(form, load(name), solution, tmp_path / "model.mps")
    with pytest.raises(SolutionError, match="was made for instance 'all-to-all-n6-d2'"):
        write_start(form, load("topology/all-to-all-n5-d2"), solution, tmp_path / "model.mps")
    other = formulation_named("rings-and-routes:form=congestion", load(name))
    with pytest.raises(OptionError, match="cannot be written"):
        write_start(other, load(name), solution, tmp_path / "nowhere" / "model.mps")
    assert not list(tmp_path.iterdir())
