"""That there is no solution is a status, with evidence: the same for all methods, in Python and on the command line."""

import json

import pytest
from level_cases import random_levels, with_budget

import ddlopt
from ddlopt.models.contracts import Evidence
from ddlopt.solvers import catalogue
from ddlopt.solvers.contracts import Status


@pytest.fixture(scope="module")
def impossible():
    """Choices of levels in less time than any takes."""
    return with_budget(random_levels(1, gradients=4, goal="error"), 1e-12)


def covering(instance):
    entries = catalogue.entries(instance.family)
    return [entry.name for entry in entries if catalogue.method(entry.name, instance.family).refuses(instance) is None]


def test_every_method_says_so(impossible):
    methods = covering(impossible)
    assert len(methods) >= 3
    for result in ddlopt.compare([impossible], methods, time_limit=20):
        assert (result.method, result.status) == (result.method, Status.INFEASIBLE)
        assert result.evidence in (Evidence.COMBINATORIAL, Evidence.SOLVER)
        assert (result.objective, result.solution, result.checked, result.gap) == (None, None, False, None)
    alone = ddlopt.solve(impossible, result.method, time_limit=20)
    assert (alone.status, alone.evidence) == (result.status, result.evidence)


def test_command_line(impossible, call, tmp_path):
    """Exit code 1 and the status."""
    file = tmp_path / "impossible.json"
    file.write_text(impossible.to_json())
    code, out, _ = call("solve", file, "--json")
    assert (code, json.loads(out)["status"]) == (1, "infeasible")
    code, out, _ = call("compare", file, "--methods", ",".join(covering(impossible)[:2]), "--json")
    assert code == 1
    assert {result["status"] for result in json.loads(out)["results"]} == {"infeasible"}
