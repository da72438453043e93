"""Prices of layers: minima of sums, and bounds that are valid at any prices."""

import itertools

import numpy as np
import pytest
from codesign_cases import drawn_with_features
from volume import for_each, seeds

from ddlopt.frontier.codesign.bounds import prices_bound
from ddlopt.frontier.codesign.prices.min_sum import Elimination, min_sum
from ddlopt.frontier.codesign.prices.prices import PricedSum, Prices, best_prices
from ddlopt.instances.generators.codesign.random import random_job
from ddlopt.models.codesign.demand import demand_of
from ddlopt.models.codesign.formulations.strategy_bound import StrategyBound
from ddlopt.models.codesign.tables import tables_of
from ddlopt.solvers.backends.highs import Highs
from ddlopt.solvers.contracts import Limits, Status
from ddlopt.solvers.exact import build_model


def test_a_slope_that_is_rounding_alone_leads_nowhere():
    """A step as long as the slope is flat would be lost in the size of its own figures."""
    instance = random_job(np.random.default_rng(0), servers=4, degree=2)
    priced = PricedSum(tables_of(instance))
    prices = priced.first_prices()
    busy = np.where(np.arange(len(prices.busy)) % 2, 0.3, 0.1 + 0.2)
    rows = np.where(np.arange(len(prices.rows)) % 2, 0.3, 0.1 + 0.2)
    assert busy.std() + rows.std() > 0
    flat = Prices(busy, 0.3, prices.profile, rows, np.zeros(len(prices.memory)))
    assert priced.ascended(prices, flat, 1.0, 1.0) is prices


def drawn_sum(seed):
    rng = np.random.default_rng(seed)
    sizes = rng.integers(1, 4, rng.integers(1, 7))
    unary = [rng.normal(size=size) for size in sizes]
    ends = itertools.permutations(range(len(sizes)), 2)
    pairs = {(u, v): rng.normal(size=(sizes[u], sizes[v])) for u, v in ends if rng.random() < 0.35}

    def value(choices):
        own = sum(table[a] for table, a in zip(unary, choices, strict=True))
        return own + sum(table[choices[u], choices[v]] for (u, v), table in pairs.items())

    return unary, pairs, value


@for_each("seed", seeds(6, 60))
def test_elimination_is_enumeration(seed):
    unary, pairs, value = drawn_sum(seed)
    best = min(map(value, itertools.product(*(range(len(table)) for table in unary))))
    found = min_sum(unary, pairs)
    assert found.exact
    assert found.value == pytest.approx(best, abs=1e-12)
    assert value(found.choices) == pytest.approx(best, abs=1e-12)


def test_small_tables_give_a_bound():
    looser = 0
    for seed in range(60):
        unary, pairs, value = drawn_sum(seed)
        best = min_sum(unary, pairs).value
        found = min_sum(unary, pairs, largest=9)
        assert found.value <= best + 1e-12 <= value(found.choices) + 2e-12
        assert not found.exact or found.value == pytest.approx(best, abs=1e-12)
        looser += found.value < best - 1e-9
    assert looser > 0


def test_chains_and_trees_need_no_more_than_their_pairs():
    for pairs in ([(i, i + 1) for i in range(40)], [(i, (i - 1) // 2) for i in range(1, 41)]):
        elimination = Elimination([10] * 41, pairs, largest=100)
        rng = np.random.default_rng(0)
        found = elimination.minimum([rng.random(10) for _ in range(41)], [rng.random((10, 10)) for _ in pairs])
        assert found.exact


def optimum(instance):
    formulation = StrategyBound()
    outcome = Highs().solve(build_model("codesign", formulation, instance), Limits(gap=0))
    assert outcome.status is Status.OPTIMAL
    return formulation.objective_value(instance, outcome.objective)


@pytest.mark.slow
def test_it_is_at_most_the_optimum_over_strategies_and_often_close():
    parts = []
    for seed in range(12):
        instance = drawn_with_features(seed)
        best = optimum(instance)
        assert 0 < prices_bound(instance) <= best * (1 + 1e-9)
        parts.append(prices_bound(instance) / best)
    assert np.mean(parts) > 0.85


@for_each("seed", seeds(2, 12))
def test_any_prices_are_a_bound_for_every_choice(seed):
    instance = drawn_with_features(seed)
    tables, rng = tables_of(instance), np.random.default_rng(seed)
    priced = PricedSum(tables)
    choices = [c for c in itertools.product(*map(range, tables.sizes)) if tables.fits(c)]
    for _ in range(3):
        weights = [rng.exponential(size=size) for size in (len(priced.kinds) + 1, len(priced.rows))]
        if instance.overlap == "full":
            total = weights[0].sum() + weights[1].sum()
            compute, rows = (each / total for each in weights)
        else:
            compute, rows = (each / each.sum() for each in weights)
        profile = priced.at(choices[int(rng.integers(len(choices)))])[0].profile
        prices = Prices(compute[:-1], float(compute[-1]), profile, rows, rng.exponential(size=len(priced.kinds)))
        value, at = priced.minimum(prices)
        total = {c: weighted(priced, prices, c) for c in itertools.product(*map(range, tables.sizes))}
        assert value == pytest.approx(min(total.values()), rel=1e-9)
        assert total[at] == pytest.approx(value, rel=1e-9)
        for c in choices:
            assert value <= own_time(instance, c) * (1 + 1e-9)


def weighted(priced, prices, choices):
    """What the prices say of a choice; the path is that of the prices."""
    tables, amounts = priced.tables, priced.at(choices)[0]
    times = np.array([tables.compute_s[layer][a] for layer, a in enumerate(choices)])
    total = prices.busy @ amounts.busy + prices.rows @ amounts.rows + prices.path * (prices.profile @ times)
    beyond = amounts.memory if tables.instance.device.memory_bytes else -np.ones(len(amounts.memory))
    return total + prices.memory @ beyond


def own_time(instance, choices):
    tables = tables_of(instance)
    z = demand_of(tables).least_bytes(np.concatenate(tables.bytes_of(choices)))
    return instance.iteration_time_s(tables.compute_of(choices), z)


def test_more_steps_are_no_worse_and_the_choice_is_a_plan():
    for seed in range(6):
        tables = tables_of(drawn_with_features(seed))
        few, many = best_prices(tables, 3), best_prices(tables, 60)
        assert few.value_s <= many.value_s
        assert many.choices_s == (own_time(tables.instance, many.choices) if tables.fits(many.choices) else np.inf)
        assert PricedSum(tables).minimum(many.prices)[0] == pytest.approx(many.value_s, rel=1e-8)
