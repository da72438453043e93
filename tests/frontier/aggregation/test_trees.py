"""Aggregation trees by column generation, and by negotiation for what is scarce."""

import math
from collections import Counter
from typing import Any

import numpy as np
import pytest
from aggregation_graph_cases import answers, optimum, random_instance, star
from volume import for_each, slow

from ddlopt.frontier.aggregation.graph import routers as graph_routers
from ddlopt.frontier.aggregation.graph.column_generation import trees as graph_trees
from ddlopt.frontier.aggregation.graph.column_generation.master import Prices
from ddlopt.frontier.aggregation.graph.column_generation.trees import GraphTrees
from ddlopt.frontier.aggregation.graph.negotiation import GraphNegotiation
from ddlopt.frontier.aggregation.graph.pricing import Pricing, tree_of
from ddlopt.instances.generators.aggregation.graph import fat_tree
from ddlopt.instances.library import load
from ddlopt.models.aggregation import GraphInstance, evaluate
from ddlopt.models.aggregation.graph.network import job_network, time_unit_s
from ddlopt.solvers.aggregation.graph.methods import best, milp
from ddlopt.solvers.contracts import Limits, Status
from ddlopt.solvers.heuristic import Clock

LIMITS = Limits(time_s=600)


@for_each("goal", ["utilization", "congestion"])
@for_each("search", [False, slow(True)])
def test_bounds_hold_and_most_optima_are_proved(goal: str, search: bool) -> None:
    proved = tried = 0
    for seed in (1, 3, 8, 14, 20, 24, 26, 36, 37, 45, 46):
        instance = random_instance(seed, goal=goal)
        least = optimum(instance)
        found = GraphTrees(search=search).solve(instance, LIMITS)
        if least is None:
            assert found.objective is None
            continue
        assert found.bound is not None
        assert found.bound <= least * (1 + 1e-7)
        assert found.objective is not None
        assert found.objective >= least * (1 - 1e-9)
        proved += found.status is Status.OPTIMAL
        tried += 1
    assert proved >= 0.7 * tried


def test_the_dynamic_program_finds_the_cheapest_tree() -> None:
    for seed in (1, 3, 8, 24, 36):
        instance = random_instance(seed, connections=None, aggregators=None)
        rng = np.random.default_rng(seed)
        cost, opening = rng.random(len(instance.arcs)), 0.5 * rng.random(len(instance.nodes))
        ending = 0.2 * rng.random(len(instance.nodes))
        for most in (1, 2, 3):
            for j, job in enumerate(instance.jobs):
                alone = GraphInstance.from_data(instance.model_dump() | {"jobs": (job.model_dump(),)})
                trees = [
                    tree_of(each.trees[0], job.server) for each in answers(alone) if evaluate(alone, each).feasible
                ]
                costs = [
                    _cost(alone, tree, cost, opening, ending) for tree in trees if tree.arriving(job.server) <= most
                ]
                pricing = Pricing(alone, job_network(alone, job))
                least, tree = pricing.cheapest(cost, opening, ending, most)
                least += sum(cost[alone.arc_of[arc]] for arc in pricing.network.sent)
                assert least == pytest.approx(min(costs, default=math.inf)), (seed, j, most)
                assert tree is None or _cost(alone, tree, cost, opening, ending) == pytest.approx(least)


def _cost(instance: GraphInstance, tree: Any, cost: Any, opening: Any, ending: Any) -> float:
    arcs = sum(number * cost[instance.arc_of[arc]] for arc, number in tree.messages.items())
    return float(arcs + sum(opening[v] + number * ending[v] for v, number in tree.ended.items()))


def test_room_behind_arcs_is_kept() -> None:
    instance = star()
    pricing = Pricing(instance, job_network(instance, instance.jobs[0]))
    free, none = np.ones(len(instance.arcs)), np.zeros(len(instance.nodes))
    many = np.full(len(instance.arcs), 9)
    assert pricing.cheapest(free, none, none, 1, many)[0] == 2.0
    few = many.copy()
    few[[instance.arc_of[0, 1], instance.arc_of[2, 1]]] = 0  # all is added up in switch 0, where 5's message must go
    least, tree = pricing.cheapest(free, none, none, 1, few)
    assert least == 3.0
    assert tree is not None
    assert set(tree.ended) == {0}


