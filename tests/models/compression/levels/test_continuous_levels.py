"""The convex relaxation of levels, and bounds from prices."""

import itertools
import random

import numpy as np
import pytest
from level_cases import a_little_late, brute_force, optimum, random_levels, with_budget
from odd_instances import KINDS, odd
from volume import for_each

from ddlopt.models.compression import ExponentialCurve, GradedGradient, LevelInstance, LevelPlan, PointCurve, evaluate
from ddlopt.models.compression import bound as bound_of_family
from ddlopt.models.compression.levels.arrays import LevelArrays, arrays_of
from ddlopt.models.compression.levels.formulations.continuous_levels import ContinuousLevels
from ddlopt.models.compression.levels.prices import LevelPrices, PricedLevels, price_bound, sharpest_prices
from ddlopt.models.compression.timeline.choices import as_timeline
from ddlopt.models.errors import InfeasibleError, SolverError
from ddlopt.solvers.backends.convex import Convex
from ddlopt.solvers.catalogue import method
from ddlopt.solvers.contracts import Limits, Status

GOALS = ("time", "error")


def solved(instance, **options):
    model = ContinuousLevels(**options)
    problem = model.problem(instance)
    assert Convex().solve(problem, Limits()).status is Status.OPTIMAL
    return model, problem


def value(instance, **options):
    model, problem = solved(instance, **options)
    return model.value(problem, instance)


@for_each("goal", GOALS)
@for_each("seed", range(4))
def test_arrays_agree_with_the_check(seed, goal):
    instance = random_levels(seed, goal=goal, gradients=7)
    arrays = LevelArrays(instance)
    rng = np.random.default_rng(seed)
    for _ in range(20):
        places = rng.integers(0, arrays.counts)
        levels = arrays.levels_at(places)
        found = evaluate(instance, LevelPlan(instance=instance.name, levels=tuple(levels.astype(int).tolist())))
        assert arrays.time_s(levels) == pytest.approx(float(found.details["time_s"]), rel=1e-12)
        assert arrays.errors_at(places).sum() == pytest.approx(float(found.details["error"]), rel=1e-12)
        np.testing.assert_allclose(arrays.error_of(levels), arrays.errors_at(places), rtol=1e-12, atol=1e-12)


def test_by_hand():
    # One gradient ready at 1 s, 2 s a bit: two bits have the error 16 / 16, a fraction of a bit less is too little.
    curve = ExponentialCurve(lowest=1, highest=8, scale=16.0)
    gradient = GradedGradient(
        name="w", shape=(4,), compressor="qsgd", ready_s=1.0, encode_s=0.5, wire_s_per_level=2.0, curve=curve
    )
    instance = LevelInstance(name="one", gradients=(gradient,), error_budget=1.0)
    model, problem = solved(instance)
    assert model.read(problem, instance) == pytest.approx([2.0], rel=1e-6)
    assert model.value(problem, instance) == pytest.approx(5.5, rel=1e-7)
    # d(time) / d(error) = -2 / (ln 4 · error).
    prices = model.prices(problem, instance)
    assert prices.seconds_per_error == pytest.approx(2 / np.log(4.0), rel=2e-4)
    assert price_bound(LevelArrays(instance), prices) == pytest.approx(5.5, rel=1e-7)


@for_each("goal", GOALS)
@for_each("overlap", [True, False])
@for_each("seed", range(2))
def test_relaxation_and_bounds_are_below_the_best_of_all_levels(seed, overlap, goal):
    instance = random_levels(seed, gradients=3, points=6, overlap=overlap, goal=goal)
    arrays, best = LevelArrays(instance), brute_force(instance)
    assert optimum(instance) == pytest.approx(best, rel=1e-6)
    smooth, chords = value(instance), value(instance, chords=True)
    assert smooth <= chords * (1 + 1e-6)
    assert chords <= best * (1 + 1e-6)
    for options in ({}, {"chords": True}):
        model, problem = solved(instance, **options)
        prices = model.prices(problem, instance)
        bound, sharper = (price_bound(arrays, each) for each in (prices, sharpest_prices(arrays, prices.rows)))
        assert model.value(problem, instance) * (1 - 1e-6) <= bound <= best * (1 + 1e-12)
        assert bound * (1 - 1e-9) <= sharper <= best * (1 + 1e-12)
    # What the program with chords says is the best bound that prices give; the family's drops hopeless levels first.
    assert sharper == pytest.approx(chords, rel=1e-6)
    assert chords * (1 - 1e-6) <= bound_of_family(instance) <= best * (1 + 1e-9)


