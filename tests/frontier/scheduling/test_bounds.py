"""Bounds against every schedule of tiny instances, and against the linear relaxation that they are the dual of."""

import numpy as np
import pytest
from scheduling_brute_force import CONCAVE, UTILITIES, brute_force, random_instance
from scipy.optimize import linprog
from volume import for_each, slow

from ddlopt.frontier.scheduling import bounds as plans_module
from ddlopt.frontier.scheduling.bounds import prices as clearing_prices
from ddlopt.frontier.scheduling.prices import lagrangian_kernels as kernels
from ddlopt.frontier.scheduling.prices.lagrangian import PricedJobs, lagrangian_bound, quick_bound
from ddlopt.frontier.scheduling.prices.plan_pricing import PlanPricing
from ddlopt.frontier.scheduling.prices.priced_jobs import jobs_as_arrays
from ddlopt.models.scheduling import (
    Capped,
    Job,
    RingTiming,
    SchedulingInstance,
    ServerGroup,
)
from ddlopt.models.scheduling.bounds import bound
from ddlopt.models.scheduling.pool import pool
from ddlopt.models.scheduling.problem import PROBLEM

FEATURES = {
    "plain": {},
    "windows": {"deadlines": True, "min_workers": True, "latency": True, "pollux": True},
    "all or nothing": {"utilities": ("all_or_nothing",), "deadlines": True},
    "uneven": {"places": (3, 2), "slots": 2, "uneven": True},
    "star": {"places": (2, 2), "slots": 2, "network": "star"},
    "energy": {"places": (2, 1), "slots": 2, "energy": True},
    "contention": {"places": (2, 2), "slots": 2, "contention": True},
    "in one piece": {"preemptive": False, "min_workers": True},
    "max-min": {"objective": "max_min", "deadlines": True},
    "max-min, uneven": {"objective": "max_min", "uneven": True, "min_workers": True},
}


@for_each("cases", [4, slow(30)])
@for_each("features", FEATURES)
def test_no_schedule_is_better(features, cases):
    rng = np.random.default_rng(len(features))
    ratios = []
    for _ in range(cases):
        instance = random_instance(rng, **FEATURES[features])
        best = brute_force(instance).objective
        above = PROBLEM.tightest_bound(instance)
        assert best <= above * (1 + 1e-9)
        assert above <= bound(instance) * (1 + 1e-9)
        ratios.append(best / above if above else 1.0)
    # It is no bound of another problem, either: on one-server instances it often is as good as exact.
    assert np.median(ratios) > 0.6


@pytest.mark.parametrize("features", ["plain", "windows", "uneven", "star", "energy", "in one piece"])
def test_whole_widths_at_the_same_prices_are_a_sharper_bound(features):
    rng = np.random.default_rng(7)
    sharper = 0
    for _ in range(30):
        instance = random_instance(rng, **FEATURES[features])
        fractions = clearing_prices(instance).bound
        whole = min(bound(instance), plans_module.prices_bound(instance), plans_module.plans_bound(instance))
        assert whole == PROBLEM.tightest_bound(instance) <= fractions
        sharper += whole < fractions * (1 - 1e-4)
    assert sharper >= 5


@pytest.mark.slow
def test_plans_without_room_are_a_bound_still():
    rng = np.random.default_rng(1)
    worse = 0
    for _ in range(40):
        instance = random_instance(rng, jobs=3, slots=4, places=(4,))
        at = clearing_prices(instance).prices
        above = PlanPricing(instance, keeps=False).answer(at, room=1).bound
        assert brute_force(instance).objective <= above * (1 + 1e-9)
        worse += above > PlanPricing(instance, keeps=False).answer(at).bound * (1 + 1e-9)
    assert worse


def test_large_instances_do_not_ask_for_plans(monkeypatch):
    instance = _instance(np.random.default_rng(3))
    assert PROBLEM.tightest_bound(instance) < bound(instance)
    monkeypatch.setattr(plans_module, "EFFORT", plans_module.Effort(plans=0))
    instance = _instance(np.random.default_rng(3))
    assert PROBLEM.tightest_bound(instance) == clearing_prices(instance).bound == quick_bound(instance).bound


def _instance(rng, jobs=8, slots=6, resources=("gpu",), objective="utility", deadlines=True, utility=None):
    made = []
    for number in range(jobs):
        widest, arrival = int(rng.integers(1, 6)), int(rng.integers(0, slots))
        timing = RingTiming(
            gradient_bytes=rng.uniform(5e7, 3e8),
            bandwidth_bytes_per_s=1e9,
            forward_s_per_sample=0.1,
            latency_s=float(rng.choice([0.0, 0.02])),
        )
        made.append(
            Job(
                name=str(number),
                arrival=arrival if deadlines else 0,
                deadline=int(rng.integers(arrival + 1, slots + 1)) if deadlines else None,
                min_workers=int(rng.integers(1, widest + 1)),
                max_workers=widest,
                timing=timing,
                minibatches=rng.uniform(100, 3000),
                demand={name: float(rng.integers(1, 3)) for name in resources},
                utility=Capped(value=rng.uniform(0.5, 3)) if utility is None else utility,
            )
        )
    servers = (ServerGroup(capacity=dict.fromkeys(resources, 10.0)),)
    return SchedulingInstance(name="lp", slots=slots, slot_s=60, servers=servers, jobs=tuple(made), objective=objective)


