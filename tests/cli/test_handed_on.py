"""What commands hand on to the library, and what becomes of what it gives, with a library that does as it is told."""

import math

import pytest

import ddlopt
from ddlopt import api
from ddlopt.solvers.contracts import Limits
from ddlopt.solvers.wrappers import guarded

TINY = "topology/tiny-n4-d2"
FOUND, FAILED = ddlopt.compare(TINY, ["topology-finder", "forest"])


@pytest.fixture
def compare(monkeypatch, call):
    """Run the command with results, and an interruption after them; what the library was told."""

    def called(*words, results=(FOUND,), interrupt=False):
        told = {}

        def compared(instances, methods, on_result, **options):
            told.update(options | {"methods": methods})
            for each in results:
                on_result(each)
            if interrupt:
                raise KeyboardInterrupt

        monkeypatch.setattr(ddlopt, "compare", compared)
        return told, call("compare", TINY, "--methods", "topology-finder,forest", *words)

    return called


def test_compare_hands_everything_on(compare, monkeypatch):
    told, _ = compare(
        "--solvers", "highs,scip", "--time-limit", 7, "--gap", 0.5, "--threads", 2, "--seed", 3, "--memory", 4
    )
    asked = {"methods": ["topology-finder", "forest"], "solver": ["highs", "scip"]}
    limits = {"time_limit": 7.0, "gap": 0.5, "threads": 2, "seed": 3, "memory": 4.0}
    assert {name: value for name, value in told.items() if name != "progress"} == asked | limits
    monkeypatch.setattr(guarded, "machine_gigabytes", lambda: 2.5)
    told, _ = compare()
    assert {name: value for name, value in told.items() if name != "progress"} == {
        "methods": ["topology-finder", "forest"], "solver": None,
        "time_limit": None, "gap": 1e-4, "threads": 1, "seed": 0, "memory": 2.5,
    }  # fmt: skip


def test_what_was_compared_before_ctrl_c_is_printed(compare):
    code, out, err = compare(interrupt=True)[1]
    assert (code, "topology-finder" in out, err) == (130, True, "ddlopt: interrupted\n")


@pytest.mark.parametrize(("results", "code"), [((FOUND,), 0), ((FOUND, FAILED), 1), ((FAILED,), 1)])
def test_a_comparison_is_drawn_as_far_as_there_is_something_to_draw(compare, tmp_path, results, code):
    picture = tmp_path / "compared.png"
    assert compare("--plot", picture, results=results)[1][0] == code
    assert picture.exists() == (FOUND in results)


def test_a_picture_that_cannot_be_drawn_is_told_before_anything_is_solved(compare, tmp_path):
    told, (code, _, err) = compare("--plot", tmp_path / "compared.doc")
    assert (code, told) == (2, {})
    assert "compared.doc" in err


def test_solve_hands_everything_on(monkeypatch, call):
    told = {}

    def answered(instance, method, **options):
        told.update(options | {"method": method})
        options["watched"]("topology-finder")
        return FOUND

    monkeypatch.setattr(api, "answered", answered)
    words = ["--time-limit", 7, "--gap", 0.5, "--threads", 2, "--seed", 3, "--memory", 4, "--accept-error", "inf"]
    code, _, err = call("solve", TINY, *words, "--solver", "highs", "--start-from", "link-exchange")
    assert code == 0
    assert "method: topology-finder" in err
    del told["watched"]
    assert told == {
        "method": None, "solver": "highs", "limits": Limits(7, 0.5, 2), "seed": 3, "start": None,
        "start_from": "link-exchange", "memory": 4.0, "accept_error": math.inf,
    }  # fmt: skip
    monkeypatch.setattr(guarded, "machine_gigabytes", lambda: 2.5)
    call("solve", TINY, "--method", "topology-finder", "--start", "x.json")
    assert (told["method"], told["memory"], str(told["start"])) == ("topology-finder", 2.5, "x.json")
