"""Local branching: neighbourhoods are what they should be, bounds hold, nothing gets worse."""

import itertools
from typing import ClassVar

import numpy as np
import pytest
from volume import for_each, seeds, some

from ddlopt.frontier.deployment.plan.local_branching import Judge, LocalBranching, Neighbourhood, PartOfTime
from ddlopt.instances.generators.deployment import generate
from ddlopt.models.deployment import Deployment, DeploymentInstance, evaluate
from ddlopt.models.deployment.plan.formulations.makespan_bound import MakespanBound
from ddlopt.solvers.backends.highs import Highs
from ddlopt.solvers.contracts import Limits, Status
from ddlopt.solvers.deployment.plan.brute_force import BruteForce
from ddlopt.solvers.deployment.plan.search import PlanSearch
from ddlopt.solvers.deployment.plan.simulator.fast import Simulator
from ddlopt.solvers.heuristic import Clock

QUICK = LocalBranching(rounds=6, program_s=5.0)


def tiny(seed: int, **options) -> DeploymentInstance:
    return generate("random", seed, **{"groups": 2, "device_groups": 2, "most_devices": 2, "memory": 4.0} | options)


def time_s(instance: DeploymentInstance, plan: Deployment) -> float:
    return float(evaluate(instance, plan).objective)


@for_each("seed", seeds(2, 4))
def test_answers_against_all_plans(seed):
    instance = tiny(seed)
    best = BruteForce().solve(instance, Limits())
    result = QUICK.solve(instance, Limits(), seed)
    assert result.checked
    # Duplicated operators and other devices may even make it better than the best of all rows of actions.
    assert result.objective <= best.objective * (1 + 1e-9)
    assert result.bound <= result.objective
    assert result.bound <= best.objective
    assert result.scope is None


@pytest.mark.parametrize("seed", [1, 4])
@pytest.mark.slow
def test_never_worse_than_its_start(seed):
    instance = tiny(seed, groups=4)
    simulator = Simulator(instance)
    start = simulator.deployment(np.zeros(4, dtype=np.int64))
    good = PlanSearch().solve(instance, Limits(), seed).solution
    for plan in (start, good):
        result = LocalBranching(rounds=1, program_s=2.0).solve(instance, Limits(), seed, start=plan)
        assert result.objective <= time_s(instance, plan) * (1 + 1e-12)
        assert result.objective <= result.details["before_s"] * (1 + 1e-12)


@pytest.mark.parametrize("seed", seeds(1, 3))
@pytest.mark.parametrize("descents", [False, True])
def test_neighbourhoods_lead_to_the_best_plan_from_the_worst(seed, descents, monkeypatch):
    if not descents:
        monkeypatch.setattr(Judge, "descended", lambda self, plan, clock: plan)
    instance = tiny(seed, most_devices=1)
    simulator = Simulator(instance)
    # The bound has other devices for model parallelism than the rule of the actions.
    numbers = [a for a, action in enumerate(simulator.actions) if action.mode != "model_parallel"]
    rows = np.array(list(itertools.product(numbers, repeat=2)))
    times, excess = simulator.run_all(rows)
    worst = simulator.deployment(rows[np.where(excess > 0, -np.inf, times).argmax()])
    judge = Judge(instance, np.random.default_rng(seed))
    method = LocalBranching(rounds=60)
    best, figures = method._branch(instance, judge, worst, Clock(Limits(), None), Limits())
    assert figures["programs"] < 60  # nothing is left
    assert figures["better"] > 0
    assert time_s(instance, best) <= np.where(excess > 0, np.inf, times).min() * (1 + 1e-9)


@pytest.mark.parametrize("seed", some(range(1, 4), 1))
def test_worse_plans_do_not_take_the_place_of_the_best(seed, monkeypatch):
    monkeypatch.setattr(Judge, "descended", lambda self, plan, clock: plan)
    instance = tiny(seed, most_devices=1)
    start = BruteForce().solve(instance, Limits()).solution
    judge = Judge(instance, np.random.default_rng(seed))
    best, figures = LocalBranching(rounds=5)._branch(instance, judge, start, Clock(Limits(), None), Limits())
    assert figures["programs"] > 0
    assert time_s(instance, best) <= time_s(instance, start) * (1 + 1e-12)
    assert (best != start) == (figures["better"] > 0) == (judge.time_s(best) < judge.time_s(start))


