"""Alternating optimization: against the optimum of tiny jobs, and each plane against its own optimum."""

import itertools

import brute_force
import numpy as np
import pytest
from volume import for_each, seeds

from ddlopt.instances.generators.codesign.random import random_job
from ddlopt.models.codesign import evaluate, job_of
from ddlopt.models.codesign.tables import tables_of
from ddlopt.models.errors import OptionError
from ddlopt.models.topology import TopologyDesign
from ddlopt.solvers.codesign.data_parallel import DataParallel
from ddlopt.solvers.codesign.expander import Expander
from ddlopt.solvers.codesign.fixed_routes import FixedRoutes
from ddlopt.solvers.codesign.half_rounds import best_on_links, best_on_routes
from ddlopt.solvers.codesign.planes import answer_topology
from ddlopt.solvers.codesign.topoopt import alternating
from ddlopt.solvers.codesign.topoopt.alternating import Alternating, _Run
from ddlopt.solvers.codesign.topoopt.alternating_released import AlternatingReleased, _LinkTest, _Loop
from ddlopt.solvers.contracts import Limits
from ddlopt.solvers.heuristic import Clock
from ddlopt.solvers.topology.topoopt.topology_finder import TopologyFinder

GENTLE = {"alpha": 1e-4}
"""For instances whose iterations take seconds."""
ALL = (
    Alternating(**GENTLE, budget=500),
    Alternating("exact"),
    Alternating("mcmc", "exact", **GENTLE, budget=500),
    Alternating("exact", "exact"),
    AlternatingReleased(150, link_alpha=1e-4, **GENTLE),
    DataParallel(),
    Expander(),
    Expander("mcmc"),
)


def tiny(seed):
    """Three servers, so that all links, rings and routes of all strategies can be tried."""
    options = {"overlap": ("none", "full")[seed % 2], "optics": ("one_way", "duplex")[seed % 2]}
    return random_job(np.random.default_rng(seed), servers=3, degree=2, layers=3, strategies=2, traffic=0.3, **options)


def optimum(instance):
    times = []
    for choices in itertools.product(*map(range, tables_of(instance).sizes)):
        if tables_of(instance).fits(choices):
            job = job_of(instance, choices)
            busiest = 0.0 if job is None else brute_force.brute_force(job)
            times.append(instance.iteration_time_s(tables_of(instance).compute_of(choices), busiest))
    return min(times)


@pytest.mark.parametrize("seed", seeds(1, 2))
def test_nobody_beats_the_optimum(seed):
    instance = tiny(seed)
    best = optimum(instance)
    results = {}
    for method in ALL:
        result = method.solve(instance, Limits())
        assert result.checked, method.name
        assert result.objective >= best * (1 - 1e-9), method.name
        results[method.name] = result.objective
    assert results["alternating:strategies=exact,topology=exact"] <= best * 1.25
    assert min(results.values()) <= best * 1.1


def test_names_are_those_of_the_catalogue():
    assert [method.name for method in ALL] == [
        "alternating",
        "alternating:strategies=exact",
        "alternating:topology=exact",
        "alternating:strategies=exact,topology=exact",
        "alternating-released",
        "data-parallel",
        "expander",
        "expander",
    ]


@for_each("seed", range(6))
def test_the_exact_strategy_plane_is_the_best_of_all_choices(seed):
    rng = np.random.default_rng(seed)
    memory = 1.0 if seed % 2 else None
    instance = random_job(rng, servers=(4, 6, 8)[seed % 3], traffic=0.3, memory_slack=memory)
    choices = itertools.product(*map(range, tables_of(instance).sizes))
    first = next(each for each in choices if tables_of(instance).fits(each))
    design, _, _ = answer_topology(job_of(instance, first), "topology-finder", Limits(), seed)
    routes = FixedRoutes.of(instance, design, first)
    found, bound = best_on_routes(routes, first, Clock(Limits(gap=1e-9), None), seed)
    best = min(routes.time_s(each) for each in itertools.product(*map(range, tables_of(instance).sizes)))
    assert routes.time_s(found) == pytest.approx(best, rel=1e-9)
    assert bound == pytest.approx(best, rel=1e-6)


