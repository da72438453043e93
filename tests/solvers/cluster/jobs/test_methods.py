"""Methods for cluster jobs against all schedules, the programs against each other, and the public data."""

import json
from fractions import Fraction

import pytest
from jobs_brute_force import brute_force, drawn
from refusals import one_line
from shared_data import shared_data
from volume import for_each, seeds

import ddlopt
from ddlopt.instances.readers import convert
from ddlopt.models.cluster import JobsInstance, JobsSchedule, evaluate
from ddlopt.models.errors import InstanceError, RangeError
from ddlopt.solvers.catalogue import method
from ddlopt.solvers.contracts import Limits, Status

HEURISTICS = ("sequential", "sequential:widths=fastest", "sequential:widths=narrowest", "list-jobs")


def of(name, instance):
    return method(name, "cluster").solve(instance, Limits(gap=0))


def value_of(found, instance):
    checked = evaluate(instance, found.solution, exact=True)
    assert checked.feasible
    return checked.objective


@for_each("seed", seeds(13, 500))
def test_the_program_finds_the_best_of_all_schedules_and_no_heuristic_is_better(seed):
    instance = drawn(seed)
    best, found = brute_force(instance), of("start-order", instance)
    assert value_of(found, instance) == best
    assert found.status is Status.OPTIMAL
    assert found.bound <= best
    for name in HEURISTICS:
        assert value_of(of(name, instance), instance) >= best


@for_each("seed", seeds(3, 40))
def test_the_integer_program_of_flows_agrees(seed):
    instance = drawn(seed + 1000)
    assert of("server-flows", instance).objective == pytest.approx(float(brute_force(instance)), rel=1e-6, abs=1e-6)


@pytest.mark.parametrize("objective", ["makespan", "weighted_completion", "weighted_tardiness"])
def test_the_program_of_flows_takes_seconds_of_a_calendar(objective):
    """Times of 10^9 units left no room for a job's length, and all was infeasible."""
    jobs = [
        {"name": f"{k}", "iterations": 1, "step_s": [4 + k], "arrival_s": 1.75e9 + k, "deadline_s": 1.75e9 + 6}
        for k in range(3)
    ]
    instance = JobsInstance.from_data({"name": "late", "servers": 1, "objective": objective, "jobs": jobs})
    found = of("server-flows", instance)
    assert found.status is Status.OPTIMAL
    late = {"makespan": 15, "weighted_completion": 4 + 9 + 15, "weighted_tardiness": 0 + 3 + 9}[objective]
    begun = {"makespan": 1, "weighted_completion": 3, "weighted_tardiness": 0}[objective]
    assert found.objective - begun * 1.75e9 == late


def test_the_program_of_flows_refuses_jobs_that_are_too_far_apart():
    jobs = [{"name": f"{k}", "iterations": 1e-3, "step_s": [3.0], "arrival_s": 1e6 * k} for k in range(2)]
    instance = JobsInstance.from_data({"name": "far", "servers": 1, "jobs": jobs})
    with pytest.raises(RangeError, match=r"1e\+06 s, and the longest that counts takes 0.003 s: too far apart"):
        of("server-flows", instance)


@for_each("seed", seeds(3, 40))
def test_the_two_programs_for_slots_agree(seed):
    instance = drawn(seed + 2000, "slots", 2)
    found = of("start-order", instance)
    assert found.status is Status.OPTIMAL
    assert of("slot-widths", instance).objective == pytest.approx(found.objective, rel=1e-6, abs=1e-6)
    for name in HEURISTICS:
        assert value_of(of(name, instance), instance) >= value_of(found, instance)


@pytest.mark.parametrize(
    ("servers", "steps"), [(1, (1 + 5e-10,)), (3, (2 + 1e-9, 1 + 5e-10)), (2, (3 + 1e-8, 1.5))], ids=str
)
def test_a_slot_for_less_than_solvers_see_is_counted(servers, steps):
    """Another slot for half a tolerance of a job's work was left out, and the answer failed the check."""
    jobs = [{"name": name, "iterations": 1, "step_s": steps} for name in "ab"]
    instance = JobsInstance.from_data(
        {"name": "little", "servers": servers, "jobs": jobs, "mode": "slots", "slot_s": 1}
    )
    found, best = of("slot-widths", instance), of("start-order", instance)
    assert best.status is Status.OPTIMAL
    assert value_of(found, instance) == pytest.approx(best.objective, rel=1e-9)


