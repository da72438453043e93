"""What is concluded from solves of inner problems, told by a crew that solves nothing."""

import math
from types import SimpleNamespace

import pytest
from volume import for_each

from ddlopt.instances.generators import generate
from ddlopt.models.errors import ContradictionError
from ddlopt.models.tolerances import ROUNDING
from ddlopt.solvers.cluster.joint.crew import Outcome
from ddlopt.solvers.cluster.joint.plans import Plans
from ddlopt.solvers.contracts import Limits
from ddlopt.solvers.heuristic import Clock

PAIRS = [(0, 2), (0, 4), (0, 8)]


def plans_of(workload="tiny-step", widths=(2, 4, 8), time_s=None, more=()):
    """Plans of one workload, and what its crew is asked and says."""
    given = {"jobs": 3, "servers": widths[-1], "workloads": (workload, *more), "widths": widths}
    crew = SimpleNamespace(size=1, asked=[], said=[])

    def outcomes(tasks, late):
        crew.asked += tasks
        return [crew.said.pop(0) if crew.said else told(0.0) for _ in tasks]

    crew.outcomes = outcomes
    instance = generate("cluster", "joint", 0, **given)
    return Plans(instance, Clock(Limits(time_s), None), 1e-3, 5, crew=crew), crew


def told(lower, closed=False, interrupted=False):
    return Outcome(lower, None, closed, interrupted)


def never():
    return False


def test_a_problem_is_opened_quickly_and_then_has_twice_the_seconds_of_last_time():
    plans, crew = plans_of()
    for _ in range(3):
        assert plans.sharpen([(0, 4)], never) == 1
    assert [task.method for task in crew.asked] == ["megatron-rule", "", ""]
    assert [task.seconds for task in crew.asked] == [2.0, 2.0, 4.0]
    assert {(task.gap, task.seed) for task in crew.asked} == {(1e-3, 5)}
    assert (plans.known((0, 4)).budget_s, plans.known((0, 2)).budget_s, plans.solves) == (8.0, 2.0, 3)


def test_problems_are_solved_in_the_order_that_is_wanted_each_once_until_that_is_enough():
    plans, crew = plans_of()
    devices = {plans.instance.inner(choice).digest: pair for pair, choice in plans.pairs.items()}
    plans.known((0, 4)).closed = True
    assert plans.sharpen([(0, 8), (0, 4), (0, 2), (0, 8)], never) == 2
    orders = [devices[type(plans.instance.problems[0]).from_data(task.data).digest] for task in crew.asked]
    assert orders == [(0, 8), (0, 2)]
    assert plans.sharpen([(0, 8), (0, 2)], lambda: True) == 1  # one of them in any case
    crew.size = 2
    assert plans.sharpen([(0, 8), (0, 2)], lambda: True) == 2
    late, _ = plans_of(time_s=1e-9)
    assert late.sharpen(PAIRS, never) == 0


def test_no_time_is_left_for_plans_that_is_kept_for_a_schedule():
    plans, crew = plans_of(time_s=1000.0)
    plans.spare_s = 999.0
    plans.sharpen([(0, 2)], never)
    assert crew.asked[0].seconds <= 1.0
    plans.spare_s = 1001.0
    assert plans.sharpen([(0, 2)], never) == 0


def test_bounds_only_rise_and_hold_for_fewer_devices_too():
    plans, crew = plans_of()
    simple = [plans.known(pair).lower for pair in PAIRS]
    assert simple == sorted(simple, reverse=True)
    crew.said = [told(2 * simple[0]), told(0.0)]
    plans.sharpen([(0, 4)], never)
    raised = 2 * simple[0] * (1 - ROUNDING)
    assert [plans.known(pair).lower for pair in PAIRS] == [raised, raised, simple[2]]
    plans.sharpen([(0, 4)], never)
    assert [plans.known(pair).lower for pair in PAIRS] == [raised, raised, simple[2]]
    assert not any(own.closed for own in plans.all_known())
    assert plans.high() is None


@for_each("raised", ["deployment", "codesign"])
def test_of_one_problem_nothing_is_concluded_for_another(raised):
    plans, crew = plans_of("tiny-step", (2, 3), more=("tiny-codesign",))
    families = {pair: plans.instance.inner(choice).family for pair, choice in plans.pairs.items()}
    assert set(families.values()) == {"deployment", "codesign"}
    before = {pair: plans.known(pair).lower for pair in plans.pairs}
    own = [pair for pair, family in families.items() if family == raised]
    crew.said = [told(1e9), told(1e9)]
    assert plans.sharpen(own, never) == 2
    assert [pair for pair in plans.pairs if plans.known(pair).lower != before[pair]] == own


def test_of_codesigns_on_more_servers_nothing_is_concluded_for_fewer():
    plans, crew = plans_of("tiny-codesign", (2, 3))
    before = plans.known((0, 2)).lower
    crew.said = [told(1e6 * before)]
    plans.sharpen([(0, 3)], never)
    assert plans.known((0, 2)).lower == before


def test_a_bound_above_a_plan_is_a_contradiction_unless_they_are_the_same_number():
    plans, crew = plans_of()
    own = plans.known((0, 8))
    own.upper = 2 * own.lower
    crew.said = [told(own.upper * (1 - 0.9e-3))]
    plans.sharpen([(0, 8)], never)
    assert own.closed  # within the gap
    crew.said = [told(own.upper * (1 + 1e-10))]
    own.closed = False
    plans.sharpen([(0, 8)], never)
    assert (own.lower, own.closed) == (own.upper, True)
    crew.said, own.closed = [told(own.upper * 1.01)], False
    with pytest.raises(ContradictionError, match="a plan takes"):
        plans.sharpen([(0, 8)], never)


def test_what_is_proven_to_have_no_plan_is_asked_no_more():
    plans, crew = plans_of()
    crew.said = [told(math.inf, closed=True, interrupted=True)]
    assert plans.sharpen([(0, 2)], never) == 1
    assert (plans.known((0, 2)).closed, plans.clock.interrupted) == (True, True)
    assert plans.lower(0, plans.pairs[0, 2]) is None
    assert plans.lower(0, plans.pairs[0, 8]) == plans.known((0, 8)).lower
    assert plans.sharpen([(0, 2)], never) == 0
