"""No solver is taken that a method does not use, and none that there is not, before anything runs."""

import pytest
from volume import for_each

import ddlopt
from ddlopt.models.errors import OptionError, SolverMissingError, UnknownNameError
from ddlopt.solvers import catalogue
from ddlopt.solvers.backends.pyomo_any import PyomoSolver

DANOINT, TINY = ddlopt.load("topology/danoint"), ddlopt.load("topology/tiny-n4-d2")
NEVER = "topology-finder", "branch-and-bound", "expander"


@for_each("method", [None, "auto", "exact", *NEVER, "rings-and-routes", ddlopt])
def test_solvers_that_there_are_not(method):
    """Misspelt names are refused also where no solver is needed."""
    for solve in (ddlopt.solve, lambda instance, each, **how: ddlopt.compare([instance], [each or "auto"], **how)):
        with pytest.raises(UnknownNameError, match="there is no solver 'no-such-solver'"):
            solve(DANOINT, method, solver="no-such-solver")


@pytest.mark.parametrize("method", NEVER)
def test_solvers_that_a_method_does_not_use(method):
    with pytest.raises(
        OptionError, match=f"{method} on 'danoint' uses no solver that could be chosen; leave 'highs' out"
    ):
        ddlopt.solve(DANOINT, method, solver="highs")
    with pytest.raises(OptionError, match="uses no solver"):
        ddlopt.compare([DANOINT], [method], solver=["highs", "highs"])


def test_default_is_a_method_that_uses_the_solver():
    """By itself ``danoint`` is answered by a search of our own; with a solver by a model."""
    assert not catalogue.takes_solver(ddlopt.default_method(DANOINT), DANOINT)
    assert ddlopt.default_method(DANOINT, "highs") == "min-congestion"
    assert ddlopt.default_method(TINY, "highs") == ddlopt.default_method(TINY)


def test_one_of_several_methods_is_enough():
    results = ddlopt.compare([TINY], ["topology-finder", "rings-and-routes"], solver="highs")
    assert [str(result.status) for result in results] == ["feasible", "optimal"]
    started = ddlopt.solve(TINY, "rings-and-routes", start_from="topology-finder", solver="highs")
    assert started.provenance["solver"].lower().startswith("highs")


@pytest.mark.parametrize("line", ["solve topology/danoint", "compare topology/danoint --methods branch-and-bound"])
def test_command_line(call, line):
    code, out, says = call(*line.split(), "--solver", "no-such-solver")
    assert (code, out) == (2, "")
    assert says.startswith("ddlopt: there is no solver 'no-such-solver'")
    assert says.count("\n") == 1


def test_sweeps_refuse_them_too():
    from ddlopt.analysis.bench.tasks import plan
    from ddlopt.solvers.contracts import Limits

    with pytest.raises(UnknownNameError, match="there is no solver 'no-such-solver'"):
        plan(["topology/tiny-n4-d2"], ["topology-finder"], [0], Limits(), ["no-such-solver"])


def test_a_solver_that_is_not_installed_is_told_though_a_heuristic_would_do(monkeypatch):
    monkeypatch.setattr(PyomoSolver, "installed", lambda self: self.name != "cplex")
    with pytest.raises(SolverMissingError, match="the solver 'cplex' is not installed"):
        ddlopt.solve(TINY, solver="cplex")
