"""Periods: data, check, bounds on intervals."""

from fractions import Fraction

import numpy as np
import pytest
from refusals import one_line
from volume import for_each, seeds

import ddlopt
from ddlopt.models.errors import InfeasibleError, InstanceError
from ddlopt.models.gossip import PeriodInstance, PeriodPlan, bound, evaluate
from ddlopt.models.gossip.period import bounds
from ddlopt.models.gossip.period.time_to_target import TimeToTarget

GIVEN = {"family": "gossip", "problem": "period", "name": "a", "workers": 8, "compute_s": 1, "target": 0.05}
ROUNDS = {"network": {"nodes": 3, "edges": [[0, 1], [1, 2]]}, "matchings": [[0], [1]], "times_s": [1, 2]}


def instance(**more):
    return PeriodInstance.from_data({**GIVEN, "communication_s": 4, "mixing": 0.2, **more})


def plan(period, step, activation=()):
    return PeriodPlan(instance="a", period=period, step_size=step, activation=activation)


@for_each(
    ("change", "line"),
    [
        ({"mixing": 1}, "mixing"),
        ({"mixing": None}, "mixing is missing; give communication_s and mixing, or rounds"),
        ({"rounds": ROUNDS}, "communication_s is given beside rounds"),
        ({"target": 0}, "target"),
        ({"communication_s": None, "mixing": None, "rounds": ROUNDS}, "workers is 8, but the network of rounds has 3"),
        (
            {"communication_s": None, "mixing": None, "workers": 3, "rounds": ROUNDS | {"matchings": [[0, 1], [1]]}},
            "matchings[0]: edges 0 and 1 meet at node 1",
        ),
        (
            {"communication_s": None, "mixing": None, "workers": 3, "rounds": ROUNDS | {"matchings": [[0], [0]]}},
            "edge 1 is in no matching",
        ),
        (
            {"communication_s": None, "mixing": None, "workers": 3, "rounds": ROUNDS | {"times_s": [1]}},
            "times_s has 1 entries, but there are 2 matchings",
        ),
        (
            {"communication_s": None, "mixing": None, "workers": 3, "rounds": ROUNDS | {"times_s": [1, 0]}},
            "times_s[1] is 0; the time of a matching must be above 0",
        ),
    ],
)
def test_bad_instances(change, line):
    with one_line(InstanceError, line):
        instance(**change)


def test_by_hand():
    # Without mixing left to do: s = 0.05 − 0.01/8 − 0.0001 (2 − 1), K = 2/(0.01 s), T = K (1 + 4/2)
    found = evaluate(instance(mixing=0), plan(2, 0.01), exact=True)
    left = Fraction(0.05) - Fraction(0.01) / 8 - Fraction(0.01) ** 2
    assert found.objective == 2 / (Fraction(0.01) * left) * 3
    without = evaluate(instance(mixing=0, deviation="posynomial"), plan(2, 0.01), exact=True)
    assert without.objective == 2 / (Fraction(0.01) * (left - Fraction(0.01) ** 2)) * 3


def test_every_constant_counts_as_in_the_formula():
    more = {"initial_gap": 3, "smoothness": 2, "variance": 5, "compute_s": 7, "target": 11, "workers": 13}
    found = evaluate(instance(**more, mixing=0.5), plan(4, 0.25))
    left = 11 - 0.25 * 2 * 5 / 13 - 0.25**2 * 4 * 5 * (3 * 4 - 1)
    assert left < 0
    (floor,) = found.violations
    assert (floor.kind, floor.lhs) == ("target below what the step size allows", 11)
    assert float(floor.rhs) == pytest.approx(11 - left)
    found = evaluate(instance(**more, mixing=0.5), plan(4, 0.125))
    left = 11 - 0.125 * 2 * 5 / 13 - 0.125**2 * 4 * 5 * (3 * 4 - 1)
    assert found.objective == pytest.approx(2 * 3 / (0.125 * left) * (7 + 4 / 4), rel=1e-14)


