"""Convex solvers: values, multipliers and ends; and convex programs as blocks of a host."""

import cvxpy as cp
import numpy as np
import pytest
from volume import for_each

import ddlopt
from ddlopt.models.compression.sfb.formulations.sfb_milp import SfbMilp
from ddlopt.models.compression.timeline.formulations.overlap_timeline import OverlapTimeline
from ddlopt.models.errors import OptionError, SolverError, SolverMissingError, UnknownNameError
from ddlopt.models.scheduling.formulations.time_indexed.time_indexed import TimeIndexed
from ddlopt.models.topology.formulations.rings_and_routes import RingsAndRoutes
from ddlopt.solvers.backends import Highs, convex
from ddlopt.solvers.backends.convex import Convex
from ddlopt.solvers.backends.cvxpy_block import CvxpyBlock
from ddlopt.solvers.contracts import Limits, Status
from ddlopt.solvers.exact import build_model


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


CASES = [
    (RingsAndRoutes(), "topology/tiny-n4-d2-duplex"),
    (TimeIndexed(), "scheduling/tiny-star"),
    (OverlapTimeline(), "compression/levels-measured-digits-top-k"),
    (SfbMilp(), "compression/sfb-vgg16-b4-w2-10g"),
]


def solved(embedded, *further, sense="minimize", objective=None):
    goal = cp.Minimize if sense == "minimize" else cp.Maximize
    problem = cp.Problem(
        goal(embedded.objective if objective is None else objective), [*embedded.constraints, *further]
    )
    problem.solve(solver=cp.HIGHS, mip_rel_gap=1e-7)
    assert problem.status == cp.OPTIMAL
    return problem.value


@for_each(("formulation", "name"), CASES)
def test_optima_and_solutions_are_the_same(formulation, name):
    instance = ddlopt.load(name)
    embedded = CvxpyBlock(formulation, instance)
    found = solved(embedded, sense=formulation.sense)
    outcome = Highs().solve(build_model(instance.family, formulation, instance), Limits(gap=1e-7))
    assert found == pytest.approx(outcome.objective, rel=1e-6)
    evaluation = ddlopt.check(instance, embedded.read(instance))
    assert evaluation.feasible
    assert float(evaluation.objective) == pytest.approx(formulation.objective_value(instance, found), rel=1e-4)


def test_ports_couple_hosts_to_the_block():
    """A link is forbidden through its port, once by its index, once by its place in the vector of all."""
    instance = ddlopt.load("topology/all-to-all-n5-d2")
    embedded = CvxpyBlock(RingsAndRoutes(form="congestion"), instance)
    free = solved(embedded)
    links = list(embedded.block.link)
    taken = next(index for index in links if embedded.port("link", *index).value > 0.5)
    by_index = solved(embedded, embedded.port("link", *taken) == 0)
    by_place = solved(embedded, embedded.port("link")[links.index(taken)] == 0)
    assert by_index == pytest.approx(by_place)
    assert by_index >= free - 1e-6
    assert embedded.port("congestion").value == pytest.approx(by_place)


def test_constants_of_expressions_count():
    instance = ddlopt.load("compression/sfb-vgg16-b4-w2-10g")
    embedded = CvxpyBlock(SfbMilp(), instance)
    solved(embedded, embedded.port("duplicated") == 0)
    nothing = ddlopt.solve(instance, "none").objective
    assert SfbMilp().objective_value(instance, embedded.port("objective").value) == pytest.approx(nothing)


def test_odd_ports_and_unsolved_hosts_are_refused():
    instance = ddlopt.load("topology/tiny-n4-d2")
    embedded = CvxpyBlock(RingsAndRoutes(), instance)
    with pytest.raises(OptionError, match="no variable or expression 'links'"):
        embedded.port("links")
    with pytest.raises(OptionError, match="no variable or expression 'degree_is_respected'"):
        embedded.port("degree_is_respected")
    with pytest.raises(OptionError, match="'link' of RingsAndRoutes has no index 0, 0"):
        embedded.port("link", 0, 0)
    with pytest.raises(OptionError, match="solve it first"):
        embedded.read(instance)
