"""Models go to other solvers as files, their answers come back; what is wrong with a file is said in one line."""

import json
import shutil
import subprocess

import highspy
import numpy as np
import pytest
from scipy.sparse import csr_array

import ddlopt
from ddlopt.models.errors import SolutionError
from ddlopt.solvers.backends.files import read_solution, write_model
from ddlopt.solvers.backends.solution_files import read_values
from ddlopt.solvers.catalogue import formulation_named

FORMULATIONS = [
    ("topology/all-to-all-n5-d2", "min-congestion"),
    ("topology/tiny-n4-d2", "rings-and-routes"),
    ("topology/tiny-n4-d2-duplex", "all-rings"),
    ("topology/all-to-all-n5-d2", "circulant"),
    ("scheduling/tiny-all-or-nothing", "time-indexed"),
    ("scheduling/tiny-contention", "rigid-gangs"),
    ("compression/sfb-random-n60", "milp"),
    ("compression/espresso-vgg16-random-k-nvlink", "overlap-timeline"),
    ("codesign/tiny-tables-n4-d2", "joint-milp"),
]


def by_highs(model, solution):
    highs = highspy.Highs()
    highs.silent()
    highs.readModel(str(model))
    highs.setOptionValue("mip_rel_gap", 1e-7)
    highs.setOptionValue("presolve_rule_off", 1 << 16)
    highs.run()
    highs.writeSolution(str(solution), 0)


def by_cbc(model, solution):
    _run("cbc", model, "ratio", "1e-7", "solve", "solution", solution)


def by_glpk(model, solution):
    _run("glpsol", "--lp", model, "--mipgap", "1e-7", "-w", solution)


def by_glpk_printed(model, solution):
    _run("glpsol", "--freemps", model, "--mipgap", "1e-7", "-o", solution)


def by_scip(model, solution):
    pyscipopt = pytest.importorskip("pyscipopt")
    scip = pyscipopt.Model()
    scip.hideOutput()
    scip.readProblem(str(model))
    scip.optimize()
    scip.writeBestSol(str(solution))


def _run(program, *words):
    if shutil.which(program) is None:
        pytest.skip(f"{program} is not installed")
    subprocess.run([program, *map(str, words)], capture_output=True, timeout=100)


SOLVERS = {
    "highs-mps": (by_highs, "mps"), "highs-lp": (by_highs, "lp"), "cbc-mps": (by_cbc, "mps"), "cbc-lp": (by_cbc, "lp"),
    "scip-mps": (by_scip, "mps"), "scip-lp": (by_scip, "lp"), "glpk-lp": (by_glpk, "lp"),
    "glpk-printed": (by_glpk_printed, "mps"),
}  # fmt: skip


@pytest.mark.parametrize("how", SOLVERS)
@pytest.mark.parametrize(("name", "formulation"), FORMULATIONS, ids=lambda each: each.partition("/")[2] or each)
def test_round_trip(name, formulation, how, tmp_path):
    solve, kind = SOLVERS[how]
    instance, form = ddlopt.load(name), formulation_named(formulation, name.split("/")[0])
    model = write_model(form, instance, tmp_path / f"model.{kind}")[0]
    solve(model, tmp_path / "answer.sol")
    evaluation = ddlopt.check(instance, read_solution(form, instance, tmp_path / "answer.sol"))
    assert evaluation.feasible
    known = ddlopt.solve(instance, formulation, gap=1e-6)
    # Printed tables have six digits.
    assert float(evaluation.objective) == pytest.approx(known.objective, rel=1e-4 if "printed" in how else 2e-5)


