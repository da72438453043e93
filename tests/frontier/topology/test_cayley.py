"""Cayley graphs of abelian groups: arithmetic, automorphisms, orbits and distances."""

from itertools import combinations
from math import comb, isqrt

import numpy as np
import pytest
from sympy.combinatorics import Permutation, PermutationGroup
from volume import for_each, spread

from ddlopt.frontier.topology.symmetry.cayley import AbelianGroup, abelian_groups, generator_orbits
from ddlopt.models.gossip.circulant.symmetry import smallest_images
from ddlopt.models.topology.bounds import abelian_ball


def closed(group, generators):
    return sorted({*generators, *group.negate(list(generators)).tolist()})


@for_each("invariants", [(12,), (3, 4), (2, 6), (2, 2, 2), (4, 4)])
def test_arithmetic_is_that_of_the_group_in_sympy(invariants):
    group = AbelianGroup(invariants)
    sympy_group = group.permutation_group
    assert sympy_group.is_abelian
    assert sympy_group.order() == group.order
    elements = [group.permutation(x) for x in range(group.order)]
    assert len(set(elements)) == group.order
    for x in range(group.order):
        assert elements[x].order() == group.element_orders[x]
        assert elements[group.negate(x)] == elements[x] ** -1
        for y in range(group.order):
            assert elements[x] * elements[y] == elements[int(group.add(x, y))]
            assert group.translations[x, y] == group.add(x, y)


@pytest.mark.parametrize(
    ("invariants", "size"),
    [
        ((12,), 4),
        ((16,), 8),
        ((3, 4), 4),
        ((2, 6), 12),
        ((4, 4), 96),
        ((2, 2, 2), 168),
        ((3, 3), 48),
        ((2,) * 4, 20160),
    ],
)
def test_automorphisms_are_all_there_and_preserve_addition(invariants, size):
    group = AbelianGroup(invariants)
    maps = group.automorphisms
    assert len(np.unique(maps, axis=0)) == len(maps) == size
    x, y = np.random.default_rng(0).integers(group.order, size=(2, 50))
    assert (maps[:, group.add(x, y)] == group.add(maps[:, x], maps[:, y])).all()
    assert (np.sort(maps, axis=1) == np.arange(group.order)).all()


def test_a_large_hypercube_gets_a_subgroup_of_its_automorphisms():
    group = AbelianGroup((2,) * 5)
    assert len(group.automorphisms) == 120
    maps = group.automorphisms
    assert (maps[:, group.add(3, 9)] == group.add(maps[:, 3], maps[:, 9])).all()


def test_abelian_groups_of_an_order():
    assert [group.invariants for group in abelian_groups(8)] == [(8,), (2, 4), (2, 2, 2)]
    assert [group.invariants for group in abelian_groups(12)] == [(12,), (2, 6)]
    assert len(list(abelian_groups(144))) == 10


@pytest.mark.parametrize(("invariants", "size"), [((12,), 3), ((3, 3), 2), ((2, 2, 2), 3)])
def test_orbits_agree_with_sympy(invariants, size):
    group = AbelianGroup(invariants)
    candidates = range(1, group.order)
    representatives = generator_orbits(candidates, size, group.automorphisms)
    symmetries = PermutationGroup([Permutation(row.tolist()) for row in group.automorphisms])
    seen = set()
    for chosen in representatives.tolist():
        orbit = {frozenset(image) for image in symmetries.orbit(chosen, action="sets")}
        assert min(map(sorted, orbit)) == chosen
        assert not orbit & seen
        seen |= orbit
    assert len(seen) == comb(group.order - 1, size)


def test_orbits_with_repetition_cover_all_multisets():
    group = AbelianGroup((10,))
    representatives = generator_orbits(range(1, 10), 2, group.automorphisms, repetition=True)
    pairs = np.array([(a, b) for a in range(1, 10) for b in range(a, 10)])
    images = smallest_images(pairs, group.automorphisms)
    assert (np.unique(images, axis=0) == representatives).all()


def test_distances_by_hand():
    assert AbelianGroup((6,)).distances([1]).tolist() == [0, 1, 2, 3, 4, 5]
    assert AbelianGroup((2, 2, 2)).distances([1, 2, 4]).tolist() == [0, 1, 1, 2, 1, 2, 2, 3]
    assert AbelianGroup((6,)).distances([2]).tolist() == [0, -1, 1, -1, 2, -1]
    assert AbelianGroup((6,)).diameter([2]) is None
    assert AbelianGroup((6,)).mean_distance([]) is None