def test_slots_for_what_widths_in_turn_leave_are_found():
    jobs = [{"name": name, "iterations": 1, "step_s": [2.5, 1 / (0.6 - 5e-10)]} for name in "abc"]
    instance = JobsInstance.from_data({"name": "little", "servers": 3, "jobs": jobs, "mode": "slots", "slot_s": 1})
    found, best = of("slot-widths", instance), of("start-order", instance)
    assert found.bound * (1 - 1e-9) <= best.objective <= value_of(found, instance)


def test_the_efficient_width_that_does_not_fit_twice():
    instance = ddlopt.load("cluster/jobs-twins-k5")
    assert [of(name, instance).objective for name in ("exact", "sequential")] == [100, 110]


def test_a_schedule_with_shorter_times_keeps_its_starts_or_is_no_bound():
    """An order that is the best for some times may be worse with shorter ones, if it is run anew."""

    def jobs(*times):
        rows = zip((2, 2, 2, 1), times, ((0,), (0,), (1,), (0,)), strict=True)
        return [
            {"name": f"j{n}", "iterations": 1, "arrival_s": arrival, "step_s": [None] * at[0] + [time]}
            for n, (arrival, time, at) in enumerate(rows)
        ]

    slow = JobsInstance.from_data({"name": "slow", "servers": 3, "jobs": jobs(7, 7, 2, 9)})
    fast = slow.changed(jobs=jobs(7, 5, 2, 8))
    starts = JobsSchedule.from_data(
        {"instance": "slow", "runs": [[{"start": str(at), "servers": w}] for at, w in ((2, 1), (2, 1), (9, 2), (1, 1))]}
    )
    assert evaluate(slow, starts, exact=True).objective == 11
    assert evaluate(fast, starts.changed(instance="fast"), exact=True).feasible
    again = starts.changed(runs=[[{"start": str(at), "servers": w}] for at, w in ((2, 1), (2, 1), (7, 2), (9, 1))])
    assert evaluate(fast, again, exact=True).objective == 17
    assert of("exact", fast).objective <= of("exact", slow).objective == 11


def test_bounds_with_the_least_times_hold_for_all_plans():
    instance = ddlopt.load("cluster/jobs-known-j5-k6")
    lower, upper = of("exact", instance.at_least_times()), of("exact", instance)
    assert lower.status is upper.status is Status.OPTIMAL
    assert lower.objective <= upper.objective
    kept = upper.solution.changed(instance=f"{instance.name}-least")
    assert evaluate(instance.at_least_times(), kept, exact=True).objective >= lower.objective


def test_step_tables_are_read_and_what_is_wrong_is_a_line(tmp_path):
    data = {"servers": 2, "jobs": [{"iterations": 2, "arrival": 1, "step": [3, None]}], "mode": "slots", "slot": 2}
    path = tmp_path / "Tiny_Jobs.json"
    path.write_text(json.dumps(data))
    found = convert(path, "step-tables", objective="weighted_completion")
    assert (found.name, found.slot_s, found.jobs[0].step_s, found.jobs[0].arrival_s) == ("tiny-jobs", 2, (3, None), 1)
    for changes, words in (
        ({"hosts": 2}, "'hosts' is unknown"),
        ({"jobs": 3}, "jobs is no list"),
        ({"jobs": [3]}, "jobs[0] is no object"),
        ({"jobs": [{"steps": [3]}]}, "jobs[0]: 'steps' is unknown"),
        ({"servers": 1}, "step_s has 2 widths, and there are 1 servers"),
        ({"servers": None}, "servers"),
    ):
        path.write_text(json.dumps(data | changes))
        with one_line(InstanceError, words):
            convert(path, "step-tables")


def test_every_value_of_the_public_data_is_found():
    values = json.loads(shared_data("cluster_tiny/values.json").read_text())
    for name, value in values.items():
        instance = convert(shared_data(f"cluster_tiny/{name}.json"), "step-tables")
        found = of("exact", instance)
        assert value_of(found, instance) == Fraction(value["value"]), name
        assert found.status is Status.OPTIMAL
        for rule in ("efficient", "fastest"):
            if f"sequential_{rule}" in value:
                lost = of(f"sequential:widths={rule}", instance)
                assert value_of(lost, instance) == Fraction(value[f"sequential_{rule}"]["value"]), name
