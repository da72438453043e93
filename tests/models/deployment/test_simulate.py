import numpy as np
import pytest
from deployment_plans import random_deployment, random_instance
from deployment_reference import Slow

from ddlopt.models.deployment.simulate import simulate


@pytest.mark.parametrize("seed", range(60))
def test_a_second_simulator_agrees_exactly(seed):
    rng = np.random.default_rng(seed)
    instance = random_instance(
        rng,
        operators=int(rng.integers(3, 10)),
        groups=int(rng.integers(1, 4)),
        device_groups=int(rng.integers(1, 4)),
        whole_numbers=bool(seed % 2),
    )
    for _ in range(4):
        deployment = random_deployment(rng, instance)
        fast, slow = simulate(instance, deployment, exact=True), Slow(instance, deployment)
        assert fast.time_s == slow.time
        assert list(fast.peak_bytes) == slow.peaks
        assert sorted((task.start, task.finish) for task in fast.tasks) == sorted(
            (slow.starts[node], slow.ends[node]) for node in slow.ends
        )
        plain = simulate(instance, deployment)
        assert plain.time_s == pytest.approx(float(slow.time), rel=1e-9)
