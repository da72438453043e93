import itertools

import numpy as np
import pytest
from deployment_plans import random_instance
from volume import for_each

from ddlopt.frontier.deployment.plan.choices import fewest, number_of_choices
from ddlopt.frontier.deployment.plan.prices.method import PlanPrices
from ddlopt.models.deployment import DeploymentInstance, evaluate
from ddlopt.solvers.contracts import Limits
from ddlopt.solvers.deployment.plan import actions as plan_actions
from ddlopt.solvers.deployment.plan.actions import Action, actions, as_deployment, device_sets, spread
from ddlopt.solvers.deployment.plan.search import PlanSearch
from ddlopt.solvers.heuristic import Clock


def cluster(*groups):
    size = len(groups)
    return DeploymentInstance.from_data(
        {
            "name": "cluster",
            "operators": [{"name": "op", "group": 0, "times_s": {"a": [1.0], "b": [2.0]}}],
            "device_groups": [
                {"type": kind, "count": count, "memory_bytes": 1, "bandwidth_bytes_per_s": 1} for kind, count in groups
            ],
            "bandwidth_bytes_per_s": [[1] * size] * size,
        }
    )


def test_actions_of_a_cluster():
    found = actions(cluster(("a", 4), ("b", 1)))
    assert found == (
        Action((0,), "all_reduce"),
        Action((0,), "parameter_server"),
        Action((0,), "model_parallel"),
        Action((1,), "all_reduce"),
        Action((0, 1), "all_reduce"),
        Action((0, 1), "all_reduce", "speed"),
        Action((0, 1), "parameter_server"),
        Action((0, 1), "parameter_server", "speed"),
        Action((0, 1), "model_parallel"),
    )
    assert len(actions(cluster(("a", 4), ("b", 8), ("a", 4)), splits=("even",))) == 21  # as TAG counts them
    assert Action((0, 1), "all_reduce", "speed") not in actions(cluster(("a", 4), ("a", 1)))


@pytest.mark.parametrize("groups", [9, 16, 64, 100])
def test_of_many_device_groups_there_are_some_sets(groups):
    """At most a few a group, each once, with what a plan needs in any case: each group alone, and all together."""
    instance = cluster(*(("ab"[j % 3 == 0], 1 + j % 2) for j in range(groups)))
    found = device_sets(instance)
    assert len(set(found)) == len(found) <= 6 * groups
    assert {(j,) for j in range(groups)} | {tuple(range(groups))} <= set(found)
    assert tuple(range(0, groups, 3)) in found  # all of a type
    assert (0, 1, 2, 3) in found
    assert len(actions(instance)) <= 5 * len(found)
    assert number_of_choices(instance, 1, every=True) > 10**18
    assert fewest(instance, 10**6).every is False
    assert "sets of devices" in fewest(instance, 10**6).scope
    assert "device groups make more than" in PlanPrices().refuses(instance)


def test_of_few_there_are_all():
    for groups in range(1, 9):
        assert len(device_sets(cluster(*[("a", 1)] * groups))) == 2**groups - 1


def test_places_of_operators_are_bounded(monkeypatch):
    instance = cluster(*[("a", 8)] * 32)
    whole = device_sets(instance)
    monkeypatch.setattr(plan_actions, "MOST_SEATS", 32 * 8 * 3)
    fewer = device_sets(instance)
    assert set(fewer) < set(whole)
    assert sum(8 * len(chosen) for chosen in fewer) <= 32 * 8 * 3
    assert {(j,) for j in range(32)} | {tuple(range(32))} <= set(fewer)


def test_stages_fit_where_one_plan_for_all_does_not():
    """Each operator fills the memory of a device: only as many stages as device groups hold them all."""
    groups = 16
    instance = DeploymentInstance.from_data(
        {
            "name": "stages",
            "operators": [
                {"name": f"op{k}", "group": k, "times_s": {"a": [1.0]}, "resident_bytes": 1.0} for k in range(groups)
            ],
            "tensors": [{"producer": k, "consumers": [k + 1], "size_bytes": 1e-3} for k in range(groups - 1)],
            "device_groups": [{"type": "a", "count": 1, "memory_bytes": 1.5, "bandwidth_bytes_per_s": 1.0}] * groups,
            "bandwidth_bytes_per_s": (1.0 - np.eye(groups)).tolist(),
        }
    )
    found = PlanSearch(moves=200).solve(instance, Limits())
    assert (found.checked, found.details["device_sets"]) == (True, 31)
    # With the time up before it begins there is an answer as well.
    clock = Clock(Limits(), None)
    clock.interrupted = True
    deployment, _ = PlanSearch().answer(instance, 0, clock, None)
    assert evaluate(instance, deployment).feasible


@for_each("seed", range(15))
def test_consecutive_pieces_with_the_least_largest_load(seed):
    rng = np.random.default_rng(seed)
    instance = random_instance(rng, operators=6, groups=1, device_groups=2)
    devices = instance.devices_of((0, 1))
    types = [instance.device_groups[instance.device_group_of[device]].type for device in devices]

    def largest(ends):
        pieces = itertools.pairwise((0, *ends, 6))
        return max(
            sum(instance.operators[place].times_s[kind][0] for place in instance.members[0][first:last])
            for kind, (first, last) in zip(types, pieces, strict=True)
        )

    best = min(map(largest, itertools.combinations_with_replacement(range(7), len(devices) - 1)))
    found = spread(instance, 0, (0, 1))
    assert list(found) == sorted(found)
    ends = [sum(device <= last for device in found) for last in devices[:-1]]
    assert largest(ends) == pytest.approx(best, rel=1e-9)


def test_deployments_of_actions():
    rng = np.random.default_rng(0)
    instance = random_instance(rng, operators=6, groups=3, device_groups=2, counts=[2, 1])
    chosen = [Action((0,), "all_reduce"), Action((1,), "all_reduce"), Action((0, 1), "model_parallel")]
    wanted = np.full(6, -1)
    last = instance.members[2][-1]
    wanted[last] = 2
    deployment = as_deployment(instance, chosen, duplicated=range(6), devices=wanted)
    assert deployment.duplicated == tuple(sorted(instance.members[0]))
    assert deployment.groups[2].devices == (*spread(instance, 2, (0, 1))[:-1], 2)
    assert evaluate(instance, deployment).objective is not None
