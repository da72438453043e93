"""Workers that are not all as fast: expected maxima against all that can happen, bounds and methods against them."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from refusals import one_line
from volume import for_each, seeds

from ddlopt.analysis.gossip_convex.period import GeometricProgram
from ddlopt.certificates.gossip.period.exact_bounds import exact_period_bound
from ddlopt.instances.generators import generate
from ddlopt.models.errors import InstanceError, NotApplicableError, OptionError
from ddlopt.models.gossip import PeriodInstance, PeriodPlan, bound, evaluate
from ddlopt.models.gossip.period.stragglers import MOST_STEPS, Stragglers, slowest, slowest_exact
from ddlopt.models.gossip.period.time_to_target import TimeToTarget
from ddlopt.solvers.catalogue import method
from ddlopt.solvers.contracts import Limits

TINY = Fraction(1, 2**180)


def drawn(seed, workers=None, **more):
    rng = np.random.default_rng([7, seed])
    workers = workers or int(rng.integers(2, 12))
    stragglers = {
        "factors": rng.choice([1.0, 1.5, float(rng.uniform(0.5, 2.0))], workers).tolist(),
        "chance": float(rng.choice([0.01, 0.1, 0.5])),
        "slowdown": float(rng.choice([2.0, 10.0, 3.7])),
    }
    fields = {
        "name": "a", "workers": workers,
        "compute_s": float(rng.uniform(0.1, 2)), "target": float(rng.uniform(0.05, 0.5)),
        "communication_s": float(rng.uniform(0, 8)), "mixing": float(rng.uniform(0, 0.9)), "whole": True,
        "stragglers": stragglers,
    }  # fmt: skip
    return PeriodInstance.from_data({"family": "gossip", "problem": "period", **fields, **more})


def enumerated(stragglers, steps):
    """E max, over all ways in which steps of workers can be slow."""
    chance, slowdown = Fraction(stragglers.chance), Fraction(stragglers.slowdown)
    workers, found = len(stragglers.factors), Fraction(0)
    for slow in itertools.product((False, True), repeat=workers * steps):
        times = [
            Fraction(factor) * sum(slowdown if each else 1 for each in slow[i * steps : (i + 1) * steps])
            for i, factor in enumerate(stragglers.factors)
        ]
        found += max(times) * math.prod(chance if each else 1 - chance for each in slow)
    return found


@for_each("seed", seeds(3, 30))
def test_expected_maxima_are_those_of_all_that_can_happen(seed):
    for workers, steps in ((1, 6), (2, 4), (3, 3), (4, 2), (6, 1)):
        stragglers = drawn(seed, workers).stragglers
        wanted = enumerated(stragglers, steps)
        low, high = (slowest_exact(stragglers, steps, up) for up in (False, True))
        assert low <= wanted <= high
        assert high - low < TINY
        assert slowest(stragglers, steps) == pytest.approx(float(wanted), rel=1e-13)


@for_each("seed", seeds(4, 20))
def test_the_check_is_the_formula_with_the_enumerated_maximum(seed):
    asked = drawn(seed, 3, deviation="posynomial", mixing=0.0)
    for period in (1, 2, 3):
        plan = PeriodPlan(instance="a", period=period, step_size=0.01)
        found = evaluate(asked, plan, exact=True)
        step, a_step = Fraction(0.01), Fraction(asked.compute_s) * enumerated(asked.stragglers, period) / period
        left = Fraction(asked.target) - step / 3 - step**2 * period
        wanted = 2 / (step * left) * (a_step + Fraction(asked.communication_s) / period)
        assert 0 <= found.objective - wanted < TINY * wanted
        assert 0 <= found.details["computing_s"] - a_step < TINY


@for_each("seed", seeds(4, 20))
def test_seconds_a_step_fall_towards_the_average_of_the_slowest(seed):
    stragglers = drawn(seed).stragglers
    each = [slowest_exact(stragglers, steps, True) / steps for steps in (1, 2, 3, 5, 8, 40, 120)]
    assert each == sorted(each, reverse=True)
    assert each[-1] >= stragglers.limit
    floats = [slowest(stragglers, steps) / steps for steps in (1, 2, 3, 5, 8, 40, 120)]
    assert floats == pytest.approx([float(value) for value in each], rel=1e-12)
    far = slowest(stragglers, MOST_STEPS) / MOST_STEPS
    assert float(stragglers.limit) * (1 - 1e-12) <= far <= floats[-1]


@for_each("seed", seeds(2, 20))
def test_the_best_period_is_that_of_a_search_through_all(seed):
    asked = drawn(seed)
    times = TimeToTarget.of(asked)
    grid = [times.seconds(float(each), asked.communication_s, asked.mixing) for each in range(1, 400)]
    found = method("best-period", "gossip").solve(asked, Limits(gap=1e-8))
    assert found.objective == pytest.approx(min(grid), rel=1e-12)
    assert found.gap <= 1e-8
    assert bound(asked) <= found.objective
    proven = exact_period_bound(asked)
    exact = evaluate(asked, found.solution, exact=True).objective
    assert proven <= exact
    assert proven >= exact * (1 - Fraction(1, 10**4))
    for name in ("synchronous", "adacomm"):
        other = method(name, "gossip").solve(asked, Limits())
        assert other.objective >= found.objective * (1 - 1e-12)
        assert evaluate(asked, other.solution).feasible


def test_designed_rounds_wait_for_all_too():
    asked = generate("gossip", "period", 1, workers=4, shape="cycle", degree=2, slow_chance=0.1, spread=0.5, name="a")
    found = method("best-period", "gossip").solve(asked, Limits())
    seconds = found.details["communication_s"], found.details["mixing"]
    times = TimeToTarget.of(asked)
    assert found.objective == pytest.approx(
        min(times.seconds(float(each), *seconds) for each in range(1, 300)), rel=1e-9
    )
    assert found.gap <= 1e-4


@pytest.mark.slow
def test_designed_rounds_are_proven_with_stragglers():
    asked = generate("gossip", "period", 1, workers=4, shape="cycle", degree=2, slow_chance=0.1, spread=0.5, name="a")
    found = method("best-period", "gossip").solve(asked, Limits())
    proven = float(exact_period_bound(asked))
    assert found.objective * (1 - 1e-3) <= proven <= found.objective


def test_without_slow_steps_only_the_slowest_worker_counts():
    fields = {"whole": False, "compute_s": 2.0}
    slow = drawn(3, 4, **fields, stragglers={"factors": [1.0, 1.5, 0.5, 1.25]})
    plain = PeriodInstance.from_data(
        {name: value for name, value in slow.model_dump(mode="json").items() if name != "stragglers"}
        | {"compute_s": 3.0}
    )
    assert plain.stragglers is None
    for name in ("best-period", "adacomm", "synchronous", GeometricProgram()):
        one, two = (
            (method(name, "gossip") if isinstance(name, str) else name).solve(each, Limits()) for each in (slow, plain)
        )
        assert one.objective == pytest.approx(two.objective, rel=1e-12)
    assert exact_period_bound(slow) == pytest.approx(exact_period_bound(plain))


def test_rare_slow_steps_make_best_periods_shorter():
    """One in twice as many steps is slow twice as often: rounds only grow, and communication is less of them."""
    best = [
        method("best-period", "gossip")
        .solve(generate("gossip", "period", mixing=0.2, slow_chance=chance, name="a"), Limits())
        .solution.period
        for chance in (0.0, 0.01, 0.05)
    ]
    assert best == [4, 3, 1]
    rare = Stragglers(factors=(1.0,) * 8, chance=0.001, slowdown=10.0)
    assert slowest(rare, 2) == pytest.approx(2 * slowest(rare, 1), rel=0.01)


def test_the_geometric_program_refuses_slow_steps():
    with pytest.raises(NotApplicableError, match="expected time of the slowest worker is no posynomial of the period"):
        GeometricProgram().solve(drawn(0), Limits())


@for_each("period", [2.5, 0.0, float(MOST_STEPS + 1), 1e12])
def test_periods_without_seconds_are_violations(period):
    found = evaluate(drawn(0), PeriodPlan(instance="a", period=period, step_size=0.001))
    assert "no seconds are known for the period" in [each.kind for each in found.violations]
    assert found.objective is None


def test_seconds_are_known_up_to_the_longest_period():
    found = evaluate(drawn(0, 3), PeriodPlan(instance="a", period=MOST_STEPS, step_size=1e-9))
    assert "no seconds are known for the period" not in [each.kind for each in found.violations]


@for_each(
    ("change", "line"),
    [
        ({"stragglers": {"factors": [1.0, 1.0]}}, "stragglers.factors has 2 entries, but there are 3 workers"),
        ({"whole": False}, "whole is false, but where steps may be slow a period is a whole number"),
        ({"stragglers": {"factors": [1.0, 0.0, 1.0]}}, "factors[1] is 0; a step takes more than 0 times compute_s"),
        ({"stragglers": {"factors": [1.0] * 3, "chance": 1.0}}, "chance"),
        ({"stragglers": {"factors": [1.0] * 3, "slowdown": 0.5}}, "slowdown"),
    ],
)
def test_bad_instances(change, line):
    with one_line(InstanceError, line):
        drawn(0, 3, **change)


def test_a_slowdown_needs_a_chance():
    with one_line(OptionError, "slowdown is given without slow_chance"):
        generate("gossip", "period", slowdown=3.0)


def test_stragglers_travel_through_json():
    asked = generate("gossip", "period", workers=4, spread=1.0, slow_chance=0.05)
    assert PeriodInstance.from_data(asked.model_dump(mode="json")) == asked
    assert asked.stragglers.factors == pytest.approx((1.0, 4 / 3, 5 / 3, 2.0))
    assert (asked.stragglers.chance, asked.stragglers.slowdown) == (0.05, 10.0)
    assert asked.whole
    assert "stragglers" not in generate("gossip", "period").model_dump(mode="json")
