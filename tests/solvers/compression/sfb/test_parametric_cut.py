"""Budgets against brute force: the bound of prices, and selections that are cut down and filled up."""

import numpy as np
import pytest
from sfb_cases import changed, drawn, optima
from volume import for_each, seeds

from ddlopt.instances.generators.compression import generate
from ddlopt.models.compression import SfbSelection, evaluate
from ddlopt.models.compression.sfb.cut_network import minimum_cut
from ddlopt.models.compression.sfb.formulations.sfb_milp import SfbMilp
from ddlopt.solvers.backends.highs import Highs
from ddlopt.solvers.compression.sfb.costs import CostGraph, costs_of
from ddlopt.solvers.compression.sfb.moves import Moves, budgets_of
from ddlopt.solvers.compression.sfb.parametric_cut import ParametricCut
from ddlopt.solvers.contracts import Limits, Status
from ddlopt.solvers.exact import Exact, lp_relaxation

BUDGETS = (("memory_budget_bytes",), ("compute_budget_s",), ("memory_budget_bytes", "compute_budget_s"))


def budgeted(seed, operators=9, part=0.35, **fields):
    """A drawn instance with budgets that are a part of what duplicating everything takes, one or the other or both."""
    instance = drawn(seed, operators, broadcast=("per_tensor", "per_edge")[seed % 2], **fields)
    memory = sum(each.memory_bytes for each in instance.operators)
    whole = {"memory_budget_bytes": memory, "compute_budget_s": float(instance.extra_s.sum())}
    return changed(instance, **{name: part * whole[name] for name in BUDGETS[seed % 3]})


@for_each("seed", seeds(3, 24))
def test_solution_and_bound_lie_around_the_optimum(seed):
    instance = budgeted(seed, duplication_penalty_s=0.1 * (seed % 2))
    least, _ = optima(instance)
    found = ParametricCut().solve(instance, Limits(gap=0.0))
    assert found.bound <= least * (1 + 1e-12)
    assert found.objective >= least * (1 - 1e-12)
    assert found.gap < 0.35
    bounds = [point.bound for point in found.trace]
    assert bounds == sorted(bounds)


@pytest.mark.parametrize("seed", range(6))
def test_the_bound_of_prices_is_at_least_the_linear_relaxation(seed):
    instance = budgeted(seed, operators=40, part=0.1)
    result = ParametricCut().solve(instance, Limits())
    relaxed = lp_relaxation(SfbMilp(), instance).objective
    assert result.bound >= relaxed * (1 - 1e-7)
    # A little more of a budget lowers the bound by its price at most, and a little less raises it by that at least.
    names = {"memory_budget_bytes": "memory_price_s_per_byte", "compute_budget_s": "compute_price"}
    for budget in BUDGETS[seed % 3]:
        bounds, price = [], result.details[names[budget]]
        step = getattr(instance, budget) * 1e-4
        for side in (-1, 1):
            other = changed(instance, **{budget: getattr(instance, budget) + side * step})
            bounds.append(ParametricCut().solve(other, Limits()).bound)
        less, more = (bound - result.bound for bound in bounds)
        assert less >= price * step * (1 - 1e-4) - 1e-9
        assert more >= -price * step * (1 + 1e-4) - 1e-9
        assert price > 0 or len(BUDGETS[seed % 3]) > 1


@for_each("seed", range(6))
def test_without_time_the_bound_is_still_one(seed):
    instance = budgeted(seed)
    least, _ = optima(instance)
    result = ParametricCut().solve(instance, Limits(time_s=1e-9, gap=0.0))
    assert result.bound <= least * (1 + 1e-12) <= result.objective * (1 + 2e-12)
    assert result.bound > 0


def test_selections_are_cut_down_and_filled_up():
    instance = budgeted(3, operators=40, part=0.1)
    use, budgets = budgets_of(instance)
    graph, costs = CostGraph(instance), costs_of(instance)
    nothing = np.zeros(instance.size, dtype=bool)
    for start in (minimum_cut(instance).duplicated, instance.eligible, nothing):
        moves = Moves(graph, costs, start, use, budgets)
        moves.drop()
        small = moves.duplicated
        assert (use @ small <= budgets).all()
        assert not (small & ~start).any()
        moves.fill()
        full = moves.duplicated
        assert (use @ full <= budgets).all()
        assert not (small & ~full).any()
        # Nothing that fits saves anything any more.
        for node in np.flatnonzero(instance.eligible & ~full):
            assert moves.change(node) >= 0 or (use @ full + use[:, node] > budgets).any()
    assert full.any()
    assert graph.cost(costs, full) < graph.cost(costs, nothing)


@pytest.mark.slow
def test_what_is_cut_down_is_near_the_optimum():
    gaps = []
    for seed in range(30):
        instance = budgeted(seed, part=0.2)
        gaps.append(ParametricCut().solve(instance, Limits()).objective / optima(instance)[0] - 1)
    assert np.mean(gaps) < 0.012


def test_a_network_that_is_duplicated_as_a_whole_or_hardly_at_all():
    # Between the two selections that are optimal at one price lies nearly everything: cutting down finds the rest.
    options = {"model": "bert-base", "batch": 4, "workers": 4, "network_gigabit_per_s": 10.0}
    instance = generate("sfb-network", **options, memory_budget_bytes=2e9)
    assert ParametricCut().solve(instance, Limits()).gap < 0.06


def test_no_budget_and_no_room():
    instance = drawn(2, operators=30)
    free = ParametricCut().solve(instance, Limits(gap=0.0))
    assert free.objective == pytest.approx(minimum_cut(instance).bound_s, rel=1e-12)
    assert free.status is Status.OPTIMAL
    none = ParametricCut().solve(changed(instance, memory_budget_bytes=0.0, compute_budget_s=0.0), Limits(gap=0.0))
    assert none.solution.duplicated == ()
    assert none.status is Status.OPTIMAL


def test_a_start_is_not_lost():
    instance = budgeted(10, operators=40)
    best = Exact("milp", "compression", SfbMilp(), Highs()).solve(instance, Limits(gap=1e-6))
    plain = ParametricCut().solve(instance, Limits())
    started = ParametricCut().solve(instance, Limits(), start=best.solution)
    assert started.objective <= best.objective * (1 + 1e-12)
    assert plain.objective > best.objective * (1 + 1e-9)


@for_each("seed", range(6))
def test_moves_cost_what_the_check_says(seed):
    instance = drawn(seed, operators=30, broadcast=("per_tensor", "per_edge")[seed % 2])
    rng = np.random.default_rng(seed)
    graph, costs = CostGraph(instance), costs_of(instance)

    def checked(mask):
        answer = SfbSelection(instance=instance.name, duplicated=tuple(np.flatnonzero(mask).tolist()))
        return evaluate(instance, answer).objective

    chosen = (rng.random(instance.size) < 0.4) & instance.eligible
    moves = Moves(graph, costs, chosen, *budgets_of(instance))
    for node in np.flatnonzero(instance.eligible):
        before = moves.duplicated
        change = moves.change(node)
        moves.flip(node)
        assert change == pytest.approx(checked(moves.duplicated) - checked(before), abs=1e-9)
        assert graph.change(costs, before, moves.duplicated) == pytest.approx(change, abs=1e-9)