@for_each(
    ("more", "given", "kind"),
    [
        ({}, plan(0.5, 0.01), "period below one step"),
        ({"whole": True}, plan(2.5, 0.01), "period is no whole number"),
        ({}, plan(2, 0), "step size not above 0"),
        ({"step_size": 0.02}, plan(2, 0.01), "step size is not the one given"),
        ({}, plan(2, 0.01, (1.0,)), "number of probabilities"),
    ],
)
def test_violations(more, given, kind):
    found = evaluate(instance(**more), given)
    assert kind in [each.kind for each in found.violations]
    assert not found.feasible


def test_designed_rounds_by_hand():
    # Path of three nodes, both edges with probability ½: λ₂ of half its Laplacian is ½, so ρ = ¾ and φ = 7
    asked = instance(communication_s=None, mixing=None, workers=3, rounds=ROUNDS)
    found = evaluate(asked, plan(2, 0.01, (0.5, 0.5)))
    left = 0.05 - 0.01 / 3 - 0.0001 * (7 * 2 - 1)
    assert found.feasible
    assert found.objective == pytest.approx(2 / (0.01 * left) * (1 + 1.5 / 2), rel=1e-12)
    proven = evaluate(asked, plan(2, 0.01, (0.5, 0.5)), exact=True).objective
    assert isinstance(proven, Fraction)
    assert 0 <= float(proven) - found.objective < 1e-6
    assert [each.kind for each in evaluate(asked, plan(2, 0.01, (0.75, 0.5))).violations] == [
        "more than one matching in a round"
    ]
    assert evaluate(asked, plan(2, 0.01, (1.0, 0.0))).objective is None


def test_a_probability_that_rounding_left_below_0_makes_no_round_shorter():
    rounds = ROUNDS | {"matchings": [[0], [1], [0]], "times_s": [1, 2, 1e12]}
    asked = instance(communication_s=None, mixing=None, workers=3, rounds=rounds)
    plain, below = (evaluate(asked, plan(2, 0.01, (0.5, 0.5, last))) for last in (0.0, -1e-10))
    assert below == plain


@for_each("seed", seeds(6, 40))
def test_no_period_of_an_interval_is_faster_than_its_bound(seed):
    rng = np.random.default_rng(seed)
    step = None if seed % 2 else 10.0 ** rng.uniform(-3, -1)
    times = TimeToTarget(*(10.0 ** rng.uniform(-1, 1, 5)).tolist(), int(seed % 3 > 0), step)
    low, mixing, wait = 10.0 ** rng.uniform(0, 2), rng.uniform(0, 0.95), 10.0 ** rng.uniform(-2, 2)
    high = low * (1.0 + 10.0 ** rng.uniform(-4, 1))
    bound, at = times.bound(low, high, wait, mixing)
    fastest = min(times.seconds(low + share * (high - low), wait, mixing) for share in np.linspace(0, 1, 200))
    assert bound <= fastest
    assert low <= at <= high
    if high < low * 1.01 and np.isfinite(fastest) and step is None:
        assert bound >= fastest * (1 - 1e-3)


@for_each("seed", range(10))
def test_no_step_is_better_than_the_closed_form(seed):
    rng = np.random.default_rng(seed)
    asked = instance(target=rng.uniform(0.01, 1), variance=rng.uniform(0.1, 9), mixing=rng.uniform(0, 0.9))
    times, period = TimeToTarget.of(asked), 1 + 9 * rng.random()
    best = times.step(period, asked.mixing)
    seconds = evaluate(asked, plan(period, best)).objective
    assert seconds == pytest.approx(times.seconds(period, 4.0, asked.mixing), rel=1e-12)
    for factor in (0.9, 0.999, 1.001, 1.1):
        assert evaluate(asked, plan(period, factor * best)).objective > seconds


