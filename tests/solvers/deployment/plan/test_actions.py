import itertools

import numpy as np
import pytest
from deployment_plans import random_instance
from volume import for_each

from ddlopt.models.deployment import DeploymentInstance, evaluate
from ddlopt.solvers.deployment.plan.actions import Action, actions, as_deployment, spread


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
