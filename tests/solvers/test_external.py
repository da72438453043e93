"""Methods of other packages are checked like our own, whatever they say of themselves."""

import dataclasses

import pytest

import ddlopt
from ddlopt.models.errors import SolverError
from ddlopt.solvers import catalogue
from ddlopt.solvers.certify import Gate, MethodOutput
from ddlopt.solvers.contracts import Limits, Status
from ddlopt.solvers.external import ExternalMethod, checked

INSTANCE = ddlopt.load("topology/tiny-n4-d2")
HONEST = catalogue.method("topology-finder", "topology").solve(INSTANCE, Limits())


class Claims:
    """Answers what it was told to."""

    name = "claims"
    family = "topology"

    def __init__(self, **changes):
        self.result = dataclasses.replace(HONEST, method="claims", **changes)

    def refuses(self, instance):
        return None

    def solve(self, instance, limits, seed=0, progress=None, start=None):
        return self.result


def answer(**changes):
    return checked(Claims(**changes)).solve(INSTANCE, Limits())


def test_an_honest_answer_passes():
    result = answer(checked=False)
    assert result.checked
    assert (result.method, result.objective, result.bound) == ("claims", HONEST.objective, HONEST.bound)


def test_a_method_that_returns_nothing_is_told_what_is_expected():
    class Forgetful(Claims):
        def solve(self, instance, limits, seed=0, progress=None, start=None):
            super().solve(instance, limits)

    with pytest.raises(
        SolverError, match=r"claims on 'tiny-n4-d2': solve\(\) gave nothing \(None\); expected a Result"
    ):
        checked(Forgetful()).solve(INSTANCE, Limits())


def test_optimality_is_not_believed_without_a_bound():
    assert HONEST.status == Status.FEASIBLE
    assert answer(status=Status.OPTIMAL).status == Status.FEASIBLE


def test_a_wrong_objective_is_an_error():
    with pytest.raises(SolverError, match=r"claims on 'tiny-n4-d2' claims .* but evaluate finds"):
        answer(objective=HONEST.objective / 2)


def test_a_broken_solution_is_an_error():
    data = HONEST.solution.model_dump()
    data["links"] = data["links"][1:]
    broken = type(HONEST.solution).from_data(data)
    with pytest.raises(SolverError, match="fails the check"):
        answer(solution=broken)


def test_an_answer_without_a_solution_is_an_error():
    with pytest.raises(SolverError, match="claims to be feasible without a solution"):
        answer(solution=None)
    nothing = Claims()
    nothing.result = Gate(INSTANCE, "claims", Limits()).without_solution(MethodOutput(None))
    assert checked(nothing).solve(INSTANCE, Limits()).status == Status.NO_SOLUTION


def test_an_object_in_a_call_is_checked_too():
    with pytest.raises(SolverError, match="but evaluate finds"):
        ddlopt.solve(INSTANCE, Claims(objective=HONEST.objective * 2))


def test_our_own_methods_are_left_as_they_are():
    for name in ("topology-finder", "rings-and-routes"):
        method = catalogue.method(name, "topology")
        assert checked(method) is method
    assert isinstance(checked(Claims()), ExternalMethod)
