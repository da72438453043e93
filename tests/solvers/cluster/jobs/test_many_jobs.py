"""Rigid jobs of any number: the relaxation against brute force, exact starts of lists, the search."""

from fractions import Fraction
from types import SimpleNamespace

import numpy as np
import pytest
from jobs_brute_force import brute_force, drawn
from volume import for_each, seeds

import ddlopt
from ddlopt.instances.generators import generate
from ddlopt.models.cluster import JobsInstance
from ddlopt.models.cluster.jobs.evaluate import evaluate_jobs
from ddlopt.models.errors import NotApplicableError
from ddlopt.solvers import incumbents
from ddlopt.solvers.cluster.jobs import relaxation
from ddlopt.solvers.cluster.jobs.list_exchange import ListExchange, ListSearch
from ddlopt.solvers.cluster.jobs.relaxation import Resource, relaxed, useful
from ddlopt.solvers.contracts import Limits
from ddlopt.solvers.heuristic import Clock

OBJECTIVES = ("makespan", "weighted_completion", "weighted_tardiness")


@pytest.mark.parametrize("objective", OBJECTIVES)
@pytest.mark.parametrize("end", [0.3, 1.0, 5.0])
@pytest.mark.parametrize("seed", seeds(3, 60))
def test_no_schedule_is_below_the_relaxation(seed, objective, end):
    jobs = [job.model_dump() | {"deadline_s": job.arrival_s + 1} for job in drawn(seed).jobs]
    instance = drawn(seed).changed(objective=objective, jobs=jobs)
    best = float(brute_force(instance))
    search = ListSearch(instance, seed)
    assert relaxed(instance, end * search.end_s).value <= best * (1 + 1e-9) + 1e-9


def test_the_relaxation_of_one_job_is_its_time_and_of_two_their_servers():
    alone = JobsInstance.from_data(
        {
            "name": "one",
            "servers": 4,
            "jobs": [{"name": "a", "iterations": 2, "arrival_s": 3, "step_s": [4, 3, None, 5]}],
        }
    )
    assert relaxed(alone, 9.0).value == pytest.approx(9)
    sums = alone.changed(objective="weighted_completion")
    assert relaxed(sums, 9.0).value == pytest.approx(9)
    pair = [{"name": name, "iterations": 1, "step_s": [6.0]} for name in "ab"]
    both = JobsInstance.from_data({"name": "two", "servers": 1, "jobs": pair})
    assert relaxed(both, 12.0).value == pytest.approx(12)
    # 6 + 12; the relaxation shares the server, and its intervals are a little coarse.
    assert 17 < relaxed(both.changed(objective="weighted_completion"), 12.0).value <= 18


def test_what_jobs_use_besides_servers_bounds_them_too():
    # Each runs for 1 s on a server of its own, and takes 3 s of a link if nobody else uses it.
    jobs = [{"name": name, "iterations": 1, "step_s": [1.0]} for name in "ab"]
    both = JobsInstance.from_data({"name": "two", "servers": 4, "jobs": jobs})
    link = Resource(2.0, ({1: 6.0}, {1: 6.0}), 6.0)
    assert relaxed(both, 6.0).value == pytest.approx(1)
    assert relaxed(both, 6.0, others=(link,)).value == pytest.approx(6)
    # One that comes after 4 s has the link for 3 s from then on.
    late = both.changed(jobs=[jobs[0], jobs[1] | {"arrival_s": 4}])
    assert relaxed(late, 6.0, others=(link,)).value == pytest.approx(7)
    # On two servers the second needs no link, and that it takes as long is no reason to leave it out.
    wide = both.changed(jobs=[jobs[0], jobs[1] | {"step_s": [1.0, 1.0]}])
    spared = relaxed(wide, 6.0, others=(link,))
    assert spared.value == pytest.approx(3)
    assert spared.shares[1][2] == pytest.approx(1)
    # One after the other on the link: 3 and 6 s; parts of both in small intervals come near that.
    sums = both.changed(objective="weighted_completion")
    assert relaxed(sums, 6.0).value == pytest.approx(2)
    assert 6 < relaxed(sums, 6.0, others=(link,)).value <= 9 + 1e-9


def test_a_relaxation_for_which_there_is_no_time_bounds_nothing(monkeypatch):
    jobs = [{"name": str(n), "iterations": 1, "step_s": [3.0, 2.0]} for n in range(3)]
    few = JobsInstance.from_data({"name": "few", "servers": 4, "jobs": jobs, "objective": "weighted_completion"})
    asked = []

    def linprog(cost, options, **_):
        asked.append(options["time_limit"])
        return SimpleNamespace(x=np.ones(len(cost)), status=1)

    monkeypatch.setattr(relaxation, "linprog", linprog)
    found = relaxed(few, 60.0, seconds=7.0)
    assert (found.value, found.shares, asked) == (0.0, ({}, {}, {}), [7.0])


