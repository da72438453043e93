"""Prices of rows: no row is above the time of a plan, no bound above the best of all plans."""

import itertools

import numpy as np
import pytest
from deployment_plans import queues, random_deployment, random_instance
from volume import for_each, seeds

from ddlopt.frontier.deployment.plan.brute_force import BruteForce
from ddlopt.frontier.deployment.plan.choices import Choice
from ddlopt.frontier.deployment.plan.prices.best_prices import BestPrices
from ddlopt.frontier.deployment.plan.prices.method import PlanPrices
from ddlopt.frontier.deployment.plan.prices.parts import Parts
from ddlopt.frontier.deployment.plan.prices.quantities import quantities
from ddlopt.frontier.deployment.plan.prices.rows import OfPlan, weights_of
from ddlopt.models.deployment import Deployment, DeploymentInstance, evaluate
from ddlopt.models.deployment.plan.instance import CollectiveCost, DeviceGroup, Operator, Tensor
from ddlopt.models.deployment.plan.solution import GroupPlan
from ddlopt.solvers.contracts import Limits, Status
from ddlopt.solvers.deployment.plan.simulator.fast import Simulator


def drawn(seed, **fields):
    rng = np.random.default_rng(seed)
    shape = {"operators": 7, "groups": 4, "device_groups": 1 + seed % 3, "whole_numbers": bool(seed % 2), **fields}
    return rng, random_instance(rng, **shape)


def as_choices(instance, figures, deployment):
    """Places of choices that stand for a deployment: one device stands for any of its device group."""
    simulator = Simulator(instance, figures.choices.actions)
    at = instance.device_group_of.tolist()
    action, duplicated, device = simulator.choice(deployment)
    places = []
    for group, members in enumerate(instance.members):
        where = [int(device[place]) for place in members]
        chosen = Choice(int(action[group]), tuple(int(duplicated[place]) for place in members), (-1,) * len(members))
        if min(where) >= 0:
            firsts = tuple(at.index(at[each]) for each in where)
            used = tuple(sorted({at[each] for each in where}))
            same = [each for each in figures.choices.of_groups[group] if each.devices == firsts]
            lone = [
                each
                for each in figures.choices.of_groups[group]
                if figures.choices.actions[each.action].device_groups == used and len(instance.devices_of(used)) == 1
            ]
            chosen = (same or lone)[0]
        places.append(figures.choices.of_groups[group].index(chosen))
    return np.array(places)


@for_each("seed", seeds(6, 100))
def test_no_row_is_above_the_time_of_a_plan(seed):
    rng, instance = drawn(seed)
    plans = [random_deployment(rng, instance) for _ in range(25)]
    times = [float(evaluate(instance, each).objective) for each in plans]
    figures = quantities(instance, max(times))
    near = 0.0
    for deployment, time_s in zip(plans, times, strict=True):
        of_plan = OfPlan(figures, as_choices(instance, figures, deployment))
        for value_s, row in of_plan.largest():
            assert value_s <= time_s * (1 + 1e-9), (row, deployment)
            assert of_plan.value_s(weights_of(figures, row)) == pytest.approx(value_s, abs=1e-12)
            near = max(near, value_s / time_s)
    assert near > 0.7


@for_each("seed", seeds(12, 300))
def test_no_row_is_above_a_plan_that_takes_as_long_as_the_horizon(seed):
    rng, instance = drawn(seed)
    deployment = random_deployment(rng, instance)
    time_s = float(evaluate(instance, deployment).objective)
    figures = quantities(instance, time_s)
    of_plan = OfPlan(figures, as_choices(instance, figures, deployment))
    for value_s, row in of_plan.largest():
        assert value_s <= time_s * (1 + 1e-9), row
        assert of_plan.value_s(weights_of(figures, row)) == pytest.approx(value_s, abs=1e-9)


