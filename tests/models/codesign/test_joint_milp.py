"""Strategies, links, rings and routes in one program: against every choice of strategies with its best topology."""

import contextlib
import itertools
import math

import numpy as np
import pyomo.environ as pyo
import pytest
from volume import for_each, spread

from ddlopt.instances.generators.codesign.random import random_job
from ddlopt.models.codesign import CodesignInstance, evaluate, job_of
from ddlopt.models.codesign.formulations.joint_milp import JointStrategyTopology, least_congestion
from ddlopt.models.codesign.formulations.rows.coupling import cycle_loads, cycle_time_s, plan_of, template_of
from ddlopt.models.codesign.formulations.strategy_bound import StrategyBound
from ddlopt.models.codesign.tables import tables_of
from ddlopt.models.errors import InfeasibleError
from ddlopt.models.topology.assembly import assemble
from ddlopt.models.topology.bounds import congestion_bounds
from ddlopt.models.topology.formulations.rings_and_routes import RingsAndRoutes
from ddlopt.solvers.backends import Highs
from ddlopt.solvers.contracts import Limits, Status
from ddlopt.solvers.exact import Exact, build_model, lp_relaxation

CASES = {
    "one link each": (11, {"degree": 1, "reduction": 0.2, "traffic": 0.9, "mean_bytes": 6.0}),
    "two links each": (9, {"reduction": 0.3, "traffic": 0.9, "mean_bytes": 6.0, "parallel_links": False}),
    "parallel": (5, {"traffic": 0.5, "measured": 0.4}),
    "duplex": (9, {"optics": "duplex", "reduction": 0.5, "traffic": 0.5, "mean_bytes": 6.0}),
    "overlap": (12, {"overlap": "full", "degree": 1, "reduction": 0.4, "traffic": 0.9}),
    "direct": (6, {"host_forwarding": False, "degree": 3, "reduction": 0.4, "traffic": 0.9}),
    "memory": (1, {"memory_slack": 1.0, "layers": 3, "strategies": 2, "degree": 1}),
    "twins": (6, {"layers": 2, "strategies": 2, "twins": 2, "density": 1.0, "reduction": 0.4}),
}


def instance_of(name):
    seed, options = CASES[name]
    return random_job(np.random.default_rng(seed), **{"layers": 2, "density": 1.0} | options)


def by_enumeration(instance):
    """Least time over all choices of strategies that fit, each with its best topology."""
    tables, best = tables_of(instance), np.inf
    for choices in itertools.product(*map(range, tables.sizes)):
        if not tables.fits(choices):
            continue
        job, compute = job_of(instance, choices), tables.compute_of(choices)
        if job is None:
            best = min(best, compute)
            continue
        formulation = RingsAndRoutes(rings="all")
        try:
            if job.iteration_time_s(max(congestion_bounds(job).values())) >= best:
                continue
            model = build_model("topology", formulation, job)
        except InfeasibleError:
            continue
        outcome = Highs().solve(model, Limits(gap=1e-8))
        if outcome.status is Status.OPTIMAL:
            best = min(best, formulation.objective_value(job, outcome.objective))
    return best


def solve(instance, start=None, gap=1e-7, **options):
    formulation = JointStrategyTopology(**{"rings": "all"} | options)
    result = Exact("joint-milp", "codesign", formulation).solve(instance, Limits(gap=gap), start=start)
    if result.solution is not None:
        assert evaluate(instance, result.solution, exact=True).violations == ()
    return result


@for_each("name", spread(CASES, 5))
def test_equals_enumeration(name):
    instance = instance_of(name)
    best = by_enumeration(instance)
    bound = StrategyBound()
    outcome = Highs().solve(build_model("codesign", bound, instance), Limits(gap=1e-8))
    assert best > bound.objective_value(instance, outcome.objective) * 1.01, "a case that a bound settles says little"
    assert best <= (cycle_time_s(instance) or np.inf) * (1 + 1e-9)
    result = solve(instance, gap=1e-6)
    assert result.scope is None
    assert result.objective == pytest.approx(best, rel=1e-6)
    assert best * (1 - 2e-6) <= result.bound <= best * (1 + 1e-6)