# Best undirected circulants as published in the RomeoMe5/circulantGraphs data set:
# (order, generators, diameter, mean distance).
BEST_CIRCULANTS = [
    (12, (2, 3), 2, 1.63636), (12, (1, 2, 3), 2, 1.45455), (12, (1, 2, 3, 4), 2, 1.27273),
    (16, (2, 3), 3, 1.93333), (16, (1, 3, 4), 2, 1.6), (16, (1, 2, 3, 4), 2, 1.46667),
    (24, (3, 4), 3, 2.30435), (24, (1, 5, 8), 3, 1.78261), (24, (1, 3, 5, 6), 2, 1.65217),
    (32, (1, 9), 4, 2.70968), (32, (1, 4, 10), 3, 2.03226), (32, (2, 3, 8, 15), 2, 1.74194),
    (64, (1, 14), 6, 3.77778), (64, (3, 11, 12), 4, 2.60317), (64, (1, 5, 8, 19), 3, 2.2381),
    (128, (1, 17), 8, 5.35433), (128, (1, 8, 54), 5, 3.33858), (128, (1, 24, 29, 37), 4, 2.72441),
    (256, (4, 25), 11, 7.54902), (256, (1, 47, 122), 6, 4.25098),
    (432, (2, 33), 15, 9.80278), (432, (4, 18, 85), 7, 5.10673),
    (512, (1, 31), 16, 10.6771), (512, (1, 112, 139), 8, 5.39922),
]  # fmt: skip


@for_each(("n", "generators", "diameter", "mean"), BEST_CIRCULANTS)
def test_published_circulants(n, generators, diameter, mean):
    group = AbelianGroup((n,))
    both_ways = closed(group, generators)
    assert group.diameter(both_ways) == diameter
    assert group.mean_distance(both_ways) == pytest.approx(mean, rel=1e-5)


@for_each(("n", "generators", "diameter", "mean"), [row for row in BEST_CIRCULANTS if row[0] <= 24])
def test_published_circulants_are_the_best(n, generators, diameter, mean):
    group = AbelianGroup((n,))
    halves = np.unique(np.minimum(np.arange(1, n), group.negate(np.arange(1, n))))
    folded = np.minimum(group.automorphisms, group.negate(group.automorphisms))
    found = [
        (group.diameter(closed(group, chosen)), group.mean_distance(closed(group, chosen)))
        for chosen in generator_orbits(halves.tolist(), len(generators), folded).tolist()
    ]
    assert min(pair for pair in found if pair[0] is not None) == (diameter, pytest.approx(mean, rel=1e-5))


@for_each("n", spread(range(5, 60), 9))
def test_smallest_diameter_of_undirected_double_loops(n):
    """OEIS A344517: ceil((sqrt(2n - 1) - 1) / 2)."""
    group = AbelianGroup((n,))
    pairs = combinations(range(1, n // 2 + 1), 2)
    diameters = (group.diameter(closed(group, pair)) for pair in pairs)
    root = isqrt(2 * n - 2) + 1  # ceil(sqrt(2n - 1))
    assert min(D for D in diameters if D is not None) == root // 2


# Largest orders, by diameter 1, 2, …; undirected ones from the Combinatorics Wiki's table of circulant graphs.
@pytest.mark.parametrize(
    ("k", "directed", "orders"),
    [(2, True, (3, 5, 8, 11, 16, 21, 26)), (3, True, (4, 9, 16, 27)), (2, False, (5, 13, 25, 41, 61))],
)
def test_largest_circulants_by_exhaustion(k, directed, orders):
    def smallest_diameter(n):
        group = AbelianGroup((n,))
        candidates = range(1, n) if directed else range(1, n // 2 + 1)
        maps = group.automorphisms
        sets = generator_orbits(candidates, k, maps if directed else np.minimum(maps, n - maps)).tolist()
        diameters = (group.diameter(chosen if directed else closed(group, chosen)) for chosen in sets)
        return min((D for D in diameters if D is not None), default=n)

    for radius, order in enumerate(orders, start=1):
        ball = abelian_ball(radius, k, directed)
        assert order <= ball
        assert smallest_diameter(order) <= radius
        if ball <= 41:
            assert all(smallest_diameter(n) > radius for n in range(order + 1, ball + 1))


@for_each(
    ("n", "generators", "diameter"),
    [
        (55, (1, 5, 21), 3),
        (117, (1, 16, 22), 4),
        (203, (1, 7, 57), 5),
        (35, (1, 6, 7, 10), 2),
        (51, (1, 2, 10, 16, 23), 2),
    ],
)
def test_witnesses_of_large_circulants(n, generators, diameter):
    group = AbelianGroup((n,))
    assert group.diameter(closed(group, generators)) == diameter


@for_each(("base", "digits"), [(2, 4), (3, 3), (4, 3), (8, 4)])
def test_chord_like_circulants_reach_the_digit_bound(base, digits):
    group = AbelianGroup((base**digits,))
    assert group.diameter([base**i for i in range(digits)]) == digits * (base - 1)
