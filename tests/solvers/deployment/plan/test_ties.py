"""Ends of tasks at the same time: the order of work after them, and so the time of a step, hangs on it."""

import itertools
from fractions import Fraction

import numpy as np
import pytest
from deployment_plans import anneal_little, random_deployment, random_instance, thirds, tied_instance
from deployment_reference import Slow
from volume import for_each, seeds, slow

import ddlopt
from ddlopt.frontier.deployment.plan.choices import Choices
from ddlopt.models.deployment import DeploymentInstance, DeviceGroup
from ddlopt.models.deployment.plan.evaluate import evaluate_plan
from ddlopt.models.deployment.plan.simulator.simulate import simulate
from ddlopt.solvers.deployment.plan.simulator.fast import Simulator
from ddlopt.solvers.deployment.plan.simulator.work import NONE


def all_plans(instance):
    """Rows of all plans, as the fast simulator takes them."""
    choices = Choices(instance, every=True)
    numbers = itertools.product(*(range(len(own)) for own in choices.of_groups))
    return choices.actions, choices.rows(np.array(list(numbers)))


def test_three_thirds_are_one():
    instance, plan = thirds()
    assert Slow(instance, plan).time == 5
    assert evaluate_plan(instance, plan, exact=True).objective == 5
    assert evaluate_plan(instance, plan).objective == 5
    simulator = Simulator(instance)
    assert simulator.run(*simulator.choice(plan)).time_s == pytest.approx(5, rel=1e-12)


@for_each("seed", seeds(5, 100))
def test_all_plans_take_as_long_in_floats_as_in_fractions(seed):
    rng = np.random.default_rng(seed)
    instance = tied_instance(rng)
    known, rows = all_plans(instance)
    simulator = Simulator(instance, known)
    times, excess = simulator.run_all(*rows)
    plans = [simulator.deployment(*row) for row in zip(*rows, strict=True)]
    assert times == pytest.approx([simulate(instance, plan).time_s for plan in plans], rel=1e-12)
    assert (excess <= 0).all()
    for place in rng.choice(len(plans), size=20):
        slow = Slow(instance, plans[place]).time
        assert simulate(instance, plans[place]).time_s == float(slow)
        assert evaluate_plan(instance, plans[place], exact=True).objective == slow


@for_each(
    "methods",
    [
        ("brute-force", "plan-tree"),
        slow(("plan-prices", "disjunctive-makespan", "plan-search", "tag")),
    ],
)
def test_every_method_finds_the_same_optimum(methods, monkeypatch):
    anneal_little(monkeypatch)
    instance, _ = thirds()
    known, rows = all_plans(instance)
    simulator = Simulator(instance, known)
    plans = [simulator.deployment(*row) for row in zip(*rows, strict=True)]
    optimum = min(Slow(instance, plan).time for plan in plans)
    for method in methods:
        result = ddlopt.solve(instance, method, time_limit=20)
        assert result.objective >= float(optimum) * (1 - 1e-9), method
        assert result.bound <= float(optimum) * (1 + 1e-9), method
        if method in ("brute-force", "plan-tree"):
            assert (result.status, result.objective) == ("optimal", pytest.approx(float(optimum))), method
    _, certificate = ddlopt.certify(instance)
    assert ddlopt.check_certificate(instance, certificate).bound <= optimum


def test_brute_force_is_not_misled():
    """Of these plans one that seems the best where rounded sums do not tie is none of the best."""
    found = 0
    for seed in (54, 78):
        instance = tied_instance(np.random.default_rng(seed))
        known, rows = all_plans(instance)
        simulator = Simulator(instance, known)
        exact = [simulate(instance, simulator.deployment(*row), exact=True).time_s for row in zip(*rows, strict=True)]
        result = ddlopt.solve(instance, "brute-force")
        assert (result.objective, result.bound) == (float(min(exact)), pytest.approx(float(min(exact)), rel=1e-12))
        simulator._tables = simulator._tables._replace(slack=np.uint64(0))
        found += abs(simulator.run_all(*rows)[0].min() - float(min(exact))) > 1e-9
    assert found == 2