@pytest.mark.slow
def test_same_seed_same_answer():
    instance = tiny(2, most_devices=1)
    first, second = (QUICK.solve(instance, Limits(), 3) for _ in range(2))
    assert first.solution == second.solution
    assert first.details["programs"] == second.details["programs"]


def changed(near: Neighbourhood, one: Deployment, other: Deployment) -> list[int]:
    pairs = zip(near.decisions(one), near.decisions(other), strict=True)
    return [g for g, (a, b) in enumerate(pairs) if a != b]


@pytest.mark.slow
def test_neighbourhood_changes_few_of_the_groups_that_are_free():
    instance = tiny(3, groups=4)
    plan = Simulator(instance).deployment(np.zeros(4, dtype=np.int64))
    for free, radius in itertools.product(([0, 1, 2, 3], [1, 2]), (1, 2)):
        near = Neighbourhood(instance, MakespanBound())
        near.cut_off(plan)
        outcome = near.solve(plan, free, radius, 1e9, Highs(), Limits())
        assert outcome.status is Status.OPTIMAL
        found = changed(near, plan, near.read())
        assert 1 <= len(found) <= radius
        assert set(found) <= set(free)


def test_every_plan_is_found_once_and_in_order_of_its_bound():
    instance = tiny(0)
    near = Neighbourhood(instance, MakespanBound())
    choices = len({a for _, a in near.block.decided})
    plan = Simulator(instance).deployment(np.zeros(2, dtype=np.int64))
    near.cut_off(plan)
    seen, bounds = {near.decisions(plan)}, []
    while True:
        outcome = near.solve(plan, [0], 1, 1e9, Highs(), Limits())
        if outcome.status is Status.INFEASIBLE:
            break
        found = near.read()
        bounds.append(MakespanBound().objective_value(instance, outcome.objective))
        assert bounds[-1] <= time_s(instance, found) * (1 + 1e-6)
        assert near.decisions(found) not in seen
        seen.add(near.decisions(found))
        near.cut_off(found)
    assert len(seen) == choices
    assert bounds == pytest.approx(sorted(bounds), rel=1e-6)


def test_neighbourhood_has_no_plan_that_cannot_be_better():
    instance = tiny(1)
    best = BruteForce().solve(instance, Limits())
    near = Neighbourhood(instance, MakespanBound())
    result = LocalBranching(rounds=0).solve(instance, Limits())
    below = near.solve(best.solution, [0, 1], 2, 0.999 * result.bound, Highs(), Limits())
    assert below.status is Status.INFEASIBLE
    assert near.solve(best.solution, [0, 1], 2, 1.001 * best.objective, Highs(), Limits()).status is Status.OPTIMAL


class Recording(Highs):
    """Notes the limits of every program."""

    given: ClassVar[list[float | None]] = []

    def solve(self, model, limits, *others, **named):
        self.given.append(limits.time_s)
        return super().solve(model, limits, *others, **named)


@pytest.mark.slow
def test_programs_have_no_more_time_than_is_left():
    Recording.given.clear()
    instance = generate("network", model="vgg19", groups=8)
    result = LocalBranching(backend=Recording()).solve(instance, Limits(4.0))
    assert result.checked
    assert result.bound <= result.objective
    first, *others = Recording.given
    assert first <= 4.0 * 0.4
    assert all(given < 4.0 for given in others)


def test_part_of_the_time():
    whole = Clock(Limits(100), None)
    part, silent = PartOfTime(whole, 10), PartOfTime(whole, 1000, telling=False)
    assert part.left_s <= 10
    assert silent.left_s <= 100
    silent.report(1.0)
    assert not whole.trace
    part.report(2.0, 1.0)
    assert [(point.incumbent, point.bound) for point in whole.trace] == [(2.0, 1.0)]
    part.interrupted = True
    assert whole.expired
    assert silent.expired


def test_memory_decides():
    data = tiny(4, groups=3).model_dump()
    data["device_groups"] = [group | {"memory_bytes": 1.0} for group in data["device_groups"]]
    data["operators"] = [operator | {"resident_bytes": 0.0} for operator in data["operators"]]
    result = QUICK.solve(DeploymentInstance.from_data(data), Limits())
    assert result.status in (Status.NO_SOLUTION, Status.INFEASIBLE)
    assert "\n" not in result.message


@pytest.mark.parametrize("options", [{"rounds": -1}, {"radius": 0}, {"program_s": 0.0}])
def test_bad_options(options):
    ((name, value),) = options.items()
    with pytest.raises(ValueError, match=f"{name}( is)? {value}"):
        LocalBranching(**options)
