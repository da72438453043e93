"""Convex programs through CVXPY: values, multipliers, and verdicts that are not believed."""

import cvxpy as cp
import numpy as np
import pytest

from ddlopt.models.errors import SolverError, SolverMissingError, UnknownNameError
from ddlopt.solvers.backends import convex
from ddlopt.solvers.backends.convex import Convex
from ddlopt.solvers.contracts import Limits, Status


def sharing():
    """Two logarithms share 3: one of twice the weight gets 2."""
    x = cp.Variable(2, nonneg=True, name="x")
    return cp.Problem(cp.Maximize(cp.log(x[0]) + 2 * cp.log(x[1])), [cp.sum(x) <= 3])


@pytest.mark.parametrize("name", ["clarabel", "scs"])
def test_values_and_multipliers(name):
    problem = sharing()
    outcome = Convex(name).solve(problem, Limits())
    assert outcome.status is Status.OPTIMAL
    assert outcome.value == pytest.approx(2 * np.log(2), abs=1e-3)
    assert problem.var_dict["x"].value == pytest.approx([1, 2], abs=1e-2)
    assert problem.constraints[0].dual_value == pytest.approx(1, abs=1e-2)
    assert outcome.solver.startswith(f"{name} ")
    assert outcome.figures["iterations"] > 0
    assert outcome.message == ""


def test_a_time_limit_gives_no_solution_and_is_forgotten():
    """CVXPY would hand back zeros, and hold on to the limit in the next solve."""
    problem = sharing()
    problem.get_problem_data("CLARABEL")
    stopped = Convex().solve(problem, Limits(time_s=1e-9))
    assert stopped.status is Status.NO_SOLUTION
    assert stopped.value is None
    again = Convex().solve(problem, Limits())
    assert again.status is Status.OPTIMAL
    assert problem.var_dict["x"].value == pytest.approx([1, 2], abs=1e-4)


def test_a_limit_inside_the_solver(monkeypatch):
    monkeypatch.setattr(convex.time, "perf_counter", lambda: 0.0)  # all the time goes to the solver
    outcome = Convex().solve(sharing(), Limits(time_s=1e-9))
    assert outcome.status is Status.NO_SOLUTION
    assert outcome.value is None
    assert outcome.message == "clarabel says: user_limit"


def test_an_early_end_is_no_optimum():
    outcome = Convex("scs", {"max_iters": 5}).solve(sharing(), Limits())
    assert outcome.status is Status.FEASIBLE
    assert outcome.message == "scs says: optimal_inaccurate"


@pytest.mark.parametrize(
    ("objective", "bound", "status"),
    [
        (lambda x: cp.Maximize(cp.sum(x)), -1, Status.INFEASIBLE),
        (lambda x: cp.Minimize(cp.sum(-x)), None, Status.UNBOUNDED),
    ],
)
def test_no_solution_at_all(objective, bound, status):
    x = cp.Variable(2, nonneg=True)
    problem = cp.Problem(objective(x), [cp.sum(x) <= bound] if bound is not None else [x[0] == 1])
    outcome = Convex().solve(problem, Limits())
    assert outcome.status is status
    assert outcome.value is None


def test_what_is_not_convex_or_not_known():
    x = cp.Variable(nonneg=True)
    with pytest.raises(SolverError, match="did not solve a convex program: "):
        Convex(options={"no_such_option": 1}).solve(sharing(), Limits())
    with pytest.raises(UnknownNameError, match="there is no convex solver 'mosek'; there are: clarabel, scs"):
        Convex("mosek")
    with pytest.raises(UnknownNameError, match=r"option 'time_limit' of clarabel is set by Limits\.time_s"):
        Convex(options={"time_limit": 3})
    with pytest.raises(SolverError, match="did not solve a convex program: "):
        Convex().solve(cp.Problem(cp.Maximize(cp.square(x)), [x <= 1]), Limits())


def test_a_solver_that_is_not_installed(monkeypatch):
    monkeypatch.setattr(convex, "find_spec", lambda name: None)
    with pytest.raises(SolverMissingError, match="solver 'scs' is not installed; pip install scs"):
        Convex("scs")
