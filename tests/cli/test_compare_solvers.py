"""Solvers side by side on the formulations of every family, and what is said of those that fail."""

import csv
import dataclasses
import io

import pytest
from export_cases import FORMULATIONS, of_smallest, optimum
from volume import some

import ddlopt
from ddlopt.analysis.compare import refuted
from ddlopt.models.errors import SolverError
from ddlopt.solvers.backends import Highs, PyomoSolver
from ddlopt.solvers.backends.pyomo_any import DRIVERS
from ddlopt.solvers.contracts import Status

TINY = "topology/tiny-n4-d2"


def installed():
    there = []
    for name in ("scip", "cbc", "glpk", "gurobi"):
        try:
            there.append(PyomoSolver(name).name)
        except SolverError:
            continue
    return there


def rows(call, *words):
    code, out, complaint = call("compare", *words, "--csv")
    return code, list(csv.DictReader(io.StringIO(out))), complaint


QUICK = {
    ("aggregation", "rate-levels:flows=false"),
    ("aggregation", "tree"),
    ("compression", "forward-sides"),
    ("topology", "rings-and-routes"),
}
"""By name: what stands at a place in the catalogue may be another one tomorrow, and take solvers a minute."""


@pytest.mark.parametrize(("family", "formulation"), some(FORMULATIONS, QUICK))
def test_solvers_agree(call, family, formulation):
    """Each formulation by each solver that is here; what its licence does not cover is an error in a line."""
    name = of_smallest(family, formulation)
    solvers = ["highs", *installed()]
    _, table, complaint = rows(call, name, "--methods", formulation, "--solvers", ",".join(solvers), "--gap", "1e-6")
    for solver, row in zip(solvers, table, strict=True):
        if row["status"] == "error":
            assert solver == "gurobi"
            assert "licen" in complaint
        else:
            assert float(row["objective"]) == pytest.approx(optimum(name, formulation), rel=2e-5)


def test_a_missing_solver_is_a_line_beside_the_others(call, monkeypatch):
    monkeypatch.setattr(PyomoSolver, "installed", lambda self: self.name != "cplex")
    code, table, complaint = rows(call, TINY, "--methods", "rings-and-routes", "--solvers", "highs,cplex")
    assert [row["status"] for row in table] == ["optimal", "error"]
    told = "tiny-n4-d2, rings-and-routes by cplex: the solver 'cplex' is not installed; try: pip install cplex"
    assert complaint.splitlines() == [told]
    assert code == 1
    code, out, complaint = call("compare", TINY, "--methods", "rings-and-routes", "--solvers", "highs,hihgs")
    assert (code, out) == (2, "")
    assert complaint.startswith("ddlopt: there is no solver 'hihgs'")


def test_a_solver_that_fails_is_a_line_beside_the_others(call, monkeypatch):
    def fail(*_, **__):
        raise SolverError("scip failed: out of luck")

    monkeypatch.setattr(PyomoSolver, "installed", lambda self: True)
    monkeypatch.setattr(PyomoSolver, "solve", fail)
    code, table, complaint = rows(
        call, TINY, "--methods", "rings-and-routes,topology-finder", "--solvers", "scip,highs"
    )
    assert [row["status"] for row in table] == ["error", "optimal", "feasible"]
    assert complaint.splitlines() == ["tiny-n4-d2, rings-and-routes by scip: scip failed: out of luck"]
    assert code == 1


class Liar(Highs):
    """Stops early and calls it optimal."""

    name = "liar"

    def solve(self, model, limits, seed=0, progress=None, warm=False, want_duals=False):
        early = Highs({"mip_max_improving_sols": 1}).solve(model, limits, seed)
        return dataclasses.replace(early, status=Status.OPTIMAL, bound=early.objective, solver="liar 1.0")


@pytest.mark.parametrize(
    ("name", "formulation"),
    [("topology/all-to-all-n5-d2", "rings-and-routes"), ("scheduling/slot-rigid", "counted-slot")],
)
def test_a_wrong_claim_of_optimality_is_an_error(name, formulation):
    """It shows as soon as somebody else has a better solution."""
    honest = ddlopt.compare([name], [formulation])[0]
    lying = method_of_liar(formulation, name.split("/")[0])
    wrong, right = ddlopt.compare([name], [lying, formulation])
    assert (wrong.status, right.status) == (Status.ERROR, honest.status)
    assert wrong.message.startswith("its ")
    assert f", but {formulation} by HiGHS" in wrong.message
    assert wrong.checked
    assert ddlopt.compare([name], [lying])[0].status in (Status.OPTIMAL, Status.FEASIBLE)  # nobody can know


