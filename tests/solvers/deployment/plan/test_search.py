"""Searches over plans: the optimum of tiny cases, TAG's rules, list schedules by hand."""

import itertools
import math

import numpy as np
import pytest
from deployment_plans import random_instance
from scipy.optimize import OptimizeResult
from volume import for_each, seeds

from ddlopt.frontier.deployment.plan.brute_force import BruteForce
from ddlopt.instances import load
from ddlopt.instances.generators.deployment import generate
from ddlopt.models.deployment import Deployment, DeploymentInstance, evaluate
from ddlopt.models.errors import NoSolutionError
from ddlopt.solvers import chain
from ddlopt.solvers.contracts import Limits, Status
from ddlopt.solvers.deployment.plan.actions import forward_order
from ddlopt.solvers.deployment.plan.annealing import Annealing, Plan
from ddlopt.solvers.deployment.plan.data_parallel import DataParallel
from ddlopt.solvers.deployment.plan.list_scheduling import Costs, ListScheduling, favourite_children
from ddlopt.solvers.deployment.plan.mcmc import PlanMcmc
from ddlopt.solvers.deployment.plan.priors import uniform
from ddlopt.solvers.deployment.plan.rater import PlanRater
from ddlopt.solvers.deployment.plan.search import PlanSearch, Walk
from ddlopt.solvers.deployment.plan.simulator.fast import Simulator
from ddlopt.solvers.deployment.plan.tag import Tag, TreeSearch
from ddlopt.solvers.heuristic import Clock

SEARCHES = (Tag(by_speed=True, playouts=3000), PlanMcmc(steps=3000, beta=10), PlanSearch(moves=4000))


def tiny(seed: int, **options) -> DeploymentInstance:
    return generate("random", seed, **{"groups": 2, "device_groups": 2, "memory": 4.0} | options)


def best_of_all(rater: PlanRater) -> float:
    rows = itertools.product(range(len(rater.actions)), repeat=rater.instance.groups)
    ratings = [rater.rate(np.array(row)) for row in rows]
    return min(rating.time_s for rating in ratings if rating.fits)


@for_each("seed", seeds(2, 6))
@for_each("method", SEARCHES)
def test_searches_find_the_best_of_tiny_plans(method, seed):
    instance = tiny(seed)
    result = method.solve(instance, Limits(60), seed)
    assert result.status in (Status.FEASIBLE, Status.OPTIMAL)
    assert result.checked
    if method.name == "plan-search":
        # It searches all deployments, the others one action a group.
        best_s = BruteForce().solve(instance, Limits()).bound
    else:
        best_s = best_of_all(PlanRater(instance))
    assert result.objective == pytest.approx(best_s, rel=1e-9)


@pytest.mark.parametrize("method", [*SEARCHES, DataParallel(), ListScheduling()], ids=lambda method: method.name)
def test_same_seed_same_answer(method):
    instance = tiny(3, groups=4)
    first, second = (method.solve(instance, Limits(60), 7).solution for _ in range(2))
    assert first == second


def test_tag_rewards_as_its_code_does():
    rater = PlanRater(tiny(1), ("even",))
    search = TreeSearch(rater, uniform(rater), np.random.default_rng(0))
    reward = search._reward
    rating = rater.rate(rater.baseline())
    assert reward(rating) == 0
    assert reward(rating._replace(time_s=rating.time_s / 1.5)) == pytest.approx(0.5)
    assert reward(rating._replace(time_s=rating.time_s / 17)) == pytest.approx(2.0)
    assert reward(rating._replace(excess_bytes=1.0)) == -1


def test_tag_decides_first_on_the_group_with_most_work_and_the_others_follow():
    instance = tiny(2, groups=4)
    rater = PlanRater(instance, ("even",))
    search = TreeSearch(rater, uniform(rater), np.random.default_rng(0))
    work = [
        sum(np.mean([t[0] for t in instance.operators[k].times_s.values()]) for k in members)
        for members in instance.members
    ]
    assert search.order[0] == int(np.argmax(work))
    row = search._row([3, 1])
    assert row[search.order[0]] == 3
    assert row[search.order[1]] == 1
    assert set(row[search.order[2:]]) == {3}


