"""Column generation: bounds at every round, the relaxation over all patterns, optima on types of accelerators."""

import itertools
import os
import signal
import threading

import numpy as np
import pytest
from scheduling_brute_force import brute_force, random_instance

from ddlopt.frontier.scheduling.configurations import configurations
from ddlopt.frontier.scheduling.configurations.configurations import ColumnGeneration
from ddlopt.frontier.scheduling.configurations.master import Master
from ddlopt.frontier.scheduling.configurations.pricing import Pricing
from ddlopt.frontier.scheduling.formulations.configurations import Configurations, PatternPlan, all_patterns
from ddlopt.frontier.scheduling.prices.lagrangian import PricedJobs, quick_bound
from ddlopt.models.errors import NotApplicableError
from ddlopt.models.scheduling import Capped, Job, Logarithmic, RingTiming, SchedulingInstance, ServerGroup
from ddlopt.solvers.backends.highs import Highs
from ddlopt.solvers.contracts import Limits, Status
from ddlopt.solvers.exact import lp_relaxation

FEATURES = {
    "plain": {},
    "windows": {"deadlines": True, "min_workers": True, "latency": True, "pollux": True},
    "uneven": {"uneven": True},
    "several servers": {"places": (2, 2)},
    "max-min": {"objective": "max_min", "deadlines": True},
    "types": {"types": "mixed", "places": (2, 1, 2)},
    "gangs on one type": {"types": "apart", "places": (2, 2), "deadlines": True},
    "types, max-min": {"types": "mixed", "places": (3, 2), "objective": "max_min"},
}


