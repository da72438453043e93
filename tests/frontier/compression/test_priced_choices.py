"""Branch and bound at prices: the optimum where it can be tried out, certificates, budgets that nothing keeps."""

import numpy as np
import pytest
from timeline_brute_force import brute_force, random_levels_case, random_timeline_case
from volume import for_each, seeds

from ddlopt.frontier.compression.timeline.priced_choices.node import Found, Question
from ddlopt.frontier.compression.timeline.priced_choices.priced_choices import PricedChoices
from ddlopt.instances.generators.compression import generate
from ddlopt.models.compression import CompressionInstance, CompressionPlan, LevelPlan
from ddlopt.models.errors import InfeasibleError
from ddlopt.solvers.contracts import Limits, Status

EXACT = Limits(gap=1e-9)


def changed(instance, **fields):
    return type(instance).from_data(instance.model_dump() | fields)


@for_each("seed", seeds(12, 100))
def test_optimal_on_tiny_timelines(seed):
    instance = random_timeline_case(np.random.default_rng(seed))
    best, _ = brute_force(instance)
    result = PricedChoices().solve(instance, EXACT)
    assert result.objective == pytest.approx(best, rel=1e-9, abs=1e-12)
    assert result.bound <= best * (1 + 1e-12)


@for_each("fusion", [False, True])
@for_each("seed", seeds(4, 20))
def test_a_sweep_that_leaves_nothing_out_is_a_proof(seed, fusion):
    """Whatever the prices, and whatever the plan to improve."""
    instance = random_timeline_case(np.random.default_rng(seed), fusion=fusion, goal="time")
    best, _ = brute_force(instance)
    question = Question(instance, "time", instance.error_budget)
    plan = question.frugal()
    found, bound = question.root.improved(Found(plan, question.objective(plan)), 5000)
    assert found.objective == pytest.approx(best, rel=1e-9)
    assert question.objective(found.plan) == pytest.approx(found.objective, rel=1e-12)
    assert best * (1 - 1e-6) - 1e-9 <= bound <= best * (1 + 1e-12)


@for_each("seed", seeds(6, 60))
def test_a_narrow_sweep_proves_no_more_than_is_true(seed):
    instance = random_timeline_case(np.random.default_rng(seed), gradients=5, options=3, goal="time")
    best, _ = brute_force(instance)
    question = Question(instance, "time", instance.error_budget)
    plan = question.frugal()
    found, bound = question.root.improved(Found(plan, question.objective(plan)), 1)
    assert bound <= best * (1 + 1e-12) <= found.objective * (1 + 1e-9)


@for_each("seed", seeds(4, 10))
@for_each("goal", ["time", "error"])
def test_halves_hold_what_the_whole_does(seed, goal):
    rng = np.random.default_rng(seed)
    instance = random_timeline_case(rng, gradients=4, options=3, fusion=bool(seed % 2), goal=goal, budget=True)
    best, _ = brute_force(instance)
    budget = instance.error_budget if goal == "time" else instance.time_budget_s
    root = Question(instance, goal, budget).root
    bounds = []
    for half in root.halves():
        try:
            bounds.append(half.dual.value)
        except InfeasibleError:
            bounds.append(np.inf)
    assert min(bounds, default=best) <= best * (1 + 1e-12)


@for_each("seed", seeds(5, 20))
def test_optimal_levels(seed):
    instance = random_levels_case(np.random.default_rng(seed))
    best, _ = brute_force(instance)
    result = PricedChoices().solve(instance, EXACT)
    assert isinstance(result.solution, LevelPlan)
    assert result.objective == pytest.approx(best, rel=1e-9)
    assert result.bound <= best * (1 + 1e-12)


@pytest.mark.parametrize(
    ("options", "gap"),
    [
        ({}, 1e-4),
        ({"error_budget_part": 0.1}, 2e-3),
        ({"goal": "error", "time_budget_part": 0.2}, 1e-2),
        ({"fusion": True, "error_budget_part": 0.1, "network_gigabit_per_s": 5.0}, 1e-2),
        ({"fusion": True, "largest_bucket_bytes": 4e6, "gpus_per_node": 4}, 1e-2),
    ],
)
def test_close_to_the_bound_on_larger_ones(options, gap):
    instance = generate("random", 4, gradients=80, options=8, **options)
    result = PricedChoices().solve(instance, Limits(gap=gap))
    assert result.gap <= gap
    assert result.status is Status.OPTIMAL
    again = PricedChoices().solve(instance, Limits(gap=gap), seed=1)
    assert again.solution == result.solution
    assert result.bound >= result.details["relaxation"]


def test_one_sweep_is_no_worse_than_where_it_starts():
    instance = generate("random", 7, gradients=30, options=6, error_budget_part=0.1)
    best = PricedChoices().solve(instance, EXACT).solution
    from_best = PricedChoices(width=1, work=0).solve(instance, EXACT, start=best)
    assert from_best.objective <= PricedChoices(width=1, work=0).solve(instance, EXACT).objective
    assert from_best.objective == pytest.approx(PricedChoices().solve(instance, EXACT).objective, rel=1e-12)


def test_a_start_that_breaks_the_budget_is_not_taken():
    instance = generate("random", 7, gradients=10, error_budget_part=0.0)
    lossy = CompressionPlan(instance=instance.name, choices=(1,) * 10)
    assert PricedChoices().solve(instance, EXACT, start=lossy).objective is not None


def test_time_is_up_at_once():
    instance = generate("random", 1, gradients=50, goal="error")
    result = PricedChoices().solve(instance, Limits(time_s=1e-9, gap=0.0))
    assert result.status in (Status.FEASIBLE, Status.OPTIMAL)
    assert result.details["nodes"] <= 1


@for_each("seed", seeds(2, 5))
def test_a_time_budget_that_nothing_keeps(seed):
    free = random_timeline_case(np.random.default_rng(seed), gradients=4, goal="time", budget=False)
    fastest, _ = brute_force(free)
    fields = {"goal": "error", "error_budget": None}
    none = PricedChoices().solve(changed(free, **fields, time_budget_s=fastest * (1 - 1e-6)), EXACT)
    assert none.status == "infeasible"
    assert "no choice keeps the time budget of" in none.message
    at_it = changed(free, **fields, time_budget_s=fastest)
    assert PricedChoices().solve(at_it, EXACT).objective == pytest.approx(brute_force(at_it)[0])


def test_a_gradient_alone():
    instance = random_timeline_case(np.random.default_rng(0), gradients=1, options=3)
    assert isinstance(instance, CompressionInstance)
    assert PricedChoices().solve(instance, EXACT).objective == pytest.approx(brute_force(instance)[0])
