"""Levels: the convex program and its rounding, water-filling, and one level for all."""

import dataclasses

import numpy as np
import pytest
from level_cases import brute_force, optimum, random_levels, with_budget
from volume import for_each

from ddlopt.instances.generators.compression import generate
from ddlopt.models.compression import ExponentialCurve, GradedGradient, LevelInstance, LevelPlan, PointCurve, evaluate
from ddlopt.models.compression.levels.arrays import LevelArrays
from ddlopt.models.compression.levels.prices import PricedLevels
from ddlopt.models.compression.levels.uniform import uniform_coordinates
from ddlopt.models.errors import NotApplicableError, SolutionError, UnknownNameError
from ddlopt.solvers.compression.levels.convex_levels import ConvexLevels
from ddlopt.solvers.compression.levels.rounding import Rounding
from ddlopt.solvers.compression.levels.uniform_levels import UniformLevels
from ddlopt.solvers.compression.levels.water_filling import WaterFilling
from ddlopt.solvers.contracts import Limits, Status
from ddlopt.solvers.heuristic import Clock

GOALS = ("time", "error")


@pytest.mark.parametrize("goal", GOALS)
@pytest.mark.parametrize("overlap", [True, False])
def test_against_the_best_of_all_levels(overlap, goal):
    equal = 0
    for seed in range(5):
        instance = random_levels(seed, gradients=3, points=6, overlap=overlap, goal=goal)
        best, result = brute_force(instance), ConvexLevels().solve(instance, Limits())
        assert result.details["relaxation"] * (1 - 1e-6) <= result.bound <= best * (1 + 1e-9)
        assert result.objective >= best * (1 - 1e-12)
        equal += result.objective <= best * (1 + 1e-9)
    assert equal >= 4


@pytest.mark.parametrize("goal", GOALS)
def test_near_the_optimum_of_twenty_gradients(goal):
    for seed, curved in ((0, 0.0), (1, 0.5), (2, 1.0)):
        instance = random_levels(seed, goal=goal, curved_part=curved)
        best, result = optimum(instance), ConvexLevels().solve(instance, Limits())
        assert best * (1 - 1e-5) <= result.objective <= 1.02 * best
        assert 0.9 * best <= result.bound <= best * (1 + 1e-9)
        assert result.details["rounding_gap"] == pytest.approx(1 - result.details["relaxation"] / result.objective)


def test_prices_are_reported_by_goal():
    # At the price of error a budget half a per cent larger is worth half a per cent of it.
    instance = random_levels(4, gradients=30, curved_part=1.0)
    more = with_budget(instance, 1.005 * instance.error_budget)
    results = [ConvexLevels().solve(each, Limits()) for each in (instance, more)]
    saved = results[0].details["relaxation"] - results[1].details["relaxation"]
    assert results[0].details["price_of_error"] == pytest.approx(saved / (0.005 * instance.error_budget), rel=0.02)
    other = ConvexLevels().solve(random_levels(4, goal="error"), Limits())
    assert other.details["price_of_time"] > 0
    assert "price_of_error" not in other.details


@pytest.mark.parametrize("goal", GOALS)
@pytest.mark.parametrize("compressor", ["powersgd", "top_k", "qsgd"])
def test_networks(compressor, goal):
    instance = generate("levels-network", 3, model="vgg16", compressor=compressor, goal=goal)
    result = ConvexLevels().solve(instance, Limits())
    assert evaluate(instance, result.solution, exact=True).feasible
    assert result.gap < (0.16 if (compressor, goal) == ("qsgd", "error") else 0.02)  # one gradient is most of the time
    if compressor == "qsgd":
        assert result.objective == pytest.approx(optimum(instance), rel=1e-3)


def test_a_start_is_not_left_worse():
    instance = random_levels(7, gradients=12)
    arrays = LevelArrays(instance)
    best = ConvexLevels().solve(instance, Limits())
    again = ConvexLevels().solve(instance, Limits(), start=best.solution)
    assert again.objective <= best.objective
    # One that breaks the budget is mended.
    lowest = LevelPlan(instance=instance.name, levels=tuple(arrays.lowest.astype(int).tolist()))
    assert evaluate(instance, lowest).violations
    assert ConvexLevels().solve(instance, Limits(), start=lowest).objective == pytest.approx(best.objective, rel=0.01)
    with pytest.raises(SolutionError, match="the levels to start from fail the check: level_is_allowed"):
        ConvexLevels().solve(instance, Limits(), start=LevelPlan(instance=instance.name, levels=(10**6,) * 12))