@for_each("method", [ALL[0], *ALL[3:]])
def test_a_seed_gives_one_plan(method):
    instance = tiny(5)
    one, other = (method.solve(instance, Limits(), seed=4) for _ in range(2))
    assert one.solution.model_dump() == other.solution.model_dump()


@pytest.mark.parametrize("seed", range(3))
def test_the_trace_and_the_half_rounds_tell_the_same(seed):
    instance = random_job(np.random.default_rng(seed), servers=4, degree=2, layers=5)
    for method in ALL[:2]:
        result = method.solve(instance, Limits())
        halves = result.details["half_rounds"]
        assert [each["plane"] for each in halves[:2]] == ["start", "strategies"]
        assert {each["plane"] for each in halves[2::2]} <= {"topology"}
        assert min(each["objective_s"] for each in halves) == pytest.approx(result.objective, rel=1e-12)
        assert halves[0]["objective_s"] == result.trace[0].incumbent
        incumbents = [point.incumbent for point in result.trace]
        assert incumbents == sorted(incumbents, reverse=True)
        assert len(incumbents) > 1
        assert incumbents[-1] == pytest.approx(result.objective)
        last = next(each["plane"] for each in halves if each["objective_s"] == pytest.approx(result.objective))
        assert result.details["improved_last"] == last
        # Strategies never get worse on the links in hand.
        for before, after in itertools.pairwise(halves):
            if after["plane"] == "strategies":
                assert after["objective_s"] <= before["objective_s"] * (1 + 1e-12)


def test_a_start_is_kept_unless_something_better_is_found():
    instance = random_job(np.random.default_rng(3), servers=6, degree=2, layers=4)
    good = Alternating("exact", "exact", plane_s=1.0).solve(instance, Limits())
    again = Alternating("exact", rounds=1).solve(instance, Limits(), start=good.solution)
    assert again.details["half_rounds"][0]["objective_s"] == pytest.approx(good.objective)
    assert again.objective <= good.objective * (1 + 1e-12)


def test_the_clock_leaves_the_plan_in_hand():
    instance = random_job(np.random.default_rng(3), servers=6, degree=2, layers=4)
    clock = Clock(Limits(), None)
    clock.interrupted = True
    for method in ALL[:5]:
        plan, _ = method.answer(instance, 0, clock, None)
        assert evaluate(instance, plan).feasible


def test_the_released_loop_counts_links():
    instance = random_job(np.random.default_rng(2), servers=6, degree=2, layers=6)
    result = AlternatingReleased(60, link_alpha=1e-9, alpha=1e-9).solve(instance, Limits())
    counts = result.details
    # At such temperatures everything is taken, and every proposal asks for links.
    assert counts["acceptance"] == 1.0
    assert counts["links_laid"] + counts["links_remembered"] == counts["proposals"] + 1
    cold = AlternatingReleased(200, link_alpha=10.0, alpha=10.0).solve(instance, Limits()).details
    assert cold["links_laid"] < cold["proposals"] / 4


def test_links_are_laid_anew_after_fifty_idle_proposals():
    test, rng = _LinkTest(), np.random.default_rng(0)
    assert test.passes(5.0, 1.0, rng, forced=False)
    answers = [test.passes(1e6, 1.0, rng, forced=False) for _ in range(50)]
    assert answers == [False] * 49 + [True]
    assert not test.passes(1e6, 1.0, rng, forced=False)
    assert test.passes(4.0, 1.0, rng, forced=False)
    assert test.passes(1e6, 1.0, rng, forced=True)


