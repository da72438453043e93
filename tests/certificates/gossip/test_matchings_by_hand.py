"""Regions of plans of matchings, and loans of their leaves: small cases by hand, and by definition."""

import json
import random
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from ddlopt.certificates.gossip.matchings.leaf import is_lendable
from ddlopt.certificates.gossip.matchings.regions import Region, Regions
from ddlopt.certificates.gossip.matchings.tree import MatchingsCertificate, children_of, is_image, orbits_of
from ddlopt.models.errors import RefutedError
from ddlopt.models.gossip.matchings.instance import MatchingsInstance
from ddlopt.models.gossip.network import Network


def regions_of(*edges, nodes=3, budget=1.0):
    return Regions(MatchingsInstance(name="hand", network=Network(nodes=nodes, edges=edges), budget=budget))


def test_levels_follow_from_each_other():
    """Edges that meet are at different levels, and one that is later meets one at each level before."""
    path = regions_of((0, 1), (1, 2))
    first, later = path.at_level(path.root, 0), path.later(path.root, (0,))
    assert (first.level, first.decided) == ((0, 1), (True, False))
    assert (first.low, first.high) == ((0, 0), (1, Fraction(1, 2)))  # two levels share a budget of 1
    # Edge 0 could be at the first level but for edge 1, which therefore is there.
    assert (later.level, later.decided) == ((1, 0), (False, True))
    assert path.later(path.at_level(path.root, 0), (1,)) is None


def test_levels_are_in_order_and_share_the_budget():
    star = regions_of((0, 1), (0, 2), (0, 3), nodes=4)
    region = star.at_level(star.at_level(star.root, 0), 1)
    assert region.level == (0, 1, 2)
    assert region.high == (1, Fraction(1, 2), Fraction(1, 3))
    likely = star.split(region, 2, Fraction(1, 8))[1]
    assert likely.low == (Fraction(1, 8),) * 3
    assert likely.high == (Fraction(3, 4), Fraction(7, 16), Fraction(1, 3))
    rare = star.split(region, 0, Fraction(3, 8))[0]
    assert rare.high == (Fraction(3, 8), Fraction(3, 8), Fraction(1, 3))


@pytest.mark.parametrize(
    ("one", "other", "inside"),
    [
        ({}, {}, True),
        ({"level": (1, 0)}, {}, True),  # later than need be
        ({}, {"level": (1, 0)}, False),
        ({}, {"decided": (True, False)}, False),
        ({"decided": (True, False)}, {"decided": (True, False)}, True),
        ({"decided": (True, False), "level": (1, 0)}, {"decided": (True, False)}, False),
        ({"low": (Fraction(1, 4), Fraction(0))}, {}, True),
        ({}, {"low": (Fraction(1, 4), Fraction(0))}, False),
        ({"high": (Fraction(1), Fraction(1, 4))}, {}, True),
        ({}, {"high": (Fraction(1), Fraction(1, 4))}, False),
        ({"low": (Fraction(0),), "high": (Fraction(1),)}, {}, False),  # says nothing of the second level
        ({}, {"low": (Fraction(0),), "high": (Fraction(1),)}, True),
    ],
)
def test_a_region_is_in_another_one(one, other, inside):
    whole = {"level": (0, 0), "decided": (False, False), "low": (Fraction(0),) * 2, "high": (Fraction(1),) * 2}
    assert is_image(Region(**whole | one), Region(**whole | other), [0, 1]) == inside


def test_an_orbit_is_divided_only_where_all_its_edges_are_the_same():
    path = regions_of((0, 1), (1, 2))
    orbits, root = orbits_of(path, [(2, 1, 0)]), path.root
    assert root.symmetric
    first, later = children_of(path, root, orbits, ["orbit", 0])
    assert (first.level, later) == ((0, 1), None)  # where neither is at the first level nobody is
    for changed in ({"decided": (False, True)}, {"level": (0, 1)}, {"symmetric": False}):
        with pytest.raises(RefutedError, match="not the same for all edges"):
            children_of(path, replace(root, **changed), orbits, ["orbit", 0])


def test_nodes_of_every_kind_are_read():
    nodes = [["split", 0, 9], ["edge", 0], ["orbit", 1], ["image", 0, [1, 0]], ["leaf", [[1]], [2], [3]]]
    good = MatchingsCertificate("x", "0" * 64, Fraction(1, 2), ((1, 0),), nodes)
    assert MatchingsCertificate.from_data(json.loads(good.text)).nodes == nodes


def test_loans_are_those_that_leave_the_square_of_the_mean_convex():
    """Sum over vectors of the squared length of L(y) v, less d y², written out, and decided by eigenvalues."""
    rng, told = random.Random(3), set()
    for _ in range(150):
        n = rng.randrange(2, 5)
        edges = [(i, j) for i in range(n) for j in range(i + 1, n) if j == i + 1 or rng.random() < 0.5]
        regions = regions_of(*edges, nodes=n)
        laplacians = []
        for i, j in regions.edges:
            end = np.eye(n)[i] - np.eye(n)[j]
            laplacians.append(np.outer(end, end))
        vectors = [[rng.randrange(-3, 4) for _ in range(n)] for _ in range(rng.randrange(1, 4))]
        pushed = np.array([[laplacian @ v for v in vectors] for laplacian in laplacians])
        square = np.einsum("ekn,fkn->ef", pushed, pushed)
        lent = [rng.choice((-1, 0, 0, rng.randrange(1 + int(square[e, e])))) for e in range(len(edges))]
        least = np.linalg.eigvalsh(square - np.diag(lent))[0]
        if abs(least) > 1e-6:
            assert is_lendable(regions, vectors, lent) == (least > 0)
            told.add(bool(least > 0))
    assert told == {True, False}
