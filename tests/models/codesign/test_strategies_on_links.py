"""Strategies with the best rings and routes on given links: against every choice of strategies."""

import itertools

import numpy as np
import pytest

from ddlopt.instances.generators.codesign.random import random_job
from ddlopt.models.codesign import evaluate, job_of
from ddlopt.models.codesign.formulations.joint_milp import JointStrategyTopology
from ddlopt.models.codesign.tables import tables_of
from ddlopt.models.topology.formulations.rings_and_routes import RingsAndRoutes
from ddlopt.solvers.backends import Highs
from ddlopt.solvers.contracts import Limits, Status
from ddlopt.solvers.exact import Exact, build_model

ONE_WAY = tuple((i, (i + p) % 4, 1) for i in range(4) for p in (1, 2))
CYCLE = ((0, 1, 1), (0, 3, 1), (1, 2, 1), (2, 3, 1))
CASES = {
    "one-way": (0, ONE_WAY, {}),
    "uneven": (1, ((0, 1, 2), (1, 2, 1), (1, 3, 1), (2, 0, 1), (2, 3, 1), (3, 0, 1), (3, 2, 1)), {"overlap": "full"}),
    "duplex": (2, CYCLE, {"optics": "duplex", "memory_slack": 1.0}),
    "not connected": (21, ((0, 1, 1), (2, 3, 1)), {"optics": "duplex", "reduction": 0.3, "density": 0.3}),
    "direct": (4, ONE_WAY, {"host_forwarding": False, "reduction": 0.3}),
    "twins": (5, ONE_WAY, {"layers": 2, "twins": 2, "traffic": 0.5}),
}


def instance_of(name):
    seed, links, options = CASES[name]
    return random_job(np.random.default_rng(seed), **{"layers": 3, "strategies": 2, "mean_bytes": 5.0} | options), links


def by_enumeration(instance, links):
    """Least time, and how many choices the links can serve."""
    tables, times = tables_of(instance), []
    for choices in itertools.product(*map(range, tables.sizes)):
        if not tables.fits(choices):
            continue
        job = job_of(instance, choices)
        if job is None:
            times.append(tables.compute_of(choices))
            continue
        formulation = RingsAndRoutes("all", links=links)
        outcome = Highs().solve(build_model("topology", formulation, job), Limits())
        if outcome.status is Status.OPTIMAL:
            times.append(formulation.objective_value(job, outcome.objective))
    return min(times, default=None), len(times)


@pytest.mark.parametrize("name", CASES)
def test_equals_enumeration(name):
    instance, links = instance_of(name)
    best, served = by_enumeration(instance, links)
    result = Exact("links", "codesign", JointStrategyTopology("all", links=links)).solve(instance, Limits(gap=1e-8))
    if name in ("not connected", "direct"):
        assert 0 < served < len(list(itertools.product(*map(range, tables_of(instance).sizes))))
    assert result.scope == "fixed links"
    assert result.objective == pytest.approx(best, rel=1e-6)
    assert result.scope_bound == pytest.approx(best, rel=1e-6)
    assert set(result.solution.design.links) in ({*links}, set())
    assert evaluate(instance, result.solution, exact=True).violations == ()


def test_generator_rings_are_fewer():
    instance, links = instance_of("uneven")
    some = Exact("links", "codesign", JointStrategyTopology(links=links)).solve(instance, Limits(gap=1e-8))
    every = Exact("links", "codesign", JointStrategyTopology("all", links=links)).solve(instance, Limits(gap=1e-8))
    assert some.objective >= every.objective * (1 - 1e-6)


def test_a_plan_is_a_start():
    instance, links = instance_of("twins")
    formulation = JointStrategyTopology("all", links=links)
    plan = Exact("links", "codesign", formulation).solve(instance, Limits(gap=1e-8)).solution
    model = build_model("codesign", formulation, instance)
    formulation.start(model.codesign, instance, plan)
    for variable in model.codesign.strategy.values():
        variable.fix()
    value = formulation.objective_value(instance, Highs().solve(model, Limits()).objective)
    assert value == pytest.approx(float(evaluate(instance, plan).objective), rel=1e-6)


def test_what_does_not_fit_is_refused():
    large = random_job(np.random.default_rng(0), servers=36)
    assert "StrategiesOnRoutes" in JointStrategyTopology(links=((0, 1, 1),)).refuses(large)
    instance, _ = instance_of("one-way")
    assert "joins no two" in JointStrategyTopology(links=((0, 9, 1),)).refuses(instance)
    assert JointStrategyTopology(links=ONE_WAY).refuses(instance) is None
