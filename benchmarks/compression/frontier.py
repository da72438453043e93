"""How much time an error is worth: the least time at each budget of error, by several methods."""

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from ddlopt.models.compression import CompressionInstance, LevelInstance
from ddlopt.models.compression.levels.arrays import LevelArrays
from ddlopt.models.compression.levels.formulations.continuous_levels import ContinuousLevels
from ddlopt.models.errors import NotApplicableError, OptionError
from ddlopt.solvers.backends.convex import Convex
from ddlopt.solvers.catalogue import method
from ddlopt.solvers.contracts import Limits, Status

CONTINUOUS = "continuous"
"""Not a method of the catalogue: the convex relaxation, whose levels need not be whole."""

_COLOURS = ("#1f6fb4", "#d95f02", "#3a9d5d", "#8c4a9e", "#b8860b", "#5f6b76", "#c0392b", "#17a2b8")
_MARKERS = "osD^vPX*"
_LEAST_PART = 1e-3
"""Of the largest error, where budgets begin if there may be none."""


class FrontierPoint(NamedTuple):
    """What a method reached within a budget of error.

    ``error``: of the answer, the budget where there is none (the relaxation). ``price_s``: what a unit of error is
    worth there in seconds, of methods that say so.
    """

    method: str
    error_budget: float
    time_s: float
    error: float
    price_s: float | None = None


def frontier_budgets(instance: CompressionInstance | LevelInstance, count: int = 12) -> tuple[float, ...]:
    """Budgets in equal ratios, from the least error there is to that of everything compressed as far as may be.

    Raises
    ------
    OptionError
        If the count is less than 2, or nothing has an error.
    """
    if count < 2:
        raise OptionError(f"count is {count}; a frontier needs at least 2 budgets")
    if isinstance(instance, LevelInstance):
        most = float(LevelArrays(instance).errors[:, 0].sum())
    else:
        largest = [max(option.error for option in menu) for menu in instance.menus]
        most = sum(largest[gradient.menu] for gradient in instance.gradients)
    if most <= 0:
        raise OptionError(f"'{instance.name}' loses nothing, so that it has no frontier")
    least = max(instance.least_error, _LEAST_PART * most)
    budgets = np.geomspace(least, max(least, most), count).tolist()
    return (max(least, instance.least_error), *budgets[1:])


def frontier_points(
    instance: CompressionInstance | LevelInstance,
    budgets: Iterable[float],
    methods: Sequence[str] = (CONTINUOUS, "exact", "uniform"),
    limits: Limits | None = None,
) -> list[FrontierPoint]:
    """The least time of each method at each budget; a point is left out where a method finds no answer.

    Parameters
    ----------
    instance : CompressionInstance or LevelInstance
        Its own goal and budget do not matter.
    budgets : iterable of float
        Of the error.
    methods : sequence of str
        Of the catalogue, or ``"continuous"`` for an instance of levels.
    limits : Limits, optional
        Of each solve; by default 60 seconds.

    Raises
    ------
    InstanceError
        If a budget is less than the least error.
    NotApplicableError
        If a method does not cover the instance.
    """
    limits = Limits(time_s=60.0) if limits is None else limits
    found: list[FrontierPoint] = []
    for budget in budgets:
        data = instance.model_dump() | {"goal": "time", "error_budget": budget, "time_budget_s": None}
        at_budget = type(instance).from_data(data)
        for name in methods:
            point = _relaxed(at_budget, limits) if name == CONTINUOUS else _answered(at_budget, name, limits)
            found += [] if point is None else [point]
    return found


def _answered(instance: CompressionInstance | LevelInstance, name: str, limits: Limits) -> FrontierPoint | None:
    result = method(name, "compression").solve(instance, limits)
    if result.objective is None:
        return None
    assert instance.error_budget is not None
    price = result.details.get("price_of_error")
    return FrontierPoint(name, instance.error_budget, result.objective, result.details["error"], price)


def _relaxed(instance: CompressionInstance | LevelInstance, limits: Limits) -> FrontierPoint | None:
    model = ContinuousLevels()
    reason = model.refuses(instance)
    if reason is not None or not isinstance(instance, LevelInstance):
        raise NotApplicableError(f"'{CONTINUOUS}' does not cover '{instance.name}': {reason}")
    problem = model.problem(instance)
    if Convex().solve(problem, limits).status is not Status.OPTIMAL:
        return None
    assert instance.error_budget is not None
    price = model.prices(problem, instance).seconds_per_error
    return FrontierPoint(
        CONTINUOUS, instance.error_budget, model.value(problem, instance), instance.error_budget, price
    )


def draw(axes: Any, points: Sequence[FrontierPoint]) -> None:
    """Draw time over the budget of error, a line for every method; the relaxation is dashed, without marks.

    Raises
    ------
    OptionError
        If there are no points.
    """
    if not points:
        raise OptionError("there is no frontier to draw: no method found an answer")
    for place, name in enumerate(dict.fromkeys(point.method for point in points)):
        own = sorted((point for point in points if point.method == name), key=lambda point: point.error_budget)
        relaxed = name == CONTINUOUS
        axes.plot(
            [point.error_budget for point in own],
            [1e3 * point.time_s for point in own],
            label="continuous (relaxation)" if relaxed else name,
            color="black" if relaxed else _COLOURS[place % len(_COLOURS)],
            linestyle="--" if relaxed else "-",
            linewidth=1.2,
            marker=None if relaxed else _MARKERS[place % len(_MARKERS)],
            markersize=4,
            zorder=3 if relaxed else 2,
        )
    budgets = [point.error_budget for point in points]
    if min(budgets) > 0 and max(budgets) > 20 * min(budgets):
        axes.set_xscale("log")
    axes.set_xlabel("budget of error", fontsize=8)
    axes.set_ylabel("time [ms]", fontsize=8)
    axes.set_ylim(bottom=0)
    axes.tick_params(labelsize=7)
    axes.grid(color="#dddddd", linewidth=0.5)
    axes.set_axisbelow(True)
    axes.legend(fontsize=7, frameon=False)
    axes.spines[["top", "right"]].set_visible(False)
