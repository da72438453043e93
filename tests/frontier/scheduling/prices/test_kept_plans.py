"""Plans that keep their widths: the best and all near it against every sequence of widths, bounds against optima."""

import itertools

import numpy as np
import pytest
from scheduling_brute_force import CONCAVE, brute_force, random_instance
from volume import for_each, seeds

from ddlopt import instances
from ddlopt.frontier.scheduling.job_plans import kept_search
from ddlopt.frontier.scheduling.job_plans.job_plans import JobPlans
from ddlopt.frontier.scheduling.prices.plan_pricing import PlanPricing
from ddlopt.models.scheduling import AllOrNothing, Capped, SchedulingInstance, evaluate
from ddlopt.models.scheduling.pool import schedule_of_widths
from ddlopt.models.scheduling.problem import PROBLEM
from ddlopt.solvers.contracts import Limits


def drawn(seed, jobs, slots):
    """A tiny random instance with changes, least runs, or both."""
    return random_instance(
        np.random.default_rng(seed),
        jobs=jobs,
        slots=slots,
        places=(3,),
        utilities=(*CONCAVE, "all_or_nothing"),
        deadlines=seed % 3 == 0,
        min_workers=seed % 4 == 0,
        change=seed % 3 != 1,
        least_runs=seed % 3 != 2,
    )


def all_plans(instance, prices):
    """Worth less cost, by ``evaluate``, of every sequence of widths of a lone job that it finds nothing against."""
    job = instance.jobs[0]
    window = range(job.arrival, instance.last_slot(0))
    found = {}
    for widths in itertools.product((0, *job.widths), repeat=len(window)):
        rows = [{} for _ in range(instance.slots)]
        for t, width in zip(window, widths, strict=True):
            rows[t] = {0: width} if width else {}
        checked = evaluate(instance, schedule_of_widths(instance, rows))
        if checked.feasible:
            cost = sum(width * prices[t] for t, width in zip(window, widths, strict=True))
            found[tuple(row.get(0, 0) for row in rows)] = checked.objective - cost
    return found


@for_each("seed", seeds(9, 200))
def test_the_best_plan_and_those_near_it_are_those_of_trying_everything(seed):
    asked = drawn(seed, 1, 5)
    rng = np.random.default_rng(seed)
    prices = rng.random((5, 1)) * rng.choice([0.02, 0.1, 0.3]) * asked.jobs[0].utility.value
    every = all_plans(asked, prices[:, 0])
    best = max(every.values())
    pricing = PlanPricing(asked, keeps=True)
    found = pricing.answer(prices)
    income = float(prices.sum(axis=0) @ pricing.capacity)
    assert found.values[0] == pytest.approx(best, abs=1e-9)
    assert every[tuple(found.widths[0].tolist())] == pytest.approx(best, abs=1e-9)
    assert best + income <= found.bound <= best + income + 1e-6 * (1 + best + income)
    # With next to no room the plan is another one, but the bound holds.
    assert pricing.answer(prices, 1e-3, 1).bound >= best + income

    slack = 0.2 * asked.jobs[0].utility.value
    (listed,) = pricing.near_best(pricing.costs(prices), found.values, slack, 100_000)
    mine = {tuple(row) for row in pricing.widths_of(0, listed).tolist()}
    assert len(mine) == len(listed)
    assert mine <= every.keys()
    for plan, value in every.items():
        if value >= best - slack + 1e-9 and any(plan) and plan not in mine:
            # It goes on after the end, or has a width that does no more than a smaller one: there is a leaner plan.
            leaner = [one for one in mine if all(a <= b for a, b in zip(one, plan, strict=True))]
            assert max(every[one] for one in leaner) >= value - 1e-9
    assert all(every[plan] >= best - slack - 1e-6 * (1 + abs(best)) for plan in mine)


