"""Patterns of widths: against brute force, the time-indexed model and counts of widths alone."""

import itertools

import numpy as np
import pyomo.environ as pyo
import pytest
from scheduling_brute_force import brute_force, random_instance
from volume import for_each, spread

from ddlopt.frontier.scheduling.formulations.configurations import (
    Configurations,
    PatternPlan,
    all_patterns,
    patterns_of,
    widths_of,
)
from ddlopt.frontier.scheduling.intervals import intervals
from ddlopt.models.scheduling import AllOrNothing, Capped, Job, Network, RingTiming, SchedulingInstance, ServerGroup
from ddlopt.models.scheduling.formulations.time_indexed.time_indexed import TimeIndexed
from ddlopt.solvers.backends.highs import Highs
from ddlopt.solvers.contracts import Limits, Status
from ddlopt.solvers.exact import Exact, build_model, lp_relaxation

FEATURES = {
    "plain": {},
    "windows": {"deadlines": True, "min_workers": True, "latency": True, "pollux": True},
    "uneven": {"uneven": True},
    "several servers": {"places": (2, 2)},
    "max-min": {"objective": "max_min", "deadlines": True},
}


def _job(name, widths, minibatches, **more):
    timing = RingTiming(gradient_bytes=0, bandwidth_bytes_per_s=1, forward_s_per_sample=1)
    return Job(name=name, min_workers=widths[0], max_workers=widths[1], timing=timing, minibatches=minibatches, **more)


def _instance(jobs, slots=2, gpus=3, **more):
    settings = {"servers": (ServerGroup(capacity={"gpu": gpus}),), **more}
    return SchedulingInstance(name="x", slots=slots, slot_s=60, jobs=tuple(jobs), **settings)


def _exact(formulation):
    return Exact("x", "scheduling", formulation)


def test_an_area_that_fits_is_no_schedule():
    """3 jobs of width 2 in 2 slots with 3 places: an area of 6 of 6, but only one of them fits at a time."""
    instance = _instance([_job(name, (2, 2), 120) for name in "abc"])
    plan = PatternPlan.of(instance)
    assert list(all_patterns(plan, plan.spans[0])) == [((2, 2),), ((1, 2),), ((0, 2),)]
    result = _exact(Configurations()).solve(instance, Limits(gap=0))
    assert result.status is Status.OPTIMAL
    assert result.objective == pytest.approx(2)
    assert lp_relaxation(Configurations(), instance).objective == pytest.approx(2)
    assert lp_relaxation(TimeIndexed(), instance).objective == pytest.approx(3)


@pytest.mark.parametrize("features", spread(FEATURES, 2))
def test_equal_to_brute_force_and_no_weaker_than_time_indexed(features):
    rng = np.random.default_rng(len(features))
    stronger = 0
    for _ in range(12):
        instance = random_instance(rng, **FEATURES[features])
        best = brute_force(instance).objective
        result = _exact(Configurations()).solve(instance, Limits(gap=1e-7))
        assert result.objective == pytest.approx(best, rel=1e-5, abs=1e-9)
        by_patterns = lp_relaxation(Configurations(), instance).objective
        by_slots = lp_relaxation(TimeIndexed(), instance).objective
        assert best * (1 - 1e-7) <= by_patterns <= by_slots * (1 + 1e-5)
        stronger += by_patterns < by_slots * (1 - 1e-4)
    assert stronger or features == "several servers"


def test_energy_of_workers_counts():
    power = {"servers": (ServerGroup(capacity={"gpu": 3}, worker_w=100),), "energy_price_per_j": 1e-4}
    instance = _instance([_job("a", (1, 3), 500, utility=Capped(value=5))], **power)
    # A worker-slot brings 5 · 60 / 500 = 0.6 and costs 100 · 60 · 1e-4 = 0.6 less a hair.
    assert _exact(Configurations()).solve(instance, Limits()).objective == pytest.approx(0, abs=1e-9)
    cheaper = SchedulingInstance(
        **{**{name: getattr(instance, name) for name in type(instance).model_fields}, "energy_price_per_j": 5e-5}
    )
    assert _exact(Configurations()).solve(cheaper, Limits()).objective == pytest.approx(6 * (0.6 - 0.3))


