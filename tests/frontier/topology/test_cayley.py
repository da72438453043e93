"""Cayley graphs of abelian groups: arithmetic, automorphisms and distances."""

from itertools import combinations
from math import comb, isqrt

import numpy as np
import pytest
from sympy.combinatorics.named_groups import AbelianGroup as DirectProductOfCycles
from volume import for_each, spread

from ddlopt.frontier.topology.symmetry.cayley import AbelianGroup, abelian_level_sizes


def closed(group, generators):
    return sorted({*generators, *group.negate(list(generators)).tolist()})


def diameter(group, generators):
    """Largest distance; more than there can be if somebody is not reached."""
    hops = group.distances(generators)
    return group.order if (hops < 0).any() else int(hops.max())


@for_each("invariants", [(12,), (3, 4), (2, 6), (2, 2, 2), (4, 4)])
def test_arithmetic_is_that_of_the_group_in_sympy(invariants):
    group = AbelianGroup(invariants)
    sympy_group = DirectProductOfCycles(*invariants)
    assert sympy_group.is_abelian
    assert sympy_group.order() == group.order
    elements = []
    for exponents in group.elements.tolist():
        element = sympy_group.identity
        for generator, exponent in zip(sympy_group.generators, exponents, strict=True):
            element = element * generator**exponent
        elements.append(element)
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


def test_distances_by_hand():
    assert AbelianGroup((6,)).distances([1]).tolist() == [0, 1, 2, 3, 4, 5]
    assert AbelianGroup((2, 2, 2)).distances([1, 2, 4]).tolist() == [0, 1, 1, 2, 1, 2, 2, 3]
    assert AbelianGroup((6,)).distances([2]).tolist() == [0, -1, 1, -1, 2, -1]
    assert AbelianGroup((3,)).distances([]).tolist() == [0, -1, -1]


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


@for_each(("n", "generators", "longest", "mean"), BEST_CIRCULANTS)
def test_published_circulants(n, generators, longest, mean):
    hops = AbelianGroup((n,)).distances(closed(AbelianGroup((n,)), generators))
    assert hops.max() == longest
    assert hops.sum() / (n - 1) == pytest.approx(mean, rel=1e-5)


@for_each("n", spread(range(5, 60), 9))
def test_smallest_diameter_of_undirected_double_loops(n):
    """OEIS A344517: ceil((sqrt(2n - 1) - 1) / 2)."""
    group = AbelianGroup((n,))
    pairs = combinations(range(1, n // 2 + 1), 2)
    root = isqrt(2 * n - 2) + 1  # ceil(sqrt(2n - 1))
    assert min(diameter(group, closed(group, pair)) for pair in pairs) == root // 2


@for_each(
    ("n", "generators", "longest"),
    [
        (55, (1, 5, 21), 3),
        (117, (1, 16, 22), 4),
        (203, (1, 7, 57), 5),
        (35, (1, 6, 7, 10), 2),
        (51, (1, 2, 10, 16, 23), 2),
    ],
)
def test_witnesses_of_large_circulants(n, generators, longest):
    group = AbelianGroup((n,))
    assert diameter(group, closed(group, generators)) == longest


@for_each(("base", "digits"), [(2, 4), (3, 3), (4, 3), (8, 4)])
def test_chord_like_circulants_reach_the_digit_bound(base, digits):
    group = AbelianGroup((base**digits,))
    assert diameter(group, [base**i for i in range(digits)]) == digits * (base - 1)


def test_level_sizes_are_those_of_abelian_balls():
    """Within D hops of the identity: C(D + k, k) sums of k generators, Σ_i 2^i C(k, i) C(D, i) with their inverses."""
    for k, order in ((2, 60), (3, 90)):
        directed, undirected = abelian_level_sizes(order, k), abelian_level_sizes(order, 2 * k, duplex=True)
        for radius in range(4):
            assert 1 + sum(directed[:radius]) == min(order, comb(radius + k, k))
            assert 1 + sum(undirected[:radius]) == min(
                order, sum(2**i * comb(k, i) * comb(radius, i) for i in range(4))
            )
    assert abelian_level_sizes(16, 2) == [2, 3, 4, 5, 1]
    assert abelian_level_sizes(16, 3, duplex=True) == [3, 4, 4, 4]
    assert abelian_level_sizes(16, 4, exponent=2) == abelian_level_sizes(16, 4, True, exponent=2) == [4, 6, 4, 1]
    assert abelian_level_sizes(9, 1) == [1] * 8
    assert abelian_level_sizes(9, 1, duplex=True) == [1]
