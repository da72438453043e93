"""The time–error frontier: its points against the check, and the picture."""

import itertools

import numpy as np
import pytest
from level_cases import brute_force, random_levels, with_budget
from matplotlib.figure import Figure

from benchmarks.compression.frontier import FrontierPoint, draw, frontier_budgets, frontier_points
from ddlopt.models.compression import CompressionInstance, Gradient, LevelInstance, Option
from ddlopt.models.compression.timeline.choices import as_timeline
from ddlopt.models.errors import InstanceError, NotApplicableError, OptionError

METHODS = ("continuous", "convex-levels", "uniform")


def small():
    return random_levels(1, gradients=3, points=6)


def test_points_are_in_order_and_between_bound_and_optimum():
    instance = small()
    budgets = frontier_budgets(instance, 6)
    points = frontier_points(instance, budgets, METHODS)
    assert [(p.error_budget, p.method) for p in points] == [(budget, name) for budget in budgets for name in METHODS]
    times = {name: [p.time_s for p in points if p.method == name] for name in METHODS}
    for name in METHODS:
        assert times[name] == sorted(times[name], reverse=True), name
    for place, budget in enumerate(budgets):
        best = brute_force(with_budget(instance, budget))
        relaxed, rounded, uniform = (times[name][place] for name in METHODS)
        assert relaxed * (1 - 1e-6) <= best * (1 + 1e-9) <= rounded * (1 + 2e-9)
        assert best <= uniform * (1 + 1e-9)
    assert times["uniform"][2] > times["continuous"][2]
    assert all(p.error <= p.error_budget * (1 + 1e-9) for p in points)


def test_prices_fall_with_the_budget_and_are_slopes():
    instance = random_levels(2, gradients=8, curved_part=1.0)
    points = frontier_points(instance, frontier_budgets(instance, 12)[1:-1], ("continuous",))
    prices = [p.price_s for p in points]
    assert prices == sorted(prices, reverse=True)
    for first, second in itertools.pairwise(points):
        slope = (first.time_s - second.time_s) / (second.error_budget - first.error_budget)
        assert second.price_s * (1 - 1e-3) <= slope <= first.price_s * (1 + 1e-3)


def test_budgets():
    instance = small()
    budgets = frontier_budgets(instance, 5)
    assert budgets[0] == max(instance.least_error, 1e-3 * budgets[-1])
    assert budgets[-1] == pytest.approx(sum(max(o.error for o in menu) for menu in as_timeline(instance).menus))
    assert np.ptp(np.diff(np.log(budgets))) < 1e-9
    assert frontier_budgets(as_timeline(instance), 5) == pytest.approx(budgets)
    with pytest.raises(OptionError, match="count is 1; a frontier needs at least 2 budgets"):
        frontier_budgets(instance, 1)
    lossless = CompressionInstance(
        name="plain",
        gradients=(Gradient(name="a", shape=(2,), ready_s=0, menu=0),),
        menus=((Option(label="none", wire_s=1.0),),),
    )
    with pytest.raises(OptionError, match="'plain' loses nothing"):
        frontier_budgets(lossless)


def test_an_instance_with_the_other_goal_has_the_same_frontier():
    one = random_levels(1, gradients=3, points=6, goal="error")
    assert isinstance(one, LevelInstance)
    budgets = frontier_budgets(one, 3)
    assert frontier_points(one, budgets, ("uniform",)) == frontier_points(small(), budgets, ("uniform",))


def test_bad_input_is_one_line():
    instance = small()
    with pytest.raises(InstanceError, match="no choice of levels has less than"):
        frontier_points(instance, [0.0], ("uniform",))
    with pytest.raises(NotApplicableError, match="it answers a level instance, and this is a compression instance"):
        frontier_points(as_timeline(instance), frontier_budgets(instance, 2), ("continuous",))
    with pytest.raises(NotApplicableError, match="water-filling does not cover"):
        frontier_points(instance, frontier_budgets(instance, 2), ("water-filling",))
    with pytest.raises(OptionError, match="no frontier to draw"):
        draw(Figure().add_subplot(), [])


def test_the_picture_has_a_line_for_every_method():
    axes = Figure().add_subplot()
    points = [
        FrontierPoint(name, budget, time / budget, budget)
        for name, time in (("continuous", 1.0), ("uniform", 2.0))
        for budget in (4.0, 1.0, 100.0)
    ]
    draw(axes, points)
    assert [line.get_label() for line in axes.lines] == ["continuous (relaxation)", "uniform"]
    assert axes.lines[1].get_xydata().tolist() == [[1.0, 2000.0], [4.0, 500.0], [100.0, 20.0]]
    assert (axes.get_xscale(), axes.get_ylim()[0]) == ("log", 0.0)
    assert [line.get_linestyle() for line in axes.lines] == ["--", "-"]
    narrow = Figure().add_subplot()
    draw(narrow, points[:2])
    assert narrow.get_xscale() == "linear"