def test_released_links_are_those_of_the_released_finder():
    instance = random_job(np.random.default_rng(6), servers=6, degree=2, layers=3)
    plan, _ = AlternatingReleased(1).answer(instance, 7, Clock(Limits(), None), None)
    job = job_of(instance, plan.choices(instance))
    design, _ = TopologyFinder("released").answer(job, 7, Clock(Limits(), None), None)
    first = DataParallel().solve(instance, Limits(), seed=7).solution
    if plan.strategies == first.strategies:
        assert plan.design.links == design.links


@for_each(
    "options",
    [{"strategies": "best"}, {"topology": "best"}, {"rounds": 0}, {"budget": 0}, {"alpha": -1.0}, {"plane_s": 0.0}],
)
def test_options_out_of_range(options):
    with pytest.raises(OptionError):
        Alternating(**options)


def test_the_expander_needs_forwarding():
    instance = random_job(np.random.default_rng(1), host_forwarding=False)
    assert "host_forwarding" in Expander().refuses(instance)


@pytest.mark.parametrize("seed", range(3))
def test_new_routes_on_the_same_links_never_hurt(seed):
    instance = random_job(np.random.default_rng(seed), servers=4, degree=2, layers=3)
    plan = DataParallel().solve(instance, Limits()).solution
    clock = Clock(Limits(), None)
    found = best_on_links(instance, plan, clock, 0)
    assert found.design.links == plan.design.links
    before, after = (float(evaluate(instance, each).objective) for each in (plan, found))
    routes = FixedRoutes.of(instance, plan.design, plan.choices(instance))
    fixed, _ = best_on_routes(routes, plan.choices(instance), clock, 0)
    assert after <= min(before, routes.time_s(fixed)) * (1 + 1e-6)
    # With no time at all the plan given is the answer.
    assert best_on_links(instance, found, clock, 0, most_s=1e-3) is found


@pytest.mark.parametrize("seed", range(3))
def test_the_released_plan_is_on_the_links_on_which_it_was_timed(seed):
    instance = random_job(np.random.default_rng(seed), servers=6, degree=2, layers=5)
    result = AlternatingReleased(120, link_alpha=1e-4, **GENTLE).solve(instance, Limits())
    assert len(result.trace) > 1
    assert result.trace[-1].incumbent == pytest.approx(result.objective, rel=1e-12)


def test_the_released_loop_goes_back_to_the_best():
    instance = random_job(np.random.default_rng(2), servers=6, degree=2, layers=6)
    hot = AlternatingReleased(100, link_alpha=1e-9, alpha=1e-9)
    loop = _Loop(instance, 0, Clock(Limits(), None))
    loop.begin((0,) * 6)
    for _ in range(40):
        loop.step(hot)
    assert loop.current_s > loop.best_s
    assert loop.routes is not loop.best_routes
    loop.back_to_best()
    assert (loop.current, loop.current_s) == (loop.best, loop.best_s)
    assert loop.routes is loop.best_routes


@pytest.mark.parametrize("topology", ["topology-finder", "exact"])
def test_worse_links_are_taken_from_topology_finder_only(topology, monkeypatch):
    instance = random_job(np.random.default_rng(3), servers=6, degree=2, layers=4)
    run = _Run(Alternating("mcmc", topology), instance, Clock(Limits(), None), np.random.default_rng(0))
    run.begin(DataParallel("exact").solve(instance, Limits()).solution)
    run.half_rounds[-1]["plane"] = "strategies"
    ring = TopologyDesign(instance="ring", links=tuple((i, (i + 1) % 6, 1) for i in range(6)))
    worse = FixedRoutes.of(instance, ring).design_for(run.choices)
    monkeypatch.setattr(alternating, "links_for", lambda *_: worse)
    good = run.design
    assert run.improve_links()
    assert run.half_rounds[-1]["objective_s"] > run.best_s
    assert run.design is (worse if topology == "topology-finder" else good)
    assert run.plan.design.links == good.links
