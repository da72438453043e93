"""Integer programs for aggregation networks against all answers, one by one, and against each other."""

from typing import Any

import numpy as np
import pyomo.environ as pyo
import pytest
from aggregation_graph_cases import optimum, random_instance, star

from ddlopt.frontier.aggregation.graph.formulations.single_layer_flow import SingleLayerFlow
from ddlopt.instances.generators.aggregation.graph import fat_tree
from ddlopt.models.aggregation import GraphInstance, evaluate
from ddlopt.models.aggregation.graph.formulations.graph_aggregation import GraphAggregation
from ddlopt.models.aggregation.graph.formulations.rate_levels import RateLevels, rate_levels
from ddlopt.models.aggregation.graph.network import job_network
from ddlopt.solvers.contracts import Limits, Status
from ddlopt.solvers.exact import Exact, build_model, lp_relaxation

SEEDS = (0, 1, 2, 3, 8, 9, 23, 24, 41, 53)
"""Some with switches that do not forward, workers that aggregate, slots or aggregators that are short."""


def solved(formulation: Any, instance: GraphInstance, start: Any = None) -> Any:
    return Exact("x", "aggregation", formulation).solve(instance, Limits(time_s=60), start=start)


def same(found: Any, best: float | None) -> None:
    if best is None:
        assert found.status is Status.INFEASIBLE
    else:
        assert found.status is Status.OPTIMAL
        assert found.objective == pytest.approx(best, rel=1e-6)


@pytest.mark.parametrize("merging", [False, True])
@pytest.mark.parametrize("goal", ["utilization", "congestion"])
def test_programs_find_the_best_of_all_answers(goal: str, merging: bool) -> None:
    for seed in SEEDS:
        instance = random_instance(seed, goal=goal, merging=merging)
        best = optimum(instance)
        same(solved(GraphAggregation(), instance), best)
        if SingleLayerFlow().refuses(instance) is None:
            same(solved(SingleLayerFlow(), instance), best)


def test_rates_find_the_best_of_all_answers() -> None:
    tried = 0
    for seed in range(1, 30):
        if seed in (5, 7, 10, 13, 15, 18, 21, 25, 28):
            continue  # no instance, or very many answers
        instance = random_instance(seed, goal="rates", merging=True)
        if RateLevels().refuses(instance) is not None:
            continue
        best = optimum(instance)
        same(solved(RateLevels(), instance), best)
        same(solved(RateLevels(flows=False), instance), best)
        tried += best is not None
    assert tried >= 6


def test_the_relaxation_of_two_layers_is_the_stronger_one() -> None:
    instance = fat_tree(np.random.default_rng(1), jobs=2, workers=3, aggregators=2, goal="utilization")
    strong, plain = lp_relaxation(GraphAggregation(), instance), lp_relaxation(SingleLayerFlow(), instance)
    assert strong.objective > plain.objective * 1.05
    best = solved(GraphAggregation(), instance).objective
    assert strong.objective <= best * (1 + 1e-6)


def test_goals_that_are_not_covered_are_refused() -> None:
    assert GraphAggregation().refuses(star()) is None
    assert "rates" in (GraphAggregation().refuses(star(goal="rates")) or "")
    assert "rates" in (SingleLayerFlow().refuses(star(goal="rates")) or "")
    assert "merging" in (RateLevels().refuses(star(goal="rates")) or "")
    assert "congestion" in (RateLevels().refuses(star(merging=True)) or "")
    nodes = [node.model_dump() for node in star().nodes]
    nodes[3]["slots"] = 1
    assert "does not forward" in (SingleLayerFlow().refuses(star(nodes=nodes)) or "")


def test_hosts_with_one_link_are_one_group_at_their_switch() -> None:
    network = job_network(star(), star().jobs[0])
    assert network.groups == {0: 2, 1: 1}
    assert set(network.sent) == {(3, 0), (4, 0), (5, 1)}
    assert all(one != 6 for one, _ in network.arcs)
    jobs = [{"name": "j", "workers": (0, 3), "server": 6}]
    assert job_network(star(jobs=jobs), star(jobs=jobs).jobs[0]).groups == {0: 1, 3: 1}


@pytest.mark.parametrize("formulation", [GraphAggregation(), SingleLayerFlow(), RateLevels()])
def test_a_solution_is_a_start(formulation: Any) -> None:
    merging = isinstance(formulation, RateLevels)
    instance = star(goal="rates" if merging else "utilization", merging=merging)
    found = solved(formulation, instance)
    again = solved(formulation, instance, start=found.solution)
    assert again.objective == pytest.approx(found.objective)
    model = build_model("aggregation", formulation, instance)
    block = model.component("aggregation")
    formulation.start(block, instance, found.solution)
    assert sum(pyo.value(each) for each in block.aggregates.values()) == found.details["aggregators"]


def test_levels_are_capacities_over_numbers_of_jobs() -> None:
    nodes = [node.model_dump() for node in star().nodes]
    nodes[1]["aggregation_bytes_per_s"] = 7.0
    jobs = [star().jobs[0].model_dump(), star().jobs[0].model_dump() | {"name": "k"}]
    instance = star(nodes=nodes, jobs=jobs, goal="rates", merging=True)
    assert rate_levels(instance) == (10.0, 7.0, 5.0, 3.5)
    found = solved(RateLevels(), instance)
    # One switch has a slot for one job; the other must not meet in it, which is impossible.
    assert found.status is Status.INFEASIBLE
    nodes = [node | {"slots": 2 * node["slots"]} for node in nodes]
    found = solved(RateLevels(), star(nodes=nodes, jobs=jobs, goal="rates", merging=True))
    assert found.objective == pytest.approx(7.0)
    assert evaluate(star(nodes=nodes, jobs=jobs, goal="rates", merging=True), found.solution).feasible