def _instance(rng, jobs=8, slots=24, gpus=6, **more):
    """Contended: jobs want twice of what there is; few events."""
    made = []
    for number in range(jobs):
        widest = int(rng.integers(1, 5))
        timing = RingTiming(
            gradient_bytes=rng.uniform(5e7, 3e8), bandwidth_bytes_per_s=1e9, forward_s_per_sample=rng.uniform(0.1, 0.3)
        )
        wanted = 60 * float(timing.minibatches_per_s(widest)) * slots * gpus / jobs / widest * rng.uniform(1, 3)
        value = rng.uniform(0.5, 2)
        made.append(
            Job(
                name=str(number),
                arrival=int(rng.choice([0, slots // 3])),
                deadline=int(rng.choice([slots // 2, slots])),
                max_workers=widest,
                timing=timing,
                minibatches=wanted,
                utility=Capped(value=value) if number % 2 else Logarithmic(value=value),
            )
        )
    return SchedulingInstance(
        name="x", slots=slots, slot_s=60, servers=(ServerGroup(capacity={"gpu": gpus}),), jobs=tuple(made), **more
    )


@pytest.mark.parametrize("features", FEATURES)
def test_tiny_instances_have_bounds_and_with_types_their_optimum(features):
    rng = np.random.default_rng(len(features))
    method = ColumnGeneration(gap=1e-6)
    for _ in range(2):
        instance = random_instance(rng, **FEATURES[features])
        best = brute_force(instance).objective
        result = method.solve(instance, Limits(gap=2e-5))
        assert result.objective <= best * (1 + 1e-9)
        if instance.accelerators.matter and instance.objective == "utility":  # the rest is left to other methods
            assert result.objective == pytest.approx(best, rel=1e-5, abs=1e-9)
            assert result.status is Status.OPTIMAL
        bounds = [point.bound for point in result.trace if point.bound is not None]
        assert min(bounds) >= best * (1 - 1e-9)


@pytest.mark.parametrize("objective", ["utility", "max_min"])
def test_rounds_end_at_the_relaxation_over_all_patterns(objective):
    rng = np.random.default_rng(3)
    for _ in range(4):
        instance = _instance(rng, jobs=5, gpus=5, objective=objective)
        relaxed = lp_relaxation(Configurations(), instance).objective
        told = []
        method = ColumnGeneration(tolerance=1e-7, integer_s=1e-3)
        result = method.solve(instance, Limits(gap=1e-9), progress=told.append)
        bounds = [point.bound for point in told if point.bound is not None]
        assert bounds[-1] == pytest.approx(relaxed, rel=2e-5)
        assert all(later <= earlier for earlier, later in itertools.pairwise(bounds))
        assert len(bounds) >= result.details["rounds"] >= 1
        assert result.details["relaxation"] == pytest.approx(relaxed, rel=2e-5)
        assert result.objective <= relaxed * (1 + 1e-5)


@pytest.mark.slow
def test_schedules_are_near_the_bound():
    rng = np.random.default_rng(9)
    for _ in range(3):
        result = ColumnGeneration(integer_s=3).solve(_instance(rng, slots=120), Limits())
        assert result.gap < 3e-3


def test_prices_certify_bounds():
    """At any prices, each interval has its best pattern of all, and what that gives is a bound."""
    rng = np.random.default_rng(5)
    for features in FEATURES.values():
        for _ in range(2):
            instance = random_instance(rng, **features)
            best = brute_force(instance).objective
            plan = PatternPlan.of(instance)
            prices = rng.uniform(0, 2, len(instance.jobs))
            priced = Pricing(instance, plan).at(prices)
            assert priced.bound >= best * (1 - 1e-9)
            for span, worth, pattern in zip(plan.spans, priced.worths, priced.patterns, strict=True):
                worths = {p: _worth(plan, prices, p) for p in all_patterns(plan, span)}
                assert worth == pytest.approx(max(0.0, *worths.values()))
                assert not pattern or worths[pattern] == pytest.approx(worth)


def _worth(plan, prices, pattern):
    done = sum(prices[job] * gain / plan.jobs[job].wanted for job, gain in plan.gains(pattern))
    return done - plan.price(pattern)


@pytest.mark.parametrize("objective", ["utility", "max_min"])
def test_worth_of_progress_certifies_no_less_than_prices_on_slots(objective):
    """Jobs that buy at these prices pay so much for their last progress: with patterns, that is at least as good."""
    rng = np.random.default_rng(12)
    for _ in range(5):
        instance = _instance(rng, slots=12, objective=objective)
        plan, jobs = PatternPlan.of(instance), PricedJobs(instance)
        answer = quick_bound(instance)
        priced = Pricing(instance, plan).at(jobs.worth_of_progress(answer))
        assert priced.bound <= answer.bound * (1 + 1e-6)


def test_patterns_left_out_of_the_integer_program_cost_more_than_there_is():
    instance = _instance(np.random.default_rng(6), jobs=5, gpus=4)
    plan = PatternPlan.of(instance)
    asked = []
    master = Master(instance, plan, lambda: asked.append(True))
    for k, span in enumerate(plan.spans):
        for pattern in all_patterns(plan, span):
            assert master.add(k, pattern)
            assert not master.add(k, pattern)
    try:
        while True:
            optimum = master.solve()
            if not master.aim(optimum):
                break
        slack = 0.02 * optimum.value
        kept = master.worth_using(optimum, slack)
        assert 0 < sum(map(len, kept)) < sum(map(len, master.patterns))
        for k, (here, some) in enumerate(zip(master.patterns, kept, strict=True)):
            cost = {p: optimum.slot_prices[k] - _worth(plan, optimum.progress_prices, p) for p in here}
            assert min(cost.values()) >= -1e-7
            assert {p for p in here if cost[p] <= slack * (1 - 1e-9)} <= set(some)
        used = sum(sum(here.values()) for here in master.shares(optimum))
        assert used == pytest.approx(sum(span.slots for span in plan.spans))
        assert asked
    finally:
        master.close()
    again = Master(instance, plan, lambda: True)
    try:
        for k, here in enumerate(master.patterns):
            assert all(again.add(k, pattern) for pattern in here)
        assert again.solve() is None
    finally:
        again.close()


def test_a_start_is_kept_when_there_is_no_time():
    rng = np.random.default_rng(2)
    instance = _instance(rng)
    good = ColumnGeneration(integer_s=2).solve(instance, Limits())
    result = ColumnGeneration().solve(instance, Limits(time_s=1e-6), start=good.solution)
    assert result.objective == pytest.approx(good.objective)
    assert result.bound >= good.bound * (1 - 1e-6)


@pytest.mark.skipif(threading.current_thread() is not threading.main_thread(), reason="signals need the main thread")
@pytest.mark.parametrize("first", [True, False])
def test_ctrl_c_keeps_what_there_is(first):
    """In the first round, and later on in an integer program."""
    instance = _instance(np.random.default_rng(1), jobs=12, slots=200, gpus=9)
    rounds = []

    def press(point):
        rounds.append(point)
        if first or len(rounds) == 5:
            os.kill(os.getpid(), signal.SIGINT)

    result = ColumnGeneration(gap=0.0, tolerance=1e-7, integer_s=0.5).solve(instance, Limits(gap=0), progress=press)
    assert result.interrupted
    assert result.message == "interrupted"
    assert result.checked
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


@pytest.mark.slow
def test_ctrl_c_ends_the_integer_program(monkeypatch):
    class Pressed(Highs):
        def solve(self, *args, **options):
            timer = threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGINT))
            timer.start()
            try:
                return super().solve(*args, **options)
            finally:
                timer.join()

    monkeypatch.setattr(configurations, "Highs", Pressed)
    instance = _instance(np.random.default_rng(1), jobs=30, slots=60, gpus=20)
    result = ColumnGeneration(gap=0.0).solve(instance, Limits(gap=0))
    assert result.interrupted
    assert result.checked


def test_what_it_does_not_cover_is_one_line():
    instance = _instance(np.random.default_rng(1), preemptive=False)
    with pytest.raises(NotApplicableError, match="configurations does not cover 'x': jobs run in one piece"):
        ColumnGeneration().solve(instance, Limits())
