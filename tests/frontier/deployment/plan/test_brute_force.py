import itertools

import numpy as np
import pytest
from deployment_plans import random_instance
from volume import for_each

from ddlopt.frontier.deployment.plan.brute_force import BruteForce
from ddlopt.frontier.deployment.plan.choices import RULE
from ddlopt.models.deployment import evaluate
from ddlopt.models.deployment.plan.formulations.makespan_bound import MakespanBound
from ddlopt.solvers.contracts import Limits, Status
from ddlopt.solvers.deployment.plan.actions import actions, as_deployment
from ddlopt.solvers.deployment.plan.methods import best
from ddlopt.solvers.exact import Exact


def small(seed, memory_bytes=1e9):
    rng = np.random.default_rng(seed)
    return random_instance(rng, operators=4, groups=2, device_groups=2, counts=[2, 1], memory_bytes=memory_bytes)


def all_evaluations(instance):
    for chosen in itertools.product(actions(instance), repeat=instance.groups):
        yield evaluate(instance, as_deployment(instance, chosen))


@for_each(("seed", "memory_bytes"), [(0, 1e9), (1, 1e9), (0, 25.0), (1, 23.0), (2, 40.0)])
def test_it_finds_the_best_plan_that_fits(seed, memory_bytes):
    instance = small(seed, memory_bytes)
    least = min((each.objective for each in all_evaluations(instance) if each.feasible), default=None)
    result = BruteForce(most=300).solve(instance, Limits())
    assert result.objective == pytest.approx(least)
    assert result.scope == RULE
    assert result.scope_gap == pytest.approx(0, abs=1e-12)
    assert result.bound <= result.objective


def test_memory_matters_in_these_cases():
    assert any(not each.feasible for each in all_evaluations(small(1, 23.0)))


def test_too_little_memory_gives_no_solution():
    result = BruteForce(most=300).solve(small(1, 15.0), Limits())
    assert result.status is Status.NO_SOLUTION
    assert "all plans that were tried need more memory" in result.message
    assert BruteForce().solve(small(1, 15.0), Limits()).status is Status.INFEASIBLE


def test_too_many_plans_are_refused():
    assert BruteForce().refuses(small(0)) is None
    assert "9 actions of 2 groups make more than 80 plans" in BruteForce(most=80).refuses(small(1))


@pytest.mark.parametrize("memory_bytes", [1e9, 23.0])
def test_the_plan_of_the_makespan_bound_lies_above_it_and_is_none_where_it_does_not_fit(memory_bytes):
    instance = small(1, memory_bytes)
    bounding = Exact("makespan-bound", "deployment", MakespanBound())
    everything = BruteForce().solve(instance, Limits())
    result = bounding.solve(instance, Limits(30))
    assert result.bound <= everything.objective * (1 + 1e-6)
    if memory_bytes == 1e9:
        assert result.objective >= result.bound * (1 - 1e-6)
    else:  # the model knows too little of memory
        assert result.status is Status.NO_SOLUTION
        assert "breaks a rule" in result.message
    started = bounding.solve(instance, Limits(30), start=everything.solution)
    assert started.objective <= everything.objective * (1 + 1e-9)


def test_exact_is_the_best_of_all_plans_under_the_bound():
    instance = small(2)
    result = best(instance, "highs").solve(instance, Limits(30))
    assert result.method == "exact"
    assert result.objective <= BruteForce().solve(instance, Limits()).objective * (1 + 1e-9)
    assert result.bound is not None
