"""What every heuristic gets from the base class where it finds nothing."""

import dataclasses
from dataclasses import dataclass
from typing import ClassVar

import ddlopt
from ddlopt.models import catalogue
from ddlopt.models.errors import InfeasibleError, NoSolutionError
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
