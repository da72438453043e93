"""Memory in the prices of plans: no plan that fits needs more, and what it makes of tight instances."""

import numpy as np
import pytest
from deployment_plans import random_deployment, random_instance
from volume import for_each, seeds

from ddlopt.frontier.deployment.plan.brute_force import BruteForce
from ddlopt.frontier.deployment.plan.choices import Choice
from ddlopt.frontier.deployment.plan.prices.best_prices import BestPrices
from ddlopt.frontier.deployment.plan.prices.memory import memory_of
from ddlopt.frontier.deployment.plan.prices.method import PlanPrices
from ddlopt.frontier.deployment.plan.prices.parts import Parts
from ddlopt.frontier.deployment.plan.prices.quantities import representatives
from ddlopt.frontier.deployment.plan.tree.method import PlanTree
from ddlopt.instances.generators import generate
from ddlopt.models.deployment import DeploymentInstance, evaluate
from ddlopt.models.deployment.plan.simulator.simulate import simulate
from ddlopt.solvers.contracts import Limits, Status
from ddlopt.solvers.deployment.plan.search import PlanSearch
from ddlopt.solvers.deployment.plan.simulator.fast import Simulator


def layers(seed, **fields):
    """Forward and backward operators in one group, with activations in between."""
    return generate("deployment", "random", seed, **{"groups": 3, "device_groups": 2, **fields})


def with_memory(instance, room):
    """The same with so many bytes on devices of each device group."""
    data = instance.model_dump()
    for group, size_bytes in zip(data["device_groups"], room, strict=True):
        group["memory_bytes"] = float(size_bytes)
    return DeploymentInstance.from_data(data)


def standing_for(choices, simulator, deployment):
    """Places of the choices that stand for a deployment."""
    instance = choices.instance
    at = instance.device_group_of.tolist()
    action, duplicated, device = simulator.choice(deployment)
    places = []
    for group, members in enumerate(instance.members):
        own = choices.of_groups[group]
        whole = tuple(int(duplicated[place]) for place in members)
        where = tuple(at.index(at[device[place]]) if device[place] >= 0 else -1 for place in members)
        used = tuple(sorted({at[each] for each in where})) if min(where) >= 0 else ()
        found = own.index(Choice(int(action[group]), whole, where)) if not used else None
        if found is None:
            alike = [place for place, each in enumerate(own) if each.devices == where]
            alone = [
                place
                for place, each in enumerate(own)
                if choices.actions[each.action].device_groups == used and len(instance.devices_of(used)) == 1
            ]
            found = (alike or alone)[0]
        places.append(found)
    return np.array(places)


@for_each("seed", seeds(6, 100))
def test_no_plan_needs_more_than_its_own_peaks(seed):
    """Memory is what some plan needs at most of any device: that plan fits, so its shares are 1 together at most."""
    rng = np.random.default_rng(seed)
    if seed % 2:
        instance = layers(seed, groups=4, device_groups=1 + seed % 3)
    else:
        instance = random_instance(rng, operators=7, groups=3, device_groups=1 + seed % 3)
    simulator, tight = Simulator(instance), 0.0
    choices = representatives(instance)
    for _ in range(15):
        plan = random_deployment(rng, instance)
        peaks = np.array([float(each) for each in simulate(instance, plan).peak_bytes])
        room = [max(peaks[list(instance.devices_of((j,)))].max(), 1e-9) for j in range(len(instance.device_groups))]
        largest = [each.resident_bytes for each in instance.operators]
        if max(room) < max(largest):
            continue
        places = standing_for(choices, simulator, plan)
        memory = memory_of(representatives(with_memory(instance, room)))
        groups = np.arange(len(places))
        shares = memory.shares[groups, places].sum(axis=0)
        assert shares.max() <= 1.0 + 1e-9
        assert memory.fits[groups, places].all()
        tight = max(tight, shares.max())
    assert tight > 0


def test_activations_are_held_between_the_passes():
    """One device: resident bytes and all that the backward pass reads again, which is its peak but for a gradient."""
    instance = layers(1, groups=4, device_groups=1, most_devices=1)
    memory = memory_of(representatives(instance))
    alone = memory.shares[np.arange(4), 0, 0].sum() * instance.device_groups[0].memory_bytes
    resident = sum(each.resident_bytes for each in instance.operators)
    held = sum(each.size_bytes for each in instance.tensors if instance.operators[each.producer].name.startswith("f"))
    last = instance.tensors[3].size_bytes
    assert alone == pytest.approx(resident + held - last, rel=1e-4)


def around_another(memory_bytes):
    """Two operators of a group, 3 bytes each, with 4 bytes from one to the other and an operator in between."""
    operators = [
        {"name": name, "group": group, "times_s": {"any": (1.0,)}, "resident_bytes": size_bytes}
        for name, group, size_bytes in (("first", 0, 3.0), ("between", 1, 0.0), ("last", 0, 3.0))
    ]
    tensors = [
        {"producer": 0, "consumers": (1, 2), "size_bytes": 4.0},
        {"producer": 1, "consumers": (2,), "size_bytes": 1.0},
    ]
    group = {"type": "any", "count": 2, "memory_bytes": memory_bytes, "bandwidth_bytes_per_s": 1.0}
    data = {"name": "around", "operators": operators, "tensors": tensors, "device_groups": [group]}
    return DeploymentInstance.from_data({**data, "bandwidth_bytes_per_s": np.zeros((1, 1))})


