"""Plans of jobs within patterns of slots: cuts against every pattern, bounds against optima by trying everything."""

import itertools
import math

import numpy as np
import pytest
from scheduling_brute_force import CONCAVE, brute_force, random_instance
from volume import for_each, seeds

from ddlopt.frontier.scheduling.job_plans.patterned_jobs import PatternedJobs, bound_by_patterns
from ddlopt.frontier.scheduling.job_plans.patterned_plans import PatternedPlans
from ddlopt.frontier.scheduling.job_plans.slot_cuts import SlotCuts, SlotOptions
from ddlopt.frontier.scheduling.prices.plan_pricing import PlanPricing
from ddlopt.solvers.heuristic import Asked

ALWAYS = Asked(lambda: False)


def drawn(seed):
    """A tiny instance with types, or with changes, least runs or neither."""
    common = {"jobs": 3, "slots": 4, "utilities": (*CONCAVE, "all_or_nothing"), "deadlines": seed % 3 == 0}
    if seed % 2:
        kind = {"types": ("mixed", "apart")[seed // 2 % 2], "places": ((2, 1), (2, 2), (3, 2))[seed % 3]}
    else:
        kind = {"places": (3,), "change": seed % 3 != 1, "least_runs": seed % 3 == 2, "energy": seed % 5 == 0}
    return random_instance(np.random.default_rng(seed), **common, **kind)


def some_options(rng):
    jobs, rows = int(rng.integers(2, 5)), int(rng.integers(1, 3))
    counts = rng.integers(1, 4, jobs)
    weights = np.concatenate([np.sort(rng.integers(0, 5, (count, rows)), axis=0) for count in counts])
    return SlotOptions(np.cumsum([0, *counts]), weights.astype(np.int64), rng.integers(4, 8, rows))


def all_patterns(options):
    """(n, O) 0/1: one option or none of each job, within the capacity."""
    ranges = [(-1, *range(a, b)) for a, b in itertools.pairwise(options.starts.tolist())]
    for chosen in itertools.product(*ranges):
        pattern = np.zeros(len(options.weights))
        pattern[[o for o in chosen if o >= 0]] = 1.0
        if (pattern @ options.weights <= options.capacity).all():
            yield pattern


@for_each("seed", seeds(12, 200))
def test_every_pattern_keeps_to_cuts_and_what_no_mixture_has_breaks_one(seed):
    rng = np.random.default_rng(seed)
    options = some_options(rng)
    cuts, patterns = SlotCuts(options), np.array(list(all_patterns(options)))
    costs = rng.random(len(options.weights))
    assert cuts.dearest(costs) == pytest.approx((patterns @ costs).max())
    mixture = rng.dirichlet(np.ones(len(patterns))) @ patterns
    assert cuts.cut(mixture * (1 - 1e-9)) is None
    used = rng.random(len(options.weights)) * (rng.random(len(options.weights)) < 0.7)
    cut = cuts.cut(used)
    worth = used if cut is None else cut
    if cut is None:  # then no multipliers tell it from mixtures
        for multipliers in rng.random((50, len(used))):
            assert multipliers @ used <= (patterns @ multipliers).max() * (1 + 1e-4) + 1e-9
    else:
        assert worth @ used > 1
        assert (patterns @ cut).max() <= 1 + 1e-9
        assert (cut >= 0).all()


@for_each("seed", seeds(4, 120))
def test_bounds_hold_and_are_no_worse_than_those_by_prices(seed):
    asked = drawn(seed)
    best = brute_force(asked).objective
    jobs = PatternedJobs.of(asked)
    if jobs is None:
        assert asked.accelerators.matter  # places on servers matter there
        return
    patterned = PatternedPlans(jobs, ALWAYS)
    before = patterned.solve(0.0).value
    patterned.improve(0.0)
    found = patterned.best
    assert best - 1e-9 * (1 + best) <= found.bound <= before * (1 + 1e-5) + 1e-6
    # The bound is the worth of single plans at the charges, and what patterns pay.
    pricing = PlanPricing(asked, keeps=not asked.accelerators.matter)
    assert pricing.instance is asked
    value = jobs.plans_at(found.charges, found.income, 1e-9, 10_000)[1]
    assert found.bound == pytest.approx(math.fsum(value) + found.income, rel=1e-5, abs=1e-6)


def test_three_jobs_of_which_two_fit_are_no_three_halves():
    """Two workers each on three places: capacities allow one and a half of them in a slot, patterns one."""
    asked = random_instance(np.random.default_rng(1), jobs=1, slots=2, places=(3,), arrivals=False)
    job = asked.jobs[0].model_copy(update={"min_workers": 2, "max_workers": 2, "deadline": None, "arrival": 0})
    rate = asked.model_copy(update={"jobs": (job,)}).progress(0, 2)
    jobs = tuple(job.model_copy(update={"name": name, "minibatches": rate, "change_s": 1.0}) for name in "abc")
    asked = asked.model_copy(update={"jobs": jobs, "energy_price_per_j": 0.0})
    alone = float(job.utility.of(1.0))
    assert bound_by_patterns(asked, ALWAYS, 0.0) == pytest.approx(2 * alone, rel=1e-4)
    assert PatternedPlans(PatternedJobs.of(asked), ALWAYS).solve(0.0).value == pytest.approx(3 * alone, rel=1e-4)


def test_what_is_not_covered_has_no_bound():
    asked = random_instance(np.random.default_rng(0), jobs=2, slots=2, objective="max_min")
    assert bound_by_patterns(asked.model_copy(update={"objective": "max_min"}), ALWAYS, 0.0) == math.inf


def test_a_capacity_is_what_the_check_lets_pass():
    """A hundred workers are on a server with a little less than a hundred places."""
    instance = random_instance(np.random.default_rng(0), jobs=2, slots=2, places=(3,))
    jobs = [job.model_copy(update={"demand": {"gpu": 1.0}}) for job in instance.jobs]
    tight = instance.changed(servers=[{"count": 1, "capacity": {"gpu": 100 * (1 - 5e-10)}}], jobs=jobs)
    found = PatternedJobs.of(tight)
    assert found is not None
    assert found.options.capacity.tolist() == [100]
