"""Circulant graphs: data, check, bounds, symmetry."""

from fractions import Fraction
from itertools import combinations
from math import gcd

import networkx as nx
import numpy as np
import pytest
from volume import for_each

from ddlopt.models.errors import InstanceError
from ddlopt.models.gossip import CirculantGraph, CirculantInstance, evaluate
from ddlopt.models.gossip.circulant.bounds import circulant_bound
from ddlopt.models.gossip.circulant.symmetry import leaders, led, unit_images


def instance(nodes, degree, goal="gap"):
    return CirculantInstance(name="c", nodes=nodes, degree=degree, goal=goal)


def graph(generators, weights=()):
    return CirculantGraph(instance="c", generators=generators, weights=weights)


@pytest.mark.parametrize(
    ("nodes", "degree", "line"),
    [(2, 2, "nodes"), (8, 1, "degree"), (8, 8, "degree is 8, but a worker has 7 others; take at most that")],
)
def test_bad_instances(nodes, degree, line):
    data = {"family": "gossip", "problem": "circulant", "name": "bad", "nodes": nodes, "degree": degree}
    with pytest.raises(InstanceError, match=line):
        CirculantInstance.from_data(data)


@for_each(
    ("given", "goal", "kinds"),
    [
        (graph((1, 5)), "gap", ["no such generator"]),
        (graph((0,)), "gap", ["no such generator"]),
        (graph((1, 1)), "gap", ["the same generator again"]),
        (graph((1,), (0.5,)), "gap", ["number of weights"]),
        (graph((1, 2)), "averaging", ["number of weights"]),
        (graph((1, 2, 3)), "gap", ["links"]),
        (graph((1, 2, 4)), "gap", []),
    ],
)
def test_violations(given, goal, kinds):
    found = evaluate(instance(8, 5, goal), given)
    assert [each.kind for each in found.violations] == kinds
    assert found.feasible == (not kinds)


def test_known_spectra():
    # Cycle, complete graph, K4,4, Möbius ladder of 8
    assert evaluate(instance(12, 2), graph((1,))).objective == pytest.approx(2 - np.sqrt(3))
    assert evaluate(instance(7, 6), graph((1, 2, 3))).objective == pytest.approx(7)
    assert evaluate(instance(8, 4), graph((1, 3))).objective == pytest.approx(4)
    moebius = nx.algebraic_connectivity(nx.circulant_graph(8, [1, 4]), method="lanczos")
    assert evaluate(instance(8, 3), graph((1, 4))).objective == pytest.approx(moebius, rel=1e-6)
    assert evaluate(instance(8, 4), graph((2, 4))).objective == pytest.approx(0, abs=1e-14)
    # The best weight of the cycle of 8: (1 + c)/(3 − c)
    c = np.cos(np.pi / 4)
    found = evaluate(instance(8, 2, "averaging"), graph((1,), (1 / (3 - c),)))
    assert found.objective == pytest.approx((1 + c) / (3 - c), rel=1e-12)


@pytest.mark.parametrize("nodes", [9, 16, 30])
def test_characters_say_what_the_matrix_says(nodes):
    rng, asked = np.random.default_rng(nodes), instance(nodes, nodes - 1, "averaging")
    for _ in range(5):
        generators = tuple(sorted(rng.choice(list(asked.candidates), 3, replace=False).tolist()))
        weights = tuple(rng.uniform(-0.1, 0.3, 3).tolist())
        spectrum = asked.characters[:, [g - 1 for g in generators]] @ weights
        given = graph(generators, weights)
        found = evaluate(asked, given)
        assert found.objective == pytest.approx(np.abs(1 - spectrum).max(), rel=1e-12)
        proven = evaluate(asked, given, exact=True).objective
        assert isinstance(proven, Fraction)
        assert 0 <= float(proven) - found.objective < 1e-9
        plain = instance(nodes, nodes - 1)
        gap = plain.characters[:, [g - 1 for g in generators]].sum(axis=1).min()
        assert evaluate(plain, graph(generators)).objective == pytest.approx(gap, abs=1e-12)
        proven = evaluate(plain, graph(generators), exact=True).objective
        assert 0 <= gap - float(proven) < 1e-9 * max(1.0, gap)


@for_each("nodes", range(3, 15))
def test_no_graph_is_beyond_the_bounds(nodes):
    for degree in range(2, nodes):
        asked = instance(nodes, degree)
        best = 0.0
        for count in range(1, degree + 1):
            for generators in combinations(asked.candidates, count):
                if sum(map(asked.links, generators)) <= degree:
                    best = max(best, asked.characters[:, [g - 1 for g in generators]].sum(axis=1).min())
        assert best <= circulant_bound(asked)
    assert circulant_bound(instance(nodes, nodes - 1)) == pytest.approx(nodes)


@for_each(("nodes", "count"), [(64, 2), (101, 2), (60, 3), (200, 3), (81, 4)])
@for_each("half", [False, True])
def test_bounds_for_large_graphs(nodes, count, half):
    if half and nodes % 2:
        return
    rng, asked = np.random.default_rng(nodes), instance(nodes, 2 * count + half)
    averaging = instance(nodes, 2 * count + half, "averaging")
    for _ in range(200):
        chosen = rng.choice(np.arange(1, (nodes + 1) // 2), count, replace=False)
        if half:
            chosen = np.append(chosen, nodes // 2)
        spectrum = asked.characters[:, chosen - 1].sum(axis=1)
        assert spectrum.min() <= circulant_bound(asked)
        factor = (spectrum.max() - spectrum.min()) / (spectrum.max() + spectrum.min())
        assert factor >= circulant_bound(averaging)


@for_each("nodes", [7, 8, 12, 30, 64])
def test_units(nodes):
    for image in unit_images(nodes):
        half = image[1 : nodes // 2 + 1]
        assert sorted(half.tolist()) == list(range(1, nodes // 2 + 1))
    assert leaders(nodes)[1 : nodes // 2 + 1].tolist() == [gcd(g, nodes) for g in range(1, nodes // 2 + 1)]
    rng, asked = np.random.default_rng(0), instance(nodes, nodes - 1)
    for _ in range(10):
        chosen = tuple(rng.choice(list(asked.candidates), 3, replace=False).tolist())
        image = led(nodes, chosen)
        assert min(gcd(g, nodes) for g in chosen) in image[list(chosen)]
        moved = tuple(int(image[g]) for g in chosen)
        before, after = (asked.characters[:, [g - 1 for g in each]].sum(axis=1) for each in (chosen, moved))
        assert np.sort(before) == pytest.approx(np.sort(after))
