"""Types of accelerators: bounds with and without them, best plans at prices, and the certificate."""

import itertools
from fractions import Fraction

import numpy as np
import pytest
from scheduling_brute_force import UTILITIES, brute_force, random_instance
from volume import for_each, seeds

from ddlopt.frontier.scheduling.bounds import typed_bound
from ddlopt.frontier.scheduling.prices.offers import pools_of
from ddlopt.frontier.scheduling.prices.plan_pricing import PlanPricing
from ddlopt.models.errors import InfeasibleError
from ddlopt.models.scheduling import Job, RingTiming, Run, Schedule, SchedulingInstance, ServerGroup, evaluate
from ddlopt.models.scheduling.bounds import bound
from ddlopt.models.scheduling.pool import pool
from ddlopt.models.scheduling.problem import PROBLEM
from ddlopt.models.scheduling.times.bounds import exact_time_bound


@pytest.mark.parametrize("objective", ["utility", "max_min", "makespan", "completion"])
@for_each("seed", seeds(2, 40))
def test_bounds_hold(objective, seed):
    asked = random_instance(
        np.random.default_rng(seed),
        objective=objective,
        types=("mixed", "apart")[seed % 2],
        places=(2, 2),
        energy=seed % 3 == 0,
        preemptive=bool(seed % 4),
    )
    best = brute_force(asked)
    if best is None:
        return
    sign = 1 if asked.sense == "maximize" else -1
    assert sign * bound(asked) >= sign * PROBLEM.tightest_bound(asked) >= sign * best.objective - 1e-9
    if objective == "makespan":
        assert exact_time_bound(asked) <= best.objective


def test_a_server_that_does_not_exist_has_no_type():
    asked = random_instance(np.random.default_rng(2), types="apart", places=(2, 2))
    job = next(i for i, job in enumerate(asked.jobs) if job.speeds)
    for server in (-1, asked.server_count):
        run = Run(job=job, start=asked.jobs[job].arrival, slots=1, workers=((server, 1),))
        found = evaluate(asked, Schedule(instance=asked.name, runs=(run,)))
        assert "server_exists" in {violation.kind for violation in found.violations}


def drawn(seed, **features):
    return random_instance(np.random.default_rng(seed), types=("mixed", "apart")[seed % 2], **features)


def every_plan(asked, i, prices):
    """The largest utility less cost of job i at (T, K) prices of a worker, trying all workers by type in all slots."""
    job, rooms = asked.jobs[i], pools_of(asked).rooms[i]
    names = pools_of(asked).names
    ways = [(0.0, (0,) * len(rooms))]
    for counts in itertools.product(*(range(room + 1) for room in rooms)):
        used = [name for name, count in zip(names, counts, strict=True) if count]
        speeds = [job.speeds.get(name, 1.0) for name in used]
        apart = job.speeds and len(used) > 1 and not asked.mixed_types
        if sum(counts) in job.widths and min(speeds) > 0 and not apart:
            ways.append((min(speeds) * asked.progress(i, sum(counts)), counts))
    best = 0.0
    for plan in itertools.product(ways, repeat=asked.last_slot(i) - job.arrival):
        part = min(1.0, sum(rate for rate, _ in plan) / job.minibatches)
        cost = sum(float(prices[job.arrival + t] @ np.array(counts)) for t, (_, counts) in enumerate(plan))
        best = max(best, float(job.utility.of(part)) - cost)
    return best


@for_each("seed", seeds(6, 60))
def test_plans_are_as_good_as_all_plans(seed):
    asked = drawn(seed, places=(2, 3), utilities=tuple(UTILITIES), deadlines=True, min_workers=seed % 3 == 0)
    rng = np.random.default_rng(seed)
    pricing = PlanPricing(asked)
    prices = rng.uniform(0, 0.6, (asked.slots, len(pricing.capacity))) * (rng.random((asked.slots, 1)) < 0.8)
    found = pricing.answer(prices, slack=1e-9)
    every = [every_plan(asked, i, pricing.worker_prices(i, prices)) for i in range(len(asked.jobs))]
    assert found.values == pytest.approx(every, abs=1e-6)
    total = sum(every) + float(prices.sum(axis=0) @ pricing.capacity)
    assert total <= found.bound <= total + 1e-6
    for i, (offers, workers) in enumerate(zip(found.offers, found.workers, strict=True)):
        widths = np.where(offers >= 0, pricing.offers[i].widths[offers], 0)
        assert (workers.sum(axis=1) == widths).all()
        assert (workers <= pricing.cluster.rooms[i]).all()
    assert pricing.answer(prices, slack=1e-3, room=2).bound >= total


