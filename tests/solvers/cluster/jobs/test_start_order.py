"""Orders of starts by hand: figures of any fineness, and what is said where the search is cut short."""

from fractions import Fraction

from jobs_brute_force import brute_force, drawn

from ddlopt.models.cluster import JobsInstance
from ddlopt.solvers.cluster.jobs.lists import best_list
from ddlopt.solvers.cluster.jobs.start_order import Search, StartOrder
from ddlopt.solvers.contracts import Limits, Status
from ddlopt.solvers.heuristic import Clock


def jobs(servers, listed, **more):
    own = [{"name": f"j{place}", "iterations": 1} | fields for place, fields in enumerate(listed)]
    return JobsInstance.from_data({"name": "by-hand", "servers": servers, "jobs": own} | more)


def test_times_of_different_fineness_are_counted_exactly():
    # On one server: a from 0 to 1, 1/2 late; b from 1 to 2, 1/4 late and worth 3/8.
    listed = [{"step_s": [1], "deadline_s": 0.5}, {"step_s": [1], "deadline_s": 1.75, "weight": 0.375}]
    late = jobs(1, listed, objective="weighted_tardiness")
    for instance, value in ((late, Fraction(19, 32)), (late.changed(objective="weighted_completion"), Fraction(7, 4))):
        found = StartOrder().solve(instance, Limits(gap=0))
        assert (found.objective, found.status) == (value, Status.OPTIMAL)
        assert value * (1 - Fraction(1e-9)) <= found.bound <= value
        assert Search(instance, Clock(Limits(), None)).run() == value


def test_deadlines_between_the_ticks_of_all_other_times_count():
    # Two narrow jobs, 1.5 s late and in time; then the third on both servers, 0.75 s late and worth 2.
    listed = [
        {"step_s": [3, 2], "deadline_s": 1.5},
        {"step_s": [2, 3], "deadline_s": 3.5, "weight": 3},
        {"step_s": [4, 2], "deadline_s": 4.25, "weight": 2, "arrival_s": 2},
    ]
    instance = jobs(2, listed, objective="weighted_tardiness")
    assert best_list(instance)[0] == Fraction(9, 2)
    assert Search(instance, Clock(Limits(), None)).run() == 3


def test_when_the_time_is_up_what_is_left_is_bounded():
    # Four jobs of 3 s on two servers: 6 s, as the servers have no time for less; with widths of two it is no better.
    instance = jobs(2, [{"step_s": [3, 2]}] * 4)
    search = Search(instance, Clock(Limits(1e-9), None))
    assert (search.run(), search.states) == (6, 0)


def test_a_number_of_states_is_kept_to():
    for seed in range(4):
        instance = drawn(seed)
        best = brute_force(instance)
        children = len(instance.jobs) * instance.servers
        for most in (0, 3, 10):
            search = Search(instance, Clock(Limits(), None))
            assert search.run(most) <= best
            assert search.states <= most + children
