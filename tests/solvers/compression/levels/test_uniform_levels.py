"""One rank, number of bits or density for all."""

import numpy as np
import pytest
from level_cases import random_levels, with_budget
from volume import for_each

from ddlopt.instances.generators.compression import generate
from ddlopt.models.compression import GradedGradient, LevelInstance, LevelPlan, PointCurve, evaluate
from ddlopt.models.compression.levels.arrays import LevelArrays
from ddlopt.models.compression.levels.uniform import uniform_coordinates
from ddlopt.solvers.compression.levels.uniform_levels import UniformLevels
from ddlopt.solvers.contracts import Limits

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