def test_what_is_wrong_with_a_plan_may_leave_its_time():
    """With steps of 0.01 where 0.02 are asked for it has one, and so has a period of half a step."""
    for more, given in (({"step_size": 0.02}, plan(2, 0.01)), ({}, plan(0.5, 0.01))):
        found = evaluate(instance(mixing=0, **more), given, exact=True)
        left = Fraction(0.05) - Fraction(0.01) / 8 - Fraction(0.01) ** 2 * (Fraction(given.period) - 1)
        assert not found.feasible
        assert found.objective == 2 / (Fraction(0.01) * left) * (1 + 4 / Fraction(given.period))


def test_the_bound_begins_at_a_period_of_one():
    """With steps of 1 and no mixing left to do 3/8 - 1/8 - (period - 1) is left: from 1.25 on nothing."""
    found = bound(instance(mixing=0, step_size=1, target=0.375))
    assert evaluate(instance(mixing=0, step_size=1, target=0.375), plan(1, 1)).objective == 2 / 0.25 * 5
    assert 39 < found <= 40


def test_targets_below_the_floor_are_proven_so():
    with pytest.raises(InfeasibleError, match="with step_size 1 the bound on the gradient stays above"):
        bound(instance(step_size=1))


def test_nobody_calls_a_target_out_of_reach_that_rounding_may_hide():
    """Noise and drift of a step of 0.01 are the target but for 1e-19: 1e21 seconds, where floats say that 0 is left."""
    asked = instance(step_size=0.01, target=0.0013000000000000002)
    given = plan(1, 0.01)
    found = evaluate(asked, given)
    assert found.feasible
    assert 0 < bound(asked) <= found.objective


@pytest.mark.parametrize("name", [name for name in ddlopt.names("gossip") if name.startswith("gossip/period-")])
def test_bounds_hold_for_many_plans(name):
    asked, rng = ddlopt.load(name), np.random.default_rng(0)
    lowest = bound(asked)
    count = 0 if asked.rounds is None else len(asked.rounds.matchings)
    for _ in range(200):
        period = float(rng.integers(1, 60)) if asked.whole else 1 + 10.0 ** rng.uniform(-2, 2)
        chances = tuple((rng.dirichlet(np.ones(count)) * 0.999).tolist()) if count else ()
        found = evaluate(asked, plan(period, asked.step_size or 10.0 ** rng.uniform(-3, -1), chances))
        if found.feasible:
            assert found.objective >= lowest


def test_the_best_rounds_of_every_part_by_hand():
    """Two pairs of four workers in 2 s or one in 0.5 s: 2/3 mix at most, and 2/3 a second; then parts of a tenth."""
    network = {"nodes": 4, "edges": [[0, 1], [1, 2], [2, 3]]}
    rounds = {"network": network, "matchings": [[0, 2], [1]], "times_s": [2, 0.5]}
    first, *parts, last = bounds._cases(instance(communication_s=None, mixing=None, workers=4, rounds=rounds))
    assert first == pytest.approx((1, 1 / 3))
    for number, part in enumerate(parts):
        assert part == pytest.approx((1.1 ** -(number + 1), 1 - 2 / 3 * 1.1**-number))
    assert 1.1 ** -len(parts) <= 1e-3 < 1.1 ** (1 - len(parts))
    assert last == pytest.approx((0, 1 - 2 / 3 * 1.1 ** -len(parts)))
    quick = rounds | {"times_s": [0.1, 5]}
    assert next(bounds._cases(instance(communication_s=None, mixing=None, workers=4, rounds=quick))) == pytest.approx(
        (0.1, 1 / 3)
    )
    pair = {"network": {"nodes": 2, "edges": [[0, 1]]}, "matchings": [[0]], "times_s": [3]}
    assert next(bounds._cases(instance(communication_s=None, mixing=None, workers=2, rounds=pair))) == (3, 0)