def test_playouts_are_counted_and_tell_all_nodes_above():
    rater = PlanRater(tiny(2, groups=3), ("even",))
    search = TreeSearch(rater, uniform(rater), np.random.default_rng(0))
    for _ in range(200):
        search.playout()
    assert search.root.visits.sum() == 200

    def check(node):
        for action, child in node.children.items():
            below = child.visits.sum() if len(child.noise) else 0
            if len(child.noise):
                assert node.visits[action] == below + 1  # once when it was new
                total = child.reward + (child.mean * child.visits).sum()
                assert node.mean[action] * node.visits[action] == pytest.approx(total)
            check(child)

    check(search.root)


def test_a_group_on_one_device_of_several_fits_where_nothing_else_does():
    """Two devices alike, each with room for one of two groups, whose first operators keep nearly all."""
    instance = tiny(4, device_groups=1)
    data = instance.model_dump()
    data["device_groups"] = [data["device_groups"][0] | {"count": 2, "memory_bytes": 1.5e9}]
    for place, node in enumerate(data["operators"]):
        node["resident_bytes"] = 1e9 if place == instance.members[node["group"]][0] else 0.0
    instance = DeploymentInstance.model_validate(data)
    rater = PlanRater(instance)
    rows = itertools.product(range(len(rater.actions)), repeat=2)
    assert not any(rater.rate(np.array(row)).fits for row in rows)
    result = PlanSearch(moves=2000).solve(instance, Limits(), 0)
    assert result.checked
    assert result.objective == pytest.approx(BruteForce().solve(instance, Limits()).bound, rel=1e-9)


@for_each("seed", seeds(4, 40))
def test_moves_of_annealing_lead_to_plans_and_what_they_are_worth(seed):
    """Every plan met is one that the check takes, with the time that the search has."""
    rng = np.random.default_rng(seed)
    instance = random_instance(rng, operators=8, groups=4, device_groups=3)
    annealing = Annealing(instance, Simulator(instance), rng, Clock(Limits(), None))
    plan = Plan.of_actions(np.zeros(4, np.int64), 8)
    kinds = set()
    for _ in range(200):
        plan = annealing._moved(plan)
        told = annealing.simulator.deployment(plan.action, plan.duplicated, plan.device)
        outcome = annealing.simulator.run(plan.action, plan.duplicated, plan.device)
        checked = evaluate(instance, told)
        assert checked.feasible == (outcome.excess_bytes <= 0)
        if checked.feasible:
            assert checked.objective == pytest.approx(outcome.time_s, rel=1e-9)
        kinds |= {(group.mode, group.split) for group in told.groups}
        kinds |= {"several devices"} if any(len(set(group.devices or ())) > 1 for group in told.groups) else set()
        kinds |= {"duplicated"} if told.duplicated else set()
    assert {"several devices", "duplicated"} <= kinds


def test_annealing_gets_through_plans_that_do_not_fit():
    """Moves of whole groups from plan that fits to plan that fits are stuck an eighth above what is found here."""
    instance = load("drawn:1/deployment/plan/3")
    rater = PlanRater(instance)
    walk = Walk(rater, Clock(Limits(), None), np.random.default_rng(0))
    _, stuck = walk.descend(*rater.best_uniform(walk.clock))
    found = PlanSearch(moves=20_000).solve(instance, Limits())
    assert found.checked
    assert found.objective < 0.9 * stuck.time_s


def test_memory_decides():
    instance = tiny(4, groups=3)
    data = instance.model_dump()
    data["device_groups"] = [group | {"memory_bytes": 1.0} for group in data["device_groups"]]
    data["operators"] = [operator | {"resident_bytes": 0.0} for operator in data["operators"]]
    starved = DeploymentInstance.from_data(data)
    for method in (*SEARCHES, DataParallel(), ListScheduling()):
        result = method.solve(starved, Limits(20))
        assert result.status == Status.NO_SOLUTION, method.name
        assert "\n" not in result.message


def test_data_parallel_by_hand():
    # Two devices of one type: each computes half, then the gradient is reduced.
    instance = DeploymentInstance.from_data(
        {
            "name": "pair",
            "operators": [
                {"name": "f", "group": 0, "times_s": {"a": [4.0]}},
                {"name": "b", "group": 0, "times_s": {"a": [8.0]}, "gradient_bytes": 10},
            ],
            "tensors": [{"producer": 0, "consumers": [1], "size_bytes": 6}],
            "device_groups": [{"type": "a", "count": 2, "memory_bytes": 100, "bandwidth_bytes_per_s": 1}],
            "bandwidth_bytes_per_s": [[0]],
            "all_reduce": {"s_per_byte": [0.5], "fixed_s": [1.0], "at_bytes_per_s": 1},
        }
    )
    result = DataParallel().solve(instance, Limits())
    assert result.objective == pytest.approx(2 + 4 + 10 * 0.5 + 1)
    assert DataParallel("speed").solve(instance, Limits()).objective == result.objective


