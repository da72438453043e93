import numpy as np
import pytest
from deployment_plans import random_deployment, random_instance

from ddlopt.models.deployment.simulate import simulate
from ddlopt.solvers.deployment.fast_simulator import Simulator


@pytest.mark.parametrize("seed", range(40))
def test_it_agrees_with_the_readable_simulator(seed):
    rng = np.random.default_rng(seed)
    instance = random_instance(
        rng,
        operators=int(rng.integers(3, 16)),
        groups=int(rng.integers(1, 4)),
        device_groups=int(rng.integers(1, 4)),
        whole_numbers=bool(seed % 2),
    )
    simulator = Simulator(instance)
    for _ in range(10):
        deployment = random_deployment(rng, instance)
        readable, outcome = simulate(instance, deployment), simulator.run(*simulator.choice(deployment))
        assert outcome.time_s == pytest.approx(readable.time_s, rel=1e-12)
        assert outcome.peak_bytes == pytest.approx(readable.peak_bytes, rel=1e-9)
