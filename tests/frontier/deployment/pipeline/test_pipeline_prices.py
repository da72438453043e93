"""Bounds by prices of layers: against all plans, all sets and all sequences of small instances."""

import itertools
import math
import random

import numpy as np
import pytest
from pipeline_cases import best_of_all, drawn, tight
from volume import for_each, seeds

from ddlopt.frontier.deployment.pipeline.methods import link
from ddlopt.frontier.deployment.pipeline.pipeline_prices import Ascent, PipelinePrices
from ddlopt.frontier.deployment.pipeline.price_kernels import dearest
from ddlopt.frontier.deployment.pipeline.prices import Prices
from ddlopt.frontier.deployment.pipeline.sweep import sweep
from ddlopt.instances.generators.deployment import generate
from ddlopt.models.deployment.pipeline.bounds import pipeline_bound
from ddlopt.models.deployment.pipeline.stages import Stages, members
from ddlopt.models.errors import InfeasibleError
from ddlopt.solvers.contracts import Limits
from ddlopt.solvers.deployment.pipeline.ideal_program import PipelineProgram
from ddlopt.solvers.heuristic import Clock


def climbed(instance, high_s, rounds=40):
    """What prices prove below a time."""
    found = Ascent(instance, pipeline_bound(instance), high_s, Clock(Limits(), None))
    found.climb(rounds)
    return found


@for_each("seed", seeds(40, 400))
def test_no_plan_is_better_than_what_prices_refute(seed):
    draw = random.Random(seed)
    instance = (tight if seed % 4 == 3 else drawn)(seed + 3000, most=4)
    best = best_of_all(instance, exact=False)
    try:
        low_s = pipeline_bound(instance)
    except InfeasibleError:
        return
    if best is None:
        return
    # The time from which windows are made is the optimum itself, or one above it.
    high_s = float(best) * draw.choice([1.0, 1.0, 1.05, 1.5, 4.0])
    if high_s > low_s:
        assert climbed(instance, high_s).low_s <= float(best) * (1 + 1e-9)


@for_each("seed", seeds(8, 60))
def test_unequal_sizes_and_no_bytes_are_bounded_too(seed):
    draw = random.Random(seed)
    base = drawn(seed + 7000, most=4)
    data = base.model_dump(mode="json")
    for edge in data["edges"]:
        edge["size_bytes"] = draw.choice([0.0, 1e-6, 1.0, 1e9])
    for layer in data["layers"]:
        for option in (option for menu in layer["menus"] for option in menu["options"]):
            option["time_s"] *= draw.choice([0.0, 1e-6, 1.0, 1e6])
    instance = type(base).from_data(data)
    best = best_of_all(instance, exact=False)
    if best is None or best <= pipeline_bound(instance):
        return
    assert climbed(instance, float(best)).low_s <= float(best) * (1 + 1e-9)


@for_each("seed", seeds(6, 40))
def test_a_sweep_with_room_for_all_finds_the_least_load_of_every_price(seed):
    """And one without room never more than that."""
    draw = random.Random(seed)
    instance = drawn(seed + 100, most=6).changed(memory_bytes=1000.0, devices=4, micro_batches=4)
    prices = Prices(instance, 1000.0)
    prices.begin(np.array([draw.randint(0, 5) for _ in range(instance.size)]))
    number = draw.randrange(len(prices.kinds))
    stage = (*prices.kinds[number], -1)
    least = least_by_price(instance, prices, stage)
    for widest in (9, 1, 0):
        prices.sweep = sweep(instance, widest)
        prices._edges = [edges_of(instance, prices, tensor) for tensor in instance.tensors]
        found = prices._swept(stage, np.zeros((0, 0, 0), dtype=np.uint16))
        for price, value in least.items():
            if price < len(found):
                assert found[price] <= value * (1 + 1e-12) + 1e-12
                if widest == 9:
                    assert found[price] == pytest.approx(value, rel=1e-9, abs=1e-9)


def edges_of(instance, prices, tensor):
    from ddlopt.frontier.deployment.pipeline.prices import _edges

    return _edges(instance, prices.sweep, tensor)


def least_by_price(instance, prices, stage):
    """The least load of each price, over all sets."""
    tensor, twice = instance.tensors[stage[0]], 2 / instance.bandwidth_bytes_per_s
    own = prices.own[prices.kinds.index(stage[:3])]
    room = prices._room(prices.kinds.index(stage[:3]), prices.high_s)
    found = {}
    for inside in itertools.product((False, True), repeat=instance.size):
        load = sum(own[layer] for layer in range(instance.size) if inside[layer])
        for edge in instance.edges:
            if inside[edge.maker] and not inside[edge.user]:
                sent = [dict(o.scattered).get(edge.user, 0) for o in instance.layers[edge.maker].menu(tensor)]
                load += twice * (edge.size_bytes + min(sent, default=0))
            if inside[edge.user] and not inside[edge.maker]:
                read = [dict(o.gathered).get(edge.maker, 0) for o in instance.layers[edge.user].menu(tensor)]
                load += twice * (edge.size_bytes + min(read, default=0))
        price = sum(int(prices.price[layer]) for layer in range(instance.size) if inside[layer])
        if load <= room:
            found[price] = min(load, found.get(price, math.inf))
    return found


