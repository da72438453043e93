"""Twins among layers: what is found, and that it changes nothing."""

import itertools

import numpy as np
import pytest
from volume import for_each

from ddlopt.instances.generators.codesign.random import random_job
from ddlopt.models.codesign import CodesignInstance
from ddlopt.models.codesign.formulations.strategy_bound import StrategyBound
from ddlopt.models.codesign.symmetry.twins import single_layers, spread, twin_layers
from ddlopt.models.codesign.tables import tables_of
from ddlopt.solvers.backends.highs import Highs
from ddlopt.solvers.contracts import Limits
from ddlopt.solvers.exact import build_model

N = 6
DEVICE = {"flops_per_s": 1.0, "convolution_flops_per_s": 1.0, "memory_bytes_per_s": 1.0}
EVERYWHERE = {"batch_parts": N, "servers": list(range(N))}
HALF = {"batch_parts": N // 2, "channel_parts": 2, "servers": list(range(N))}
OWNERS = [{"batch_parts": 1, "servers": [server]} for server in range(N)]
DENSE = [
    {"name": "data", "reads": 0, "writes": 0, "flops": 1.0, "reductions": [{"groups": 0, "bytes": 6.0}]},
    {"name": "column", "reads": 0, "writes": 1, "flops": 2.0, "reductions": [{"groups": 1, "bytes": 2.0}]},
]


def instance_of(layers, edges, **changes):
    data = {
        "name": "x",
        "servers": N,
        "degree": 2,
        "link_bandwidth_bytes_per_s": 1.0,
        "device": DEVICE,
        "layouts": [EVERYWHERE, HALF, *OWNERS],
        "group_sets": [[list(range(N))], [[i, i + 1] for i in range(0, N, 2)]],
        "layers": [{"name": f"layer.{place}"} | layer for place, layer in enumerate(layers)],
        "edges": edges,
    }
    return CodesignInstance.from_data(data | changes)


def dense(**changes):
    return {"output_bytes": 6.0, "strategies": DENSE} | changes


def table(owners, **changes):
    strategies = [{"name": f"on-{s}", "writes": 2 + s, "moved_bytes": 1.0} for s in owners]
    return {"output_bytes": 3.0, "strategies": strategies} | changes


def test_twins_are_alike_in_everything_and_have_the_same_neighbours():
    slower = [DENSE[0], DENSE[1] | {"flops": 3.0}]
    heavier = [DENSE[0] | {"memory_bytes": 1.0}, DENSE[1]]
    sends = [DENSE[0] | {"traffic": [[0, 1, 1.0]]}, DENSE[1]]
    reduces = [DENSE[0], DENSE[1] | {"reductions": [{"groups": 1, "bytes": 3.0}]}]
    narrower = [DENSE[0], DENSE[1] | {"writes": 2}]
    layers = [dense(), *(dense() for _ in range(3)), dense(output_bytes=7.0)]
    layers += [dense(strategies=each) for each in (slower, heavier, sends, reduces, narrower)]
    edges = [(0, other) for other in range(1, 10)]
    # The third has a reader of its own.
    layers.append(dense())
    edges.append((3, 10))
    assert twin_layers(tables_of(instance_of(layers, edges))) == ((0,), (1, 2, 4), (3,), *((x,) for x in range(5, 11)))


def test_what_a_twin_hands_on_counts_where_it_is_read():
    layers = [dense(), dense(), dense(output_bytes=7.0), dense()]
    assert twin_layers(tables_of(instance_of(layers, [(0, 3), (1, 3), (2, 3)]))) == ((0, 1), (2,), (3,))


def test_one_of_two_neighbouring_classes_comes_apart():
    layers = [table(range(3)) for _ in range(3)] + [dense() for _ in range(2)]
    edges = list(itertools.product(range(3), (3, 4)))
    assert twin_layers(tables_of(instance_of(layers, edges))) == ((0, 1, 2), (3,), (4,))


def test_layers_repeated_along_a_chain_are_not_twins():
    layers = [dense(strategies=[DENSE[0], DENSE[1] | {"reads": 1}]) for _ in range(6)]
    chain = [(i, i + 1) for i in range(5)]
    instance = instance_of(layers, chain)
    assert twin_layers(tables_of(instance)) == single_layers(tables_of(instance))
    # Numbers do not tell: three of either kind move activations once, or five times.
    moved = [tables_of(instance).bytes_of(c)[1].sum() for c in ((0, 0, 0, 1, 1, 1), (0, 1, 0, 1, 0, 1))]
    assert moved[0] < moved[1]


@for_each("seed", range(5))
def test_exchanging_twins_changes_nothing(seed):
    instance = random_job(np.random.default_rng(seed), layers=4, strategies=3, twins=4, memory_slack=1.5, traffic=0.5)
    tables, rng = tables_of(instance), np.random.default_rng(seed)
    classes = twin_layers(tables)
    assert sorted(layer for layers in classes for layer in layers) == list(range(8))
    assert max(map(len, classes)) > 1
    for _ in range(20):
        choices = rng.integers(3, size=8)
        counts = [np.bincount(choices[list(layers)], minlength=3).tolist() for layers in classes]
        other = spread(classes, counts)
        assert [np.bincount(np.array(other)[list(x)], minlength=3).tolist() for x in classes] == counts
        for a, b in zip(tables.bytes_of(choices.tolist()), tables.bytes_of(other), strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-12)
        assert tables.compute_of(choices.tolist()) == pytest.approx(tables.compute_of(other), rel=1e-12)
        np.testing.assert_allclose(tables.memory_of(choices.tolist()), tables.memory_of(other), rtol=1e-12)


def test_counting_tables_finds_the_best_spread():
    # Eight tables, each on one of three servers: three of them on one server at most.
    tables, last = [table((0, 2, 4)) for _ in range(8)], dense(strategies=DENSE[:1])
    instance = instance_of([*tables, last], [(place, 8) for place in range(8)])
    found = []
    for collapse in (True, False):
        formulation = StrategyBound(collapse=collapse)
        model = build_model("codesign", formulation, instance)
        outcome = Highs().solve(model, Limits(gap=0))
        found.append(formulation.objective_value(instance, outcome.objective))
        choices = formulation.read(model.codesign, instance)
        assert sorted(np.bincount(choices[:8]).tolist()) == [2, 3, 3]
    assert found[0] == pytest.approx(found[1], rel=1e-9)