def test_no_tree_within_the_room_is_cheaper_than_the_dynamic_program_says() -> None:
    equal = tried = 0
    for seed in (1, 3, 8, 14, 24, 36, 45):
        instance = random_instance(seed, connections=None, aggregators=None)
        rng = np.random.default_rng(seed)
        cost, opening = rng.random(len(instance.arcs)), 0.1 * rng.random(len(instance.nodes))
        ending, room = 0.1 * rng.random(len(instance.nodes)), rng.integers(0, 3, len(instance.arcs))
        for job in instance.jobs:
            alone = GraphInstance.from_data(instance.model_dump() | {"jobs": (job.model_dump(),)})
            network = job_network(alone, job)
            costs = []
            for each in answers(alone):
                tree = tree_of(each.trees[0], job.server)
                last = Counter(route[-2:] for route in tree.routes if route[-1] != job.server)
                kept = all(n <= room[alone.arc_of[arc]] for arc, n in last.items() if arc not in network.sent)
                if kept and tree.arriving(job.server) <= 2 and evaluate(alone, each).feasible:
                    costs.append(_cost(alone, tree, cost, opening, ending))
            pricing = Pricing(alone, network)
            least, tree = pricing.cheapest(cost, opening, ending, 2, room)
            fixed = sum(cost[alone.arc_of[arc]] for arc in network.sent)
            assert least + fixed <= min(costs, default=math.inf) + 1e-9
            assert least >= pricing.cheapest(cost, opening, ending, 2)[0] - 1e-9
            if costs:
                tried += 1
                equal += least + fixed == pytest.approx(min(costs))
    assert tried >= 8
    assert equal >= 0.7 * tried


def test_what_slots_and_aggregators_cost_is_taken_off_the_bound() -> None:
    # The optimum with one aggregator is 12 s; prices and bounds here are in 2 s.
    instance = star(goal="utilization", aggregators=1)
    run = graph_trees._Run(instance, Clock(LIMITS, None), LIMITS, 0)
    run._most, run._residuals = [3], [None]
    arcs, none = np.ones(len(instance.arcs)), np.zeros(len(instance.nodes))
    part = time_unit_s(instance) / 2
    bounds = [part * run._price(Prices(arcs, none, none, price / part)).bound for price in (0.0, 1.0, 2.0, 5.0)]
    assert bounds == pytest.approx([5.0, 6.0, 6.0, 3.0])
    dear = Prices(arcs, none, np.full_like(none, 0.5 / part), 0.0)
    assert part * run._price(dear).bound == pytest.approx(5.0 + 1.0 - 1.5)


@pytest.mark.parametrize("goal", ["utilization", "congestion"])
def test_a_fat_tree_is_solved_as_by_the_program(goal: str) -> None:
    instance = fat_tree(np.random.default_rng(1), jobs=3, workers=3, slots=1, aggregators=4, goal=goal)
    trees, program = GraphTrees().solve(instance, LIMITS), milp(instance, "highs").solve(instance, LIMITS)
    assert program.status is Status.OPTIMAL
    assert trees.status is Status.OPTIMAL
    assert trees.objective == pytest.approx(program.objective, rel=2e-4)


@pytest.mark.slow
@pytest.mark.parametrize("goal", ["utilization", "congestion"])
def test_a_fat_tree_with_128_hosts_is_proved(goal: str) -> None:
    instance = fat_tree(np.random.default_rng(1), k=8, jobs=16, workers=7, goal=goal)
    found = GraphTrees().solve(instance, Limits(time_s=300))
    assert found.status is Status.OPTIMAL


