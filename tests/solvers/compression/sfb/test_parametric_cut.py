"""Budgets against brute force, the nested frontier against all selections, and what two cuts decide."""

from itertools import pairwise

import numpy as np
import pytest
from sfb_brute_force import selections
from sfb_cases import changed, drawn, optima
from volume import for_each, seeds

from ddlopt.instances.generators.compression import generate
from ddlopt.models.compression import SfbSelection, evaluate
from ddlopt.models.compression.sfb.cut_network import minimum_cut
from ddlopt.models.compression.sfb.formulations.sfb_milp import SfbMilp
from ddlopt.solvers.compression.sfb.budget_kernel import budgets_of, kernel
from ddlopt.solvers.compression.sfb.budget_search import BudgetSearch, Part
from ddlopt.solvers.compression.sfb.moves import Moves
from ddlopt.solvers.compression.sfb.nested_cuts import CostGraph, contract, costs_of
from ddlopt.solvers.compression.sfb.parametric_cut import ParametricCut, frontier
from ddlopt.solvers.contracts import Limits, Status
from ddlopt.solvers.exact import lp_relaxation
from ddlopt.solvers.heuristic import Clock

BUDGETS = (("memory_budget_bytes",), ("compute_budget_s",), ("memory_budget_bytes", "compute_budget_s"))


def budgeted(seed, operators=9, part=0.35, **fields):
    """A drawn instance with budgets that are a part of what duplicating everything takes, one or the other or both."""
    instance = drawn(seed, operators, broadcast=("per_tensor", "per_edge")[seed % 2], **fields)
    memory = sum(each.memory_bytes for each in instance.operators)
    whole = {"memory_budget_bytes": memory, "compute_budget_s": float(instance.extra_s.sum())}
    return changed(instance, **{name: part * whole[name] for name in BUDGETS[seed % 3]})


@for_each("seed", seeds(6, 24))
def test_solution_bound_and_optimum(seed):
    instance = budgeted(seed, duplication_penalty_s=0.1 * (seed % 2))
    least, _ = optima(instance)
    at_once = ParametricCut(work=0).solve(instance, Limits(gap=0.0))
    assert at_once.bound <= least * (1 + 1e-12)
    assert at_once.objective >= least * (1 - 1e-12)
    assert at_once.details["branches"] == 0
    searched = ParametricCut(work=10_000_000).solve(instance, Limits(gap=0.0))
    assert searched.status is Status.OPTIMAL
    assert searched.objective == pytest.approx(least, rel=1e-12)
    assert searched.bound == pytest.approx(least, rel=1e-12)
    bounds = [point.bound for point in searched.trace]
    assert bounds == sorted(bounds)


def test_searching_was_needed_for_some():
    roots = [ParametricCut(work=0).solve(budgeted(seed), Limits(gap=0.0)) for seed in range(24)]
    assert sum(result.status is Status.FEASIBLE for result in roots) > 12


@pytest.mark.parametrize("seed", range(6))
def test_the_bound_of_prices_is_at_least_the_linear_relaxation(seed):
    instance = budgeted(seed, operators=40, part=0.1)
    result = ParametricCut(work=0).solve(instance, Limits())
    relaxed = lp_relaxation(SfbMilp(), instance).objective
    assert result.details["root_bound_s"] >= relaxed * (1 - 1e-7)
    # A little more of a budget lowers the bound by its price at most, and a little less raises it by that at least.
    names = {"memory_budget_bytes": "memory_price_s_per_byte", "compute_budget_s": "compute_price"}
    for budget in BUDGETS[seed % 3]:
        bounds, price = [], result.details[names[budget]]
        step = getattr(instance, budget) * 1e-4
        for side in (-1, 1):
            other = changed(instance, **{budget: getattr(instance, budget) + side * step})
            bounds.append(ParametricCut(work=0).solve(other, Limits()).details["root_bound_s"])
        less, more = (bound - result.details["root_bound_s"] for bound in bounds)
        assert less >= price * step * (1 - 1e-4) - 1e-9
        assert more >= -price * step * (1 + 1e-4) - 1e-9
        assert price > 0 or len(BUDGETS[seed % 3]) > 1


