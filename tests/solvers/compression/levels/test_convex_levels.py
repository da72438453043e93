"""The rounded convex program: between its bound and a little above the best of all levels."""

import dataclasses

import numpy as np
import pytest
from level_cases import brute_force, optimum, random_levels, with_budget

from ddlopt.instances.generators.compression import generate
from ddlopt.models.compression import (
    ExponentialCurve,
    GradedGradient,
    LevelInstance,
    LevelPlan,
    PointCurve,
    evaluate,
)
from ddlopt.models.compression.levels.arrays import LevelArrays
from ddlopt.models.errors import SolutionError, UnknownNameError
from ddlopt.solvers.compression.levels.convex_levels import ConvexLevels
from ddlopt.solvers.compression.levels.rounding import Rounding
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