def test_what_is_not_covered_is_refused() -> None:
    assert "merging" in (GraphTrees().refuses(star(merging=True)) or "")
    assert "utilization and congestion" in (GraphTrees().refuses(star(goal="rates")) or "")
    instance = fat_tree(np.random.default_rng(1), k=6, jobs=1, workers=30)
    assert "in many places" in (GraphTrees().refuses(instance) or "")


def test_each_goal_has_a_best_method() -> None:
    for fields in ({}, {"merging": True}, {"goal": "rates", "merging": True}, {"goal": "utilization"}):
        assert best(star(**fields), "highs").solve(star(**fields), LIMITS).status is Status.OPTIMAL
    found = best(star(goal="rates"), "highs").solve(star(goal="rates"), LIMITS)
    assert found.objective == pytest.approx(10.0)


@pytest.mark.parametrize("pairs", [graph_routers.MOST_PAIRS, 0], ids=["by program", "worker by worker"])
def test_best_answers_of_small_instances_are_mostly_found(pairs: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(graph_routers, "MOST_PAIRS", pairs)
    found = tried = 0
    for seed in (1, 3, 8, 14, 20, 24, 26, 36, 37, 45, 46):
        instance = random_instance(seed, goal="congestion")
        least = optimum(instance)
        result = GraphNegotiation(sweeps=10, rounds=1).solve(instance, LIMITS, seed)
        if least is None:
            assert result.objective is None
            continue
        assert result.solution is not None
        assert evaluate(instance, result.solution).feasible
        assert result.objective is not None
        assert result.objective >= least * (1 - 1e-9)
        tried += 1
        found += result.objective <= least * (1 + 1e-9)
    assert tried >= 6
    assert found >= 0.7 * tried


def test_a_budget_on_a_fat_tree_is_kept_and_the_bound_met() -> None:
    instance = fat_tree(np.random.default_rng(1), k=6, jobs=6, workers=7, slots=1, aggregators=12, goal="congestion")
    found = GraphNegotiation().solve(instance, LIMITS, seed=1)
    assert found.status is Status.OPTIMAL
    assert found.solution is not None
    assert evaluate(instance, found.solution).details["aggregators"] <= 12


def test_it_starts_from_what_it_is_given_and_loses_nothing() -> None:
    instance = load("aggregation/leaf-spine-4x2-congestion")
    first = GraphNegotiation(sweeps=1, rounds=1).solve(instance, LIMITS)
    again = GraphNegotiation(sweeps=1, rounds=0).solve(instance, LIMITS, start=first.solution)
    assert again.objective == first.objective
    assert again.solution is not None
    assert again.solution.trees == first.solution.trees


def test_the_same_seed_gives_the_same_answer() -> None:
    instance = load("aggregation/fat-tree-k4-congestion")
    one, two = (GraphNegotiation(sweeps=5, rounds=1).solve(instance, LIMITS, seed=4) for _ in range(2))
    assert one.solution == two.solution


def test_other_goals_are_refused() -> None:
    assert "congestion" in (GraphNegotiation().refuses(star(goal="utilization")) or "")
    assert "merging" in (GraphNegotiation().refuses(star(goal="congestion", merging=True)) or "")


def test_the_bound_holds_where_a_link_is_far_dearer_than_all_others():
    # What an arc costs at least, so that there is one, was 1e-12 of the dearest one: more than the fast link takes.
    links = [((1, 0), 1e-8), ((1, 2), 1e8), ((1, 3), 1.0), ((3, 0), 1.0)]
    nodes = [{"name": f"n{k}", "slots": int(k == 0), "forwards": k < 3} for k in range(4)]
    data = {
        "name": "far",
        "nodes": nodes,
        "links": [{"ends": ends, "bandwidth_bytes_per_s": width} for ends, width in links],
        "jobs": [{"name": "j", "workers": [2, 1, 0], "server": 3}],
        "goal": "utilization",
        "aggregators": 1,
    }
    result = GraphTrees().solve(GraphInstance.from_data(data), Limits())
    assert result.objective == 3.00000001
    assert result.bound <= 3.00000001
