"""Sufficient factors on top of plans: figures by hand, what the cut finds, and that nothing gets worse."""

import itertools

import numpy as np
import pytest
from volume import for_each

from ddlopt.instances.generators.deployment import generate
from ddlopt.models.deployment import Deployment, DeploymentInstance, GroupPlan, evaluate
from ddlopt.solvers.contracts import Limits
from ddlopt.solvers.deployment.plan.search import PlanSearch
from ddlopt.solvers.deployment.plan.simulator.fast import Simulator
from ddlopt.solvers.deployment.plan.sufficient_factors import WithFactors, duplicated_by_cut, factor_instance


def dense_layer(batch_bytes: float) -> DeploymentInstance:
    """Two devices; a forward pass, and a gradient of 1000 bytes from an input and an error of some bytes each."""
    return DeploymentInstance.from_data(
        {
            "name": "dense",
            "operators": [
                {"name": "forward", "group": 0, "times_s": {"a": [2.0, 1.0]}},
                {"name": "error", "group": 0, "times_s": {"a": [2.0, 1.0]}},
                {"name": "weight", "group": 0, "times_s": {"a": [4.0, 2.0]}, "gradient_bytes": 1000},
            ],
            "tensors": [
                {"producer": 0, "consumers": [1, 2], "size_bytes": batch_bytes},
                {"producer": 1, "consumers": [2], "size_bytes": batch_bytes},
            ],
            "device_groups": [{"type": "a", "count": 2, "memory_bytes": 1e6, "bandwidth_bytes_per_s": 10}],
            "bandwidth_bytes_per_s": [[0]],
            "shares": [1.0, 0.5],
            "all_reduce": {"s_per_byte": [0.1], "fixed_s": [0.0], "at_bytes_per_s": 10},
        }
    )


ALL_REDUCE = GroupPlan(device_groups=(0,), mode="all_reduce")


def test_figures_of_a_plan():
    made = factor_instance(dense_layer(20), Deployment(instance="dense", groups=(ALL_REDUCE,)))
    assert [each.replicas for each in made.operators] == [2, 2, 2]
    assert [each.bandwidth_bytes_per_s for each in made.operators] == [10, 10, 10]
    assert made.operators[2].gradient_bytes == 1000
    assert made.operators[2].time_s == 4
    assert all(each.can_duplicate for each in made.operators)
    server = GroupPlan(device_groups=(0,), mode="parameter_server")
    refused = factor_instance(dense_layer(20), Deployment(instance="dense", groups=(server,)))
    assert not any(each.can_duplicate for each in refused.operators)


@pytest.mark.parametrize(("size", "expected"), [(20, (2,)), (2000, (0, 1, 2))])
def test_what_the_cut_duplicates(size, expected):
    # All-reduce 2 · 1/2 · 1000 / 10 = 100 s; duplicating costs 2 s and half of both tensors, or 4 s for everything.
    assert duplicated_by_cut(dense_layer(size), Deployment(instance="dense", groups=(ALL_REDUCE,))) == expected


def test_time_with_factors_by_hand():
    instance = dense_layer(20)
    result = WithFactors("data-parallel").solve(instance, Limits())
    # 1 s forward, 1 s error; the outputs of each are sent as they come, 10 bytes in 1 s; then 4 s for the whole batch.
    assert result.solution.duplicated == (2,)
    assert result.objective == pytest.approx(1 + 1 + 1 + 4)
    assert result.details["without_s"] == pytest.approx(1 + 1 + 2 + 100)


@for_each("seed", range(4))
def test_the_cut_is_no_better_than_the_best_of_tiny_cases(seed):
    """Which a search on plans and duplicated operators at once comes near to."""
    instance = generate("random", seed, groups=2, device_groups=1, most_devices=3, memory=4.0, communication=3.0)
    simulator, best_s = Simulator(instance), np.inf
    for duplicated in itertools.product((0, 1), repeat=len(instance.operators)):
        rows = list(itertools.product(range(len(simulator.actions)), repeat=2))
        times, excess = simulator.run_all(rows, np.array(duplicated))
        best_s = min(best_s, times[excess <= 0].min(initial=np.inf))
    searched = PlanSearch().solve(instance, Limits(60), seed)
    assert searched.objective <= best_s * 1.05
    result = WithFactors("plan-search").solve(instance, Limits(60), seed)
    assert result.objective <= searched.objective * (1 + 1e-9)
    assert result.objective <= result.details["without_s"] * (1 + 1e-9)


@pytest.mark.parametrize("model", ["vgg19", "bert-small"])
def test_nothing_gets_worse(model):
    instance = generate("network", model=model, groups=6, batch=6, devices_of="two-machines", separate_gradients=True)
    for method in (WithFactors("data-parallel"), WithFactors("tag")):
        result = method.solve(instance, Limits(30))
        assert result.objective <= result.details["without_s"] * (1 + 1e-9)
        assert evaluate(instance, result.solution).feasible
    assert len(WithFactors("data-parallel").solve(instance, Limits(30)).solution.duplicated) > 0
