"""Water-filling against the convex program, and what it does not cover."""

import numpy as np
import pytest
from level_cases import brute_force, random_levels, with_budget

from ddlopt.models.compression import ExponentialCurve, GradedGradient, LevelInstance
from ddlopt.models.compression.levels.arrays import LevelArrays
from ddlopt.models.compression.levels.prices import PricedLevels
from ddlopt.models.errors import NotApplicableError
from ddlopt.solvers.compression.levels.convex_levels import ConvexLevels
from ddlopt.solvers.compression.levels.water_filling import WaterFilling
from ddlopt.solvers.contracts import Limits

GOALS = ("time", "error")


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
def test_against_the_best_of_all_levels(goal):
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
