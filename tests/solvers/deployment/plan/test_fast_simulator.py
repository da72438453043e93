import numpy as np
import pytest
from deployment_plans import random_deployment, random_instance
from volume import for_each

from ddlopt.models.deployment.plan.simulator.simulate import simulate
from ddlopt.solvers.deployment.plan.simulator import fast as fast_simulator
from ddlopt.solvers.deployment.plan.simulator.fast import Simulator


@for_each("seed", range(30))
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
    for _ in range(8):
        deployment = random_deployment(rng, instance)
        readable, outcome = simulate(instance, deployment), simulator.run(*simulator.choice(deployment))
        assert outcome.time_s == pytest.approx(readable.time_s, rel=1e-12)
        assert outcome.peak_bytes == pytest.approx(readable.peak_bytes, rel=1e-9)


def plans(seed, count=200):
    rng = np.random.default_rng(seed)
    instance = random_instance(rng, operators=8, groups=3, device_groups=2, counts=[3, 2])
    simulator = Simulator(instance)
    return simulator, rng.integers(len(simulator.actions), size=(count, 3))


def test_many_plans_at_once():
    simulator, rows = plans(0)
    times, excess = simulator.run_all(rows)
    single = [simulator.run(row) for row in rows]
    assert times.tolist() == [outcome.time_s for outcome in single]
    assert excess.tolist() == [outcome.excess_bytes for outcome in single]
    assert simulator.run_all(rows[:0])[0].shape == (0,)


def test_long_steps_are_given_up():
    simulator, rows = plans(1)
    times, _ = simulator.run_all(rows)
    limit = float(np.median(times))
    aborted, _ = simulator.run_all(rows, above=limit)
    assert np.array_equal(np.isinf(aborted), times > limit)
    assert np.array_equal(aborted[times <= limit], times[times <= limit])


def test_threads_change_nothing():
    simulator, rows = plans(0, 101)
    times, excess = simulator.run_all(rows)
    for threads in (2, 3):
        threaded = Simulator(simulator.instance, threads=threads)
        for count in (0, 1, 101):
            found = threaded.run_all(rows[:count])
            assert found[0].tolist() == times[:count].tolist()
            assert found[1].tolist() == excess[:count].tolist()


def test_it_makes_more_room_by_itself():
    simulator, rows = plans(2)
    expected, _ = simulator.run_all(rows)
    simulator._works[0] = fast_simulator.workspace(simulator._tables, 8)
    assert simulator.run_all(rows)[0].tolist() == expected.tolist()
    assert len(simulator._works[0].node) > 8
    simulator._works[0] = fast_simulator.workspace(simulator._tables, 8)
    assert simulator.run(rows[0]).time_s == expected[0]


def test_excess_is_what_memory_lacks():
    simulator, rows = plans(3)
    outcome = simulator.run(rows[0])
    memory = np.array([1e9] * 5) * (1 + 1e-9)
    assert outcome.excess_bytes == pytest.approx(float((outcome.peak_bytes - memory).max()))
    assert outcome.excess_bytes < 0


def test_there_and_back():
    simulator, rows = plans(4)
    duplicated = np.ones(8, np.int64)
    for row in rows[:20]:
        deployment = simulator.deployment(row, duplicated)
        again = simulator.choice(deployment)
        assert again.action.tolist() == row.tolist()
        assert simulator.run(*again).time_s == simulator.run(row, duplicated).time_s