@for_each("h", [0.5, 1.9, 10.0, 1000.0])
@for_each("arrival", [0.0, 5.0])
def test_a_job_alone_is_bounded_by_its_time_however_long_intervals_are(h, arrival):
    alone = JobsInstance.from_data(
        {
            "name": "one",
            "servers": 2,
            "objective": "weighted_completion",
            "jobs": [{"name": "a", "iterations": 1, "arrival_s": arrival, "step_s": [1.0]}],
        }
    )
    for moved in (False, True):
        value = relaxed(alone, 64 * h, moved=moved).value
        assert value <= arrival + 1
        assert value == pytest.approx(arrival + 1)


def test_widths_that_take_no_less_are_left_out():
    job = JobsInstance.from_data(
        {"name": "one", "servers": 5, "jobs": [{"name": "a", "iterations": 1, "step_s": [4, 4, 3, 5, None]}]}
    ).jobs[0]
    assert useful(job) == [(1, 4.0), (3, 3.0)]


@pytest.mark.parametrize("seed", seeds(6, 60))
def test_lists_find_what_all_orders_find_and_their_starts_are_exact(seed):
    instance = drawn(seed)
    search = ListSearch(instance, seed)
    search.run(2)
    found = evaluate_jobs(instance, search.schedule(), exact=True)
    assert found.feasible
    assert float(found.objective) == pytest.approx(search.value)
    assert found.objective == brute_force(instance)


def test_a_list_is_followed_only_where_it_is_better():
    instance = generate("cluster", "jobs", 3, jobs=6, servers=6)
    search = ListSearch(instance, 0)
    search.run(1)
    value = search.value
    search.follow(np.arange(6), [1] * 6)
    assert search.value == value
    other = ListSearch(instance, 1)
    other.follow(search.order, search.widths)
    assert other.value <= value * (1 + 1e-12)


@pytest.mark.parametrize("objective", OBJECTIVES)
def test_many_jobs_have_a_schedule_and_a_bound(objective):
    instance = generate("cluster", "jobs", 1, jobs=20, servers=64, objective=objective, slack=0.4)
    result = ddlopt.solve(instance, "list-exchange:rounds=1", time_limit=60)
    assert result.checked
    assert result.gap < 0.15
    assert Fraction(result.solution.runs[0][0].start) >= 0


def test_the_first_list_is_told_at_once(monkeypatch):
    """Of thousands of jobs the relaxation takes long, and whoever ends the solve then has a schedule."""

    def ended(*_):
        raise KeyboardInterrupt

    told = []
    monkeypatch.setattr(ListSearch, "run", ended)
    instance = generate("cluster", "jobs", 1, jobs=20, servers=64)
    clock, limits = Clock(Limits(60), None), Limits(60)
    with incumbents.kept_by(lambda value, make: told.append((value, make()))), pytest.raises(KeyboardInterrupt):
        ListExchange().find(instance, limits, 0, clock, None)
    ((value, schedule),) = told
    assert float(evaluate_jobs(instance, schedule, exact=True).objective) == pytest.approx(value)


def test_slots_are_refused():
    instance = generate("cluster", "jobs", 0, mode="slots", jobs=2, servers=2)
    with pytest.raises(NotApplicableError, match="slots"):
        ddlopt.solve(instance, "list-exchange")


def test_no_round_begins_when_no_time_is_left():
    search = ListSearch(generate("cluster", "jobs", 0, jobs=4, servers=4), 0)
    assert not search.run(3, left_s=0.0), "not even the first"
    assert search.rounds == 0


@for_each("seed", seeds(4, 80))
@pytest.mark.parametrize("objective", ["weighted_completion", "weighted_tardiness", "makespan"])
def test_the_bound_of_jobs_that_are_moved_holds_where_widths_change_from_slot_to_slot(seed, objective):
    slots = drawn(seed + 700, "slots", 2).changed(objective=objective)
    best = ddlopt.solve(slots, "start-order", gap=0).objective
    rigid = slots.changed(mode="rigid", slot_s=None)
    for end_s in (1.0, 5.0, 40.0):
        assert relaxed(rigid, end_s, moved=True).value <= best * (1 + 1e-9) + 1e-9


def test_a_job_that_is_interrupted_is_within_the_bound_of_jobs_that_are_moved_alone():
    """A long job steps aside for a heavy one: 110 and 100 times 11; in one piece it has to wait for it."""
    jobs = [
        {"name": "long", "iterations": 100, "step_s": [1]},
        {"name": "heavy", "iterations": 10, "arrival_s": 1, "weight": 100, "step_s": [1]},
    ]
    instance = JobsInstance(name="aside", servers=1, jobs=jobs, objective="weighted_completion")
    with_moves, in_one_piece = 110 + 100 * 11, 111 + 100 * 11
    assert relaxed(instance, 120.0, moved=True).value <= with_moves < in_one_piece
    assert relaxed(instance, 120.0, moved=True).value > 0.8 * with_moves
