"""Finish-time fairness: times with a fair share, evaluate, bounds and the model against trying everything."""

from fractions import Fraction

import numpy as np
import pytest
from refusals import one_line
from scheduling_brute_force import brute_force, fair_time_s, random_instance
from volume import for_each, seeds

from ddlopt.models.errors import InstanceError
from ddlopt.models.scheduling import Job, RingTiming, Run, Schedule, SchedulingInstance, ServerGroup, evaluate
from ddlopt.models.scheduling.bounds import bound
from ddlopt.models.scheduling.fair_time import fair_s
from ddlopt.models.scheduling.times.bounds import exact_time_bound
from ddlopt.solvers.catalogue import method
from ddlopt.solvers.contracts import Limits, Status

PLACES = ((4,), (2, 2), (3, 1))


def drawn(seed):
    """A tiny random instance in which all jobs want more than there is room for at once."""
    asked = random_instance(
        np.random.default_rng(seed),
        jobs=(3, 4)[seed % 2],
        slots=(6, 5)[seed % 2],
        places=PLACES[seed % 3],
        objective="finish_time_fairness",
        min_workers=seed % 2 == 0,
        deadlines=seed % 4 == 3,
        latency=seed % 5 == 0,
        preemptive=seed % 7 != 0,
    )
    more = tuple(job.model_copy(update={"minibatches": job.minibatches * 1.5}) for job in asked.jobs)
    return asked.model_copy(update={"jobs": more})


@for_each("seed", seeds(3, 200))
def test_the_optimum_is_that_of_trying_everything(seed):
    asked = drawn(seed)
    best = brute_force(asked)
    found = method(("time-indexed", "exact")[seed % 2], "scheduling").solve(asked, Limits(time_s=300))
    if best is None:
        assert found.status is Status.INFEASIBLE
        return
    assert found.objective == pytest.approx(best.objective, rel=1e-9)
    assert found.bound <= best.objective
    assert bound(asked) <= best.objective
    assert exact_time_bound(asked) <= best.objective * (1 + 1e-9)
    exact = evaluate(asked, found.solution, exact=True)
    assert float(exact.objective) == pytest.approx(found.objective, rel=1e-12)
    ends = [max(run.end for run in found.solution.runs if run.job == place) for place in range(len(asked.jobs))]
    taken = [10 * (end - job.arrival) for end, job in zip(ends, asked.jobs, strict=True)]
    assert exact.details["unfair_jobs"] == sum(
        each > fair_s(asked, place, Fraction) for place, each in enumerate(taken)
    )


@for_each("seed", seeds(20, 200))
def test_times_with_a_fair_share_are_those_of_a_linear_program(seed):
    asked = drawn(seed)
    for place in range(len(asked.jobs)):
        assert fair_s(asked, place) == pytest.approx(fair_time_s(asked, place), rel=1e-9)
        assert float(fair_s(asked, place, Fraction)) == pytest.approx(fair_s(asked, place), rel=1e-12)


def gangs(widths=(1, 1, 2, 4), minibatches=(4.0, 2.0, 4.0, 8.0), slots=12, **fields):
    """Jobs on 4 GPUs that do a mini-batch per worker and slot."""
    jobs = tuple(
        Job(
            name=f"job-{place}",
            min_workers=width,
            max_workers=width,
            minibatches=wanted,
            timing=RingTiming(gradient_bytes=0, bandwidth_bytes_per_s=1, forward_s_per_sample=1),
        )
        for place, (width, wanted) in enumerate(zip(widths, minibatches, strict=True))
    )
    given = {"name": "gangs", "slots": slots, "slot_s": 1.0, "servers": (ServerGroup(capacity={"gpu": 4}),)}
    return SchedulingInstance(**given | {"jobs": jobs, "objective": "finish_time_fairness"} | fields)


def test_a_gang_has_its_share_of_the_time_as_gavel_has_it():
    """A quarter of 4 GPUs: one worker all the time, two half of it, four a quarter of it."""
    assert [fair_s(gangs(), place) for place in range(4)] == [4, 2, 4, 8]


def test_a_narrow_job_has_no_more_than_all_of_the_time():
    assert [fair_s(gangs((1, 1), (4.0, 2.0)), place) for place in range(2)] == [4, 2]


def test_the_ratio_is_that_of_the_worst_job():
    asked = gangs((4, 4), (4.0, 8.0), slots=3)
    runs = (Run(job=0, start=0, slots=1, workers=((0, 4),)), Run(job=1, start=1, slots=2, workers=((0, 4),)))
    found = evaluate(asked, Schedule(instance="gangs", instance_digest=asked.digest, runs=runs), exact=True)
    assert found.objective == Fraction(3, 4)
    assert found.details["mean_ratio"] == Fraction(1, 2) / 2 + Fraction(3, 4) / 2
    assert found.details["unfair_jobs"] == 0


def test_an_unfinished_job_is_no_answer():
    asked = gangs((4, 4), (4.0, 8.0), slots=3)
    runs = (Run(job=0, start=0, slots=1, workers=((0, 4),)), Run(job=1, start=1, slots=1, workers=((0, 4),)))
    found = evaluate(asked, Schedule(instance="gangs", instance_digest=asked.digest, runs=runs))
    assert found.objective is None
    assert [one.kind for one in found.violations] == ["job_is_finished"]


def test_given_times_count():
    asked = gangs((4, 4), (4.0, 8.0), slots=3)
    jobs = tuple(job.model_copy(update={"fair_s": 1.5}) for job in asked.jobs)
    other = gangs((4, 4), (4.0, 8.0), slots=3, jobs=jobs)
    assert [fair_s(other, place, Fraction) for place in range(2)] == [Fraction(3, 2)] * 2
    assert bound(other) == pytest.approx(4 / 3)
    assert exact_time_bound(other) == Fraction(4, 3)
    assert other.digest != asked.digest


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"fair_s": 0.0}, "fair_s"),
        ({"fair_s": float("nan")}, "fair_s"),
        ({"fair_s": float("inf")}, "fair_s"),
    ],
)
def test_odd_times_are_refused(change, words):
    data = gangs().model_dump(mode="json")
    data["jobs"][0] |= change
    with one_line(InstanceError, words):
        SchedulingInstance.from_data(data, "here")


def test_a_time_that_counts_nothing_is_refused():
    data = gangs().model_dump(mode="json") | {"objective": "makespan"}
    data["jobs"][1]["fair_s"] = 3.0
    with pytest.raises(InstanceError, match="fair_s counts in objective 'finish_time_fairness' only"):
        SchedulingInstance.from_data(data, "here")


def test_where_a_share_does_not_say_the_speed_times_are_asked_for():
    data = gangs().model_dump(mode="json")
    data["servers"][0]["type"] = "v100"
    data["jobs"][0]["speeds"] = {"v100": 1.0}
    with pytest.raises(InstanceError, match="give its fair_s"):
        SchedulingInstance.from_data(data, "here")
    data["jobs"][0]["fair_s"] = 4.0
    assert SchedulingInstance.from_data(data, "here").jobs[0].fair_s == 4.0


@pytest.mark.parametrize(
    ("name", "preemptive"),
    [("slot-patterns", True), ("one-piece", False), ("job-plans", True), ("lp-guided", True), ("rigid-gangs", False)],
)
def test_methods_that_do_not_know_it_say_so(name, preemptive):
    assert "objective is" in method(name, "scheduling").refuses(gangs(preemptive=preemptive))
