"""Plans for the next slots, between the greedy and the offline optimum."""

import numpy as np
import pytest
from one_server_cases import answered, cluster, job
from scheduling_brute_force import brute_force, random_instance
from volume import slow

from ddlopt.frontier.scheduling.rolling_horizon import RollingHorizon
from ddlopt.models.errors import OptionError
from ddlopt.models.scheduling import AllOrNothing, Capped
from ddlopt.solvers.scheduling.gadget import Gadget


@pytest.mark.parametrize(
    "kind",
    [
        {"deadlines": True, "jobs": 4},
        {"places": (2, 2), "network": "star"},
        {"places": (3, 2), "uneven": True},
        {"places": (2, 2), "energy": True},
        {"utilities": ("all_or_nothing", "capped"), "jobs": 4, "slots": 4},
        {"objective": "max_min"},
    ],
)
@pytest.mark.parametrize(("commit", "cases"), [(1, 1), (None, 1), slow(1, 6), slow(None, 6)])
def test_one_window_that_knows_all_is_the_optimum(kind, commit, cases):
    rng = np.random.default_rng(10)
    for _ in range(cases):
        drawn = random_instance(rng, **kind)
        slots = drawn.slots
        value, _, details = answered(RollingHorizon(slots, commit or slots, clairvoyant=True), drawn)
        assert value == pytest.approx(brute_force(drawn).objective, rel=3e-4, abs=1e-9)
        assert details["windows"] == details["windows_proven"] > 0


def test_windows_of_one_slot_are_the_greedy():
    rng = np.random.default_rng(11)
    for number in range(15):
        drawn = random_instance(rng, jobs=4, deadlines=bool(number % 2))
        assert answered(RollingHorizon(1), drawn)[0] == pytest.approx(answered(Gadget(), drawn)[0], rel=1e-3)


def test_two_slots_ahead_see_the_deadline_that_the_greedy_misses():
    jobs = [job("waits", 2, 2.0, utility=Capped(value=1.001)), job("leaves", 2, 2.0, deadline=1)]
    few = cluster(jobs, slots=2)
    assert answered(RollingHorizon(1), few)[0] == pytest.approx(1.001)
    assert answered(RollingHorizon(2), few)[0] == pytest.approx(2.001)


def test_only_the_clairvoyant_knows_who_will_come():
    # Who does not know of the third job leaves slot 1 to the first one.
    jobs = [
        job("waits", 2, 2.0),
        job("leaves", 2, 2.0, deadline=1, utility=Capped(value=0.9)),
        job("comes", 2, 2.0, arrival=1, utility=Capped(value=5.0)),
    ]
    few = cluster(jobs, slots=2)
    assert answered(RollingHorizon(2), few)[0] == pytest.approx(5.9)
    assert answered(RollingHorizon(2, clairvoyant=True), few)[0] == pytest.approx(6.0)
    assert answered(RollingHorizon(2, commit=2), few)[0] == pytest.approx(1.9)


def test_arrivals_beyond_the_window_are_known_to_nobody():
    few = cluster([job("now", 1, 1.0), job("then", 1, 1.0, arrival=2)], slots=4)
    assert answered(RollingHorizon(2, clairvoyant=True), few)[0] == pytest.approx(2.0)


def test_who_arrives_between_two_plans_gets_the_room_that_is_left():
    few = cluster([job("now", 1, 2.0), job("comes", 1, 1.0, arrival=1, deadline=2)], slots=2)
    assert answered(RollingHorizon(2, commit=2), few)[0] == pytest.approx(2.0)


def test_plans_are_not_put_off():
    # All is done within the window in any order; what is done at once leaves room for those who come later.
    few = cluster([job(f"j{k}", 1, 2.0) for k in range(2)], slots=6)
    _, schedule, _ = answered(RollingHorizon(6), few)
    assert [(run.start, run.slots) for run in schedule.runs] == [(0, 2), (0, 2)]


def test_long_jobs_start_although_no_window_sees_their_end():
    few = cluster([job("long", 1, 5.0, utility=AllOrNothing()), job("late", 1, 5.0, arrival=2, deadline=6)], 6, 1)
    few = few.model_copy(update={"jobs": (few.jobs[0], few.jobs[1].model_copy(update={"utility": AllOrNothing()}))})
    # The second job cannot finish any more; a window that reaches its deadline leaves it out.
    value, schedule, _ = answered(RollingHorizon(4), few)
    assert value == 1.0
    assert {run.job for run in schedule.runs} == {0}


def test_what_is_found_in_too_little_time_is_still_a_schedule():
    rng = np.random.default_rng(12)
    drawn = random_instance(rng, jobs=4, slots=5)
    value, _, details = answered(RollingHorizon(5, window_s=1e-9), drawn)
    assert details["windows_proven"] < details["windows"]
    assert value > 0


def test_refusals_and_options():
    rng = np.random.default_rng(13)
    assert "one piece" in RollingHorizon().refuses(random_instance(rng, preemptive=False))
    assert "'makespan'" in RollingHorizon().refuses(random_instance(rng, objective="makespan"))
    assert "with contention" in RollingHorizon().refuses(random_instance(rng, places=(2, 2), contention=True))
    with pytest.raises(OptionError, match=r"commit is 3, but it must be 1\.\.2"):
        RollingHorizon(2, commit=3)
