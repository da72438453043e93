"""Formulations inside CVXPY: the same optima, ports that are expressions, solutions that are checked."""

import cvxpy as cp
import pytest
from volume import for_each

import ddlopt
from ddlopt.models.compression.sfb.formulations.sfb_milp import SfbMilp
from ddlopt.models.compression.timeline.formulations.overlap_timeline import OverlapTimeline
from ddlopt.models.errors import OptionError
from ddlopt.models.scheduling.formulations.time_indexed.time_indexed import TimeIndexed
from ddlopt.models.topology.formulations.concave_matching import ConcaveMatching
from ddlopt.models.topology.formulations.rings_and_routes import RingsAndRoutes
from ddlopt.solvers.backends import Highs
from ddlopt.solvers.backends.cvxpy_block import CvxpyBlock
from ddlopt.solvers.contracts import Limits
from ddlopt.solvers.exact import build_model

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
    instance = ddlopt.load("topology/tiny-n4-d2")
    embedded = CvxpyBlock(ConcaveMatching(), instance)
    free = solved(embedded, sense="maximize")
    copies = list(embedded.block.copy)
    taken = next(index for index in copies if embedded.port("copy", *index).value > 0.5)
    by_index = solved(embedded, embedded.port("copy", *taken) == 0, sense="maximize")
    by_place = solved(embedded, embedded.port("copy")[copies.index(taken)] == 0, sense="maximize")
    assert by_index == pytest.approx(by_place)
    assert by_index <= free
    assert embedded.port("value").value == pytest.approx(by_place)


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
