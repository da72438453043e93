"""A bound on the wrong side of a checked solution is no gap: it is said, with both, wherever the two meet."""

import json
from fractions import Fraction

import pytest

import ddlopt
from ddlopt import instances
from ddlopt.solvers.proofs import Proven

CASES = {"topology/tiny-n4-d2": ("ABOVE", 1), "scheduling/tiny-fair": ("BELOW", -1)}
"""What a false bound is to the objective, of one that is minimised and one that is maximised, and which way that is."""


@pytest.fixture(params=CASES)
def case(request, tmp_path):
    """An instance, files of its best known solution and of a certificate, the word, the sign and the objective."""
    name = request.param
    files = tmp_path / "best.json", tmp_path / "proof.json"
    best = instances.best(name)
    files[0].write_text(best.to_json(), encoding="utf-8")
    return name, *files, *CASES[name], Fraction(ddlopt.check(ddlopt.load(name), best, exact=True).objective)


def accepting(monkeypatch, bound):
    """A checker with a defect: it accepts this bound."""
    monkeypatch.setattr(ddlopt, "check_certificate", lambda *_, **__: Proven("linear", bound, "of a false formulation"))


def test_a_bound_beyond_the_solution_is_a_contradiction(case, monkeypatch, call):
    name, solution, proof, word, sign, objective = case
    accepting(monkeypatch, objective + sign * Fraction(1, 10**9))
    code, out, _ = call("check", name, solution, "--certificate", proof)
    assert code == 1
    assert "the certificate and the solution contradict each other" in out
    (line,) = [line for line in out.splitlines() if line.startswith("CONTRADICTION: THE BOUND")]
    assert f"OF {proof} IS {word} THE CHECKED OBJECTIVE" in line
    assert f"OF {solution}" in line
    assert "gap" not in out
    code, out, _ = call("check", name, solution, "--certificate", proof, "--json")
    assert code == 1
    assert json.loads(out)["contradiction"] == line
    assert "gap" not in json.loads(out)


def test_a_bound_on_the_right_side_leaves_a_gap(case, monkeypatch, call):
    name, solution, proof, _, sign, objective = case
    accepting(monkeypatch, objective - sign * objective / 4)
    code, out, _ = call("check", name, solution, "--certificate", proof)
    assert (code, "gap: 1/4 (0.25)" in out) == (0, True)
    accepting(monkeypatch, objective)
    code, out, _ = call("check", name, solution, "--certificate", proof)
    assert (code, "gap: 0 (0)" in out) == (0, True)
