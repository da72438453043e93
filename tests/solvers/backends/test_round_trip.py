"""Each formulation goes to each other solver as a file, and the answer comes back with the same optimum."""

import json

import highspy
import numpy as np
import pytest
import volume
from export_cases import FORMULATIONS, LONG, PROGRAMS, load, of_smallest, optimum, smallest
from scipy.sparse import csr_array
from volume import slow, some

import ddlopt
from ddlopt.solvers.backends.files import read_solution, write_model
from ddlopt.solvers.catalogue import formulation_named

USUAL = ("highs mps", "scip lp", "scip nl", "cbc mps", "glpk lp", "gurobi mps")
OTHER = (
    "highs lp",
    "highs-table mps",
    "scip mps",
    "cbc lp",
    "glpk mps",
    "glpk-printed mps",
    "glpk-printed lp",
    "gurobi lp",
)
"""Solver and format."""
TAKES_MINUTES = {"slot-widths": ("glpk", "cbc")}
"""Solvers that take minutes for the smallest bundled instance; others read the same files."""
QUICK = [pair for pair in FORMULATIONS if pair[1] not in LONG]


def trips():
    """All formulations all ways; in the default tests each is read back from one, and two, of each sense, from more."""
    for family, name in FORMULATIONS:
        for way in (*USUAL, *OTHER):
            if way.startswith(TAKES_MINUTES.get(name, "-")):
                continue
            often = name in ("rings-and-routes", "time-indexed") and way in USUAL
            quick = often or ((family, name) in QUICK and way == USUAL[0])
            if quick or volume.SLOW:
                yield (family, name, way) if quick else slow(family, name, way)


@pytest.mark.parametrize("family", ddlopt.families())
def test_every_formulation_has_an_instance(family):
    found = {name: smallest(of, name) for of, name in FORMULATIONS if of == family}
    assert found
    if None in found.values():
        pytest.skip(f"no bundled instance is covered by {', '.join(name for name in found if found[name] is None)}")


@pytest.mark.parametrize(("family", "formulation", "way"), trips())
def test_round_trip(family, formulation, way, tmp_path):
    program, kind = way.split()
    name = of_smallest(family, formulation)
    instance, form = load(name), formulation_named(formulation, load(name))
    model = write_model(form, instance, tmp_path / f"model.{kind}")[0]
    PROGRAMS[program](model, tmp_path / "answer.sol")
    evaluation = ddlopt.check(instance, read_solution(form, instance, tmp_path / "answer.sol"))
    assert evaluation.feasible
    # Printed tables have six digits.
    accuracy = 1e-4 if "printed" in program else 2e-5
    assert float(evaluation.objective) == pytest.approx(optimum(name, formulation), rel=accuracy)


@pytest.mark.parametrize(("family", "formulation"), some(FORMULATIONS, QUICK))
def test_json_is_the_same_model(family, formulation, tmp_path):
    name = of_smallest(family, formulation)
    instance, form = load(name), formulation_named(formulation, load(name))
    (path,) = write_model(form, instance, tmp_path / "model.json")
    highs = model_of(json.loads(path.read_text()))
    highs.setOptionValue("mip_rel_gap", 1e-7)
    highs.setOptionValue("presolve_rule_off", 1 << 16)
    highs.run()
    found = form.objective_value(instance, highs.getObjectiveValue())
    if not getattr(form, "outer", False):
        assert found == pytest.approx(optimum(name, formulation), rel=2e-5)


def model_of(data):
    """HiGHS with the model of a JSON file, by what the format's description says and nothing else."""
    shape = len(data["rows"]), len(data["columns"])
    matrix = csr_array((data["matrix"]["data"], data["matrix"]["indices"], data["matrix"]["indptr"]), shape=shape)
    highs = highspy.Highs()
    highs.silent()
    for lower, upper, cost in zip(data["lower"], data["upper"], data["cost"], strict=True):
        highs.addVar(-highspy.kHighsInf if lower is None else lower, highspy.kHighsInf if upper is None else upper)
        highs.changeColCost(highs.getNumCol() - 1, cost)
    whole = np.flatnonzero(data["integer"]).astype(np.int32)
    highs.changeColsIntegrality(len(whole), whole, np.array([highspy.HighsVarType.kInteger] * len(whole)))
    for row, (lower, upper) in enumerate(zip(data["row_lower"], data["row_upper"], strict=True)):
        start, end = matrix.indptr[row], matrix.indptr[row + 1]
        highs.addRow(
            -highspy.kHighsInf if lower is None else lower, highspy.kHighsInf if upper is None else upper,
            int(end - start), matrix.indices[start:end].astype(np.int32), matrix.data[start:end],
        )  # fmt: skip
    highs.changeObjectiveOffset(data["offset"])
    if data["sense"] == "maximize":
        highs.changeObjectiveSense(highspy.ObjSense.kMaximize)
    return highs