@for_each("seed", seeds(6, 60))
def test_ticks_are_seconds_in_another_unit(seed):
    rng = np.random.default_rng(seed)
    instance = random_instance(rng, operators=8, groups=3, device_groups=2, counts=[3, 2], whole_numbers=bool(seed % 2))
    odd = instance.device_groups[0].model_copy(update={"bandwidth_bytes_per_s": 1000003 / 2**20})
    instance = instance.model_copy(update={"device_groups": (odd, *instance.device_groups[1:]), "latency_s": 1.0})
    simulator = Simulator(instance)
    tables = simulator._tables
    per_s = Fraction(2**64) / Fraction(tables.scale_s)
    assert whole(tables.latency) == per_s
    for _ in range(5):
        plan = random_deployment(rng, instance)
        simulator.run(*simulator.choice(plan))
        tasks = simulator.work.node[: simulator.work.used[0]]
        ends = sorted(whole((task["finish_high"], task["finish_low"])) for task in tasks if task["resource"] != NONE)
        exact = sorted(task.finish * per_s for task in simulate(instance, plan, exact=True).tasks)
        assert ends[-1] < 2**126
        assert all(0 <= end - ticks <= int(tables.slack) for ticks, end in zip(ends, exact, strict=True))


def whole(words):
    """The number that two words stand for."""
    return (int(words[0]) << 64) + int(words[1])


@for_each("seed", [51, 54, 78, 229])
def test_rounded_durations_tie_too(seed):
    """Sums that may be the same are taken for that, also beside durations that have nothing in common with them."""
    instance = tied_instance(np.random.default_rng(seed))
    known, rows = all_plans(instance)
    simulator = Simulator(instance, known)
    times, _ = simulator.run_all(*rows)
    unlike = [DeviceGroup(type="v100", count=1, memory_bytes=1e9, bandwidth_bytes_per_s=x) for x in (0.1, 0.7, 1.3)]
    more = DeploymentInstance.from_data(
        instance.model_dump()
        | {
            "device_groups": [*instance.device_groups, *unlike],
            "bandwidth_bytes_per_s": [[1.9] * 4] * 4,
        }
    )
    other = Simulator(more)
    plans = [simulator.deployment(*row) for row in zip(*rows, strict=True)]
    assert [other.run(*other.choice(plan)).time_s for plan in plans] == pytest.approx(times, rel=1e-12)


def test_next_to_nothing_beside_very_much():
    """Sums of 1e-9 s tie beside an operator that would take 1e12 s elsewhere."""
    found = 0
    for seed in (54, 78):
        instance = tied_instance(np.random.default_rng(seed))
        data = instance.model_dump()
        for operator in data["operators"]:
            operator["times_s"] = {kind: [1e-9 * time for time in own] for kind, own in operator["times_s"].items()}
            operator["times_s"]["slow"] = [1e12] * len(instance.shares)
        for tensor in data["tensors"]:
            tensor["size_bytes"] *= 1e-9
        for operator in data["operators"]:
            operator["gradient_bytes"] *= 1e-9
        slow = {"type": "slow", "count": 1, "memory_bytes": 1e9, "bandwidth_bytes_per_s": 1.0}
        data["device_groups"] = [*data["device_groups"], slow]
        count = len(data["device_groups"])
        data["bandwidth_bytes_per_s"] = [[1.0] * count] * count
        near = DeploymentInstance.from_data(data)
        known, rows = all_plans(instance)
        named = Simulator(instance, known)
        plans = [named.deployment(*row) for row in zip(*rows, strict=True)]
        simulator = Simulator(near)
        for plan in plans[:: max(1, len(plans) // 40)]:
            exact = float(simulate(near, plan, exact=True).time_s)
            assert simulator.run(*simulator.choice(plan)).time_s == pytest.approx(exact, rel=1e-12)
            found += 1
    assert found > 40


def test_no_common_unit():
    """Bandwidths without anything in common."""
    rng = np.random.default_rng(0)
    instance = random_instance(rng, operators=10, groups=4, device_groups=5, most_devices=4)
    simulator = Simulator(instance)
    rows = rng.integers(len(simulator.actions), size=(100, 4))
    times, _ = simulator.run_all(rows)
    assert times == pytest.approx([simulate(instance, simulator.deployment(row)).time_s for row in rows], rel=1e-12)