@pytest.mark.parametrize("name", ["two links each", "duplex", "direct"])
def test_bounds_keep_the_optimum(name):
    instance = instance_of(name)
    other = solve(instance, gap=1e-6, bounds=False)
    assert other.objective == pytest.approx(solve(instance).objective, rel=1e-6)


LP_BOUNDS = {
    # without and with the rows of StrategyBound
    "one link each": (10.7743862, 13.1317204),
    "two links each": (11.4104046, 11.4104046),
}


@pytest.mark.parametrize("name", LP_BOUNDS)
def test_linear_relaxations(name):
    formulations = [JointStrategyTopology(rings="all", bounds=bounds) for bounds in (False, True)]
    found = [lp_relaxation(each, instance_of(name)).objective for each in formulations]
    assert found == pytest.approx(LP_BOUNDS[name], rel=1e-6)


def test_a_known_time_excludes_what_is_worse():
    instance = instance_of("two links each")
    best = solve(instance).objective
    again = solve(instance, gap=1e-6, achievable_s=best)
    assert again.objective == pytest.approx(best, rel=1e-6)
    assert best < cycle_time_s(instance)


def test_a_plan_is_a_feasible_start():
    """Fixing all that ``start`` sets leaves a model whose optimum is no worse than the plan."""
    for name in ("duplex", "twins"):
        instance = instance_of(name)
        plan = solve(instance).solution
        formulation = JointStrategyTopology(rings="all")
        model = build_model("codesign", formulation, instance)
        formulation.start(model.codesign, instance, plan)
        for variable in (*model.codesign.strategy.values(), *model.codesign.network.link.values()):
            assert variable.value is not None
            variable.fix()
        outcome = Highs().solve(model, Limits())
        restarted = formulation.objective_value(instance, outcome.objective)
        assert restarted == pytest.approx(float(evaluate(instance, plan).objective), rel=1e-6)


@pytest.mark.slow
def test_two_jobs_in_one_model():
    """Blocks know nothing of each other: the host's optimum is the sum of theirs, also where it weighs them."""
    formulation = JointStrategyTopology(rings="all")
    host = pyo.ConcreteModel()
    host.jobs = pyo.Block(["two links each", "overlap"])
    instances = {name: instance_of(name) for name in host.jobs}
    for name, instance in instances.items():
        formulation.build(host.jobs[name], instance)
    weight = {"two links each": 3.0, "overlap": 1.0}
    host.total = pyo.Objective(
        expr=sum(
            weight[name] * formulation.objective_value(each, 1.0) * host.jobs[name].objective
            for name, each in instances.items()
        )
    )
    outcome = Highs().solve(host, Limits(gap=1e-7))
    apart = {name: solve(instance).objective for name, instance in instances.items()}
    assert outcome.objective == pytest.approx(sum(weight[name] * apart[name] for name in apart), rel=1e-6)
    for name, instance in instances.items():
        plan = formulation.read(host.jobs[name], instance)
        assert float(evaluate(instance, plan).objective) == pytest.approx(apart[name], rel=1e-6)


def test_nothing_to_send_needs_no_links():
    instance = random_job(np.random.default_rng(0), layers=1, reduction=0.0)
    assert template_of(instance) is None
    result = solve(instance)
    assert result.solution.design.links == ()
    assert result.objective == min(tables_of(instance).compute_of((a,)) for a in range(3))
    assert JointStrategyTopology().scope(instance) is None


