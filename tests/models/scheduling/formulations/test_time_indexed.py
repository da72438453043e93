"""The time-indexed model against trying everything, against itself in another form, and in its options."""

import dataclasses
import itertools

import numpy as np
import pyomo.environ as pyo
import pytest
from scheduling_brute_force import CONCAVE, brute_force, random_instance
from volume import for_each, spread

from ddlopt.models.errors import InfeasibleError, SolverError
from ddlopt.models.scheduling import (
    AllOrNothing,
    Capped,
    Contention,
    Job,
    Logarithmic,
    Network,
    RingTiming,
    Run,
    Schedule,
    SchedulingInstance,
    ServerGroup,
    evaluate,
)
from ddlopt.models.scheduling.formulations.time_indexed.time_indexed import TimeIndexed
from ddlopt.solvers.backends import Highs
from ddlopt.solvers.backends.matrix import linear_model
from ddlopt.solvers.contracts import Limits, Status
from ddlopt.solvers.exact import Exact, build_model, lp_relaxation
from ddlopt.solvers.scheduling.slot.knapsack_kernels import choose_widths

FEATURES = {
    "plain": {},
    "finishing": {"utilities": ("all_or_nothing", "logarithmic", "capped")},
    "windows": {"deadlines": True, "min_workers": True, "latency": True, "pollux": True},
    "energy": {"energy": True},
    "two-servers": {"places": (2, 2)},
    "uneven": {"places": (3, 2), "uneven": True},
    "powered-servers": {"places": (2, 2), "energy": True},
    "star": {"places": (3, 2), "network": "star"},
    "star-uneven": {"places": (2, 2), "network": "star", "uneven": True, "pollux": True},
    "tree": {"places": (2, 1, 2), "network": "tree"},
    "deep-tree": {"jobs": 2, "places": (1, 2, 1, 2), "network": "tree"},
    "change": {"change": True, "slots": 4, "places": (3,)},
    "change-places": {"change": True, "slots": 3, "places": (2, 1), "energy": True},
    "types": {"types": "mixed", "places": (2, 2)},
    "types-finishing": {"types": "mixed", "places": (2, 1, 1), "utilities": ("all_or_nothing",), "energy": True},
    "types-apart": {"types": "apart", "places": (2, 2), "min_workers": True, "uneven": True},
    "types-change": {"types": "mixed", "change": True, "jobs": 2, "places": (2, 1)},
    "change-star": {"change": True, "slots": 3, "places": (2, 1), "network": "star"},
}
OBJECTIVES = ("utility", "max_min", "makespan", "completion")


def solve(formulation, instance, gap=1e-6):
    """(objective by evaluate, bound) of the schedule that the model finds; None if there is none."""
    try:
        model = build_model("scheduling", formulation, instance)
    except InfeasibleError:
        return None
    # At 1e-9, HiGHS 1.15.1 takes an optimum for infeasible once in some thousand models, and says that it is optimal.
    outcome = Highs({"mip_feasibility_tolerance": 1e-8}).solve(model, Limits(gap=gap, time_s=60))
    if outcome.status is Status.INFEASIBLE:
        return None
    schedule = formulation.read(model.scheduling, instance)
    evaluation = evaluate(instance, schedule)
    assert evaluation.violations == ()
    return float(evaluation.objective), formulation.objective_value(instance, outcome.bound)


def check(instance, best, found):
    if best is None or found is None:
        assert best is found
        return
    objective, bound = found
    # Tangents and the chord below the least progress lie above utilities by some 1e-5 of each.
    assert objective == pytest.approx(best.objective, rel=3e-5, abs=1e-9)
    assert bound == pytest.approx(best.objective, rel=6e-5, abs=1e-8)
    excess = (bound - best.objective) * (1 if instance.sense == "maximize" else -1)
    assert excess >= -1e-7 * abs(best.objective) - 1e-8


def values_hold(model):
    """Every constraint and bound of the model at the values of its variables, none of which is missing."""
    linear = linear_model(model)
    values = np.array([variable.value for variable in linear.columns], dtype=float)
    activity = linear.matrix @ values
    assert np.isfinite(values).all()
    assert (activity >= linear.row_lower - 1e-7).all()
    assert (activity <= linear.row_upper + 1e-7).all()
    assert (values >= linear.lower - 1e-9).all()
    assert (values <= linear.upper + 1e-9).all()
    assert (values[linear.integer] == values[linear.integer].round()).all()
    return float(linear.cost @ values + linear.offset)


