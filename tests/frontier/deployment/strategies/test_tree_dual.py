"""Min-marginals and the bound by prices, against all choices of tiny instances."""

from itertools import product

import numpy as np
import pytest
from strategy_cases import random_case
from volume import slow

from ddlopt.frontier.deployment.strategies.junction_tree import JunctionTree
from ddlopt.frontier.deployment.strategies.tree_dual import TreeDual
from ddlopt.models.deployment.strategies.core import core_of
from ddlopt.models.errors import InfeasibleError


def _cores(cases, **asked):
    for seed in range(cases):
        try:
            yield core_of(random_case(seed, nodes=6, **asked))
        except InfeasibleError:
            continue


def _choices(core):
    """Of every choice its places, and those of its strategies and pairs among all."""
    first, second = core.edges.T
    for chosen in product(*map(range, core.counts)):
        places = np.array(chosen)
        pairs = core.table_start[:-1] + places[first] * core.counts[second] + places[second]
        yield places, core.start[:-1] + places, pairs


@pytest.mark.parametrize("cases", [30, slow(400)])
def test_min_marginals_are_those_of_all_choices(cases):
    met = 0
    for core in _cores(cases, memory=False):
        met += 1
        extra = np.random.default_rng(met).integers(0, 9, len(core.cost))
        strategies, pairs = np.full(len(core.cost), np.inf), np.full(len(core.table), np.inf)
        for places, own, its in _choices(core):
            cost = core.cost_of(places) + extra[own].sum()
            strategies[own] = np.minimum(strategies[own], cost)
            pairs[its] = np.minimum(pairs[its], cost)
        tree = JunctionTree.of(core)
        value, found, found_pairs = tree.marginals(core.cost + extra)
        assert value == pytest.approx(strategies.min())
        assert found == pytest.approx(strategies)
        assert found_pairs == pytest.approx(pairs)
        value, chosen = tree.solve(core.cost + extra)
        assert value == pytest.approx(strategies.min())
        assert core.cost_of(chosen) + extra[core.start[:-1] + chosen].sum() == pytest.approx(value)
    assert met > cases // 2


@pytest.mark.parametrize("cases", [30, slow(400)])
def test_bound_and_what_it_leaves_out_hold_for_all_choices(cases):
    """The bound is no more than what any choice within the limits costs, nor are the rises of its strategies."""
    met = sharp = 0
    for core in _cores(cases):
        dual = TreeDual(JunctionTree.of(core))
        dual.ascend(lambda _: None, lambda: np.inf, lambda: False)
        bound, rises, pair_rises = dual.rises()
        least = np.inf
        for places, own, its in _choices(core):
            if (core.excess_of(places) > 0).any():
                continue
            cost = core.cost_of(places)
            least = min(least, cost)
            if np.isfinite(cost):
                assert bound + rises[own].max(initial=0.0) <= cost
                assert bound + pair_rises[its].max(initial=0.0) <= cost
        met += np.isfinite(least)
        sharp += np.isfinite(least) and dual.proven >= least
        assert dual.proven <= least
    assert met > cases // 3
    assert sharp > met // 3


def test_wide_graph_has_no_tree():
    core = next(_cores(1, memory=False))
    assert JunctionTree.of(core, largest=2) is None
    assert JunctionTree.of(core, most=5) is None