def test_intervals_lie_between_events():
    jobs = [
        _job("a", (1, 1), 1, arrival=1, deadline=4),
        _job("b", (1, 1), 1, arrival=3),
        _job("c", (1, 1), 1, arrival=7),
    ]
    found = [(span.first, span.last, span.jobs) for span in intervals(_instance(jobs, slots=9))]
    assert found == [(1, 3, (0,)), (3, 4, (0, 1)), (4, 7, (1,)), (7, 9, (1, 2))]


def test_start_and_read_give_a_schedule_back():
    rng = np.random.default_rng(11)
    for objective in ("utility", "max_min"):
        instance = random_instance(rng, slots=4, objective=objective)
        schedule = brute_force(instance).schedule
        model = build_model("scheduling", Configurations(), instance)
        block = model.component("scheduling")
        Configurations().start(block, instance, schedule)
        plan = PatternPlan.of(instance)
        again = Configurations().read(block, instance)
        before, after = (patterns_of(plan, widths_of(instance, one)) for one in (schedule, again))
        assert before == after
        # The values are a solution of the model: with all of them fixed, it is feasible, and worth as much.
        for variable in model.component_data_objects(pyo.Var):
            assert variable.value is not None
            variable.fix()
        outcome = Highs().solve(model, Limits())
        assert outcome.status is Status.OPTIMAL
        value = Configurations().objective_value(instance, outcome.objective)
        assert value == pytest.approx(brute_force(instance).objective, rel=1e-4)


def test_patterns_given_are_the_scope():
    instance = _instance([_job("a", (1, 3), 600), _job("b", (1, 3), 600)])
    some = Configurations(((((0, 1),), ((0, 1), (1, 1))),))
    assert some.scope(instance) == "patterns given"
    result = _exact(some).solve(instance, Limits())
    assert result.objective == pytest.approx(4 * 60 / 600)
    assert result.scope_bound == pytest.approx(result.objective)
    assert result.bound == pytest.approx(6 * 60 / 600)


def test_every_pattern_fits_and_none_is_missing():
    rng = np.random.default_rng(4)
    instance = random_instance(rng, jobs=3, uneven=True, min_workers=True, arrivals=False)
    plan = PatternPlan.of(instance)
    choices = itertools.product(*((0, *c.widths) for c in plan.jobs))
    demand = instance.demand[:, 0]
    fitting = {
        tuple((job, width) for job, width in enumerate(widths) if width)
        for widths in choices
        if np.dot(widths, demand) <= instance.capacity[0, 0]
    }
    assert set(all_patterns(plan, plan.spans[0])) == fitting - {()}


_PAIR = [_job("a", (1, 3), 600), _job("b", (1, 3), 600)]


@for_each(
    ("changes", "reason"),
    [
        ({"objective": "makespan"}, "where a pattern is"),
        ({"preemptive": False}, "in any order"),
        (
            {"servers": (ServerGroup(count=2, capacity={"gpu": 3}),), "network": Network(links=((0, 1, 1e9),))},
            "which servers",
        ),
        ({"jobs": [_job("c", (1, 1), 1, utility=AllOrNothing())]}, "'c' is not concave"),
        ({"servers": (ServerGroup(capacity={"gpu": 3}, idle_w=1),), "energy_price_per_j": 1}, "power of their own"),
        (
            {
                "servers": (ServerGroup(capacity={"gpu": 3, "cpu": 4}),),
                "jobs": [_job(str(i), (1, 2), 9, demand={"gpu": 1, "cpu": 1 + i % 2}) for i in range(3)],
            },
            "2 resources can run short",
        ),
        ({"jobs": [_job(str(i), (1, 8), 600) for i in range(9)], "gpus": 30}, "more than 20000 patterns"),
    ],
)
def test_refusals_are_one_line(changes, reason):
    said = Configurations().refuses(_instance(**{"jobs": _PAIR, **changes}))
    assert reason in said
    assert "\n" not in said