@pytest.mark.parametrize("goal", GOALS)
def test_any_prices_give_a_bound(goal):
    instance = random_levels(5, gradients=4, points=4, curved_part=0.2, goal=goal)
    arrays, best = LevelArrays(instance), brute_force(instance)
    rng, bounds = np.random.default_rng(0), []
    for _ in range(300):
        rows = rng.exponential(size=4) * (rng.random(4) < 0.6)
        bounds.append(price_bound(arrays, LevelPrices(rows, float(10 ** rng.uniform(-6, 2)))))
    assert 0 < max(bounds) <= best
    for strange in (LevelPrices(np.zeros(4), 1.0), LevelPrices(np.full(4, np.nan), np.nan), LevelPrices(-rows, -1.0)):
        assert price_bound(arrays, strange) <= best


@for_each("goal", GOALS)
@for_each("overlap", [True, False])
def test_the_price_is_the_slope_of_the_frontier(overlap, goal):
    instance = random_levels(3, gradients=12, overlap=overlap, goal=goal, curved_part=1.0)
    model, problem = solved(instance)
    prices = model.prices(problem, instance)
    slope = prices.seconds_per_error if goal == "time" else 1 / prices.seconds_per_error
    budget = LevelArrays(instance).budget
    step = 1e-3 * budget
    ahead, behind = (value(with_budget(instance, budget + each)) for each in (step, -step))
    assert slope == pytest.approx((behind - ahead) / (2 * step), rel=2e-3)


@for_each("goal", GOALS)
@for_each("curved", [0.0, 0.5, 1.0])
def test_filling_without_a_solver_agrees_where_nothing_overlaps(curved, goal):
    for seed in range(2):
        instance = random_levels(seed, gradients=15, overlap=False, goal=goal, curved_part=curved)
        arrays = LevelArrays(instance)
        for chords in (False, True):
            filling = PricedLevels(arrays, np.eye(15)[0]).fill(whole=chords)
            if goal == "time" or not chords:  # errors between whole levels are those of the curve, not of its chords
                reached = arrays.time_s(filling.levels) if goal == "time" else arrays.error_of(filling.levels).sum()
                assert reached == pytest.approx(value(instance, chords=chords), rel=1e-6)
            if curved == 0 or chords:
                assert price_bound(arrays, filling.prices) == pytest.approx(value(instance, chords=chords), rel=1e-6)
            used = arrays.time_s(filling.levels) if goal == "error" else arrays.error_of(filling.levels).sum()
            assert used <= arrays.budget * (1 + 1e-12)


def test_the_best_price_of_error_is_the_best_of_many():
    for seed, goal in itertools.product(range(3), GOALS):
        instance = random_levels(seed, goal=goal)
        arrays = LevelArrays(instance)
        model, problem = solved(instance)
        rows = model.prices(problem, instance).rows
        best = sharpest_prices(arrays, rows)
        others = [price_bound(arrays, LevelPrices(best.rows, best.error * x)) for x in np.geomspace(0.1, 10, 60)]
        assert price_bound(arrays, best) >= max(others) * (1 - 1e-9)
        assert price_bound(arrays, best) > min(others)


def test_budgets_that_bind_nobody():
    instance = random_levels(2, gradients=5)
    arrays = LevelArrays(instance)
    loose = with_budget(instance, 2 * arrays.errors[:, 0].sum())
    model, problem = solved(loose)
    assert model.value(problem, loose) == pytest.approx(arrays.least_time_s(), rel=1e-6)
    assert price_bound(LevelArrays(loose), sharpest_prices(LevelArrays(loose), np.eye(5)[4])) <= arrays.least_time_s()
    idle = random_levels(2, gradients=5, goal="error")
    idle = with_budget(idle, 2 * LevelArrays(idle).time_s(LevelArrays(idle).highest))
    assert value(idle) == pytest.approx(idle.least_error, rel=1e-5)
    tight = with_budget(instance, instance.least_error)
    assert value(tight) == pytest.approx(arrays.time_s(arrays.highest), rel=1e-4)


def test_a_budget_without_any_error():
    curve = PointCurve(levels=(1, 2, 4, 8), errors=(5.0, 2.0, 0.0, 0.0))
    gradient = GradedGradient(name="w", shape=(8,), compressor="top_k", wire_s_per_level=1.0, curve=curve)
    instance = LevelInstance(name="whole", gradients=(gradient, gradient), error_budget=0.0)
    model, problem = solved(instance)
    assert model.value(problem, instance) == pytest.approx(8.0, rel=1e-6)
    # Beyond level 4 there is nothing to be gained.
    assert PricedLevels(LevelArrays(instance), np.ones(2)).fill(whole=False).levels.tolist() == [4.0, 4.0]