@for_each("seed", seeds(4, 60))
def test_where_changes_lose_nothing_plans_that_are_kept_are_worth_as_much(seed):
    rng = np.random.default_rng(seed)
    asked = random_instance(rng, jobs=3, slots=7, places=(4,), utilities=(*CONCAVE, "all_or_nothing"))
    prices = rng.uniform(0, rng.choice([0.03, 0.1, 0.3]), (7, 1))
    kept, free = (PlanPricing(asked, keeps=keeps).answer(prices) for keeps in (True, False))
    assert kept.values == pytest.approx(free.values, rel=1e-7, abs=1e-7)
    assert kept.bound == pytest.approx(free.bound, rel=1e-7)


def test_plans_that_are_too_many_are_not_listed():
    asked = drawn(0, 1, 5)
    pricing = PlanPricing(asked, keeps=True)
    free = np.zeros((5, 1))
    assert pricing.near_best(pricing.costs(free), pricing.answer(free).values, 10.0, 3) is None


@for_each("seed", seeds(5, 100))
def test_bounds_hold_and_the_optimum_of_tiny_instances_is_found(seed):
    asked = drawn(seed, 3, 4)
    best = brute_force(asked).objective
    assert PROBLEM.tightest_bound(asked) >= best - 1e-9
    result = JobPlans().solve(asked, Limits(gap=1e-6))
    assert result.bound >= best - 1e-9
    assert result.objective == pytest.approx(best, rel=1e-6, abs=1e-9)
    assert result.gap <= 1e-5
    assert evaluate(asked, result.solution).feasible


def test_the_bound_knows_what_changes_lose():
    """Two jobs of width 1 that share a place: each change takes a whole slot, so that one of them has to wait."""
    asked = random_instance(np.random.default_rng(0), jobs=1, slots=4, places=(1,), arrivals=False)
    job = asked.jobs[0].model_copy(
        update={"max_workers": 1, "min_workers": 1, "utility": Capped(value=1.0), "deadline": None, "arrival": 0}
    )
    rate = asked.progress(0, 1)
    jobs = tuple(job.model_copy(update={"name": name, "minibatches": 2 * rate}) for name in "ab")
    fields = {name: getattr(asked, name) for name in SchedulingInstance.model_fields} | {"energy_price_per_j": 0.0}
    free = SchedulingInstance(**fields | {"jobs": jobs, "slots": 3})
    assert PROBLEM.tightest_bound(free) == pytest.approx(1.5, rel=1e-3)
    late = tuple(
        one.model_copy(update={"arrival": k, "change_s": asked.slot_s, "minibatches": 3 * rate})
        for k, one in enumerate(jobs)
    )
    kept = SchedulingInstance(**fields | {"jobs": late, "slots": 4})
    result = JobPlans().solve(kept, Limits(gap=1e-6))
    assert result.objective == pytest.approx(brute_force(kept).objective)
    assert result.gap <= 1e-5


def test_plans_are_listed_until_the_gap_is_closed(monkeypatch):
    asked = instances.load("scheduling/tiny-least-runs")
    result = JobPlans().solve(asked, Limits(gap=1e-7))
    assert result.gap <= 1e-6
    monkeypatch.setattr(kept_search, "EFFORT", kept_search.Effort(most_beginnings=0))
    less = JobPlans().solve(asked, Limits(gap=1e-7))
    assert "listed" not in less.details
    assert less.bound >= result.objective * (1 - 1e-9)


def test_without_time_there_are_still_a_schedule_and_a_bound():
    asked = instances.load("scheduling/change-j20-t20-g16")
    result = JobPlans().solve(asked, Limits(time_s=1e-6))
    assert result.objective <= result.bound <= 109.985
    assert evaluate(asked, result.solution).feasible


def test_where_no_job_is_worth_anything_there_is_nothing_to_generate():
    asked = drawn(0, 2, 2)
    jobs = tuple(
        job.model_copy(update={"minibatches": 1e9, "utility": AllOrNothing(value=1.0), "deadline": None})
        for job in asked.jobs
    )
    fields = {name: getattr(asked, name) for name in SchedulingInstance.model_fields}
    result = JobPlans().solve(SchedulingInstance(**fields | {"jobs": jobs}), Limits())
    assert result.objective == 0
    assert result.bound == pytest.approx(0, abs=1e-6)