def test_all_that_two_devices_send_over_one_link_comes_before_and_after_what_another_device_has():
    operators = tuple(
        Operator(name=name, group=group, times_s={"quick": (0.2,)})
        for group, name in enumerate(("before", "alone", "after"))
    )
    instance = DeploymentInstance(
        name="there and back",
        operators=operators,
        tensors=(
            Tensor(producer=0, consumers=(1,), size_bytes=10.0),
            Tensor(producer=1, consumers=(2,), size_bytes=20.0),
        ),
        device_groups=tuple(
            DeviceGroup(type="quick", count=count, memory_bytes=1e9, bandwidth_bytes_per_s=1.0) for count in (2, 1)
        ),
        bandwidth_bytes_per_s=np.full((2, 2), 100.0),
        shares=(1.0,),
        latency_s=0.01,
        all_reduce=CollectiveCost(s_per_byte=(0.1,), fixed_s=(0.0,), at_bytes_per_s=100.0),
    )
    both, other = (GroupPlan(device_groups=(group,), mode="all_reduce") for group in range(2))
    plan = Deployment(instance=instance.name, groups=(both, other, both))
    time_s = float(evaluate(instance, plan).objective)
    assert time_s == pytest.approx(0.1 + (0.1 + 0.02) + 0.2 + (0.2 + 0.02) + 0.1)
    figures = quantities(instance, time_s)
    largest = [*OfPlan(figures, as_choices(instance, figures, plan)).largest()]
    assert largest[0][0] == pytest.approx(time_s)
    assert max(value_s for value_s, row in largest if row.samples < 0) < 0.99 * time_s


def on_a_quick_and_a_slow_device(operators, tensors):
    """An instance with one device of each type."""
    return DeploymentInstance(
        name="slow",
        operators=operators,
        tensors=tensors,
        device_groups=tuple(
            DeviceGroup(type=kind, count=1, memory_bytes=1e9, bandwidth_bytes_per_s=1.0) for kind in ("quick", "slow")
        ),
        bandwidth_bytes_per_s=np.full((2, 2), 100.0),
        shares=(1.0,),
        latency_s=0.01,
        all_reduce=CollectiveCost(s_per_byte=(0.1,), fixed_s=(0.0,), at_bytes_per_s=100.0),
    )


def test_paths_of_samples_see_the_slowest_replica_of_an_even_split():
    """Two operators on a quick and a slow device: nobody starts the gradient before the slow one has ended."""
    operators = tuple(
        Operator(name=name, group=0, times_s={"quick": (0.1,), "slow": (0.4,)}, gradient_bytes=8.0 * place)
        for place, name in enumerate(("first", "second"))
    )
    instance = on_a_quick_and_a_slow_device(operators, (Tensor(producer=0, consumers=(1,), size_bytes=10.0),))
    plan = Deployment(
        instance="slow",
        instance_digest=instance.digest,
        groups=(GroupPlan(device_groups=(0, 1), mode="all_reduce"),),
    )
    figures = quantities(instance)
    largest = [*OfPlan(figures, as_choices(instance, figures, plan)).largest()]
    time_s = float(evaluate(instance, plan).objective)
    assert max(value_s for value_s, row in largest if row.samples >= 0) == pytest.approx(time_s)
    rest = [value_s for value_s, row in largest if row.samples < 0 and row.resource < figures.common]
    assert max(rest) < 0.99 * time_s


def test_gradients_to_a_server_and_back_share_its_link():
    instance, plan, time_s = next(each[1:] for each in queues() if each[0] == "server")
    figures = quantities(instance)
    value_s, _ = next(OfPlan(figures, as_choices(instance, figures, plan)).largest())
    assert value_s == pytest.approx(time_s)