def test_what_sends_nothing_may_be_best_among_what_sends():
    data = instance_of("overlap").model_dump(mode="json") | {"overlap": "none"}
    for layer in data["layers"]:
        last = len(data["layouts"]) - 1  # one server
        layer["strategies"][0] |= {"writes": last, "measured_s": 0.01, "reductions": [], "traffic": []}
        layer["strategies"][0]["reads"] = None if layer["strategies"][0]["reads"] is None else last
    instance = CodesignInstance.from_data(data)
    assert template_of(instance) is not None
    for known in (None, math.inf):
        result = solve(instance, gap=1e-3, achievable_s=known)
        assert result.objective == pytest.approx(0.02, rel=1e-3)
        assert result.bound <= 0.02 * (1 + 1e-6)


def test_what_is_too_large_or_odd_is_refused():
    large = random_job(np.random.default_rng(0), servers=12)
    assert "at most 8" in JointStrategyTopology().refuses(large)
    assert JointStrategyTopology(most_servers=12).refuses(large) is None
    eight = random_job(np.random.default_rng(0), servers=8, reduction=1.0, layers=8)
    assert "has 8" in JointStrategyTopology(rings="all").refuses(eight)
    assert JointStrategyTopology().refuses(eight) is None
    assert JointStrategyTopology().scope(eight) == "generator rings"


@for_each("name", CASES)
def test_a_template_has_all_that_any_choice_sends(name):
    """And the least congestion that is said is no more than any choice's."""
    instance = instance_of(name)
    template = template_of(instance)
    most = {group.members: group.gradient_bytes for group in template.allreduce_groups}
    seen = np.zeros_like(template.traffic_bytes)
    for choices in itertools.product(*map(range, tables_of(instance).sizes)):
        job = job_of(instance, choices)
        if job is None:
            assert least_congestion(tables_of(instance)) == 0
            continue
        assert (job.traffic_bytes <= template.traffic_bytes * (1 + 1e-12)).all()
        assert all(group.gradient_bytes <= most[group.members] * (1 + 1e-12) for group in job.allreduce_groups)
        seen = np.maximum(seen, job.traffic_bytes)
        with contextlib.suppress(InfeasibleError):
            assert least_congestion(tables_of(instance)) <= max(congestion_bounds(job).values()) * (1 + 1e-12)
    assert ((seen > 0) == (template.traffic_bytes > 0)).all()


@for_each("options", [{}, {"parallel_links": False}, {"optics": "duplex"}])
@for_each("servers", [4, 5])
def test_a_cycle_of_links_carries_what_is_said(servers, options):
    """A design on the cycle, with every path laid out, is checked by ``evaluate``."""
    instance = random_job(np.random.default_rng(7), servers=servers, layers=3, traffic=0.9, **options)
    n, duplex = servers, instance.optics == "duplex"
    path_only = duplex and n % 2
    copies = 2 if instance.parallel_links and not duplex else 1
    around = [(i, (i + 1) % n) for i in range(n - 1 if path_only else n)]
    paths = {}
    for s, t in itertools.permutations(range(n), 2):
        step = 1
        if duplex and (t < s if path_only else 2 * ((t - s) % n) > n):
            step = -1
        path = [s]
        while path[-1] != t:
            path.append((path[-1] + step) % n)
        paths[s, t] = [(tuple(path), 1.0)]
    choices = (1, 2, 0)
    job = job_of(instance, choices)
    links = {((min(a), max(a)) if duplex else a): copies for a in around}
    rings = [(k, group.members, 1.0) for k, group in enumerate(job.allreduce_groups)]
    plan = plan_of(instance, choices, assemble(job, links, rings, paths))
    judged = evaluate(instance, plan)
    assert judged.feasible
    loads = cycle_loads(instance)
    said = sum(part @ amounts for part, amounts in zip(loads, tables_of(instance).bytes_of(choices), strict=True))
    assert said.max() == pytest.approx(float(judged.details["max_link_load_bytes"]))
    assert cycle_time_s(instance) <= float(judged.objective) * (1 + 1e-9)


def test_no_cycle_where_it_serves_nobody():
    assert cycle_loads(random_job(np.random.default_rng(0), optics="duplex", degree=1)) is None
    assert cycle_time_s(random_job(np.random.default_rng(0), host_forwarding=False)) is None
