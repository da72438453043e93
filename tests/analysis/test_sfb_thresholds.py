"""The thresholds at which what is sent as factors changes."""

from math import inf

import numpy as np
import pytest
from scipy.optimize import linprog
from sfb_cases import changed, dense, drawn, optima
from volume import for_each, seeds

from ddlopt.analysis.sfb_thresholds import prices, scaled, thresholds
from ddlopt.instances.generators.compression.sfb_random import random_graph
from ddlopt.models.compression import Operator, SfbInstance
from ddlopt.models.compression.sfb.cut_network import minimum_cut
from ddlopt.models.errors import NotApplicableError


def graph(seed, operators=8, **options):
    return random_graph(np.random.default_rng(seed), operators, "any", network_gigabit_per_s=2.0, **options)


QUANTITIES = ("bandwidth", "batch")


@for_each("quantity", QUANTITIES)
@for_each("seed", seeds(2, 6))
def test_below_a_threshold_a_gradient_is_duplicated_and_above_it_is_not(seed, quantity):
    instance = drawn(
        seed,
        cost_model=("per_link", "total_bytes", "tag_code")[seed % 3],
        broadcast=("per_tensor", "per_edge")[seed % 2],
        duplication_penalty_s=0.1 * (seed % 4),
    )
    found = thresholds(instance, quantity)
    assert [each.operator for each in found] == list(np.flatnonzero(instance.sync_s > 0))
    inner = [each for each in found if 0 < each.scale < inf]
    assert inner
    for operator, scale in inner:
        _, below = optima(scaled(instance, quantity, scale * (1 - 1e-6)))
        _, above = optima(scaled(instance, quantity, scale * (1 + 1e-6)))
        assert all(operator in chosen for chosen in below)
        assert not any(operator in chosen for chosen in above)


@for_each("quantity", QUANTITIES)
@for_each("seed", seeds(2, 12))
def test_optimal_selections_are_nested_and_change_at_thresholds_only(seed, quantity):
    instance = drawn(seed, operators=60, duplication_penalty_s=0.1 * (seed % 3))
    scales = dict(thresholds(instance, quantity))
    before = None
    for factor in np.geomspace(1e-2, 1e2, 13):
        duplicated = minimum_cut(scaled(instance, quantity, factor)).duplicated
        assert before is None or not (duplicated & ~before).any()
        assert all(duplicated[node] == (scale > factor) for node, scale in scales.items())
        before = duplicated


@pytest.mark.parametrize("cost_model", ["per_link", "total_bytes", "tag_code"])
def test_one_dense_layer_in_closed_form(cost_model):
    instance = dense(cost_model)
    extra, sync, broadcast = instance.extra_s[2], instance.sync_s[2], instance.broadcast_s.sum()
    ((operator, bandwidth),) = thresholds(instance, "bandwidth")
    ((_, batch),) = thresholds(instance, "batch")
    assert operator == 2
    assert bandwidth == pytest.approx((sync - broadcast) / extra, rel=1e-12)
    assert batch == pytest.approx(sync / (extra + broadcast), rel=1e-12)
    assert prices(instance)[0].price_s == pytest.approx(extra + broadcast - sync, rel=1e-12)


def test_per_link_it_is_the_batch_of_all_devices_that_counts():
    # D b (m + n) = 2 m n without computation, whatever the number of devices.
    for workers in (2, 3, 8, 64):
        ((_, scale),) = thresholds(dense(batch=1, workers=workers, time_s=0.0), "batch")
        assert scale * workers == pytest.approx(2 * 25088 * 4096 / (25088 + 4096), rel=1e-12)