@pytest.mark.parametrize("goal", GOALS)
def test_without_time_there_is_an_answer(goal):
    instance = random_levels(3, goal=goal, gradients=40)
    result = ConvexLevels().solve(instance, Limits(time_s=1e-9))
    assert result.status is Status.FEASIBLE
    assert not evaluate(instance, result.solution).violations


def test_curves_that_are_flat_or_vanish_and_a_budget_that_is_the_least():
    curves = (
        ExponentialCurve(lowest=1, highest=64, scale=1e8),
        ExponentialCurve(lowest=2, highest=5, scale=0.0),
        PointCurve(levels=(1, 2, 3), errors=(2.0, 0.5, 0.5)),
        PointCurve(levels=(7,), errors=(0.1,)),
    )
    gradients = tuple(
        GradedGradient(name=str(k), shape=(9,), compressor="qsgd", wire_s_per_level=1.0, curve=curve)
        for k, curve in enumerate(curves)
    )
    # A part of 1e-12 of the error does not count: of the first, 1e8 · 4^-33 < 1e-12 is left.
    instance = LevelInstance(name="least", gradients=gradients, error_budget=0.6)
    for method in (ConvexLevels(), WaterFilling()):
        result = method.solve(instance, Limits())
        assert result.solution.levels[1:] == (2, 2, 7)
        assert 30 <= result.solution.levels[0] <= 36
        assert result.bound <= result.objective
        start = LevelPlan(instance="least", levels=(1, 5, 3, 7))
        assert method.solve(instance, Limits(), start=start).objective <= result.objective


def test_bad_input_is_one_line():
    instance = random_levels(1, goal="error")
    least = LevelArrays(instance).least_time_s()
    none = ConvexLevels().solve(with_budget(instance, least / 2), Limits())
    assert none.status == "infeasible"
    assert f"takes less than {least!r} s" in none.message
    with pytest.raises(UnknownNameError, match="no convex solver 'cplex'"):
        ConvexLevels(solver="cplex").solve(instance, Limits())


@pytest.mark.parametrize("goal", GOALS)
@pytest.mark.parametrize("seed", range(3))
def test_rounding_by_itself(seed, goal):
    instance = random_levels(seed, goal=goal, gradients=15)
    arrays = LevelArrays(instance)
    clock = Clock(Limits(), None)
    rounding = Rounding(arrays, np.ones(15), clock)
    rng = np.random.default_rng(seed)
    for _ in range(5):
        start = rng.integers(0, arrays.counts)
        mended = rounding._mend(start)
        full = rounding._fill(mended)
        best = rounding.best([start])
        for places in (mended, full, best):
            assert ((places >= 0) & (places < arrays.counts)).all()
            used = arrays.time_s(arrays.levels_at(places)) if goal == "error" else arrays.errors_at(places).sum()
            assert arrays.fits(used)
        assert rounding.objective(best) <= rounding.objective(full) <= rounding.objective(mended)
        # Nothing that fits is left to gain by one step.
        step = -1 if goal == "time" else 1
        for one in np.flatnonzero((full + step >= 0) & (full + step < arrays.counts)):
            moved = full.copy()
            moved[one] += step
            used = arrays.time_s(arrays.levels_at(moved)) if goal == "error" else arrays.errors_at(moved).sum()
            assert used > arrays.budget * (1 - 1e-12)


def test_times_after_a_step_are_those_of_the_timeline():
    instance = random_levels(6, goal="error", gradients=9)
    arrays = LevelArrays(instance)
    rounding = Rounding(arrays, np.ones(9), Clock(Limits(), None))
    places = np.random.default_rng(6).integers(0, arrays.counts)
    found = rounding._times_after(places, np.arange(1.0, 10.0))
    for one in range(9):
        levels = arrays.levels_at(places) + np.eye(9)[one] * (one + 1)
        assert found[one] == pytest.approx(arrays.time_s(levels), rel=1e-12)