def test_json_is_the_same_model(tmp_path):
    instance, form = ddlopt.load("topology/tiny-n4-d2"), formulation_named("rings-and-routes", "topology")
    (path,) = write_model(form, instance, tmp_path / "model.json")
    data = json.loads(path.read_text())
    shape = len(data["rows"]), len(data["columns"])
    matrix = csr_array((data["matrix"]["data"], data["matrix"]["indices"], data["matrix"]["indptr"]), shape=shape)
    highs = highspy.Highs()
    highs.silent()
    infinite = {None: highspy.kHighsInf}
    for lower, upper in zip(data["lower"], data["upper"], strict=True):
        highs.addVar(-infinite[None] if lower is None else lower, infinite.get(upper, upper))
    whole = np.flatnonzero(data["integer"]).astype(np.int32)
    highs.changeColsIntegrality(len(whole), whole, np.array([highspy.HighsVarType.kInteger] * len(whole)))
    for column, cost in enumerate(data["cost"]):
        highs.changeColCost(column, cost)
    for row, (lower, upper) in enumerate(zip(data["row_lower"], data["row_upper"], strict=True)):
        start, end = matrix.indptr[row], matrix.indptr[row + 1]
        highs.addRow(
            -infinite[None] if lower is None else lower, infinite.get(upper, upper), int(end - start),
            matrix.indices[start:end].astype(np.int32), matrix.data[start:end],
        )  # fmt: skip
    highs.run()
    objective = form.objective_value(instance, highs.getObjectiveValue() + data["offset"])
    assert objective == pytest.approx(11.5, rel=1e-6)


GOOD = """# Solution for model x
# Objective value = 3
a 1
b 2.5
"""


def read(tmp_path, text):
    file = tmp_path / "answer.sol"
    file.write_text(text)
    return read_values(file, ["a", "b"])


def test_gurobi(tmp_path):
    assert read(tmp_path, GOOD) == ("Gurobi", {"a": 1.0, "b": 2.5})


def test_glpk_linear_program_by_number(tmp_path):
    text = "c Problem:    x\nc Rows:       1\ns bas 1 2 f f 3\ni 1 b 1 0\nj 1 b 1.5 0\nj 2 l 0 2\ne o f\n"
    assert read(tmp_path, text) == ("GLPK", {"a": 1.5, "b": 0.0})


def test_cbc_marks_what_breaks_a_bound(tmp_path):
    text = "Optimal - objective value 3.0\n      0 a   1   0\n**    1 b   2.5   0\n"
    assert read(tmp_path, text) == ("CBC", {"a": 1.0, "b": 2.5})


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("", "is no solution that HiGHS, SCIP, Gurobi, CBC, GLPK writes"),
        ("a 1\nb 2\n", "is no solution that"),
        ("# Solution for model x\n", "holds no values: Gurobi found no solution"),
        ("Infeasible - objective value 0\n", "holds no values: CBC found no solution"),
        ("no solution available\n", "holds no values: SCIP found no solution"),
        (GOOD + "c one\n", r"line 5: not what Gurobi writes"),
        ("Model status\nOptimal\n\n# Columns 2\na 1\nb two\n", "line 6: not what HiGHS writes"),
        ("c Problem: x\nj 3 1\n", "line 2: not what GLPK writes"),
    ],
)
def test_broken_files(tmp_path, text, line):
    with pytest.raises(SolutionError, match=line) as caught:
        read(tmp_path, text)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("changed", "line"),
    [
        ("topology_link(0_1) 0.5", r"topology.link\[0,1\] = 0.5 must be whole; HiGHS did not solve to that"),
        ("elsewhere 1", "names 'elsewhere', which RingsAndRoutes for 'tiny-n4-d2' does not have"),
    ],
)
def test_values_that_do_not_fit_the_model(tmp_path, changed, line):
    instance, form = ddlopt.load("topology/tiny-n4-d2"), formulation_named("rings-and-routes", "topology")
    by_highs(write_model(form, instance, tmp_path / "model.mps")[0], tmp_path / "answer.sol")
    lines = (tmp_path / "answer.sol").read_text().splitlines()
    place = next(place for place, each in enumerate(lines) if each.startswith("topology_link(0_1)"))
    (tmp_path / "answer.sol").write_text("\n".join([*lines[:place], changed, *lines[place + 1 :]]))
    with pytest.raises(SolutionError, match=line):
        read_solution(form, instance, tmp_path / "answer.sol")


def test_one_that_is_not_there(tmp_path):
    with pytest.raises(SolutionError, match="cannot be read: No such file"):
        read_values(tmp_path / "none.sol", [])