def test_gradients_that_never_or_always_pay():
    # Factors that are larger than the gradient never pay by bandwidth; what costs no computation always does.
    assert thresholds(dense(batch=10_000), "bandwidth")[0].scale == 0
    assert thresholds(dense(time_s=0.0), "bandwidth")[0].scale == inf
    free = SfbInstance(
        name="free",
        operators=(
            Operator(name="free", time_s=0, gradient_bytes=8, replicas=2, bandwidth_bytes_per_s=1),
            Operator(name="one replica", gradient_bytes=8, time_s=1, bandwidth_bytes_per_s=1),
            Operator(name="no", time_s=0, gradient_bytes=8, replicas=2, bandwidth_bytes_per_s=1, can_duplicate=False),
            Operator(name="no gradient", time_s=0, replicas=2, bandwidth_bytes_per_s=1),
        ),
    )
    for quantity in QUANTITIES:
        assert thresholds(free, quantity) == ((0, inf), (2, 0.0))
    assert [price for _, price in prices(free)] == [-8.0, inf]


@pytest.mark.parametrize("seed", range(4))
def test_prices_change_sign_at_the_threshold(seed):
    instance = drawn(seed, operators=16, duplication_penalty_s=0.1)
    for operator, scale in thresholds(instance, "bandwidth"):
        if 0 < scale < inf:
            at, below, above = (dict(prices(scaled(instance, "bandwidth", scale * f))) for f in (1, 0.99, 1.01))
            assert below[operator] < 0 < above[operator]
            assert abs(at[operator]) < 1e-12 * instance.sync_s.sum() / scale


@for_each("seed", seeds(2, 6))
def test_prices_are_what_an_all_reduce_must_cost_more(seed):
    instance = drawn(seed, duplication_penalty_s=0.1)
    operators = instance.operators
    factor = instance.sync_s / [max(each.gradient_bytes, 1.0) for each in operators]
    for node, price in prices(instance):
        more = price / factor[node] if np.isfinite(price) else 1e15
        for side, there in ((1 - 1e-6, False), (1 + 1e-6, True)):
            size = operators[node].gradient_bytes + (more * side if price > 0 else more * (2 - side))
            if size < 0 or not np.isfinite(price):
                continue
            other = operators[node].model_copy(update={"gradient_bytes": size})
            _, best = optima(changed(instance, operators=(*operators[:node], other, *operators[node + 1 :])))
            assert all((node in chosen) == there for chosen in best)


@for_each("seed", range(6))
def test_a_limit_on_computation_has_thresholds_as_dual_prices(seed):
    instance = drawn(seed, operators=20, broadcast="per_edge")
    edges = [(t, tensor.producer, c) for t, tensor in enumerate(instance.tensors) for c in tensor.consumers]
    n, count = instance.size, len(edges)
    unit = instance.sync_s.sum()
    cost = np.concatenate((-instance.sync_s, instance.broadcast_s[[t for t, _, _ in edges]])) / unit
    rows = np.zeros((count + 1, n + count))
    for row, (_, producer, consumer) in enumerate(edges):
        rows[row, [consumer, producer, n + row]] = 1, -1, -1
    rows[count, :n] = instance.extra_s / instance.extra_s.max()
    bounds = [(0, int(each)) for each in instance.eligible] + [(0, 1)] * count
    inner = sorted({scale for _, scale in thresholds(instance, "bandwidth") if 0 < scale < inf})
    assert inner
    for scale in inner:
        # The computation half-way between the optimal selections on both sides of the threshold.
        used = [
            instance.extra_s[minimum_cut(scaled(instance, "bandwidth", scale * f)).duplicated].sum()
            for f in (1 - 1e-9, 1 + 1e-9)
        ]
        limits = np.concatenate((np.zeros(count), [sum(used) / 2 / instance.extra_s.max()]))
        answer = linprog(cost, A_ub=rows, b_ub=limits, bounds=bounds, method="highs")
        dual = answer.ineqlin.marginals[-1] * unit / instance.extra_s.max()
        assert dual == pytest.approx(-scale, rel=1e-6)


def test_budgets_are_refused():
    instance = dense(compute_budget_s=1.0)
    for function in (prices, lambda instance: thresholds(instance, "batch")):
        with pytest.raises(NotApplicableError, match="'dense' has budgets"):
            function(instance)