@for_each("seed", seeds(2, 60))
@pytest.mark.parametrize("features", [{}, {"energy": True}, {"uneven": True}, {"network": "star"}], ids=str)
def test_prices_bound_every_schedule(features, seed):
    asked = drawn(seed, places=(2, 2), utilities=tuple(UTILITIES), **features)
    best = brute_force(asked).objective
    pricing = PlanPricing(asked)
    rng = np.random.default_rng(seed)
    for size in (0.0, 0.05, 0.5):
        answer = pricing.answer(size * rng.uniform(0, 1, (asked.slots, len(pricing.capacity))))
        assert answer.bound >= best - 1e-9
    if asked.accelerators.matter:
        assert typed_bound(asked) >= best - 1e-9


def test_bounds_know_that_fast_types_are_few():
    # Two jobs that do all in a slot of the one V100, and a tenth on one of many K80s.
    job = Job(
        name="a", max_workers=1, timing=RingTiming(gradient_bytes=0, bandwidth_bytes_per_s=1, forward_s_per_sample=1),
        minibatches=10.0, speeds={"v100": 1.0, "k80": 0.1},
    )  # fmt: skip
    asked = SchedulingInstance(
        name="few", slots=3, slot_s=10.0,
        servers=(ServerGroup(capacity={"gpu": 1}, type="v100"), ServerGroup(capacity={"gpu": 9}, type="k80")),
        jobs=(job, job.model_copy(update={"name": "b"}), job.model_copy(update={"name": "c", "arrival": 1})),
    )  # fmt: skip
    for objective, slots, known in (("utility", 2, 2.3), ("max_min", 2, 2.3 / 3), ("makespan", 3, 30.0)):
        less = asked.model_copy(update={"slots": slots, "objective": objective})
        best = brute_force(less).objective
        relaxed = bound(less.at_their_fastest())
        assert abs(relaxed - best) > 0.2 * best
        assert PROBLEM.tightest_bound(less) == pytest.approx(known, rel=1e-3)
    assert exact_time_bound(less) == bound(less) == 20


def test_prices_by_type_tell_that_slots_are_too_few():
    # Of three jobs that do all in a slot of the one V100, only two have time for it.
    job = Job(
        name="a", max_workers=1, timing=RingTiming(gradient_bytes=0, bandwidth_bytes_per_s=1, forward_s_per_sample=1),
        minibatches=10.0, speeds={"v100": 1.0, "k80": 0.1},
    )  # fmt: skip
    asked = SchedulingInstance(
        name="few", slots=2, slot_s=10.0, objective="makespan",
        servers=(ServerGroup(capacity={"gpu": 1}, type="v100"), ServerGroup(capacity={"gpu": 9}, type="k80")),
        jobs=tuple(job.model_copy(update={"name": name}) for name in "abc"),
    )  # fmt: skip
    with pytest.raises(InfeasibleError, match="takes 3 slots at least"):
        PROBLEM.tightest_bound(asked)


def test_jobs_that_cannot_finish_even_at_their_fastest_are_told():
    asked = random_instance(np.random.default_rng(1), objective="makespan", types="mixed", places=(2, 2))
    much = tuple(job.model_copy(update={"minibatches": 1e6}) for job in asked.jobs)
    with pytest.raises(InfeasibleError):
        bound(asked.model_copy(update={"jobs": much}))


def test_the_relaxation_rounds_down():
    asked = random_instance(np.random.default_rng(0), types="mixed", places=(2, 2))
    relaxed = asked.at_their_fastest()
    assert asked.accelerators.matter
    assert not relaxed.accelerators.matter
    for job, free in zip(asked.jobs, relaxed.jobs, strict=True):
        fastest = max(map(Fraction, job.speeds.values()), default=Fraction(1))
        assert Fraction(free.minibatches) * fastest <= Fraction(job.minibatches)
        assert free.minibatches * float(fastest) == pytest.approx(job.minibatches, rel=1e-12)
    assert relaxed.at_their_fastest() is relaxed


def test_who_knows_no_types_is_told():
    typed = random_instance(np.random.default_rng(0), types="mixed", places=(2, 2))
    assert not pool(typed).exact
    assert pool(typed.at_their_fastest()).exact
