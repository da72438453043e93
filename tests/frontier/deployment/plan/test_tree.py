"""Branch and bound over plans: against all deployments one by one, and its bounds against the simulator."""

import itertools
from dataclasses import replace

import numpy as np
import pytest
from deployment_plans import queues, random_instance
from volume import for_each, seeds, slow

from ddlopt.frontier.deployment.plan.brute_force import BruteForce
from ddlopt.frontier.deployment.plan.choices import Choices, fewest, number_of_choices
from ddlopt.frontier.deployment.plan.prices.best_prices import BestPrices
from ddlopt.frontier.deployment.plan.tree import method as tree_method
from ddlopt.frontier.deployment.plan.tree.ahead import ahead_of, look_ahead, mixes_of
from ddlopt.frontier.deployment.plan.tree.kernels import least, room_for
from ddlopt.frontier.deployment.plan.tree.method import PlanTree
from ddlopt.frontier.deployment.plan.tree.tables import tables
from ddlopt.models.deployment import Deployment, DeploymentInstance, GroupPlan, evaluate
from ddlopt.solvers.contracts import Limits, Status
from ddlopt.solvers.deployment.plan.actions import actions, group_plan
from ddlopt.solvers.deployment.plan.methods import best
from ddlopt.solvers.deployment.plan.simulator.fast import Simulator

MEMORIES = (1e9, 1e9, 60.0, 30.0)


def tiny(seed: int) -> DeploymentInstance:
    """At most three devices, in two device groups or one."""
    rng = np.random.default_rng(seed)
    counts = [[1, 1], [2], [2, 1], [1, 2], [3], [1, 1, 1]][seed % 6]
    memory = MEMORIES[seed % len(MEMORIES)]
    return random_instance(rng, operators=3, groups=2, counts=counts, memory_bytes=memory)