def check_start(instance, best):
    """The best schedule is a complete solution of the model, of the same objective, and is read again."""
    formulation = TimeIndexed()
    model = build_model("scheduling", formulation, instance)
    formulation.start(model.scheduling, instance, best.schedule)
    value = formulation.objective_value(instance, values_hold(model))
    assert value == pytest.approx(best.objective, rel=3e-5, abs=1e-9)
    again = evaluate(instance, formulation.read(model.scheduling, instance))
    assert float(again.objective) == pytest.approx(best.objective, rel=1e-9, abs=1e-9)


@pytest.mark.parametrize(
    ("feature", "objective", "preemptive"), spread(itertools.product(FEATURES, OBJECTIVES, [True, False]), 9)
)
def test_equals_brute_force(feature, objective, preemptive):
    for seed in range(2):
        instance = random_instance(
            np.random.default_rng(seed), objective=objective, preemptive=preemptive, **FEATURES[feature]
        )
        best = brute_force(instance)
        check(instance, best, solve(TimeIndexed(), instance))
        if TimeIndexed(places="pool").refuses(instance) is None:
            check(instance, best, solve(TimeIndexed(places="servers"), instance))
        if best is not None:
            check_start(instance, best)


@pytest.mark.slow
@for_each("preemptive", [True, False])
@for_each("objective", OBJECTIVES)
@for_each("feature", FEATURES)
def test_equals_brute_force_often(feature, objective, preemptive):
    for seed in range(2, 40):
        instance = random_instance(
            np.random.default_rng(seed), objective=objective, preemptive=preemptive, **FEATURES[feature]
        )
        check(instance, brute_force(instance), solve(TimeIndexed(), instance))


def wider_instance(seed=0, **changes):
    """Eight jobs on eight GPUs of two servers, six slots."""
    rng = np.random.default_rng(seed)
    return random_instance(rng, jobs=8, slots=6, places=(4, 4), utilities=CONCAVE, **changes)


@for_each("objective", OBJECTIVES)
def test_pool_and_servers_agree(objective):
    instance = wider_instance(objective=objective, energy=objective == "utility")
    if objective == "utility":  # one power for all servers, and none of their own
        alike = tuple(ServerGroup(capacity=group.capacity, worker_w=100.0) for group in instance.servers)
        instance = instance.model_copy(update={"servers": alike})
    pool, servers = (TimeIndexed(places=form) for form in ("pool", "servers"))
    assert pool.refuses(instance) is None
    one, other = solve(pool, instance, gap=1e-5), solve(servers, instance, gap=1e-5)
    assert (one is None) is (other is None)
    if one is not None:
        assert one[0] == pytest.approx(other[0], rel=3e-5)


@for_each("objective", OBJECTIVES)
def test_relaxation_is_no_worse_than_the_optimum(objective):
    instance = wider_instance(3, objective=objective)
    found = solve(TimeIndexed(), instance, gap=1e-5)
    relaxed = lp_relaxation(TimeIndexed(), instance).objective
    better = (relaxed - found[0]) * (1 if instance.sense == "maximize" else -1)
    assert better >= -1e-9 * abs(found[0])


def test_relaxation_of_two_jobs_is_pinned():
    # One GPU, two slots, jobs of two and three slots, linear worth 2 and 3: any slot is worth 1, and both are used.
    timing = RingTiming(gradient_bytes=0, bandwidth_bytes_per_s=1, forward_s_per_sample=1)
    jobs = tuple(
        Job(name=f"{slots}", max_workers=1, timing=timing, minibatches=10 * slots, utility=Capped(value=slots))
        for slots in (2, 3)
    )
    fields = {"slots": 2, "slot_s": 10, "servers": (ServerGroup(capacity={"gpu": 1}),), "jobs": jobs}
    instance = SchedulingInstance(name="two", **fields)
    assert lp_relaxation(TimeIndexed(), instance).objective == pytest.approx(2.0)
    # Fair to both: x slots for the first and 2 - x for the second with x / 2 = (2 - x) / 3.
    fair = SchedulingInstance(name="two", objective="max_min", **fields)
    assert lp_relaxation(TimeIndexed(), fair).objective == pytest.approx(0.4)
    assert solve(TimeIndexed(), fair)[0] == pytest.approx(1 / 3)


def test_relaxation_of_a_random_instance_is_pinned():
    assert lp_relaxation(TimeIndexed(), wider_instance(1)).objective == pytest.approx(21.0015, rel=1e-5)


