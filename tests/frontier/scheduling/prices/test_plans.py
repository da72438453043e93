"""The best plan of a job at prices against every plan, and the bound against the optimum."""

import itertools

import numpy as np
import pytest
from scheduling_brute_force import UTILITIES, brute_force, random_instance
from volume import for_each, seeds

from ddlopt.frontier.scheduling.bounds import prices as clearing_prices
from ddlopt.frontier.scheduling.prices.plan_kernels import best_plan
from ddlopt.frontier.scheduling.prices.plan_pricing import PlanPricing
from ddlopt.models.scheduling import AllOrNothing, Capped, Job, RingTiming, SchedulingInstance, ServerGroup

FEATURES = {
    "plain": {},
    "windows": {"deadlines": True, "min_workers": True, "latency": True, "pollux": True},
    "energy": {"energy": True},
    "one-piece": {"preemptive": False},
    "uneven": {"places": (3, 2), "uneven": True},
    "star": {"places": (3, 2), "network": "star"},
    "contention": {"places": (2, 2), "contention": True},
    "powered-servers": {"places": (2, 2), "energy": True},
}


def every_plan(instance, i, prices):
    """The largest utility less cost of job i, trying all widths in all its slots."""
    job = instance.jobs[i]
    window = prices[job.arrival : instance.last_slot(i)]
    best = 0.0
    for plan in itertools.product((0, *job.widths), repeat=len(window)):
        part = min(1.0, sum(instance.progress(i, w) for w in plan) / job.minibatches)
        best = max(best, float(job.utility.of(part)) - float(window @ np.array(plan)))
    return best


@for_each("seed", seeds(6, 60))
def test_plans_are_as_good_as_all_plans(seed):
    rng = np.random.default_rng(seed)
    instance = random_instance(
        rng,
        jobs=3,
        slots=4,
        places=(4,),
        utilities=tuple(UTILITIES),
        deadlines=bool(seed % 2),
        min_workers=bool(seed % 3 == 0),
        latency=bool(seed % 5 == 0),
    )
    pricing = PlanPricing(instance)
    scale = rng.choice([0.03, 0.1, 0.3])
    prices = np.where(rng.random(4) < 0.2, 0.0, rng.uniform(0, scale, 4)).round(3)
    answer = pricing.answer(prices[:, None])
    best = [every_plan(instance, i, prices) for i in range(3)]
    assert answer.values == pytest.approx(best, rel=1e-7, abs=1e-7)
    assert answer.bound == pytest.approx(sum(best) + prices.sum() * 4, rel=1e-6)
    assert answer.bound >= sum(best) + prices.sum() * 4
    for i, plan in enumerate(answer.widths):
        part = min(1.0, sum(instance.progress(i, int(w)) for w in plan if w) / instance.jobs[i].minibatches)
        worth = float(instance.jobs[i].utility.of(part)) - float(prices @ plan)
        assert worth == pytest.approx(answer.values[i], abs=1e-12)
        allowed = {0, *instance.jobs[i].widths}
        assert set(plan.tolist()) <= allowed
        assert not plan[: instance.jobs[i].arrival].any()
        assert not plan[instance.last_slot(i) :].any()


@pytest.mark.parametrize("feature", FEATURES)
def test_no_schedule_is_better_than_the_bound(feature):
    closest = 1.0
    for seed in range(4):
        rng = np.random.default_rng(seed)
        instance = random_instance(rng, utilities=tuple(UTILITIES), **FEATURES[feature])
        best = brute_force(instance).objective
        pricing = PlanPricing(instance)
        clearing = clearing_prices(instance)
        loose = pricing.answer(rng.uniform(0, 0.3, (3, len(pricing.capacity)))).bound
        tight = pricing.answer(clearing.prices).bound
        assert min(loose, tight) >= best - 1e-9 * abs(best)
        # Whole plans can be worth no more than plans in fractions at the same prices.
        assert tight <= clearing.bound * (1 + 1e-6)
        closest = min(closest, (tight - best) / max(best, 1e-9))
    assert closest < 0.2


def test_whole_slots_are_worth_less_than_fractions():
    # One GPU for two jobs of three slots each, all or nothing, five slots: only one can finish.
    timing = RingTiming(gradient_bytes=0, bandwidth_bytes_per_s=1, forward_s_per_sample=1)
    job = Job(name="job", max_workers=1, timing=timing, minibatches=30, utility=AllOrNothing())
    fields = {"slots": 5, "slot_s": 10, "servers": (ServerGroup(capacity={"gpu": 1}),)}
    instance = SchedulingInstance(name="two", jobs=(job, job), **fields)
    assert PlanPricing(instance).answer(np.full((5, 1), 1 / 3)).bound == pytest.approx(5 / 3)
    # A third of a slot is not to be had: a job of 3.5 slots that is worth its part takes three or four.
    part = job.model_copy(update={"minibatches": 35.0, "utility": Capped()})
    alone = SchedulingInstance(name="one", jobs=(part,), **fields)
    dear, cheap = (float(PlanPricing(alone).answer(np.full((5, 1), price)).values[0]) for price in (0.2, 0.1))
    assert dear == pytest.approx(6 / 7 - 3 * 0.2)
    assert cheap == pytest.approx(1 - 4 * 0.1)


def test_too_many_labels_cost_only_sharpness():
    instance = random_instance(np.random.default_rng(1), jobs=1, slots=8, places=(4,), arrivals=False)
    pricing = PlanPricing(instance)
    prices = np.sort(np.random.default_rng(2).uniform(0.0, 0.1, 8))
    costs, parts = np.outer(prices, pricing.offers[0].widths), pricing.parts[0]
    sharp, crowded = (
        best_plan(pricing._utilities, 0, costs, parts, parts, 1, False, True, 1e-9, room) for room in (50_000, 2)
    )
    assert sharp[0] == pytest.approx(sharp[1], abs=1e-8)
    assert crowded[0] <= sharp[0] <= crowded[1]


@for_each("seed", seeds(6, 40))
def test_where_nothing_is_lost_plans_that_are_kept_are_worth_the_same(seed):
    """Both searches, and both with types of which every job has the same speed, find plans of the same worth."""
    rng = np.random.default_rng(seed)
    instance = random_instance(rng, jobs=3, slots=5, places=(4,), utilities=tuple(UTILITIES), deadlines=seed % 2 == 0)
    prices = rng.uniform(0, rng.choice([0.03, 0.1, 0.3]), (5, 1)) * (rng.random((5, 1)) < 0.8)
    free, kept = (PlanPricing(instance, keeps=keeps).answer(prices) for keeps in (False, True))
    assert kept.values == pytest.approx(free.values, abs=1e-7)
    fast = instance.changed(
        servers=tuple(group.model_copy(update={"type": "fast"}) for group in instance.servers),
        jobs=tuple(job.model_copy(update={"speeds": {"fast": 1.0}}) for job in instance.jobs),
    )
    assert fast.accelerators.matter
    # A server of a type has places for workers, and prices are of these.
    typed = PlanPricing(fast).answer(prices * float(instance.demand[0, 0]))
    assert typed.values == pytest.approx(free.values, abs=1e-7)


def test_other_objectives_have_no_plans():
    with pytest.raises(ValueError, match="'makespan', not 'utility'"):
        PlanPricing(random_instance(np.random.default_rng(0), objective="makespan"))