def test_bounds_allow_a_budget_what_the_check_allows():
    curve = PointCurve(levels=(1, 1000), errors=(1.0, 0.0))
    gradient = GradedGradient(name="w", shape=(1000,), compressor="top_k", wire_s_per_level=1.0, curve=curve)
    instance = LevelInstance(name="edge", gradients=(gradient,), error_budget=1 / (1 + 0.5e-9))
    checked = evaluate(instance, LevelPlan(instance="edge", levels=(1,)))
    assert not checked.violations
    assert 0.999 < price_bound(LevelArrays(instance), LevelPrices(np.ones(1), 999.0)) <= checked.objective


def test_levels_without_a_choice():
    point = PointCurve(levels=(3,), errors=(0.5,))
    gradient = GradedGradient(name="w", shape=(8,), compressor="top_k", wire_s_per_level=1.0, curve=point)
    for budget in ({"error_budget": 1.0}, {"goal": "error", "time_budget_s": 6.0}):
        instance = LevelInstance(name="fixed", gradients=(gradient, gradient), **budget)
        model, problem = solved(instance)
        assert model.read(problem, instance) == pytest.approx([3.0, 3.0])
        assert model.value(problem, instance) == pytest.approx(6.0 if instance.goal == "time" else 1.0, rel=1e-6)


def test_a_time_budget_that_nobody_keeps_names_the_least():
    instance = random_levels(1, goal="error")
    least = LevelArrays(instance).least_time_s()
    short = with_budget(instance, 0.99 * least)
    for broken in (arrays_of, ContinuousLevels().problem):
        with pytest.raises(InfeasibleError, match="no choice of levels takes less than") as problem:
            broken(short)
        assert repr(least) in str(problem.value)
        assert "\n" not in str(problem.value)
    assert arrays_of(with_budget(instance, least)).budget == least


def test_an_unsolved_program_has_nothing_to_read():
    instance = random_levels(0)
    with pytest.raises(SolverError, match="solve it first"):
        ContinuousLevels().read(ContinuousLevels().problem(instance), instance)
    prices = ContinuousLevels().prices(ContinuousLevels().problem(instance), instance)
    assert price_bound(LevelArrays(instance), prices) == 0.0


def odd_case(kind, seed):
    """A drawn instance with odd figures, and its optimum; None where there is no such instance, or no answer."""
    drawn = random_levels(seed, goal=GOALS[seed % 2], gradients=3, points=4)
    instance = odd(drawn, kind, random.Random(f"{kind} {seed}"))
    if instance is None:
        return None
    try:
        arrays_of(instance)
    except InfeasibleError:
        with pytest.raises(ValueError, match="empty"):
            brute_force(instance)
        return None
    return instance, brute_force(instance)


def above_the_optimum(kind, seed):
    """What the relaxation and its prices say that is more than the optimum, in two solvers; None if not compared."""
    case = odd_case(kind, seed)
    if case is None:
        return None
    (instance, best), told = case, []
    for solver, chords in itertools.product(("clarabel", "scs"), (False, True)):
        model = ContinuousLevels(chords=chords)
        problem = model.problem(instance)
        assert Convex(solver).solve(problem, Limits()).status is Status.OPTIMAL, (kind, seed, solver)
        bound = price_bound(LevelArrays(instance), model.prices(problem, instance))
        if model.value(problem, instance) > best * (1 + 1e-4) or bound > best * (1 + 1e-9):
            told.append((kind, seed, solver, chords))
    return told


def test_odd_figures_leave_a_relaxation():
    found = [above_the_optimum(kind, seed) for seed in (9, 10) for kind in KINDS]
    assert [each for some in found for each in some or ()] == []
    assert sum(each is not None for each in found) >= 6


@pytest.mark.slow
def test_many_odd_figures_leave_a_relaxation():
    found = [above_the_optimum(kind, seed) for seed in range(40) for kind in KINDS]
    assert [each for some in found for each in some or ()] == []
    assert sum(each is not None for each in found) >= 100


def test_a_time_budget_that_the_check_lets_pass_is_kept():
    """The lowest levels take a little longer than the budget says, and no longer than the check lets pass."""
    instance = random_levels(1, goal="error", gradients=3)
    least = LevelArrays(instance).least_time_s()
    tight = instance.changed(time_budget_s=least * (1 - 5e-10))
    lowest = LevelPlan(instance=tight.name, levels=[each.curve.allowed[0] for each in tight.gradients])
    assert evaluate(tight, lowest).feasible
    assert arrays_of(tight).budget == pytest.approx(least, rel=1e-14)
    assert as_timeline(tight).time_budget_s == arrays_of(tight).budget
    with pytest.raises(InfeasibleError):
        arrays_of(instance.changed(time_budget_s=least * (1 - 5e-9)))


def test_a_plan_that_the_check_lets_pass_is_bounded():
    """The optimum takes a little longer than the budget says, and no bound passes its error."""
    tight, optimum = a_little_late()
    assert method("overlap-timeline", "compression").solve(tight, Limits(10.0, 0.0)).bound <= optimum * (1 + 1e-9)