@for_each("rule", ["heft", "m-etf", "m-sct"])
@for_each("seed", range(5))
def test_list_schedules_put_each_group_on_one_device(rule, seed):
    instance = tiny(seed, groups=5, device_groups=3)
    try:
        result = ListScheduling(rule).solve(instance, Limits())
    except NoSolutionError:
        pytest.fail("memory suffices")
    deployment = result.solution
    assert isinstance(deployment, Deployment)
    for plan in deployment.groups:
        assert len(set(plan.devices)) == 1
        assert plan.device_groups == (instance.device_group_of[plan.devices[0]],)
    assert evaluate(instance, deployment).feasible


def test_a_linear_program_that_is_not_solved_is_told(monkeypatch):
    """HiGHS does not take some whose figures are far apart."""
    unsolved = OptimizeResult(x=None, fun=None, status=4, message="numerical difficulties")
    monkeypatch.setattr("scipy.optimize.linprog", lambda *_, **__: unsolved)
    with pytest.raises(NoSolutionError, match="favourite children: numerical difficulties"):
        favourite_children(tiny(0, groups=2))


def test_upward_rank_of_a_chain():
    instance = tiny(1, groups=2, skips=0)
    costs = Costs(instance)
    # forward 0 -> forward 1 -> backward 1 -> backward 0, and forward 0 -> backward 0.
    forward, backward = (0, 1), (3, 2)
    sent = {(t.producer, n): costs.mean_transfer_s[k] for k, t in enumerate(instance.tensors) for n in t.consumers}
    rank = costs.mean_s[backward[0]]
    rank = costs.mean_s[backward[1]] + sent[backward[1], backward[0]] + rank
    rank = costs.mean_s[forward[1]] + sent[forward[1], backward[1]] + rank
    rank = costs.mean_s[forward[0]] + sent[forward[0], forward[1]] + rank
    assert costs.rank_s[forward[0]] == pytest.approx(rank)


def test_favourite_children_are_one_to_one():
    for seed in range(5):
        instance = tiny(seed, groups=6, skips=3)
        children = favourite_children(instance)
        assert len(set(children.values())) == len(children)
        assert all(child in instance.readers[node] for node, child in children.items())
    assert children


def test_heft_takes_the_fast_device_of_two():
    instance = DeploymentInstance.from_data(
        {
            "name": "unlike",
            "operators": [{"name": f"o{k}", "group": k, "times_s": {"slow": [3.0], "fast": [1.0]}} for k in range(3)],
            "tensors": [{"producer": k, "consumers": [k + 1], "size_bytes": 1} for k in range(2)],
            "device_groups": [
                {"type": "slow", "count": 1, "memory_bytes": 10, "bandwidth_bytes_per_s": 1},
                {"type": "fast", "count": 1, "memory_bytes": 10, "bandwidth_bytes_per_s": 1},
            ],
            "bandwidth_bytes_per_s": [[0, 1], [1, 0]],
        }
    )
    result = ListScheduling("heft").solve(instance, Limits())
    assert result.objective == pytest.approx(3.0)
    assert {plan.devices for plan in result.solution.groups} == {(1,)}


def test_order_of_groups_is_that_of_the_forward_pass():
    instance = generate("network", model="vgg19", groups=6)
    assert forward_order(instance).tolist() == list(range(6))


def test_bad_options():
    with pytest.raises(ValueError, match="prior is 'best'"):
        Tag(prior="best")
    with pytest.raises(ValueError, match="playouts is 0"):
        Tag(playouts=0)
    assert math.isfinite(PlanRater(tiny(0)).rate(np.zeros(2, dtype=np.int64)).time_s)


def test_a_learned_prior_that_no_package_announces_is_one_clear_line(monkeypatch):
    monkeypatch.setattr(chain, "steps", lambda method, kind=None: ())
    with pytest.raises(ValueError, match=r"use one of: uniform\. Others are announced by packages") as told:
        Tag(prior="graph")
    assert "\n" not in str(told.value)