@pytest.mark.parametrize(
    ("duplicated", "devices", "share", "own", "fits"),
    [
        # Replicas hold half of the tensor each, at any sample one of them.
        ((0, 0), (-1, -1), 0.7, 0.8, (True, False, False)),
        ((1, 1), (-1, -1), 0.6, 0.6, (True, True, False)),
        ((1, 0), (-1, -1), 0.6, 0.6, (True, True, False)),
        # On one device, or on two.
        ((0, 0), (0, 0), 0.5, 0.3, (True, True, True)),
    ],
)
def test_what_a_choice_needs(duplicated, devices, share, own, fits):
    for memory_bytes, there in zip((10.0, 7.0, 5.0), fits, strict=True):
        choices = representatives(around_another(memory_bytes))
        place = next(
            place
            for place, each in enumerate(choices.of_groups[0])
            if each[1:] == (duplicated, devices) and choices.actions[each.action].mode != "parameter_server"
        )
        memory = memory_of(choices)
        assert memory.shares[0, place, 0] == pytest.approx(share * 10.0 / memory_bytes, rel=1e-4)
        assert memory.shares[0, place, -1] == pytest.approx(own * 10.0 / memory_bytes, rel=1e-4)
        assert memory.fits[0, place] == there
        assert BestPrices(around_another(memory_bytes)).left[0, place] == there


def test_a_device_has_one_moment_which_not_all_of_its_parts_have():
    """The device in the middle has the second half of the batch beside the first device, and else the first half."""
    data = around_another(10.0).model_dump()
    group = {**data["device_groups"][0], "count": 1}
    data |= {"device_groups": [group] * 3, "bandwidth_bytes_per_s": np.ones((3, 3))}
    choices = representatives(DeploymentInstance.from_data(data))
    memory, found = memory_of(choices), {}
    for place, each in enumerate(choices.of_groups[0]):
        action = choices.actions[each.action]
        if action.mode == "all_reduce" and not any(each.duplicated) and len(action.device_groups) == 2:
            found[action.device_groups] = memory.shares[0, place, -2]
    assert found.pop((0, 2)) == 0.0
    assert sorted(found.values()) == pytest.approx([0.6, 0.8], rel=1e-4)


@for_each("seed", seeds(2, 30))
def test_parts_end_at_the_best_of_all_plans_that_fit(seed):
    rng = np.random.default_rng(seed)
    counts = [[1, 1], [2], [2, 1], [3]][seed % 4]
    wide = random_instance(rng, operators=3, groups=2, counts=counts)
    peaks = [max(simulate(wide, random_deployment(rng, wide)).peak_bytes) for _ in range(6)]
    least = max(each.resident_bytes for each in wide.operators)
    instance = with_memory(wide, [max(float(min(peaks)), least, 1e-9)] * len(counts))
    best = BruteForce(most=10_000_000).solve(instance, Limits())
    prices = BestPrices(instance)
    while prices.turn():
        pass
    parts = Parts(prices)
    while parts.step():
        if best.status is Status.OPTIMAL:
            assert parts.bound_s <= best.objective * (1 + 1e-9)
    if best.status is Status.OPTIMAL:
        assert parts.bound_s == pytest.approx(best.objective)
        assert parts.found_s == pytest.approx(best.objective)
        found = PlanPrices(moves=3000).solve(instance, Limits())
        assert found.objective == pytest.approx(best.objective)
        assert found.bound == pytest.approx(best.objective, rel=2e-4)
        assert found.details["moves"] == 0.0, "what is proven is searched no more"
        assert evaluate(instance, found.solution).feasible


@for_each("seed", seeds(1, 20))
def test_bounds_of_layers_with_little_memory_hold(seed):
    instance = layers(seed, groups=3, device_groups=1 + seed % 2, most_devices=2 + seed % 2, memory=1.0 + seed % 3 / 10)
    best = PlanTree().solve(instance, Limits())
    if best.status is Status.INFEASIBLE:
        return
    assert best.status is Status.OPTIMAL
    prices = BestPrices(instance)
    while prices.turn():
        assert prices.bound_s <= best.objective * (1 + 1e-9)
    parts = Parts(prices)
    while parts.parted < 50 and parts.step():
        assert parts.bound_s <= best.objective * (1 + 1e-9)


def test_little_memory_makes_a_larger_bound():
    instance = layers(5, groups=5, memory=1.2)
    wide = with_memory(instance, [1e15] * len(instance.device_groups))
    bounds = []
    for each in (instance, wide):
        prices = BestPrices(each)
        for _ in range(20):
            prices.turn()
        bounds.append(prices.bound_s)
    assert bounds[0] > 1.05 * bounds[1]


def test_operators_of_a_group_on_devices_of_their_own_are_found():
    """The best plan has both operators of a group on different devices of one kind: no action says so."""
    instance = layers(3, groups=3, device_groups=1, most_devices=3, memory=1.2)
    best = PlanTree().solve(instance, Limits())
    assert best.status is Status.OPTIMAL
    found = PlanPrices(parts=0).solve(instance, Limits())
    assert found.objective == pytest.approx(best.objective)
    assert PlanSearch().solve(instance, Limits()).objective >= best.objective * (1 - 1e-9)