def test_fractional_levels_are_rounded_to_neighbours():
    arrays = LevelArrays(random_levels(2, gradients=10))
    rounding = Rounding(arrays, np.ones(10), Clock(Limits(), None))
    rng = np.random.default_rng(2)
    for levels in (arrays.lowest, arrays.highest, rng.uniform(arrays.lowest, arrays.highest)):
        below, nearest, above = (arrays.levels_at(each) for each in rounding.starts(levels))
        assert (below <= levels).all()
        assert (levels <= above).all()
        assert (np.abs(nearest - levels) == np.minimum(levels - below, above - levels)).all()
        between = (arrays.levels > below[:, None]) & (arrays.levels < above[:, None])
        assert not between.any()


def test_the_result_says_how_it_was_found():
    result = ConvexLevels().solve(random_levels(0), Limits())
    assert result.provenance["solver"].startswith("clarabel ")
    assert {"relaxation", "rounding_gap", "price_of_error", "iterations"} <= set(result.details)
    assert dataclasses.replace(ConvexLevels(), solver="scs").solver == "scs"


CURVE = PointCurve(levels=(1, 2, 4), errors=(4.0, 2.0, 0.0))
SHORT = PointCurve(levels=(1, 2), errors=(3.0, 1.0))


def gradient(curve, shape, compressor="powersgd"):
    return GradedGradient(name="w", shape=shape, compressor=compressor, wire_s_per_level=1.0, curve=curve)


@for_each(("budget", "levels"), [(7.0, (1, 1)), (6.9, (2, 2)), (3.0, (2, 2)), (2.9, (4, 2)), (1.0, (4, 2))])
def test_the_smallest_rank_that_keeps_the_error(budget, levels):
    pair = gradient(CURVE, (8, 8)), gradient(SHORT, (2, 8))
    instance = LevelInstance(name="pair", gradients=pair, error_budget=budget)
    assert UniformLevels().solve(instance, Limits()).solution.levels == levels


@for_each(("budget", "levels"), [(2.0, (1, 1)), (3.9, (1, 1)), (4.0, (2, 2)), (6.0, (4, 2)), (9, (4, 2))])
def test_the_largest_rank_that_keeps_the_time(budget, levels):
    pair = gradient(CURVE, (8, 8)), gradient(SHORT, (2, 8))
    instance = LevelInstance(name="pair", gradients=pair, goal="error", time_budget_s=budget)
    assert UniformLevels().solve(instance, Limits()).solution.levels == levels


def test_entries_are_counted_as_parts():
    # 4 of 40 entries and 1 of 10 are the same tenth.
    pair = gradient(CURVE, (4, 10), "top_k"), gradient(SHORT, (10,), "top_k")
    instance = LevelInstance(name="pair", gradients=pair, error_budget=3.0)
    np.testing.assert_allclose(uniform_coordinates(instance), [[0.125, 0.25, 0.5], [0.5, 1, 1]])
    assert UniformLevels().solve(instance, Limits()).solution.levels == (4, 1)


@pytest.mark.parametrize("goal", ["time", "error"])
def test_no_other_part_is_better(goal):
    instance = random_levels(3, goal=goal, gradients=10)
    table, arrays = uniform_coordinates(instance), LevelArrays(instance)
    feasible = []
    for part in np.unique(table):
        places = [max(0, int((row[:count] <= part).sum()) - 1) for row, count in zip(table, arrays.counts, strict=True)]
        levels = tuple(each.curve.allowed[place] for each, place in zip(instance.gradients, places, strict=True))
        checked = evaluate(instance, LevelPlan(instance=instance.name, levels=levels))
        feasible += [float(checked.objective)] if not checked.violations else []
    assert len(feasible) > 1
    assert UniformLevels().solve(instance, Limits()).objective == pytest.approx(min(feasible), rel=1e-12)


