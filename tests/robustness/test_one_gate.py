"""Results come through the gate and nothing else: no other code makes or changes one."""

import ast
import dataclasses
import json
import re
import sqlite3
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import pytest
from report_cases import make_store
from volume import for_each

import ddlopt
from ddlopt import instances
from ddlopt.analysis import certify as certifying
from ddlopt.analysis.bench import Store
from ddlopt.analysis.bench.soundness import fault_of_run
from ddlopt.models.catalogue import family
from ddlopt.models.contracts import Evidence
from ddlopt.models.errors import ContradictionError, SolverError
from ddlopt.solvers import certify
from ddlopt.solvers.certified import by_certificate, joined, told_anew, withdrawn
from ddlopt.solvers.certify import Gate, MethodOutput
from ddlopt.solvers.contracts import Limits, Result, Status

ROOT = Path(__file__).parents[2]
GATE = {"solvers/certify.py", "solvers/certified.py"}
FIELDS = {field.name for field in dataclasses.fields(Result)} - {"trace", "details", "message", "method", "solution"}
TINY = "topology/tiny-n4-d2"


DOOR = re.compile(r"Result\(|replace\(\s*(?!\s|['\"])|__setattr__\(|__replace__\(")
"""What is in the text of a file with one; a word that is replaced by another is none."""


def sources():
    for folder in (
        "ddlopt",
        "analysis",
        "frontier",
        "solvers",
        "instances",
        "certificates",
        "models",
        "benchmarks",
        "examples",
    ):
        for path in sorted((ROOT / folder).rglob("*.py")):
            name, text = str(path.relative_to(ROOT)), path.read_text(encoding="utf-8")
            if name not in GATE and DOOR.search(text):
                yield name, ast.parse(text)


def doors(tree):
    """Calls that make a result, or change a field that only results have, or a field of something called a result."""
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call):
            continue
        called = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
        words = {keyword.arg for keyword in node.keywords}
        if called == "Result":
            yield node.lineno
        elif called in ("replace", "__replace__") and node.args:
            target = ast.unparse(node.args[0])
            if "result" in target.lower() or words & {"status", "objective", "checked", "scope_bound", "evidence"}:
                yield node.lineno
        elif called == "__setattr__" and len(node.args) == 3 and ast.unparse(node.args[1]).strip("'\"") in FIELDS:
            yield node.lineno


ALLOWED = {"solvers/heuristic.py": 1, "solvers/backends/contracts.py": 1, "solvers/backends/highs.py": 1}
"""How often: what a method hands over to the gate gets less evidence; the outcome of a solver, of which the gate is
told later, is told in another unit, and gets the better one of two solutions."""


def test_no_other_code_makes_or_changes_results():
    found = {name: lines for name, tree in sources() if (lines := list(doors(tree)))}
    assert {name: lines for name, lines in found.items() if name not in ALLOWED} == {}
    assert {name: len(lines) for name, lines in found.items()} == ALLOWED


def test_the_guard_sees_doors():
    doors_of = "Result(1)\nreplace(result, method='x')\ndataclasses.replace(found, status=1)\nreplace(limits, gap=0)"
    assert list(doors(ast.parse(doors_of))) == [1, 2, 3]


@pytest.fixture(scope="module")
def result():
    return ddlopt.solve(TINY, "topology-finder")


@for_each("name", ["status", "objective", "bound", "evidence", "solution", "checked", "scope_bound"])
def test_nothing_but_words_and_times_can_be_told_anew(result, name):
    with pytest.raises(TypeError, match="the gate's to say"):
        told_anew(result, **{name: getattr(result, name)})
    assert told_anew(result, method="x", runtime_s=1.0).objective == result.objective


def test_what_is_withdrawn_says_less(result):
    for status in (Status.OPTIMAL, Status.INFEASIBLE):
        with pytest.raises(ValueError, match="is not"):
            withdrawn(result, status)
    less = withdrawn(result, Status.ERROR, "refuted")
    assert (less.bound, less.evidence, less.message) == (None, None, "refuted")


def test_results_of_two_instances_are_not_joined(result):
    other = ddlopt.solve("topology/all-to-all-n6-d2", "topology-finder")
    with pytest.raises(ValueError, match="two instances"):
        joined(result, other, 1e-4)


@for_each("figure", [float("nan"), float("inf"), True, "12", None])
def test_figures_for_other_networks_are_finite(figure):
    gate = Gate(ddlopt.load(TINY), "x", Limits())
    with pytest.raises(SolverError, match=r"no number|not finite"):
        gate.reference(figure, {}, "")
    assert gate.reference(1.0, {}, "").checked is False


