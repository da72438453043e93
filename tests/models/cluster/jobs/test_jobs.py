"""Cluster jobs: the check and every way to break a schedule, bounds, bad instances, intervals of step times."""

from fractions import Fraction

import pyomo.environ as pyo
import pytest
from jobs_brute_force import brute_force, drawn
from refusals import one_line
from volume import for_each, seeds

from ddlopt.models.cluster import JobsInstance, JobsSchedule, bound, evaluate
from ddlopt.models.cluster.jobs.bounds import exact_jobs_bound
from ddlopt.models.cluster.jobs.formulations.slot_widths import SlotWidths
from ddlopt.models.errors import InstanceError

JOBS = [
    {"name": "a", "iterations": 2, "arrival_s": 1, "weight": 2, "deadline_s": 4, "step_s": [4, 2.5]},
    {"name": "b", "iterations": 3, "deadline_s": 100, "step_s": [2, None, 1]},
]
DATA = {"name": "two", "servers": 3, "jobs": JOBS}
SLOTS = {"mode": "slots", "slot_s": 2}


def made(**changes):
    return JobsInstance.from_data(DATA | changes)


def runs(*jobs):
    return JobsSchedule.from_data(
        {"instance": "two", "runs": [[{"start": start, "servers": count} for start, count in own] for own in jobs]}
    )


GOOD = runs([("1", 2)], [("0", 1)])
"""Ends at 1 + 2 · 2.5 = 6 and 3 · 2 = 6."""


@pytest.mark.parametrize("exact", [False, True])
def test_objectives_of_rigid_jobs(exact):
    values = {"makespan": 6, "weighted_completion": 2 * 6 + 6, "weighted_tardiness": 2 * 2}
    for objective, value in values.items():
        found = evaluate(made(objective=objective), GOOD, exact)
        assert (found.feasible, found.objective) == (True, value)
    used = (2 * 5 + 6) / Fraction(3 * 6)
    assert evaluate(made(), GOOD, True).details["utilization"] == used


@pytest.mark.parametrize("exact", [False, True])
def test_a_job_with_slots_ends_within_its_last_one(exact):
    # a: 2 s on one server are half an iteration, then 4/5 each on two: 0.5 + 0.8 + 0.7, which take 1.75 s of slot 4.
    answer = runs([("1", 1), ("3", 2), ("4", 2)], [("0", 3), ("5", 1)])
    found = evaluate(made(**SLOTS), answer, exact)
    assert (found.feasible, found.objective) == (True, 12)
    assert evaluate(made(**SLOTS, objective="weighted_completion"), answer, True).objective == 2 * Fraction(39, 4) + 12


@pytest.mark.parametrize(
    ("changes", "answer", "kind"),
    [
        ({}, runs([("1", 2)]), "every job has an entry"),
        ({}, runs([("1", 2)], []), "every job runs"),
        ({}, runs([("1", 2)], [("0", 1), ("9", 1)]), "every job runs"),
        ({}, runs([("1", 3)], [("0", 1)]), "widths have a step time"),
        ({}, runs([("1", 2)], [("0", 2)]), "widths have a step time"),
        ({}, runs([("1/2", 2)], [("0", 1)]), "a job starts after its arrival"),
        ({}, runs([("1", 2)], [("1", 3)]), "servers suffice"),
        ({}, runs([("2", 2)], [("1", 3)]), "servers suffice"),
        (SLOTS, runs([("1/2", 2)], [("0", 1)]), "slots are whole numbers"),
        (SLOTS, runs([("1", 2), ("1", 1)], [("0", 3), ("2", 3)]), "a job has servers once a slot"),
        (SLOTS, runs([("1", 2), ("01", 1)], [("0", 3), ("2", 3)]), "a job has servers once a slot"),
        (SLOTS, runs([("0", 2), ("2", 2), ("3", 2)], [("5", 3), ("6", 3)]), "a job starts after its arrival"),
        (SLOTS, runs([("1", 2), ("2", 2)], [("5", 3), ("6", 3)]), "all iterations are done"),
        (
            SLOTS,
            runs([("1", 2), ("2", 2), ("3", 2), ("4", 2)], [("5", 3), ("6", 3)]),
            "a job that is done has no servers",
        ),
        (SLOTS, runs([("1", 2), ("2", 2), ("3", 2)], [("3", 3), ("4", 3)]), "servers suffice"),
    ],
)  # fmt: skip
def test_every_way_to_break_a_schedule_is_found(changes, answer, kind):
    for exact in (False, True):
        told = {each.kind: each for each in evaluate(made(**changes), answer, exact).violations}
        assert kind in told
        if kind in ("all iterations are done", "a job that is done has no servers"):
            assert told[kind].lhs > told[kind].rhs == 0


