"""Plans near the best at charges: all of them are listed, and the program over them bounds every schedule."""

import itertools

import numpy as np
import pytest
from scheduling_brute_force import brute_force, random_instance
from volume import for_each

from ddlopt import load
from ddlopt.frontier.scheduling.job_plans import near_plans
from ddlopt.frontier.scheduling.job_plans.master import PlanMaster
from ddlopt.frontier.scheduling.job_plans.near_plans import NearPlans
from ddlopt.frontier.scheduling.job_plans.patterned_jobs import PatternedJobs
from ddlopt.frontier.scheduling.job_plans.patterned_plans import PatternedPlans
from ddlopt.frontier.scheduling.prices.plan_pricing import PlanPricing
from ddlopt.solvers.backends.contracts import Outcome
from ddlopt.solvers.contracts import Limits, Status
from ddlopt.solvers.heuristic import Asked

ALWAYS, ENOUGH = Asked(lambda: False), Limits(time_s=60, gap=1e-6)
SHAPES = (
    {"places": (3,)},
    {"places": (2, 2), "network": "star"},
    {"places": (4,), "deadlines": True, "arrivals": False},
    {"places": (2, 1, 1), "network": "mesh", "latency": True},
    {"places": (1, 2, 1), "network": "tree", "min_workers": True},
)


def near(instance):
    jobs = PatternedJobs.of(instance)
    patterned = PatternedPlans(jobs, ALWAYS)
    patterned.improve(0.0)
    patterned.master.close()
    return NearPlans(jobs, patterned)


@for_each("seed", range(40))
def test_no_schedule_is_better_and_one_of_a_single_pool_is_found(seed):
    shape = SHAPES[seed % len(SHAPES)]
    instance = random_instance(np.random.default_rng(seed), slots=3, **shape)
    best = brute_force(instance).objective
    plans = near(instance)
    found = plans.nearest(best - 0.01, ALWAYS, ENOUGH, 0)
    assert best * (1 - 1e-6) <= found.bound <= plans.bound * (1 + 1e-9)
    if len(shape["places"]) == 1 and PatternedJobs.of(instance).lengths.max() == 1:
        # What fits by widths can be placed, and every slot is apart.
        assert found.bound == pytest.approx(best, rel=1e-5)


def test_no_program_is_asked_that_is_too_large_for_its_time(monkeypatch):
    """HiGHS does not look at its clock while it makes a program smaller."""
    sizes = []

    def whole_plans(master, *_):
        sizes.append(sum(1 + np.count_nonzero(plan.uses) for plan in master.plans))
        return [], Outcome(Status.NO_SOLUTION)

    monkeypatch.setattr(PlanMaster, "whole_plans", whole_plans)
    plans = near(random_instance(np.random.default_rng(0), slots=3, **SHAPES[0]))
    for time_s in (None, 40 / near_plans.EFFORT.coefficients_a_second, 0.5 / near_plans.EFFORT.coefficients_a_second):
        plans.nearest(0.0, ALWAYS, Limits(time_s), 0)
    assert len(sizes) == 2
    assert sizes[1] <= 40 < sizes[0]


@for_each("seed", range(20))
def test_all_plans_that_are_near_enough_are_listed(seed):
    """Against every choice of widths in the slots of a job's window."""
    rng = np.random.default_rng(seed)
    instance = random_instance(rng, jobs=2, slots=4, **SHAPES[seed % len(SHAPES)])
    plans, pricing = near(instance), PlanPricing(instance, keeps=True)
    taken = float(rng.choice([0.01, 0.1, 0.5]))
    for job in range(2):
        wanted, widths = instance.jobs[job], pricing.offers[job].widths
        window = range(wanted.arrival, instance.last_slot(job))
        costs, part_of = plans._costs[job], dict(zip(widths.tolist(), pricing.parts[job].tolist(), strict=True))
        listed = {tuple(row) for row in pricing.widths_of(job, plans._listed_of(job, taken)).tolist()}
        for chosen in itertools.product([0, *widths.tolist()], repeat=len(window)):
            done = sum(part_of[width] for width in chosen if width)
            paid = sum(costs[t, int(np.searchsorted(widths, w))] for t, w in zip(window, chosen, strict=True) if w)
            worth = float(wanted.utility.of(min(1.0, done))) - paid
            more = any(done - part_of[width] >= 1 for width in chosen if width)
            if worth > plans._values[job] - taken + 1e-9 and not more:
                row = np.zeros(instance.slots, dtype=np.int64)
                row[window.start : window.stop] = chosen
                spans = plans._jobs.span_of
                for k in set(spans.tolist()) - {-1}:
                    here = row[spans == k]
                    row[spans == k] = [*sorted(here[here > 0]), *here[here == 0]]
                assert tuple(row.tolist()) in listed


@pytest.mark.slow
def test_it_says_what_a_leaf_spine_network_holds():
    instance = load("scheduling/leaf-spine-j20-t10-s8")
    plans = near(instance)
    assert plans.bound == pytest.approx(91.72714, abs=1e-4)  # without rows of rings 91.73461
    found = plans.nearest(91.7143, ALWAYS, ENOUGH, 0)
    assert found.bound == pytest.approx(91.723495, abs=2e-5)
