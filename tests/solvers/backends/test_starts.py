"""A heuristic's solution is where a solver begins: stopped at its first solution, it has no worse one."""

import pyomo.environ as pyo
import pytest
from export_cases import STARTS, good_start, load
from volume import spread

import ddlopt
from ddlopt.models.errors import SolverMissingError
from ddlopt.solvers.backends import backend
from ddlopt.solvers.backends.matrix import linear_model
from ddlopt.solvers.backends.starts import completed
from ddlopt.solvers.catalogue import formulation_named
from ddlopt.solvers.contracts import Limits, Status, better
from ddlopt.solvers.exact import Exact, build_model

FIRST = {
    "highs": {"mip_max_improving_sols": 1},
    "scip": {"limits/solutions": 1},
    "cbc": {"maxSolutions": 1},
    "gurobi": {"SolutionLimit": 1},
}
"""Options that end a solve at the first solution."""


def made(solver, options=None):
    try:
        return backend(solver, options)
    except SolverMissingError as missing:
        pytest.skip(str(missing))


@pytest.mark.parametrize("solver", FIRST)
@pytest.mark.parametrize("formulation", spread(STARTS, 3))
def test_the_start_is_the_first_solution(formulation, solver):
    found = good_start(formulation)
    instance = load(STARTS[formulation][0])
    form = formulation_named(formulation, instance)

    def first(start):
        model = build_model(instance.family, form, instance)
        if start is not None:
            form.start(model.component(instance.family), instance, start)
        outcome = made(solver, FIRST[solver]).solve(model, Limits(), warm=start is not None)
        return form.objective_value(instance, outcome.objective)

    warm, slack = first(found.solution), 1e-6 * found.objective
    assert not better(found.objective, warm + (slack if found.sense == "maximize" else -slack), found.sense)
    assert better(found.objective, first(None), found.sense)


def test_glpk_says_that_it_takes_none():
    name = "topology/all-to-all-n5-d2"
    exact = Exact("circulant", "topology", formulation_named("circulant", load(name)), made("glpk"))
    result = exact.solve(load(name), Limits(), start=ddlopt.solve(load(name), "ocs-greedy").solution)
    assert result.message == "glpk takes no start"
    assert exact.solve(load(name), Limits()).message == ""


@pytest.mark.parametrize("solver", ["scip", "cbc", "gurobi"])
def test_start_of_another_scope(solver):
    """A design that is not circulant says nothing of the best circulant one."""
    name = "topology/all-to-all-n6-d2"
    exact = Exact("circulant", "topology", formulation_named("circulant", load(name)), made(solver))
    result = exact.solve(load(name), Limits(), start=ddlopt.solve(load(name), "ocs-greedy").solution)
    assert result.message == "nothing completes the start to a solution of the model"
    assert result.objective == pytest.approx(4.5)


def pairs(start):
    """Choose x[k] of at most one; y is at least what is chosen, at a cost."""
    model = pyo.ConcreteModel()
    model.x = pyo.Var(range(3), domain=pyo.Binary)
    model.y = pyo.Var(bounds=(0, 9))
    model.one = pyo.Constraint(expr=model.x[0] + model.x[1] + model.x[2] <= 1)
    model.pays = pyo.Constraint(expr=model.y >= 2 * model.x[0] + 3 * model.x[1] + 4 * model.x[2])
    model.o = pyo.Objective(expr=10 * model.x[0] + 20 * model.x[1] + 30 * model.x[2] - model.y, sense=pyo.maximize)
    for variable, value in zip([*model.x.values(), model.y], start, strict=True):
        variable.set_value(value, skip_validation=True)
    return linear_model(model)


@pytest.mark.parametrize(
    ("start", "values"),
    [
        ((None, None, None, None), None),
        ((None, None, None, 5.0), None),  # it does not say what is chosen
        ((0, 1, 0, 7.0), [0, 1, 0, 7]),
        ((0, 1, 0, None), [0, 1, 0, 3]),
        ((0, 0.9999999, 0, None), [0, 1, 0, 3]),
        ((None, 0, None, None), [0, 0, 1, 4]),
        ((1, 1, None, None), None),
    ],
)
def test_completed(start, values):
    found = completed(pairs(start), Limits(time_s=10.0))
    assert found is None if values is None else found.tolist() == pytest.approx(values)


def test_what_the_completion_takes_counts(monkeypatch):
    """Its time is part of the limit, and of the time told."""
    from ddlopt.solvers.backends import pyomo_any

    solver, told, now = made("scip"), [], [0.0]
    original = pyomo_any.completed

    def slow(linear, limits):
        now[0] += 7.0
        return original(linear, limits)

    def settings(self, limits, seed):
        told.append(limits.time_s)
        return {}

    monkeypatch.setattr(pyomo_any, "completed", slow)
    monkeypatch.setattr(pyomo_any.time, "perf_counter", lambda: now[0])
    monkeypatch.setattr(pyomo_any.PyomoSolver, "_settings", settings)
    model = pyo.ConcreteModel()
    model.x = pyo.Var(bounds=(0, 3), domain=pyo.Integers, initialize=1)
    model.c = pyo.Constraint(expr=2 * model.x <= 5)
    model.o = pyo.Objective(expr=model.x, sense=pyo.maximize)
    outcome = solver.solve(model, Limits(time_s=10.0), warm=True)
    assert (outcome.status, outcome.objective, outcome.runtime_s) == (Status.OPTIMAL, 2, 7.0)
    assert told == [3.0]