@for_each("resource", ["memory_bytes", "compute_s"])
@for_each("seed", seeds(2, 6))
def test_the_frontier_is_the_lower_hull_of_all_selections(seed, resource):
    instance = drawn(seed)
    corners = frontier(instance, resource)
    use = instance.extra_s if resource == "compute_s" else [each.memory_bytes for each in instance.operators]
    points = [
        (sum(use[node] for node in each.duplicated), evaluate(instance, each).objective)
        for each in selections(instance)
    ]
    for before, after in pairwise(corners):
        assert set(before.duplicated) < set(after.duplicated)
        assert before.price == pytest.approx((before.cost_s - after.cost_s) / (after.used - before.used))
    assert [each.price for each in corners] == sorted((each.price for each in corners), reverse=True)
    assert len(corners) > 2
    for each in corners:
        found = evaluate(instance, SfbSelection(instance=instance.name, duplicated=each.duplicated))
        assert each.cost_s == pytest.approx(found.objective, rel=1e-12)
        assert all(cost + each.price * used >= each.cost_s + each.price * each.used - 1e-9 for used, cost in points)
    assert corners[-1].cost_s == pytest.approx(min(cost for _, cost in points))
    assert corners[0].cost_s == pytest.approx(min(cost for used, cost in points if used <= corners[0].used + 1e-12))


def test_the_bound_at_a_corner_is_the_corner():
    instance = drawn(3, operators=30)
    for corner in frontier(instance, "memory_bytes"):
        result = ParametricCut(work=0).solve(changed(instance, memory_budget_bytes=corner.used), Limits(gap=1e-9))
        assert result.status is Status.OPTIMAL
        assert result.objective == pytest.approx(corner.cost_s, rel=1e-12)


@for_each("seed", range(6))
def test_without_time_the_bound_is_still_one(seed):
    instance = budgeted(seed)
    least, _ = optima(instance)
    result = ParametricCut().solve(instance, Limits(time_s=1e-9, gap=0.0))
    assert result.details["branches"] == 0
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
def test_a_search_without_branches_is_near_the_optimum():
    gaps = []
    for seed in range(30):
        instance = budgeted(seed, part=0.2)
        gaps.append(ParametricCut(work=0).solve(instance, Limits()).objective / optima(instance)[0] - 1)
    assert np.mean(gaps) < 0.012


def test_a_network_that_is_duplicated_as_a_whole_or_hardly_at_all():
    # Between the two selections that are optimal at one price lies nearly everything: cutting down finds the rest.
    options = {"model": "bert-base", "batch": 4, "workers": 4, "network_gigabit_per_s": 10.0}
    instance = generate("sfb-network", **options, memory_budget_bytes=2e9)
    assert ParametricCut(work=0).solve(instance, Limits()).gap < 0.06
    assert ParametricCut().solve(instance, Limits()).gap < 0.02


def test_what_is_given_up_still_counts_in_the_bound():
    instance = budgeted(3)
    clock = Clock(Limits(gap=0.0), None)
    search = BudgetSearch(kernel(instance), clock, work=0)
    part = Part(np.zeros_like(search.best), np.zeros_like(search.best))
    search._put(-1.0, part, None)
    assert not search._open()
    assert clock.trace[-1].bound < 0.99 * optima(instance)[0]


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
    best = ParametricCut(work=1_000_000).solve(instance, Limits(gap=1e-6))
    plain = ParametricCut(work=0).solve(instance, Limits())
    started = ParametricCut(work=0).solve(instance, Limits(), start=best.solution)
    assert started.objective <= best.objective * (1 + 1e-12)
    assert plain.objective > best.objective * (1 + 1e-9)


@pytest.mark.parametrize("seed", range(9))
def test_what_two_cuts_decide_is_right(seed):
    instance = budgeted(seed)
    least, _ = optima(instance)
    left = kernel(instance)
    best = min(
        evaluate(
            instance, left.completed(np.append([k in each for k in range(len(left.contraction.members))], False))
        ).objective
        for each in _subsets(len(left.contraction.members))
        if (left.use[:, list(each)].sum(axis=1) <= left.budgets * (1 + 1e-12)).all()
    )
    assert best == pytest.approx(least, rel=1e-12)
    assert len(left.contraction.members) < instance.eligible.sum()


def _subsets(size):
    return [[k for k in range(size) if number >> k & 1] for number in range(2**size)]


@for_each("seed", range(6))
def test_moves_and_contractions_cost_what_the_check_says(seed):
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
    inside = (rng.random(instance.size) < 0.4) & instance.eligible
    fixed = chosen & ~inside
    small = contract(graph, inside, fixed)
    differences = set()
    for _ in range(10):
        part = (rng.random(len(small.members) + 1) < 0.5) & small.everything
        whole = fixed.copy()
        whole[small.members[part[:-1]]] = True
        differences.add(round(checked(whole) - small.graph.cost(small.costs(costs), part), 9))
    assert len(differences) == 1