@for_each("seed", seeds(10, 100))
def test_the_dearest_sequence_is_that_of_all(seed):
    draw = random.Random(seed)
    tensors, replicas, devices, most = (1, 2), (1, 2, 4), draw.randint(1, 6), draw.randint(1, 6)
    value = np.array([draw.randint(-1, 9) for _ in range(2 * 3 * (most + 1) * (devices + 1))]).reshape(
        2, 3, most + 1, -1
    )
    rows, places = np.arange(most + 1), np.arange(devices + 1)

    def best(total, used):
        known = [0]
        for t, d in itertools.product(range(2), range(3)):
            now, more = total + replicas[d], used + replicas[d] * tensors[t]
            if now <= most and more <= devices:
                own = value[t, d, -(-now // replicas[d]), more]
                if own >= 0:
                    known.append(int(own) + best(now, more))
        return max(known)

    stages = np.zeros((most, 4), dtype=np.int64)
    found = dearest(value, rows, places, np.array(tensors), np.array(replicas), most, stages)
    assert found == best(0, 0)
    assert found == sum(value[tuple(stage)] for stage in stages if stage[0] >= 0)


def test_sets_have_the_price_and_the_load_that_they_are_said_to_have():
    instance = generate("pipeline", 2, layers=20, shape="random", devices=8, alike=False)
    high_s = 2 * pipeline_bound(instance)
    prices = Prices(instance, high_s)
    prices.begin(np.arange(instance.size) % 7 + 1)
    told = prices.ask(0.9 * high_s, lambda: False)
    assert not told.excluded
    values, stages = prices.values(0.9 * high_s), Stages(instance)
    for stage, layers in prices.sets(told.stages, 0.9 * high_s).items():
        assert prices.price[layers].sum() == values[stage]
        piece = sum(1 << int(layer) for layer in layers)
        # Memory is priced only, so that the fastest options may need more than there is.
        t, d = instance.tensors[stage[0]], instance.replicas[stage[1]]
        assert prices.worth[prices.kinds.index(stage[:3])] > 0 or stages.fastest_s(piece, t, d) <= 0.9 * high_s * (
            1 + 1e-9
        )


def test_on_a_graph_the_bound_is_near_the_optimum():
    instance = generate("pipeline", 2, layers=14, shape="random", devices=8, alike=False)
    best = PipelineProgram().solve(instance, Limits(gap=0)).objective
    simple = pipeline_bound(instance)
    bound = climbed(instance, best).low_s
    assert simple < 0.8 * best
    assert 0.9 * best < bound <= best
    # Without places of layers it is worse.
    free = Ascent(instance, simple, best, Clock(Limits(), None))
    free.prices.window[:] = 0, instance.devices
    free.climb(40)
    assert free.low_s < bound


def test_the_method_is_asked_where_ideals_are_too_many():
    few = generate("pipeline", 1, layers=8, shape="random", devices=8, alike=False)
    assert link(few, "highs") is None
    wide = generate("pipeline", 1, layers=80, shape="random", devices=16, alike=False)
    assert isinstance(link(wide, "highs"), PipelinePrices)
    assert link(wide.changed(devices=1000), "highs") is None
    found = PipelinePrices(rounds=4).solve(few, Limits())
    assert found.checked
    assert pipeline_bound(few) < found.bound <= found.objective
    assert "513 devices" in PipelinePrices().refuses(few.changed(devices=513))
    again = PipelinePrices(rounds=4).solve(few, Limits())
    assert (again.objective, again.bound) == (found.objective, found.bound)


def test_windows_hold_for_what_reads_and_what_is_read():
    instance = generate("pipeline", 3, layers=20, shape="random", devices=8, alike=False)
    best = PipelineProgram().solve(instance, Limits(gap=0))
    prices, used = Prices(instance, best.objective), 0
    for stage in reversed(best.solution.stages):
        before, used = used, used + stage.replicas * stage.tensor
        for layer in stage.layers:
            assert prices.window[layer, 0] <= used
            assert before <= prices.window[layer, 1]
    assert prices.window[:, 0].max() > 4
    assert members(Stages(instance).before[5])
