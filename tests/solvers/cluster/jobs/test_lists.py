"""Schedules by lists, by hand: when jobs begin, and which of the lists is taken."""

from ddlopt.models.cluster import JobsInstance
from ddlopt.solvers.cluster.jobs.lists import WIDTHS, _rigid, _slots, best_list


def jobs(servers, listed, **more):
    """Jobs of one iteration, by arrival and times by width."""
    own = [
        {"name": f"j{place}", "iterations": 1, "arrival_s": arrival, "step_s": times} | rest
        for place, (arrival, times, rest) in enumerate(listed)
    ]
    return JobsInstance.from_data({"name": "by-hand", "servers": servers, "jobs": own} | more)


def starts(runs):
    return [[(stretch.start, stretch.servers) for stretch in own] for own in runs]


def test_a_job_begins_as_early_as_its_servers_are_free_for_all_its_time():
    # The third job ends when the second begins; the fourth would not, and nothing is free before both have ended.
    instance = jobs(2, [(0, [4], {}), (0, [None, 2], {}), (0, [4], {}), (1, [5], {})])
    assert starts(_rigid(instance, [0, 1, 2, 3], [1, 2, 1, 1])) == [[("0", 1)], [("4", 2)], [("0", 1)], [("6", 1)]]
    assert starts(_rigid(instance, [0, 3, 1, 2], [1, 2, 1, 1])) == [[("0", 1)], [("6", 2)], [("8", 1)], [("1", 1)]]


def test_slots_are_given_in_the_order_of_the_list_from_arrivals_on():
    # Slots of 2 s. The second job waits until both servers are free; the third arrives with slot 5, the last within 8.
    instance = jobs(
        2, [(0, [1], {"iterations": 4}), (0, [None, 2], {}), (10, [2], {}), (15, [1], {})], mode="slots", slot_s=2
    )  # fmt: skip
    found = starts(_slots(instance, [0, 1, 2, 3], [1, 2, 1, 1]))
    assert found == [[("0", 1), ("1", 1)], [("2", 2)], [("5", 1)], [("8", 1)]]


def test_the_best_list_is_that_of_the_least_value():
    # By weight and time the short job is first: 1 + 6; as they come it is 5 + 6.
    instance = jobs(1, [(0, [5], {}), (0, [1], {})], objective="weighted_completion")
    value, schedule = best_list(instance)
    assert (value, starts(schedule.runs)) == (7, [[("1", 1)], [("0", 1)]])
    # Deadlines: the second job is late unless it is first.
    late = [(0, [5], {"deadline_s": 7}), (0, [2], {"deadline_s": 2, "weight": 0.1})]
    assert best_list(jobs(1, late, objective="weighted_tardiness"))[0] == 0


def test_of_widths_that_are_alike_the_narrowest_is_taken():
    (job,) = jobs(4, [(0, [8, 4, 4, 4], {})]).jobs
    assert {name: rule(job) for name, rule in WIDTHS.items()} == {"efficient": 1, "fastest": 2, "narrowest": 1}
    (wide,) = jobs(4, [(0, [None, 4, 2, 1.4], {})]).jobs
    assert {name: rule(wide) for name, rule in WIDTHS.items()} == {"efficient": 4, "fastest": 4, "narrowest": 2}