def _relaxation(instance):
    """(optimum, prices (T, R)) of the linear relaxation over all widths, with the least utility or the sum of them."""
    cluster = pool(instance)
    jobs, resources = len(instance.jobs), len(cluster.capacity)
    width_rows = instance.slots * resources
    columns = [
        (i, t, w)
        for i, job in enumerate(instance.jobs)
        for t in range(job.arrival, instance.last_slot(i))
        for w in job.widths
    ]
    places = {pair: row for row, pair in enumerate(sorted({(i, t) for i, t, _ in columns}))}
    count = len(columns)
    matrix = np.zeros((width_rows + len(places) + jobs, count + jobs + 1))
    limits = np.concatenate([np.tile(cluster.capacity, instance.slots), np.ones(len(places)), np.zeros(jobs)])
    cost = np.zeros(count + jobs + 1)
    for column, (i, t, w) in enumerate(columns):
        matrix[t * resources : (t + 1) * resources, column] = w * cluster.demand[i]
        matrix[width_rows + places[i, t], column] = 1
        matrix[width_rows + len(places) + i, column] = -min(1.0, instance.progress(i, w) / instance.jobs[i].minibatches)
    for i, job in enumerate(instance.jobs):
        part = count + i if instance.objective == "utility" else -1
        matrix[width_rows + len(places) + i, part] = 1
        cost[part] = -job.utility.value if instance.objective == "utility" else -1
    solved = linprog(cost, matrix, limits, bounds=[(0, None)] * count + [(0, 1)] * (jobs + 1), method="highs")
    prices = -solved.ineqlin.marginals[:width_rows].reshape(instance.slots, resources)
    return -solved.fun, np.maximum(prices, 0.0)


@pytest.mark.parametrize("cases", [5, slow(15)])
@pytest.mark.parametrize("resources", [("gpu",), ("cpu", "gpu")])
@pytest.mark.parametrize("objective", ["utility", "max_min"])
def test_strong_duality(resources, objective, cases):
    """At the shadow prices of the linear relaxation the bound is its optimum, and nowhere is it less."""
    rng = np.random.default_rng(7)
    binding = 0
    for _ in range(cases):
        instance = _instance(rng, resources=resources, objective=objective, deadlines=objective == "utility")
        optimum, prices = _relaxation(instance)
        priced = PricedJobs(instance)
        binding += bool(prices.any())
        assert priced.answer(prices).bound == pytest.approx(optimum, rel=1e-7)
        assert priced.answer(prices * rng.uniform(0.5, 1.5, prices.shape)).bound >= optimum * (1 - 1e-9)
        for found, part in ((quick_bound(instance), 1e-2), (lagrangian_bound(instance, 2000), 1e-4)):
            assert optimum * (1 - 1e-9) <= found.bound <= optimum * (1 + part)
            assert priced.answer(found.prices).bound == pytest.approx(found.bound, rel=1e-9)
    assert binding > cases / 2


def test_the_relaxation_is_solved_where_prices_are_all_there_is():
    """One place, two equal jobs that each want both slots: 1 of 2, at a price of half a job for a slot."""
    timing = RingTiming(gradient_bytes=0, bandwidth_bytes_per_s=1, forward_s_per_sample=1)
    jobs = tuple(Job(name=name, max_workers=1, timing=timing, minibatches=120) for name in "ab")
    instance = SchedulingInstance(name="x", slots=2, slot_s=60, servers=(ServerGroup(capacity={"gpu": 1}),), jobs=jobs)
    found = lagrangian_bound(instance, 2000)
    assert found.bound == pytest.approx(1.0, rel=1e-5)
    assert found.prices.ravel() == pytest.approx([0.5, 0.5], rel=1e-3)


@for_each("kind", CONCAVE)
def test_the_inner_problem_is_solved(kind):
    """What a job buys at a price is the best of a fine grid of parts, and utilities are those of the instance."""
    rng = np.random.default_rng(3)
    for _ in range(20):
        utility = UTILITIES[kind](rng)
        instance = _instance(rng, jobs=1, deadlines=False, utility=utility)
        arrays, _, _ = jobs_as_arrays(instance, np.zeros(1, dtype=np.int64))
        row = int(arrays.kinds[0]), float(arrays.values[0]), float(arrays.shapes[0]), float(arrays.offsets[0])
        for part in (0.0, 0.2, 1.0):
            assert kernels.utility(*row, part) == pytest.approx(float(utility.of(part)), abs=1e-12)
        price = float(rng.uniform(0.05, 1.5)) * utility.slope(0.3)
        per_part = float(arrays.workers[arrays.firsts[0]])
        many = np.full((1, 500), price / per_part)
        arrays = arrays._replace(group_end=np.array([500]))
        found = kernels.respond(arrays, many, -1.0)
        free = [utility.of(part) - price * part for part in np.linspace(0, 1, 2001)]
        if len(arrays.amounts) == 1 and arrays.amounts[0] * 500 > 1:
            assert found.total == pytest.approx(max(free), abs=1e-5)
        assert found.total <= max(free) + 1e-5


def test_prices_are_calculated_once(monkeypatch):
    instance = _instance(np.random.default_rng(1))
    first = clearing_prices(instance)
    with monkeypatch.context() as patch:
        patch.setattr(plans_module, "quick_bound", lambda _: pytest.fail("calculated again"))
        assert clearing_prices(instance) is first
    assert clearing_prices(_instance(np.random.default_rng(2))).bound != first.bound


def test_times_have_no_prices():
    with pytest.raises(ValueError, match="'makespan' is not maximised"):
        PricedJobs(_instance(np.random.default_rng(1)).model_copy(update={"objective": "makespan"}))