def test_envelope_widths_have_the_same_relaxation_and_a_scope():
    instance = wider_instance(2, latency=True)
    every, envelope = TimeIndexed(), TimeIndexed(widths="envelope")
    pieces = lp_relaxation(every, instance).objective, lp_relaxation(envelope, instance).objective
    assert pieces[0] == pytest.approx(pieces[1], rel=1e-5)
    assert every.scope(instance) is None
    assert envelope.scope(instance) == "widths on the envelope"
    best, restricted = solve(every, instance, gap=1e-5), solve(envelope, instance, gap=1e-5)
    assert restricted[0] <= best[0] * (1 + 1e-5)


def one_job(utility=None, minibatches=100.0, latency_s=0.0, most=4, **changes):
    timing = RingTiming(gradient_bytes=0, bandwidth_bytes_per_s=1, forward_s_per_sample=1, latency_s=latency_s)
    job = Job(name="job", max_workers=most, timing=timing, minibatches=minibatches, utility=utility or Capped())
    fields = {"slots": 5, "slot_s": 10, "servers": (ServerGroup(count=2, capacity={"gpu": 4}),), "jobs": (job,)}
    return SchedulingInstance(name="one", **{**fields, **changes})


def test_start_gives_up_workers_and_slots_that_are_of_no_use():
    # With so much latency one worker is the best; it takes three slots.
    instance = one_job(latency_s=1.0, minibatches=30)
    formulation = TimeIndexed(places="servers")
    model = build_model("scheduling", formulation, instance)
    wide = Run(job=0, start=0, slots=5, workers=((0, 1), (1, 3)))
    formulation.start(model.scheduling, instance, Schedule(instance="one", runs=(wide,)))
    values_hold(model)
    (run,) = formulation.read(model.scheduling, instance).runs
    assert (run.start, run.slots, run.workers) == (0, 3, ((1, 1),))


def test_start_without_the_end_that_a_job_needs_is_none():
    instance = one_job(AllOrNothing(), minibatches=100, preemptive=False)
    formulation = TimeIndexed()
    model = build_model("scheduling", formulation, instance)
    formulation.start(
        model.scheduling, instance, Schedule(instance="one", runs=(Run(job=0, start=1, slots=2, workers=((0, 4),)),))
    )
    assert values_hold(model) == 0.0


@for_each(
    ("formulation", "changes", "words"),
    [
        (TimeIndexed(places="pool"), {"network": Network(switches=1, links=((0, 2, 1), (1, 2, 1)))}, "no valid model"),
        (TimeIndexed(), {"network": Network(links=((0, 1, 1), (1, 0, 1)), duplex=False)}, None),
        (TimeIndexed(), {"network": Network(switches=1, links=((0, 1, 1), (1, 2, 1), (2, 0, 1)))}, "slot-embedding"),
        (
            TimeIndexed(),
            {"contention": Contention(between_servers_bytes_per_s=1, within_server_bytes_per_s=2)},
            "depends on the others; use exact",
        ),
        (TimeIndexed(), {"network": Network(links=((0, 1, 1),)), "bandwidth": "shared"}, "bandwidth is shared"),
        (TimeIndexed(done=(1.0, 2.0)), {}, "2 figures, but there are 1 jobs"),
        (TimeIndexed(done=(-1.0,)), {}, "at least 0"),
        (TimeIndexed(tangents=1), {}, "at least 2"),
        (TimeIndexed(), {}, None),
    ],
)
def test_refuses_in_one_line(formulation, changes, words):
    reason = formulation.refuses(one_job(**changes))
    if words is None:
        assert reason is None
    else:
        assert words in reason
        assert "\n" not in reason


@pytest.mark.parametrize(
    "changes", [{"objective": "makespan"}, {"objective": "completion"}, {"objective": "makespan", "preemptive": False}]
)
def test_a_job_that_cannot_finish_is_named(changes):
    instance = one_job(minibatches=1000, **changes)
    with pytest.raises(InfeasibleError, match=r"jobs\[0\] 'job' must be finished, but .* takes 25 slots, and it has 5"):
        build_model("scheduling", TimeIndexed(), instance)


def test_done_before_counts():
    # Four workers do 40 mini-batches a slot: 60 of 100 are done, one slot fills them up.
    instance = one_job(Capped(value=2.0), slots=1)
    assert solve(TimeIndexed(), instance)[0] == pytest.approx(0.8)
    for done, value in ((0.0, 0.8), (30.0, 1.4), (60.0, 2.0), (80.0, 2.0), (100.0, 2.0), (130.0, 2.0)):
        formulation = TimeIndexed(done=(done,))
        model = build_model("scheduling", formulation, instance)
        outcome = Highs().solve(model, Limits())
        assert formulation.objective_value(instance, outcome.objective) == pytest.approx(value)
    assert TimeIndexed(done=(30.0,)).scope(instance) == "after mini-batches done before"
    assert TimeIndexed(done=(0.0,)).scope(instance) is None


