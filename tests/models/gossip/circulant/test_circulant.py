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


@pytest.mark.parametrize(
    ("nodes", "degree", "bound"),
    [
        (63, 2, 2 - 2 * np.cos(2 * np.pi / 63)),  # a cycle
        (64, 2, 2 - 2 * np.cos(2 * np.pi / 64)),
        (64, 3, 2 - 2 * np.cos(2 * np.pi / 32)),  # a cycle and n/2: what 32 k's in two see
        (4, 3, 4),  # the complete graph
        (10, 4, 40 / 9),  # all eigenvalues are the same
        (64, 4, 4 * np.pi**2 * (2 / np.sqrt(3)) / 64),  # hexagons, γ = 2/√3
        (65, 4, 4 * np.pi**2 * (2 / np.sqrt(3)) / 65),
        (64, 5, 4 * np.pi**2 * (2 / np.sqrt(3)) / 32),
        (1000, 6, 4 * np.pi**2 * 2 ** (1 / 3) / 1000 ** (2 / 3)),
        (4095, 16, 4 * np.pi**2 * 2 / 4095 ** (2 / 8)),  # E8
        (4095, 18, 18 * 4095 / 4094),  # no constant is known
        (30, 16, 16 * 30 / 29),
    ],
)
def test_the_bound_of_the_gap_by_hand(nodes, degree, bound):
    assert bound < circulant_bound(instance(nodes, degree)) < bound * (1 + 1e-9)


@for_each(("nodes", "degree"), [(9, 2), (64, 3), (65, 4), (64, 5), (30, 16)])
def test_the_bound_of_averaging_is_the_best_of_all_rounds(nodes, degree):
    """Sums of h generators are points of the lattice within h steps; with n/2, and h - 1 others, as many again."""

    def within(r, steps):
        counts = np.ones(1, dtype=np.int64)  # of points by steps, one generator after the other
        for _ in range(r):
            counts = np.convolve(counts, [1] + [2] * nodes)[: nodes + 1]
        return sum(counts[: steps + 1]) if steps >= 0 else 0

    kinds = {(generators, half) for generators in range(1, 9) for half in (0, 1) if 2 * generators + half <= degree}
    kinds = {(r, half) for r, half in kinds if not half or nodes % 2 == 0}
    best = 1.0
    for r, half in kinds:
        rounds = range(1, nodes)
        reached = [within(r, h) + half * within(r, h - 1) for h in rounds]
        factors = [
            ((nodes / b - 1) / (nodes - 1)) ** (1 / (2 * h)) for h, b in zip(rounds, reached, strict=True) if b < nodes
        ]
        best = min(best, max(factors, default=0.0))
    assert best * (1 - 1e-9) < circulant_bound(instance(nodes, degree, "averaging")) < best


def test_averaging_time():
    """Rounds to 1/e: of a factor of ρ, 1 / log(1 / ρ); none where workers come no nearer."""
    c = np.cos(np.pi / 4)
    asked = instance(8, 2, "averaging")
    found = evaluate(asked, graph((1,), (1 / (3 - c),)))
    assert found.details["averaging_time"] == pytest.approx(1 / np.log((3 - c) / (1 + c)), rel=1e-9)
    assert "averaging_time" not in evaluate(asked, graph((1,), (0.6,))).details  # 1 - 2.4 is farther than 1
    # A weight of -1: 1 + 2 - 2 cos of the largest angle is 5.
    assert evaluate(asked, graph((1,), (-1.0,))).objective == pytest.approx(5)


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