@pytest.mark.parametrize(("compressor", "like"), [("powersgd", 8), ("qsgd", 4)])
def test_the_budget_of_a_network_is_met_by_what_it_is_like(compressor, like):
    for goal in ("time", "error"):
        instance = generate("levels-network", 1, model="vgg16", compressor=compressor, like=like, goal=goal)
        levels = UniformLevels().solve(instance, Limits()).solution.levels
        graded = [level for level, each in zip(levels, instance.gradients, strict=True) if len(each.curve.allowed) > 1]
        assert set(graded) == {like}


def test_an_infeasible_time():
    instance = random_levels(1, goal="error")
    none = UniformLevels().solve(with_budget(instance, 1e-9), Limits())
    assert none.status == "infeasible"
    assert "no choice of levels takes less than" in none.message


@pytest.mark.parametrize("goal", GOALS)
@pytest.mark.parametrize("curved", [0.0, 0.5, 1.0])
def test_the_same_optimum_and_price_as_the_convex_program(curved, goal):
    for seed in range(2):
        instance = random_levels(seed, gradients=25, overlap=False, curved_part=curved, goal=goal)
        own, other = (method.solve(instance, Limits()) for method in (WaterFilling(), ConvexLevels()))
        assert own.details["relaxation"] == pytest.approx(other.details["relaxation"], rel=1e-6)
        assert own.bound == pytest.approx(other.bound, rel=1e-6)
        assert own.objective == pytest.approx(other.objective, rel=0.02)
        price = "price_of_error" if goal == "time" else "price_of_time"
        if curved == 1.0:  # on points any price between two slopes is one
            assert own.details[price] == pytest.approx(other.details[price], rel=2e-3)


@pytest.mark.parametrize("goal", GOALS)
def test_water_against_the_best_of_all_levels(goal):
    for seed in range(5):
        instance = random_levels(seed, gradients=3, points=6, overlap=False, goal=goal)
        best, result = brute_force(instance), WaterFilling().solve(instance, Limits())
        assert result.bound <= best * (1 + 1e-9)
        assert best * (1 - 1e-12) <= result.objective <= 1.2 * best


def test_the_water_is_level():
    # Without ends of ranges each gradient keeps an error in proportion to what a bit of it costs: here E · cost / sum.
    scales, costs = (4.0, 100.0, 3e4), (1.0, 3.0, 2.0)
    gradients = tuple(
        GradedGradient(
            name=str(scale), shape=(8,), compressor="qsgd", wire_s_per_level=cost,
            curve=ExponentialCurve(lowest=0, highest=40, scale=scale),
        )
        for scale, cost in zip(scales, costs, strict=True)
    )  # fmt: skip
    instance = LevelInstance(name="water", gradients=gradients, error_budget=0.6)
    filling = PricedLevels(LevelArrays(instance), np.eye(3)[0]).fill(whole=False)
    np.testing.assert_allclose(np.array(scales) * 4.0**-filling.levels, 0.6 * np.array(costs) / 6, rtol=1e-9)
    assert filling.prices.seconds_per_error == pytest.approx(6 / (0.6 * np.log(4)), rel=1e-9)


def test_gradients_that_are_all_ready_at_one_time():
    instance = random_levels(1, overlap=False)
    later = [each.model_dump() | {"ready_s": 0.5} for each in instance.gradients]
    shifted = LevelInstance.from_data(instance.model_dump() | {"gradients": later})
    first, second = (WaterFilling().solve(each, Limits()) for each in (instance, shifted))
    assert second.objective == pytest.approx(first.objective + 0.5)
    assert second.solution.levels == first.solution.levels


def test_what_is_refused():
    with pytest.raises(NotApplicableError, match="gradients are encoded"):
        WaterFilling().solve(random_levels(1), Limits())
    ready = random_levels(1, overlap=False)
    data = [each.model_dump() for each in ready.gradients]
    data[-1]["ready_s"] = 1.0
    assert "one after the other" in WaterFilling().refuses(
        LevelInstance.from_data(ready.model_dump() | {"gradients": data})
    )
    tight = random_levels(1, overlap=False, goal="error")
    none = WaterFilling().solve(with_budget(tight, 1e-9), Limits())
    assert none.status == "infeasible"
    assert "no choice of levels takes less than" in none.message
