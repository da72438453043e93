"""L-GreCo: the knapsack by its grid of errors, and how far that is from the optimum."""

import itertools

import numpy as np
import pytest
from timeline_brute_force import brute_force, random_levels_case, random_timeline_case

from ddlopt.models.compression import CompressionInstance, Gradient, Option
from ddlopt.models.errors import NotApplicableError, OptionError
from ddlopt.solvers.compression.timeline.lgreco import LGreco, knapsack
from ddlopt.solvers.contracts import Limits


def options(*figures):
    return tuple(Option(label=f"o{k}", wire_s=wire, error=error) for k, (wire, error) in enumerate(figures))


def instance(menu, count, budget, **more):
    gradients = tuple(Gradient(name=f"g{i}", shape=(2,), ready_s=0.0, menu=0) for i in range(count))
    return CompressionInstance(name="x", gradients=gradients, menus=(menu,), error_budget=budget, **more)


def test_knapsack_is_the_best_of_all():
    rng = np.random.default_rng(0)
    missed = 0
    for _ in range(60):
        count, offered, steps = (int(rng.integers(1, most)) for most in (5, 4, 12))
        sizes, errors = rng.integers(0, 9, (count, offered)) * 1.0, rng.integers(0, steps + 2, (count, offered))
        totals = [
            sum(sizes[i, k] for i, k in enumerate(chosen))
            for chosen in itertools.product(range(offered), repeat=count)
            if sum(errors[i, k] for i, k in enumerate(chosen)) <= steps
        ]
        chosen = knapsack(sizes, errors, steps)
        missed += chosen is None
        assert (chosen is None) == (not totals)
        if chosen is not None:
            assert sizes[np.arange(count), chosen].sum() == min(totals)
            assert errors[np.arange(count), chosen].sum() <= steps
    assert 0 < missed < 60


def test_optimal_where_nothing_overlaps_and_errors_lie_on_the_grid():
    rng = np.random.default_rng(1)
    for _ in range(20):
        figures = sorted(rng.integers(0, 20, (3, 2)).tolist())
        count = int(rng.integers(1, 5))
        least = count * min(error for _, error in figures)
        case = instance(options(*figures), count, budget=float(least + rng.integers(1, 20)))
        result = LGreco(steps=int(case.error_budget)).solve(case, Limits())
        assert result.objective == pytest.approx(brute_force(case)[0])


def test_rounding_up_keeps_the_budget_and_may_miss():
    """Two errors of 0.3 of a budget of 1: with 2 steps each counts as half; three such do not fit any more."""
    menu = options((4.0, 0.0), (1.0, 0.3))
    two, three = (instance(menu, count, 1.0) for count in (2, 3))
    assert LGreco(steps=2).solve(two, Limits()).objective == 2.0
    assert LGreco(steps=2).solve(three, Limits()).objective == 6.0
    assert LGreco(steps=10).solve(three, Limits()).objective == 3.0


def test_of_equal_sizes_the_smaller_error():
    assert LGreco(steps=10).solve(instance(options((1.0, 0.5), (1.0, 0.2)), 1, 1.0), Limits()).solution.choices == (1,)


def test_least_errors_where_nothing_fits_after_rounding():
    tight = instance(options((4.0, 0.3), (1.0, 0.4)), 3, 1.0)
    result = LGreco(steps=2).solve(tight, Limits())
    assert (result.solution.choices, result.details["fitted"]) == ((0, 0, 0), False)
    lossless = instance(options((4.0, 0.0), (1.0, 1e-12)), 2, 0.0)
    assert LGreco().solve(lossless, Limits()).solution.choices == (0, 0)


def test_never_better_than_the_optimum_and_within_the_budget():
    rng = np.random.default_rng(2)
    worse = 0
    for number in range(40):
        if number % 2:
            case = random_timeline_case(rng, goal="time", budget=True)
        else:
            case = random_levels_case(rng, goal="time")
        result, best = LGreco().solve(case, Limits()), brute_force(case)[0]
        assert result.objective >= best * (1 - 1e-12)
        worse += result.objective > best * (1 + 1e-9)
    assert worse


def test_levels_without_overlap_are_the_knapsack():
    rng = np.random.default_rng(3)
    for _ in range(10):
        case = random_levels_case(rng, goal="time", knapsack=True)
        # A budget with some room, so that rounding up does not matter.
        roomy = type(case)(**case.model_dump() | {"error_budget": case.error_budget * 1.01})
        result = LGreco(steps=100_000).solve(roomy, Limits())
        assert brute_force(roomy)[0] * (1 - 1e-12) <= result.objective <= brute_force(case)[0] * (1 + 1e-12)


def test_refusals():
    menu = options((4.0, 0.0))
    for case, reason in (
        (instance(menu, 1, None), "no error_budget to spend"),
        (instance(menu, 1, None, goal="error", time_budget_s=9.0), "the goal is the error"),
    ):
        with pytest.raises(NotApplicableError, match=reason):
            LGreco().solve(case, Limits())
    with pytest.raises(OptionError, match="steps must be at least 1, got 0"):
        LGreco(steps=0)