@for_each("seed", seeds(20, 300))
def test_bounds_hold_for_all_schedules(seed):
    instance = drawn(seed)
    best = brute_force(instance)
    assert bound(instance) <= exact_jobs_bound(instance) <= best


def test_bounds_by_hand():
    assert exact_jobs_bound(made()) == 6
    crowded = made(jobs=[*JOBS, {"name": "c", "iterations": 10, "step_s": [3]}])
    # Server-seconds: 8 + 6 + 30.
    assert exact_jobs_bound(crowded) == 30
    many = made(jobs=[{"name": f"j{n}", "iterations": 1, "step_s": [4, 3]} for n in range(9)])
    assert exact_jobs_bound(many) == 12
    # A job waits for the next slot.
    assert exact_jobs_bound(made(**SLOTS, objective="weighted_completion")) == 2 * 7 + 3


def test_times_below_which_no_plan_is_make_an_instance_of_their_own():
    jobs = [job | {"least_s": [None if step is None else step / 2 for step in job["step_s"]]} for job in JOBS]
    lower = made(jobs=jobs).at_least_times()
    assert [job.step_s for job in lower.jobs] == [(2, 1.25), (1, None, 0.5)]
    assert made().at_least_times().jobs == made().jobs


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"servers": 2}, "jobs[1] ('b'): step_s has 3 widths, and there are 2 servers"),
        ({"jobs": []}, "jobs"),
        ({"jobs": [JOBS[0], JOBS[0]]}, "jobs[1] ('a') is named like jobs[0]"),
        ({"jobs": [JOBS[0] | {"step_s": [None]}]}, "jobs[0] ('a') fits nowhere"),
        ({"jobs": [JOBS[0] | {"step_s": [0]}]}, "step_s"),
        ({"jobs": [JOBS[0] | {"deadline_s": 0.5}]}, "its deadline, 0.5 s, is before its arrival, 1 s"),
        ({"jobs": [JOBS[0] | {"deadline_s": None}], "objective": "weighted_tardiness"}, "has no deadline_s"),
        ({"jobs": [JOBS[0] | {"least_s": [1]}]}, "least_s has 1 widths, and step_s 2"),
        ({"jobs": [JOBS[0] | {"least_s": [5, 1]}]}, "on 1 servers least_s is 5 and step_s 4"),
        ({"jobs": [JOBS[0] | {"least_s": [None, 1]}]}, "least_s says that there is no plan"),
        ({"mode": "slots"}, "slot_s is None, and mode is slots"),
        ({"slot_s": 2}, "slot_s is 2.0, and mode is rigid"),
        ({"mode": "slots", "slot_s": 1e-4}, "slot_s is 0.0001: jobs may take 1.5e+05 slots, at most 10000"),
        ({"mode": "elastic"}, "mode"),
        ({"objective": "cost"}, "objective"),
    ],
)
def test_bad_instances_are_refused_in_a_line(changes, words):
    with one_line(InstanceError, words):
        made(**changes)


def test_a_slot_for_what_little_is_left_is_read_back():
    """25 iterations fit into a slot; what is beyond 50 is less than rounding, but the check wants it done."""
    job = {"name": "a", "iterations": 50.000000025, "step_s": [2]}
    instance = JobsInstance.from_data({"name": "a", "servers": 1, "jobs": [job], "mode": "slots", "slot_s": 50})
    schedule = runs([("0", 1), ("1", 1), ("2", 1)])
    assert evaluate(instance, schedule).feasible
    host = pyo.ConcreteModel()
    host.inner = pyo.Block()
    SlotWidths().build(host.inner, instance)
    SlotWidths().start(host.inner, instance, schedule)
    assert SlotWidths().read(host.inner, instance).runs == schedule.runs


def test_a_slot_for_what_widths_in_turn_leave_is_added_where_servers_are_free():
    """0.4 on one server and 0.6 less 5e-10 on two are not all; the slot behind them is somebody else's."""
    jobs = [
        {"name": "a", "iterations": 1, "step_s": [2.5, 1 / (0.6 - 5e-10)]},
        {"name": "b", "iterations": 1, "step_s": [None, 1]},
    ]
    instance = JobsInstance.from_data({"name": "two", "servers": 2, "jobs": jobs, "mode": "slots", "slot_s": 1})
    host = pyo.ConcreteModel()
    SlotWidths().build(host, instance)
    for family in (host.full, host.final):
        for variable in family.values():
            variable.set_value(0)
    for variable in (host.full[0, 0, 1], host.final[0, 1, 2], host.final[1, 2, 2]):
        variable.set_value(1)
    found = SlotWidths().read(host, instance)
    assert found.runs == runs([("0", 1), ("1", 2), ("3", 1)], [("2", 2)]).runs
    assert evaluate(instance, found).feasible