@for_each("seed", range(4))
def test_one_slot_after_others_is_the_knapsack_of_gains(seed):
    rng = np.random.default_rng(seed)
    instance = random_instance(rng, jobs=6, slots=1, places=(6,), arrivals=False, utilities=CONCAVE)
    done = [float(job.minibatches * rng.uniform(0, 1.2)) for job in instance.jobs]
    worth = [
        [job.utility.of(min(1.0, (before + instance.progress(i, w)) / job.minibatches)) for w in (0, *job.widths)]
        for i, (job, before) in enumerate(zip(instance.jobs, done, strict=True))
    ]
    gains = [[value - row[0] for value in row] for row in worth]
    starts = np.concatenate(([0], np.cumsum([len(row) for row in gains])))
    best, _ = choose_widths(starts, np.concatenate(gains).astype(float), np.ones(6, dtype=np.int64), 6)
    formulation = TimeIndexed(done=tuple(done))
    outcome = Highs().solve(build_model("scheduling", formulation, instance), Limits(gap=1e-7))
    value = formulation.objective_value(instance, outcome.objective)
    assert value - sum(row[0] for row in worth) == pytest.approx(best, rel=1e-4)


@for_each("objective", OBJECTIVES)
def test_exact_proves_optimality_and_keeps_its_bound_apart(objective):
    instance = wider_instance(5, objective=objective)
    result = Exact("time-indexed", "scheduling", TimeIndexed()).solve(instance, Limits(time_s=60))
    assert result.status is Status.OPTIMAL
    assert result.gap <= 1e-4
    assert result.checked


def test_exact_estimates_that_are_off_are_no_error():
    # Two tangents are far above the utility in between: the model's value shows it, the objective does not.
    instance = one_job(Logarithmic(), minibatches=100, slots=1)
    result = Exact("time-indexed", "scheduling", TimeIndexed(tangents=2)).solve(instance, Limits())
    assert result.objective == pytest.approx(Logarithmic().of(0.4))
    assert result.status is Status.OPTIMAL  # within reach are no progress and one slot, where the tangents touch
    instance = one_job(Logarithmic(), minibatches=100, slots=2, jobs=(instance.jobs[0],) * 3)
    formulation = TimeIndexed(tangents=2)
    result = Exact("time-indexed", "scheduling", formulation).solve(instance, Limits())
    assert result.checked
    estimate = Highs().solve(build_model("scheduling", formulation, instance), Limits()).objective
    assert formulation.objective_value(instance, estimate) > result.objective * (1 + 1e-3)


def test_exact_keeps_a_start_that_evaluates_better():
    instance = wider_instance(6)
    best = Exact("time-indexed", "scheduling", TimeIndexed()).solve(instance, Limits(gap=1e-6))
    coarse = Exact("time-indexed", "scheduling", TimeIndexed(tangents=2))
    kept = coarse.solve(instance, Limits(gap=0.5), start=best.solution)
    assert kept.objective == best.objective


def test_fractions_are_no_schedule():
    instance = one_job()
    model = build_model("scheduling", TimeIndexed(), instance)
    for variable in model.scheduling.running.values():
        variable.set_value(0.3)
    with pytest.raises(SolverError, match=r"job 0 runs to 0\.3"):
        TimeIndexed().read(model.scheduling, instance)


def test_workers_that_are_not_the_width_are_no_schedule():
    instance = one_job()
    formulation = TimeIndexed(places="servers")
    model = build_model("scheduling", formulation, instance)
    for variable in model.scheduling.component_data_objects(pyo.Var):
        variable.set_value(0)
    model.scheduling.running[0, 3, 0].set_value(1)
    model.scheduling.workers[0, 0, 0].set_value(2)
    with pytest.raises(SolverError, match="job 0 has width 3 in slot 0, but 2 workers"):
        formulation.read(model.scheduling, instance)
    model.scheduling.workers[0, 0, 0].set_value(2.5)
    with pytest.raises(SolverError, match=r"2\.5, which is not whole"):
        formulation.read(model.scheduling, instance)


def test_options_are_frozen():
    with pytest.raises(dataclasses.FrozenInstanceError):
        TimeIndexed().widths = "envelope"
