"""Negotiation: answers keep all limits, and reach optima that are known."""

import numpy as np
import pytest
from aggregation_graph_cases import optimum, random_instance, star

from ddlopt.instances.generators.aggregation.graph import fat_tree
from ddlopt.instances.library import load
from ddlopt.models.aggregation import evaluate
from ddlopt.solvers.aggregation.graph import routers as graph_routers
from ddlopt.solvers.aggregation.graph.negotiation import GraphNegotiation
from ddlopt.solvers.contracts import Limits, Status

LIMITS = Limits(time_s=600)


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
