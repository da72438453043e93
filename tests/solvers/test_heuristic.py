"""What every heuristic gets from the base class where it finds nothing."""

import dataclasses
from dataclasses import dataclass
from typing import ClassVar

import pytest
from refusals import one_line

import ddlopt
from ddlopt.models import catalogue
from ddlopt.models.errors import InfeasibleError, NoSolutionError, SolverError
from ddlopt.solvers.contracts import Limits, Status
from ddlopt.solvers.heuristic import Heuristic

INSTANCE = ddlopt.load("topology/tiny-n4-d2")


@dataclass(frozen=True)
class Clueless(Heuristic):
    name: ClassVar[str] = "clueless"
    family: ClassVar[str] = "topology"

    def answer(self, instance, seed, clock, start):
        raise NoSolutionError("nothing was found")


def test_finding_nothing_is_a_result_with_a_bound():
    result = Clueless().solve(INSTANCE, Limits())
    assert (result.status, result.objective, result.message) == (Status.NO_SOLUTION, None, "nothing was found")
    assert result.bound == catalogue.family("topology").bound(INSTANCE)


def test_a_bound_may_prove_that_there_is_nothing(monkeypatch):
    def never(instance):
        raise InfeasibleError("there is no way")

    kind = catalogue.family("topology")
    changed = dataclasses.replace(kind, bound=never)
    monkeypatch.setattr("ddlopt.solvers.certify.family", lambda name: changed)
    result = Clueless().solve(INSTANCE, Limits())
    assert (result.status, result.bound, result.message) == (Status.INFEASIBLE, None, "there is no way")


def test_compare_shows_it():
    (result,) = ddlopt.compare([INSTANCE], [Clueless()])
    assert (result.method, result.status) == ("clueless", Status.NO_SOLUTION)


@dataclass(frozen=True)
class Gives(Heuristic):
    name: ClassVar[str] = "gives"
    family: ClassVar[str] = "topology"

    given: object = None

    def answer(self, instance, seed, clock, start):
        return self.given


@pytest.mark.parametrize(
    ("given", "told"),
    [
        (None, "answer() gave nothing (None); expected the solution and a mapping of figures"),
        ({"links": 3}, "answer() gave a dict; expected"),
        ((1, 2, 3), "answer() gave (int, int, int); expected"),
        ((None, None), "answer() gave (NoneType, NoneType); expected"),
    ],
)
def test_what_is_expected_of_an_answer_is_told(given, told):
    with one_line(SolverError, told):
        Gives(given).solve(INSTANCE, Limits())
    (result,) = ddlopt.compare([INSTANCE], [Gives(given)])
    assert result.status == Status.ERROR
    assert told in result.message
    assert "such as `return solution, {}`; where there is none, raise NoSolutionError" in result.message


def test_a_method_that_finds_nothing_to_return():
    class Finds(Gives):
        def find(self, instance, limits, seed, clock, start):
            return None

    with one_line(SolverError, "find() gave nothing (None); expected a MethodOutput"):
        Finds().solve(INSTANCE, Limits())
