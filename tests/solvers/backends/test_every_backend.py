"""What holds for each solver that is installed here."""

from itertools import permutations

import pyomo.environ as pyo
import pytest

from ddlopt.models.errors import SolverMissingError
from ddlopt.solvers.backends import Backend, backend
from ddlopt.solvers.contracts import Limits, Status


@pytest.fixture(params=["highs", "scip", "cbc", "glpk", "gurobi"])
def solver(request):
    try:
        return backend(request.param)
    except SolverMissingError as missing:
        pytest.skip(str(missing))


def knapsack(sense=pyo.maximize):
    """Best: items 1 and 3 of value 11 + 14, plus 100."""
    sign = 1 if sense == pyo.maximize else -1
    model = pyo.ConcreteModel()
    model.x = pyo.Var(range(4), domain=pyo.Binary)
    model.fits = pyo.Constraint(expr=5 * model.x[0] + 6 * model.x[1] + 7 * model.x[2] + 8 * model.x[3] <= 14)
    model.o = pyo.Objective(
        expr=sign * (8 * model.x[0] + 11 * model.x[1] + 12 * model.x[2] + 14 * model.x[3]) + 100, sense=sense
    )
    return model


COSTS = ((7, 3, 9, 4), (2, 8, 6, 5), (5, 5, 1, 9), (6, 4, 7, 3))


def assignment():
    model = pyo.ConcreteModel()
    model.I = pyo.RangeSet(0, 3)
    model.x = pyo.Var(model.I, model.I, domain=pyo.Binary)
    model.rows = pyo.Constraint(model.I, rule=lambda m, i: sum(m.x[i, j] for j in m.I) == 1)
    model.columns = pyo.Constraint(model.I, rule=lambda m, j: sum(m.x[i, j] for i in m.I) == 1)
    model.o = pyo.Objective(expr=sum(COSTS[i][j] * model.x[i, j] for i in model.I for j in model.I))
    return model


def diet(low=0.0):
    """An LP: least cost 2a + 3b with a + b >= 4 and a <= 3, so a = 3 and b = 1."""
    model = pyo.ConcreteModel()
    model.a = pyo.Var(bounds=(low, 3))
    model.b = pyo.Var(bounds=(0, None))
    model.enough = pyo.Constraint(expr=model.a + model.b >= 4)
    model.o = pyo.Objective(expr=2 * model.a + 3 * model.b)
    return model


def test_is_a_backend(solver):
    assert isinstance(solver, Backend)


@pytest.mark.parametrize(("sense", "best"), [(pyo.maximize, 125), (pyo.minimize, 75)])
def test_knapsack(solver, sense, best):
    model = knapsack(sense)
    outcome = solver.solve(model, Limits(gap=1e-6))
    assert outcome.status is Status.OPTIMAL
    assert outcome.objective == pytest.approx(best) == pyo.value(model.o)
    assert outcome.bound == pytest.approx(best, rel=2e-6)
    assert [round(model.x[k].value) for k in range(4)] == [0, 1, 0, 1]
    assert outcome.trace[-1].incumbent == pytest.approx(best)
    assert outcome.runtime_s >= outcome.trace[-1].time_s > 0


def test_assignment(solver):
    best = min(sum(COSTS[i][order[i]] for i in range(4)) for order in permutations(range(4)))
    outcome = solver.solve(assignment(), Limits())
    assert (outcome.status, outcome.objective) == (Status.OPTIMAL, pytest.approx(best))


def test_gap_is_measured_from_the_right_side(solver):
    """A bound never lies on the wrong side of the optimum, however large the gap allowed."""
    above = solver.solve(knapsack(), Limits(gap=0.5))
    below = solver.solve(knapsack(pyo.minimize), Limits(gap=0.5))
    assert above.objective <= 125 <= above.bound + 1e-6
    assert below.bound - 1e-6 <= 75 <= below.objective