def test_a_device_stands_still_while_another_has_what_all_wait_for():
    """The slow device has half of two operators, which may be done in any order, then waits for a third elsewhere."""
    operators = tuple(
        Operator(name=name, group=group, times_s={"quick": (0.1,), "slow": (0.4,)})
        for name, group in (("first", 0), ("beside", 0), ("alone", 1), ("last", 2))
    )
    tensors = tuple(Tensor(producer=a, consumers=(b,), size_bytes=0.0) for a, b in ((0, 2), (1, 2), (2, 3)))
    instance = on_a_quick_and_a_slow_device(operators, tensors)
    both = GroupPlan(device_groups=(0, 1), mode="all_reduce")
    plan = Deployment(instance="slow", groups=(both, GroupPlan(device_groups=(0,), mode="all_reduce"), both))
    figures = quantities(instance)
    largest = [*OfPlan(figures, as_choices(instance, figures, plan)).largest()]
    assert largest[0][0] == pytest.approx(0.2 + 0.2 + 0.1 + 0.2) == float(evaluate(instance, plan).objective)
    assert max(value_s for value_s, row in largest if row.resource < figures.common) < 0.9 * largest[0][0]


@for_each("seed", seeds(4, 60))
def test_a_priced_sum_is_that_of_the_least_plan(seed):
    """By all plans of the representatives, one by one; where groups have more neighbours, it is below."""
    rng, instance = drawn(seed, operators=4, groups=3, device_groups=2, most_devices=2)
    prices = BestPrices(instance)
    for _ in range(5):
        prices.turn()
    figures = prices.figures
    weights = rng.random(prices.rows)
    weights /= weights.sum()
    bound_s, plan = prices.least(weights)
    some = itertools.product(*(range(count) for count in figures.counts))
    plans = [plan, *(np.array(each) for each in itertools.islice(some, 0, None, 97))]
    values = [sum(weights * prices.values(each)) for each in plans]
    assert bound_s == pytest.approx(values[0], rel=1e-6)
    assert bound_s <= min(values) * (1 + 1e-9)


@for_each("seed", seeds(2, 100))
def test_the_bound_holds_for_the_best_of_all_plans(seed):
    _, instance = drawn(seed, operators=4, groups=3, counts=[[2, 1], [1, 1], [1, 1, 1], [2]][seed % 4])
    everything = BruteForce(most=10_000_000).solve(instance, Limits())
    assert everything.status is Status.OPTIMAL
    assert everything.scope is None
    result = PlanPrices(moves=3000).solve(instance, Limits())
    assert 0 < result.bound <= everything.objective * (1 + 1e-9)
    assert result.objective >= everything.objective * (1 - 1e-9)
    assert evaluate(instance, result.solution).feasible


@for_each("seed", seeds(2, 60))
def test_parts_end_at_the_best_of_all_plans(seed):
    """No part may be lost on the way to it, also where choices stand for several devices."""
    counts = [[1, 1], [2], [2, 1], [1, 1, 1]][seed % 4]
    _, instance = drawn(seed, operators=3, groups=2, counts=counts)
    prices = BestPrices(instance)
    while prices.turn():
        pass
    parts = Parts(prices)
    best = BruteForce(most=10_000_000).solve(instance, Limits())
    assert best.status is Status.OPTIMAL
    before = parts.bound_s
    while parts.step():
        assert parts.bound_s >= before
        before = parts.bound_s
    assert parts.bound_s == pytest.approx(best.objective)


def test_a_step_that_takes_no_time_has_the_bound_0():
    operator = Operator(name="nothing", group=0, times_s={"any": (0.0,)})
    group = DeviceGroup(type="any", count=2, memory_bytes=1e9, bandwidth_bytes_per_s=1.0)
    instance = DeploymentInstance(
        name="nothing", operators=(operator,), device_groups=(group,), bandwidth_bytes_per_s=np.zeros((1, 1))
    )
    result = PlanPrices(moves=200).solve(instance, Limits())
    assert result.objective == result.bound == 0.0


def test_more_turns_are_never_worse_and_it_stops():
    _, instance = drawn(2)
    prices, before = BestPrices(instance), 0.0
    while prices.turn():
        assert prices.bound_s >= before
        before = prices.bound_s
    late = PlanPrices().solve(instance, Limits(1e-6))
    assert late.bound is None or late.bound <= prices.bound_s * (1 + 1e-9)


def test_choices_beyond_reason_are_refused():
    _, instance = drawn(2, operators=12, groups=1)
    assert "more than 1000 choices" in PlanPrices().refuses(instance)