def method_of_liar(formulation, family):
    from ddlopt.solvers import catalogue

    return dataclasses.replace(catalogue.method(formulation, family), backend=Liar())


def test_a_slack_incumbent_is_no_wrong_claim():
    """The first solution that HiGHS finds says 49 of links that carry 4; ten hops over four links are 2.5."""
    early = dataclasses.replace(method_of_liar("circulant", "topology"), backend=Highs({"mip_max_improving_sols": 1}))
    result = ddlopt.solve("topology/all-to-all-n8-d4", early)
    assert result.status is Status.FEASIBLE
    assert result.objective > 2.5
    assert result.scope_bound <= 2.5 * (1 + 1e-6)


def test_what_refutes_and_what_does_not():
    result = ddlopt.compare([TINY], ["rings-and-routes"])[0]
    almost = dataclasses.replace(result, bound=result.objective * (1 + 1e-7))
    assert refuted([result, almost]) == [result, almost]
    other = dataclasses.replace(result, instance_digest="0" * 64, objective=1.0)
    unchecked = dataclasses.replace(result, objective=1.0, checked=False)
    assert refuted([result, other, unchecked])[0] == result
    better = dataclasses.replace(result, objective=1.0, method="x", provenance={})
    within = dataclasses.replace(result, bound=1.0, scope="rings", scope_bound=11.5)
    elsewhere = dataclasses.replace(within, scope=None, scope_bound=None, objective=2.0)
    assert refuted([within, elsewhere])[0] == within
    alike = dataclasses.replace(within, objective=3.0)
    assert refuted([within, alike])[0].message.startswith("its scope bound is 11.5, but rings-and-routes by HiGHS")
    assert refuted([result, better])[0].message == f"its bound is {result.bound:.9g}, but x has 1"


def test_start_from(call):
    name = "scheduling/tiny-star"
    code, out, complaint = call("solve", name, "--method", "time-indexed", "--start-from", "gadget")
    assert code == 0
    assert "optimal" in out
    assert complaint.splitlines() == ["gadget, then time-indexed"]
    result = ddlopt.solve(name, "time-indexed", start_from="gadget")
    assert result.provenance["solver"].startswith("HiGHS")
    assert result.objective == pytest.approx(ddlopt.solve(name, "time-indexed").objective)
    assert result.trace[0].incumbent == pytest.approx(ddlopt.solve(name, "gadget").objective)


@pytest.mark.parametrize(
    ("words", "line"),
    [
        (["--start-from", "nobody"], "topology has no method 'nobody'"),
        (["--start-from", "topology-finder", "--start", "x.json"], "start and start_from cannot both be given"),
    ],
)
def test_starts_that_cannot_be(call, words, line):
    code, out, complaint = call("solve", TINY, "--method", "rings-and-routes", *words)
    assert (code, out) == (2, "")
    assert line in complaint


def test_start_from_what_does_not_cover_it(call):
    code, _, complaint = call(
        "solve", "scheduling/tiny-star", "--method", "time-indexed", "--start-from", "rigid-gangs"
    )
    assert code == 2
    assert complaint.startswith("ddlopt: rigid-gangs does not cover 'tiny-star': ")


def test_export_with_a_start(call, tmp_path):
    words = ("export", "scheduling/tiny-star", "--formulation", "time-indexed", "-o", tmp_path / "model.lp")
    code, out, _ = call(*words, "--start-from", "gadget", "--start-for", "scip,gurobi")
    assert code == 0
    names = ["model.lp", "model.lp.names.json", "model.scip.sol", "model.gurobi.mst"]
    assert [line.rpartition("/")[2] for line in out.splitlines()] == names
    assert {file.name for file in tmp_path.iterdir()} == set(names)
    code, out, _ = call("import-solution", words[1], tmp_path / "model.scip.sol", "--formulation", "time-indexed")
    assert code == 0
    assert f"feasible, objective {ddlopt.solve(words[1], 'gadget').objective:.12g}" in out


def test_export_for_a_solver_that_takes_no_start(call, tmp_path):
    words = (
        "export",
        TINY,
        "--formulation",
        "rings-and-routes:rings=all",
        "-o",
        tmp_path / "a.lp",
        "--start-from",
        "topology-finder",
    )
    code, out, complaint = call(*words, "--start-for", "highs,glpk")
    assert (code, out) == (2, "")
    assert complaint == "ddlopt: 'glpk' takes no start; these do: cbc, gurobi, highs, scip\n"
    assert not list(tmp_path.iterdir())


def test_every_driver_is_told_of(call):
    code, _, complaint = call("compare", TINY, "--methods", "rings-and-routes", "--solvers", "nobody")
    assert code == 2
    assert all(name in complaint for name in DRIVERS)