def small(seed: int) -> DeploymentInstance:
    """Three or four groups on up to three device groups; every tenth is larger."""
    rng = np.random.default_rng(seed)
    large = seed % 10 == 9
    groups = 4 if large or seed % 8 == 7 else 3
    counts = [[2, 1, 1], [1, 1, 1], [2, 2]][seed // 10 % 3] if large else [[2, 1], [1, 1, 1], [2, 1], [1, 1]][seed % 4]
    memory = MEMORIES[seed // 4 % 4]
    return random_instance(rng, operators=groups + 1, groups=groups, counts=counts, memory_bytes=memory)


def every_group_plan(instance: DeploymentInstance, members: tuple[int, ...]):
    """All that the check takes for a group, with the operators that are duplicated: by the words of the statement."""
    known = range(len(instance.device_groups))
    for chosen in itertools.chain.from_iterable(itertools.combinations(known, size) for size in (1, 2, 3)):
        at = instance.devices_of(chosen)
        for split in ("even", "speed"):
            sets = itertools.product((False, True), repeat=len(members)) if len(at) > 1 else [(False,) * len(members)]
            for which in sets:
                duplicated = tuple(itertools.compress(members, which))
                yield GroupPlan(device_groups=chosen, mode="all_reduce", split=split), duplicated
            yield GroupPlan(device_groups=chosen, mode="parameter_server", split=split), ()
        for devices in itertools.product(at, repeat=len(members)):
            yield GroupPlan(device_groups=chosen, mode="model_parallel", devices=devices), ()


def all_deployments(instance: DeploymentInstance):
    for plans in itertools.product(*(list(every_group_plan(instance, each)) for each in instance.members)):
        duplicated = sorted(place for _, own in plans for place in own)
        groups = tuple(plan for plan, _ in plans)
        yield Deployment(instance=instance.name, groups=groups, duplicated=tuple(duplicated))


@for_each("seed", seeds(2, 12))
def test_all_choices_are_all_deployments(seed):
    instance = tiny(seed)
    times = [evaluate(instance, each) for each in all_deployments(instance)]
    best_s = min((float(each.objective) for each in times if each.feasible), default=None)
    for method in (BruteForce(), PlanTree()):
        result = method.solve(instance, Limits())
        if best_s is None:
            assert result.status is Status.INFEASIBLE
            continue
        assert result.status is Status.OPTIMAL
        assert result.scope is None
        assert result.objective == pytest.approx(best_s, rel=1e-9)


@for_each("seed", seeds(3, 200))
def test_the_tree_finds_the_best_of_all_plans(seed):
    instance = small(seed)
    everything = BruteForce(most=10_000_000).solve(instance, Limits())
    result = best(instance, "highs").solve(instance, Limits())
    assert result.status is everything.status
    assert result.scope is None
    assert everything.scope is None
    if result.status is Status.OPTIMAL:
        assert result.objective == pytest.approx(everything.objective, rel=1e-8)


@for_each("seed", seeds(3, 20))
def test_so_it_does_by_the_rule(seed):
    instance = small(seed)
    choices = Choices(instance, every=False)
    simulator = Simulator(instance, choices.actions)
    rows = np.array(list(itertools.product(range(len(choices.actions)), repeat=instance.groups)))
    times, excess = simulator.run_all(rows)
    times[excess > 0] = np.inf
    result = PlanTree(over="actions").solve(instance, Limits())
    if result.objective is None:
        assert not np.isfinite(times.min())
        return
    # The search that it begins with also puts operators of a group on devices of its choice and duplicates them.
    by_rule = all(
        plan in [group_plan(instance, group, each) for each in choices.actions]
        for group, plan in enumerate(result.solution.groups)
    )
    assert result.objective <= times.min() * (1 + 1e-9)
    assert result.scope_bound == pytest.approx(result.objective, rel=1e-8)
    if by_rule and not result.solution.duplicated:
        assert result.objective == pytest.approx(times.min(), rel=1e-9)
    assert result.scope == choices.scope


@for_each("seed, every", [(0, True), (1, False), *(slow(seed, bool(seed % 2)) for seed in range(2, 60))])
def test_no_bound_of_a_part_of_a_plan_is_above_its_time(seed, every):
    rng = np.random.default_rng(seed)
    instance = random_instance(
        rng, operators=8, groups=4, device_groups=3, whole_numbers=bool(seed % 3), memory_bytes=1e9
    )
    choices = Choices(instance, every)
    looked_up = tables(choices)
    room, simulator = room_for(looked_up), Simulator(instance, choices.actions)
    counts = [len(own) for own in choices.of_groups]
    plans = rng.integers(counts, size=(40, len(counts)))
    times, _ = simulator.run_all(*choices.rows(plans))
    met = 0
    for plan, time_s in zip(plans, times, strict=True):
        decided = plan.copy()
        bounds = [least(looked_up, decided, room)]
        for group in rng.permutation(len(counts)):
            decided[group] = -1
            bounds.append(least(looked_up, decided, room))
        assert max(bounds) <= time_s * (1 + 1e-9)
        met += bounds[0] >= 0.8 * time_s
    assert met


@pytest.mark.parametrize("queue", queues(), ids=lambda queue: queue[0])
def test_bounds_know_what_is_ready_first(queue):
    _, instance, deployment, time_s = queue
    simulator = Simulator(instance)
    row, _, devices = simulator.choice(deployment)
    choices = Choices(instance, True)
    chosen = []
    for group, members in enumerate(instance.members):
        own = [devices[place] for place in members]
        places = [
            place
            for place, each in enumerate(choices.of_groups[group])
            if each.action == row[group]
            and not any(each.duplicated)
            and (-1 in each.devices or list(each.devices) == own)
        ]
        chosen += places[:1]
    looked_up = tables(choices)
    assert least(looked_up, np.array(chosen), room_for(looked_up)) == pytest.approx(time_s, rel=1e-9)


def test_choices_are_counted_and_named():
    instance = small(0)
    for every in (True, False):
        choices = Choices(instance, every)
        counts = [number_of_choices(instance, len(members), every) for members in instance.members]
        assert [len(own) for own in choices.of_groups] == counts
        assert all(len(set(own)) == len(own) for own in choices.of_groups)
    assert fewest(instance, 10) is None
    assert fewest(instance, len(actions(instance)) ** instance.groups).every is False
    assert fewest(instance, 1e12).every is True


def test_more_memory_and_quicker_devices_are_never_worse():
    instance = small(3)
    result = PlanTree().solve(instance, Limits())
    groups = tuple(each.model_copy(update={"memory_bytes": 1e12}) for each in instance.device_groups)
    roomy = PlanTree().solve(instance.model_copy(update={"device_groups": groups}), Limits())
    assert roomy.objective <= (result.objective or np.inf) * (1 + 1e-9)


def test_it_stops_in_time_and_starts_from_a_plan():
    instance = small(1)
    whole = PlanTree().solve(instance, Limits())
    again = PlanTree().solve(instance, Limits(), start=whole.solution)
    assert again.objective == whole.objective
    late = PlanTree().solve(instance, Limits(1e-6))
    assert late.objective is None or late.objective >= whole.objective


def test_choices_beyond_reason_are_refused():
    rng = np.random.default_rng(1)
    instance = random_instance(rng, operators=8, groups=1, counts=[3, 3])
    assert "more than 1500" in PlanTree(over="all").refuses(instance)
    assert PlanTree().refuses(instance) is None


@for_each("seed", seeds(2, 60))
def test_prices_of_what_is_left_are_not_above_the_time_and_grow_with_what_is_decided(seed):
    """Down the elimination order; with many inputs a group has more neighbours than are eliminated exactly."""
    rng = np.random.default_rng(seed)
    instance = random_instance(
        rng, operators=7 + seed % 3, groups=5, counts=[[1, 1], [2, 1], [1, 2]][seed % 3], whole_numbers=bool(seed % 2)
    )
    choices = Choices(instance, every=True)
    ahead = ahead_of(mixes_of(BestPrices(instance), instance.groups), choices)
    counts = [len(own) for own in choices.of_groups]
    plans = rng.integers(counts, size=(10, len(counts)))
    times, _ = Simulator(instance, choices.actions).run_all(*choices.rows(plans))
    near = 0.0
    for plan, time_s in zip(plans, times, strict=True):
        chosen, before_s = np.full(len(counts), -1), 0.0
        for depth, group in enumerate(ahead.order):
            look_ahead(ahead, chosen, depth, np.inf)
            bound_s = ahead.least_s[ahead.stands[group, plan[group]]]
            assert before_s * (1 - 1e-9) <= bound_s <= time_s * (1 + 1e-9)
            chosen[group], before_s = plan[group], bound_s
        near = max(near, before_s / time_s)
    assert near > 0.7


@for_each("seed", seeds(2, 60))
def test_with_prices_of_what_is_left_it_finds_the_best_of_all_plans(seed, monkeypatch):
    monkeypatch.setattr(tree_method, "_EFFORT", replace(tree_method._EFFORT, ahead_from=1))
    instance = small(seed)
    everything = BruteForce(most=10_000_000).solve(instance, Limits())
    result = PlanTree().solve(instance, Limits())
    assert (result.status, result.scope) == (everything.status, None)
    if result.status is Status.OPTIMAL:
        assert result.objective == pytest.approx(everything.objective, rel=1e-8)
