from types import SimpleNamespace

import pyomo.environ as pyo
import pytest
from pyomo.opt import SolverResults, TerminationCondition

from ddlopt.models.errors import SolverError, SolverMissingError, UnknownNameError
from ddlopt.solvers.backends import Highs, PyomoSolver, backend, pyomo_any
from ddlopt.solvers.contracts import Limits, Status


def model_of_one():
    model = pyo.ConcreteModel()
    model.x = pyo.Var(bounds=(0, 1), domain=pyo.Integers)
    model.c = pyo.Constraint(expr=2 * model.x <= 3)
    model.o = pyo.Objective(expr=model.x, sense=pyo.maximize)
    return model


class Plugin:
    """A Pyomo interface that ends as it is told to."""

    condition = TerminationCondition.optimal
    values: tuple = ()
    upper = float("inf")
    here = True

    def available(self, exception_flag=True):
        return self.here

    def version(self):
        return 1, 2

    def solve(self, model, load_solutions, options):
        type(self).options = options
        results = SolverResults()
        results.solver.termination_condition = self.condition
        results.problem.upper_bound = self.upper
        if self.values:
            results.solution.add()
            model.x[0].set_value(self.values[0])
            results.solution(0).variable["x[0]"] = {"Value": self.values[0]}
            model.solutions = SimpleNamespace(load_from=lambda results: None)
        return results


@pytest.fixture
def plugin(monkeypatch):
    class Mine(Plugin):
        pass

    class Factory:
        def __call__(self, name):
            return Mine()

        def __iter__(self):
            return iter(["gurobi_direct", "glpk", "something"])

    monkeypatch.setattr(pyomo_any.pyo, "SolverFactory", Factory())
    return Mine


def test_factory():
    assert isinstance(backend("highs"), Highs)
    assert backend("highs", {"mip_max_nodes": 3}).options == {"mip_max_nodes": 3}
    with pytest.raises(
        UnknownNameError, match="there is no solver 'hihgs'; there are: cbc, cplex, glpk, gurobi, highs, scip"
    ):
        backend("hihgs")


def test_solver_that_is_not_installed(plugin):
    plugin.here = False
    with pytest.raises(SolverMissingError, match=r"^the solver 'gurobi' is not installed; try: pip install gurobipy$"):
        backend("gurobi")
    with pytest.raises(SolverMissingError, match=r"^the solver 'something' is not installed$"):
        backend("something")


def test_every_name_is_known_to_pyomo():
    known = set(pyo.SolverFactory)
    assert {driver.plugin for driver in pyomo_any.DRIVERS.values()} <= known


def test_limits_go_by_the_solvers_own_names(plugin):
    plugin.values = (1,)
    solver = PyomoSolver("gurobi", {"Presolve": 0})
    solver.solve(model_of_one(), Limits(time_s=7.5, gap=0.01, threads=3), seed=5)
    assert plugin.options == {
        "TimeLimit": 7.5, "MIPGap": 0.01, "MIPGapAbs": 0, "Threads": 3, "Seed": 5, "Presolve": 0,
    }  # fmt: skip
    PyomoSolver("glpk").solve(model_of_one(), Limits(time_s=0.2))
    assert plugin.options["tmlim"] == 1


def test_limits_that_cannot_be_passed_on(plugin):
    solver = PyomoSolver("something")
    with pytest.raises(SolverError, match="does not know how to tell 'something' its time limit"):
        solver.solve(model_of_one(), Limits(time_s=1.0))


def test_optimal_without_values_is_an_error(plugin):
    outcome = PyomoSolver("gurobi").solve(model_of_one(), Limits())
    assert (outcome.status, outcome.objective) == (Status.ERROR, None)
    assert outcome.message == "gurobi says optimal but gives no values"


@pytest.mark.parametrize(
    ("condition", "values", "status", "message"),
    [
        (TerminationCondition.maxTimeLimit, (1,), Status.FEASIBLE, "time limit"),
        (TerminationCondition.maxTimeLimit, (), Status.NO_SOLUTION, "time limit"),
        (TerminationCondition.userInterrupt, (1,), Status.FEASIBLE, "interrupted"),
        (TerminationCondition.licensingProblems, (), Status.ERROR, "the solver has no licence for this model"),
        (TerminationCondition.maxIterations, (), Status.NO_SOLUTION, "gurobi ended with: maxIterations"),
    ],
)
def test_ends(plugin, condition, values, status, message):
    plugin.condition, plugin.values, plugin.upper = condition, values, 1.75
    outcome = PyomoSolver("gurobi").solve(model_of_one(), Limits())
    assert (outcome.status, outcome.message) == (status, message)
    assert outcome.objective == (1 if values else None)
    assert outcome.bound == (None if status is Status.ERROR else 1.75)
    assert outcome.interrupted == (message == "interrupted")
    assert outcome.solver == "gurobi 1.2"


@pytest.mark.parametrize(
    ("without_objective", "status", "message"),
    [
        (TerminationCondition.optimal, Status.UNBOUNDED, "unbounded"),
        (TerminationCondition.infeasible, Status.INFEASIBLE, "infeasible"),
        (TerminationCondition.maxTimeLimit, Status.NO_SOLUTION, "infeasible or unbounded"),
    ],
)
def test_infeasible_or_unbounded_is_settled_without_the_objective(plugin, without_objective, status, message):
    def solve(self, model, load_solutions, options):
        ask = model.objective.expr.is_constant() if hasattr(model.objective.expr, "is_constant") else True
        results = SolverResults()
        results.solver.termination_condition = without_objective if ask else TerminationCondition.infeasibleOrUnbounded
        return results

    plugin.solve = solve
    outcome = PyomoSolver("gurobi").solve(model_of_one(), Limits())
    assert (outcome.status, outcome.message, outcome.objective) == (status, message, None)


def test_failure_of_the_solver(plugin):
    def fail(self, *arguments, **keywords):
        raise RuntimeError("out of luck\nand a long log")

    plugin.solve = fail
    with pytest.raises(SolverError, match=r"^gurobi failed: out of luck$"):
        PyomoSolver("gurobi").solve(model_of_one(), Limits())


def test_values_are_kept_whatever_pyomo_calls_the_end():
    """A limit that Pyomo has no name for makes it refuse the values that came with it."""
    try:
        solver = PyomoSolver("scip", {"limits/solutions": 1})
    except SolverMissingError as missing:
        pytest.skip(str(missing))
    model = pyo.ConcreteModel()
    model.x = pyo.Var(range(12), domain=pyo.Binary)
    model.c = pyo.Constraint(expr=sum((3 + i) * model.x[i] for i in range(12)) <= 40)
    model.o = pyo.Objective(expr=sum((5 + 2 * i) * model.x[i] for i in range(12)), sense=pyo.maximize)
    outcome = solver.solve(model, Limits())
    assert outcome.status is Status.FEASIBLE
    assert outcome.objective == pytest.approx(pyo.value(model.o))


@pytest.mark.parametrize(("value", "known"), [(1, True), (0.4, False), (3, False)])
def test_values_at_a_limit_count_if_they_are_a_solution(plugin, value, known):
    """CBC that found none hands over values of a relaxation."""
    plugin.condition, plugin.values = TerminationCondition.maxTimeLimit, (value,)
    outcome = PyomoSolver("gurobi").solve(model_of_one(), Limits())
    assert outcome.status is (Status.FEASIBLE if known else Status.NO_SOLUTION)
    assert outcome.objective == (value if known else None)