def test_bounds_of_certificates_say_so(tmp_path):
    result, certificate = ddlopt.certify("topology/all-to-all-n6-d2", "branch-and-bound", out=tmp_path / "proof")
    exact = ddlopt.check_certificate("topology/all-to-all-n6-d2", certificate).bound_s
    assert result.evidence is Evidence.CERTIFICATE
    assert Fraction(result.bound) <= exact
    assert result.status is Status.OPTIMAL


def test_a_weaker_certificate_leaves_the_bound_alone(result):
    assert by_certificate(result, Fraction(1), 1e-4) == result


def test_a_certificate_that_contradicts_a_solution_is_an_error(result):
    """Beyond the checked objective by more than rounding; both are told."""
    told = rf"bound of the certificate 1000000 exceeds the checked objective {result.objective:.12g}"
    with pytest.raises(ContradictionError, match=told):
        by_certificate(result, Fraction(10**6), 1e-4)
    rounded = Fraction(result.objective) * (1 + Fraction(1, 10**9))
    assert by_certificate(result, rounded, 1e-4) == result


def test_certify_asks_for_it(monkeypatch):
    asked = []
    monkeypatch.setattr(
        certifying, "Gate", lambda *given, **named: asked.append(named["exact"]) or Gate(*given, **named)
    )
    ddlopt.certify("deployment/tiny-g2-m2-s1")
    assert asked == [True]


@pytest.mark.parametrize("exact", [False, True])
def test_beside_a_proof_the_objective_is_the_rational_one(monkeypatch, exact):
    """Rounded once, where floats would have been rounded at every step."""
    problem = ddlopt.load(TINY)
    asked = []
    known = family(problem.family)

    def evaluate(instance, solution, exact=False):
        asked.append(exact)
        return known.evaluate(instance, solution, exact)

    monkeypatch.setattr(certify, "family", lambda name: replace(known, evaluate=evaluate))
    gate = Gate(problem, "x", Limits(), exact=exact)
    found = gate.certify(MethodOutput(instances.best(TINY))).objective
    assert asked == [exact]
    assert found == float(known.evaluate(problem, instances.best(TINY), exact).objective)


def test_a_figure_below_its_own_bound_is_told_with_both():
    gate = Gate(ddlopt.load(TINY), "x", Limits())
    with pytest.raises(ContradictionError, match=r"2 exceeds the checked objective 1"):
        gate.reference(1.0, {}, "", bound=2.0)
    assert gate.reference(1.0, {}, "", bound=1.0 + 1e-9).bound == 1.0


def test_the_bound_of_one_method_beyond_the_solution_of_the_other_is_told_with_both(result):
    worse = replace(result, objective=result.objective * 2, bound=result.objective * 1.5, status=Status.FEASIBLE)
    with pytest.raises(ContradictionError, match="exceeds the checked objective"):
        joined(result, worse, 1e-4)


STATED = {
    "optimal without a bound": {"bound": None, "gap": None},
    "optimal with a gap": {"bound": 1.0, "gap": None},
    "a gap of its own": {"gap": 0.5},
    "no objective": {"objective": None, "gap": None},
    "unchecked": {"checked": 0},
    "bound beyond the objective": {"bound": 1e9, "gap": 0.0},
    "infeasible with an objective": {"status": "infeasible"},
    "a bound of nobody": {"evidence": "claimed"},
}


@pytest.mark.parametrize("what", STATED)
def test_rows_that_the_gate_would_not_have_let_through(tmp_path, what):
    """A row says what its figures say, or it is left out, with the reason."""
    store = make_store(tmp_path / "store.sqlite")
    with sqlite3.connect(store) as connection:
        connection.row_factory = sqlite3.Row
        row = dict(connection.execute("SELECT * FROM runs WHERE status = 'optimal'").fetchone())
        assert fault_of_run(row, ("optimal",), {row["instance_digest"]: "minimize"}) is None
        changed = STATED[what]
        values = ", ".join(f"{name} = :{name}" for name in changed)
        connection.execute(f"UPDATE runs SET {values} WHERE key = :key", changed | {"key": row["key"]})
    connection.close()
    with Store(store, write=False) as opened:
        assert row["key"] not in {run["key"] for run in opened.runs()}
        assert len(opened.skipped) == 1
    assert json.loads(row["options"]) is not None
