"""Widths and orders that are decided one after the other, by hand."""

import pytest
from volume import for_each

from ddlopt.models.cluster import JobsInstance
from ddlopt.models.cluster.jobs.evaluate import evaluate_jobs
from ddlopt.solvers.cluster.joint.apart import decided, equal_shares, greedy_widths
from ddlopt.solvers.contracts import Limits
from ddlopt.solvers.heuristic import Clock


def jobs(servers, *listed, objective="weighted_completion"):
    """Jobs of one iteration by times of widths, or by times and weight."""
    own = [each if isinstance(each, tuple) else (each, 1.0) for each in listed]
    made = [
        {"name": f"j{place}", "iterations": 1, "step_s": times, "weight": weight}
        for place, (times, weight) in enumerate(own)
    ]
    return JobsInstance.from_data({"name": "by-hand", "servers": servers, "jobs": made, "objective": objective})


def test_an_equal_share_is_rounded_down_to_what_a_job_can_have():
    flexible, wide, odd = [8, 4, 3, 2], [None, None, None, 2], [8, None, 3]
    assert equal_shares(jobs(8, flexible, wide, odd)) == [2, 4, 1]
    assert equal_shares(jobs(9, flexible, wide, odd)) == [3, 4, 3]
    assert equal_shares(jobs(2, [8, 4], [8, 4], [8, 4])) == [1, 1, 1]


@for_each(
    ("instance", "widths"),
    [
        (jobs(2, [8, 4], [6, 3]), [1, 1]),
        (jobs(3, [8, 4], [6, 3]), [2, 1]),
        (jobs(4, [8, 4, 3, 2.5], [6, 3, 2, 1.5]), [2, 2]),
        (jobs(4, [8, 4, 3, 2.5], ([6, 3, 2, 1.5], 10)), [1, 3]),  # what it saves is weighted
        (jobs(4, [8, 8, 2], [6, 3.5]), [3, 1]),  # 6 s by two servers are more each than 2.5 by one
        (jobs(3, [8, 8, 2], [6, 3.5]), [1, 2]),  # of which only one is left here
        (jobs(8, [8, 8], [6, 7]), [1, 1]),  # nobody takes what saves nothing
        (jobs(3, [8, 7], [6, 1]), [1, 2]),
        (jobs(3, [8, 7], [6, 1], objective="makespan"), [2, 1]),  # only the last to end is worth anything
        (jobs(4, ([8, 4], 1), ([6, 1], 9), objective="makespan"), [2, 2]),
    ],
)
def test_servers_go_where_each_saves_most(instance, widths):
    assert greedy_widths(instance) == widths


@pytest.mark.parametrize("objective", ["weighted_completion", "makespan"])
def test_in_a_given_order_each_job_takes_the_width_with_which_it_ends_first(objective):
    def runs(*listed):
        found = decided(jobs(2, *listed, objective=objective), "search", "arrival", 0, Clock(Limits(), None))
        return [(float(run.start), run.servers) for (run,) in found.runs]

    assert runs([4, 3], [4, 3]) == [(0, 2), (3, 2)]
    assert runs([4, 4], [3, 1]) == [(0, 1), (0, 1)]  # of widths that are alike the narrowest; the second goes beside it
    assert runs([4], [9, 4]) == [(0, 1), (4, 2)]


def test_first_come_first_served_fills_what_is_left():
    instance = jobs(2, [3], [None, 4], [2], objective="makespan")
    found = decided(instance, "equal", "arrival", 0, Clock(Limits(), None))
    assert [(float(run.start), run.servers) for (run,) in found.runs] == [(0, 1), (3, 2), (0, 1)]
    for order in ("arrival", "search"):
        best = decided(instance, "greedy", order, 0, Clock(Limits(), None))
        assert evaluate_jobs(instance, best).objective == 7
    assert evaluate_jobs(instance, decided(instance, "greedy", "search", 0, Clock(Limits(1e-9), None))).feasible