def test_linear_program(solver):
    model = diet()
    outcome = solver.solve(model, Limits())
    assert outcome.status is Status.OPTIMAL
    assert outcome.objective == outcome.bound == pytest.approx(9)
    assert (model.a.value, model.b.value) == (pytest.approx(3), pytest.approx(1))


def test_infeasible(solver):
    model = knapsack()
    model.much = pyo.Constraint(expr=model.x[0] + model.x[1] + model.x[2] >= 3)
    outcome = solver.solve(model, Limits())
    assert (outcome.status, outcome.objective, outcome.bound) == (Status.INFEASIBLE, None, None)


def test_infeasible_without_a_variable(solver):
    model = knapsack()
    model.never = pyo.Constraint(expr=pyo.Constraint.Infeasible)
    assert solver.solve(model, Limits()).status is Status.INFEASIBLE


@pytest.mark.parametrize("domain", [pyo.NonNegativeReals, pyo.NonNegativeIntegers])
def test_unbounded(solver, domain):
    model = pyo.ConcreteModel()
    model.x = pyo.Var([1, 2], domain=domain)
    model.c = pyo.Constraint(expr=model.x[1] - model.x[2] <= 3)
    model.o = pyo.Objective(expr=model.x[1] + model.x[2], sense=pyo.maximize)
    outcome = solver.solve(model, Limits())
    # What Pyomo reads of GLPK does not tell unbounded from infeasible.
    assert outcome.status is (Status.NO_SOLUTION if solver.name == "glpk" else Status.UNBOUNDED)
    assert (outcome.objective, outcome.bound) == (None, None)
    assert outcome.message


def test_fixed_variables_are_constants_and_keep_their_values(solver):
    model = knapsack()
    model.x[3].fix(0)
    outcome = solver.solve(model, Limits())
    assert outcome.objective == pytest.approx(123)  # items 1 and 2
    assert model.x[3].value == 0
    model = diet()
    model.a.fix(1.5)
    assert solver.solve(model, Limits()).objective == pytest.approx(3 + 7.5)


def test_range_on_both_sides(solver):
    model = pyo.ConcreteModel()
    model.x = pyo.Var([1, 2], bounds=(0, 10))
    model.range = pyo.Constraint(expr=(2, model.x[1] + 2 * model.x[2] + 1, 6))
    model.o = pyo.Objective(expr=model.x[1] + model.x[2])
    assert solver.solve(model, Limits()).objective == pytest.approx(0.5)
    model.o.sense = pyo.maximize
    assert solver.solve(model, Limits()).objective == pytest.approx(5)


def test_no_constraints_and_what_no_constraint_mentions(solver):
    model = pyo.ConcreteModel()
    model.x = pyo.Var(bounds=(-2, 3), domain=pyo.Integers)
    model.unused = pyo.Var(bounds=(4, 7))
    model.o = pyo.Objective(expr=2 * model.x + 1)
    outcome = solver.solve(model, Limits())
    assert outcome.objective == pytest.approx(-3)
    assert model.x.value == pytest.approx(-2)
    assert 4 <= model.unused.value <= 7


def test_objective_that_is_constant(solver):
    model = assignment()
    model.o.expr = 5 + 0 * model.x[0, 0]
    outcome = solver.solve(model, Limits())
    assert (outcome.status, outcome.objective) == (Status.OPTIMAL, pytest.approx(5))
    assert sum(round(pyo.value(model.x[i, 0])) for i in range(4)) == 1


def test_start_is_no_hindrance(solver):
    """A complete, a partial and a wrong start all end at the optimum."""
    for values in ([1, 1, 0, 0], [None, 1, None, None], [1, 1, 1, 1]):
        model = knapsack()
        for k, value in enumerate(values):
            model.x[k].set_value(value)
        assert solver.solve(model, Limits(), warm=True).objective == pytest.approx(125), values


def test_progress_ends_where_the_outcome_does(solver):
    heard = []
    outcome = solver.solve(knapsack(), Limits(), progress=heard.append)
    assert tuple(heard) == outcome.trace
    assert heard[-1].incumbent == pytest.approx(outcome.objective)
