"""Methods that ask another one: they are of one mind with it, and say who it was."""

from types import SimpleNamespace

import pytest
from stand_ins import Scripted

import ddlopt
from ddlopt.models.errors import NotApplicableError, OptionError
from ddlopt.solvers import catalogue
from ddlopt.solvers.contracts import Limits, Status, TracePoint
from ddlopt.solvers.wrappers import limited
from ddlopt.solvers.wrappers.by_instance import ByInstance
from ddlopt.solvers.wrappers.by_problem import ByProblem, entries_of_rooms
from ddlopt.solvers.wrappers.limited import Limited

INSTANCE = ddlopt.load("topology/tiny-n4-d2")


class Asking(ByInstance):
    name = "best"
    family = "topology"

    def __init__(self, asked):
        self.asked = asked

    def method(self, instance):
        return self.asked


def test_the_result_names_who_was_asked():
    figures = {"objective": 4.0, "bound": 3.0, "found_by": "slow", "proved_by": "slow"}
    for message, told in (("", "by slow"), ("time limit", "by slow: time limit")):
        asked, points = Scripted("slow", figures | {"message": message, "trace": (TracePoint(0.5, 4.0, 3.0),)}), []
        result = Asking(asked).solve(INSTANCE, Limits(9.0), 7, points.append, "a start")
        assert asked.asked == [(Limits(9.0), 7, "a start")]
        assert [point.incumbent for point in points] == [4.0]
        assert (result.method, result.message) == ("best", told)
        assert (result.objective, result.bound, result.found_by, result.proved_by) == (4.0, 3.0, "slow", "slow")


def test_a_seed_that_nobody_gives_is_that_of_all_methods():
    asked = Scripted("slow", {"objective": 4.0})
    Asking(asked).solve(INSTANCE, Limits())
    assert asked.asked == [(Limits(), 0, None)]


def test_a_method_of_the_same_name_is_not_told_again():
    result = Asking(Scripted("best", {"objective": 4.0, "message": "time limit"})).solve(INSTANCE, Limits())
    assert result.message == "time limit"


def test_a_problem_without_such_a_method_is_refused_in_one_line():
    weights = ddlopt.load("gossip/matcha-n8-20")
    odd = ByProblem("none", "gossip", "nobody_has_this", "highs")
    assert odd.refuses(weights) == f"there is none for a {weights.kind}"
    with pytest.raises(
        NotApplicableError, match=f"^none does not cover 'matcha-n8-20': there is none for a {weights.kind}"
    ):
        odd.solve(weights, Limits())
    assert ByProblem("exact", "gossip", "best", "highs").refuses(weights) is None


def test_the_exact_method_of_a_family_has_no_options():
    with pytest.raises(OptionError, match=r"'exact' has no option 'argument=scip'.*: none"):
        catalogue.method("exact:argument=scip", "gossip")


def test_methods_of_rooms_are_listed_in_the_order_of_problems():
    families = {entry.family for entry in entries_of_rooms("cluster")}
    names = [entry.name for entry in entries_of_rooms("cluster")]
    assert families == {"cluster"}
    assert names.index("kueue") < names.index("list-jobs") < names.index("refinement")


@pytest.mark.parametrize("worth", [None, 4.0])
def test_a_formulation_is_limited_by_the_start(monkeypatch, worth):
    made, solved = [], Scripted("exact", {"objective": 3.0, "compile_s": 2.0, "status": Status.OPTIMAL})
    monkeypatch.setattr(limited, "known_objective", lambda _, start: worth if start == "a start" else None)
    monkeypatch.setattr(limited, "compiled", lambda *_: 0.5)
    monkeypatch.setattr(limited, "Exact", lambda *told: made.append(told) or solved)
    method = Limited("program", "topology", lambda value: SimpleNamespace(value=value, kernels=("some",)))
    result = method.solve(INSTANCE, Limits(9.0), 7, None, "a start")
    ((name, family, formulation, solver),) = made
    assert (name, family, formulation.value, solver.name) == ("program", "topology", worth, "highs")
    assert solved.asked == [(Limits(9.0), 7, "a start")]
    assert (result.objective, result.compile_s) == (3.0, 2.5)
    assert method.formulation_for(INSTANCE).value is None
    assert (method.kernels_for(INSTANCE), method.solver_for(INSTANCE)) == (("some",), "highs")
