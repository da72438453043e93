"""Whole links of blocks and cells: bounds that no design beats, and what they see."""

import random
from fractions import Fraction
from itertools import product
from math import inf

import numpy as np
import pytest
from brute_force import brute_force
from topology_cases import job
from volume import for_each, slow, spread

from ddlopt.certificates.topology.exact_bounds import exact_lower_bound
from ddlopt.frontier.topology.blocks.block_bound import partitions
from ddlopt.frontier.topology.blocks.bounds import blocks_bound, congestion_bounds
from ddlopt.models.errors import InfeasibleError
from ddlopt.models.topology.bounds import lower_bound
from ddlopt.models.topology.problem import PROBLEM


def random_traffic(rng, n, density=1.0):
    traffic = rng.integers(1, 20, size=(n, n)) * (rng.random((n, n)) < density)
    traffic = np.where(rng.random((n, n)) < 0.2, 5 * traffic, traffic)
    np.fill_diagonal(traffic, 0)
    return traffic


def test_blocks_see_that_links_are_whole_and_that_detours_cross_twice():
    pairs = [((s, s + 1), 15) for s in (0, 2, 4)]
    across = [((first, first + 2, first + 4), 3.75) for first in (0, 1)]
    bounds = congestion_bounds(job(np.zeros((6, 6)), 2, (*pairs, *across)))
    # Two links carry 20 bytes. If one leads to another pair, the other one has 15; else the 5 bytes of the rest cross
    # links of pairs twice: 2 z >= 15 + 2 * 5.
    assert bounds["node"] == bounds["moore"] == pytest.approx(10, rel=1e-12)
    assert bounds["blocks"] == pytest.approx(12.5, rel=1e-9)


GROUPED = [
    ({"degree": 1}, [(0, 1), (2, 3), (0, 2), (1, 3)]),
    ({"degree": 2}, [(0, 1), (2, 3), (0, 2), (1, 3)]),
    ({"degree": 2}, [(0, 1), (2, 3), (0, 1, 2, 3)]),
    ({"degree": 2}, [(0, 1, 2), (0, 1, 2, 3)]),
    ({"degree": 2, "parallel_links": False}, [(0, 1), (2, 3), (0, 1, 2, 3)]),
    ({"degree": 2, "optics": "duplex"}, [(0, 1), (2, 3), (0, 2), (1, 3)]),
    ({"degree": 3, "optics": "duplex"}, [(0, 1), (2, 3), (0, 1, 2, 3)]),
]


@pytest.mark.parametrize(("case", "seed"), spread(product(range(len(GROUPED)), range(3)), 7))
def test_no_bound_of_blocks_exceeds_the_optimum(case, seed):
    options, groups = GROUPED[case]
    rng = np.random.default_rng(seed)
    sizes = rng.choice([1.0, 3.0, 8.0, 20.0], size=len(groups)).tolist()
    traffic = random_traffic(rng, 4, density=0.3 * (seed % 3))
    instance = job(traffic, groups=list(zip(groups, sizes, strict=True)), **options)
    bounds = congestion_bounds(instance)
    assert max(bounds["blocks"], bounds["cells"]) <= brute_force(instance) * (1 + 1e-9)


def pairs_of_servers(seed):
    """Four servers, whose pairs are blocks: few enough for all designs to be tried in a tenth of a second."""
    draw, traffic = random.Random(seed), np.zeros((4, 4))
    degree = draw.choice([1, 2, 2])
    for pair in ((0, 1), (1, 0), (2, 3), (3, 2)):
        traffic[pair] = draw.choice([0, 0, 1, 2, 5])
    if draw.random() < 0.4:
        traffic[draw.randrange(4), draw.randrange(4)] += draw.choice([1, 2])
    np.fill_diagonal(traffic, 0)
    groups = []
    if draw.random() < 0.7:
        size = draw.choice([1, 2, 4])
        groups += [((0, 1), size), ((2, 3), size)]
    if draw.random() < 0.6:
        groups.append(((0, 1, 2, 3), draw.choice([1, 2, 4])))
    if draw.random() < 0.3:
        groups += [((0, 2), draw.choice([1, 2])), ((1, 3), draw.choice([1, 2]))]
    options = {"optics": draw.choice(["one_way", "one_way", "duplex"]), "parallel_links": draw.random() < 0.5}
    return job(traffic, degree, groups or [((0, 1), 1)], **options)


@for_each("seed", [0, 4, 7, 20, 38, 59, 62, 92, *map(slow, range(93, 300))])
def test_no_bound_exceeds_the_optimum_of_pairs_of_servers(seed):
    """Of the first ones each is needed: a bound that counts a little too much of something is above their optimum."""
    instance = pairs_of_servers(seed)
    best = brute_force(instance)
    try:
        bounds = congestion_bounds(instance)
    except InfeasibleError:
        assert best == inf
        return
    for name, bound in bounds.items():
        assert bound <= best * (1 + 1e-7), name
    assert best == inf or exact_lower_bound(instance) <= Fraction(instance.iteration_time_s(best)) * (
        1 + Fraction(1, 10**7)
    )


def test_traffic_that_leaves_its_block_crosses_two_links_and_no_more():
    """Nobody has parallel links, so that every pair has one; of the ten bytes of a pair the rest goes by the others."""
    traffic = np.zeros((4, 4))
    traffic[0, 1] = traffic[1, 0] = traffic[2, 3] = 10
    traffic[3, 2] = 3
    instance = job(traffic, 3, (((0, 1), 3.0), ((2, 3), 3.0)), parallel_links=False)
    assert congestion_bounds(instance)["blocks"] <= brute_force(instance) == pytest.approx(6.5)


def test_cells_see_that_links_out_of_a_block_leave_pairs_without_one():
    across = [((first, first + 4), 10.0) for first in range(4)]
    inside = np.kron(np.eye(2), 3.0 * (1 - np.eye(4)))
    bounds = congestion_bounds(job(inside, 3, (*across, ((0, 1, 2, 3), 1.0), ((4, 5, 6, 7), 1.0))))
    # Four links out of a block carry 40 bytes if z is 10. With five, 7 of the 12 pairs inside have a link, and three of
    # the servers one link for 10 bytes: 12 z >= 82 + 3 * 5 + 3 (10 - z).
    assert bounds["moore"] == pytest.approx((10 + 9 + 1.5 + 3) / 3)
    assert bounds["cells"] == pytest.approx(127 / 15, rel=1e-9)


def test_cells_know_what_is_under_way_after_each_number_of_hops():
    traffic = np.full((5, 5), 2) + 2 * np.kron(np.diag([1, 1, 0]), np.ones((2, 2), int))[:5, :5]
    np.fill_diagonal(traffic, 0)
    instance = job(traffic, 1, (((0, 1), 1.0), ((2, 3), 1.0)))
    # Four hops of rings; 48 bytes leave, and after two and three hops 20 and 10 are under way. After one hop these are
    # 6 of the server alone, and 14 of each pair: one of its links leads out, and carries 2 bytes where 4 are inside.
    assert congestion_bounds(instance)["moore"] == pytest.approx((4 + 48 + 30 + 20 + 10) / 5)
    assert congestion_bounds(instance)["cells"] == pytest.approx((4 + 48 + 2 * 14 + 6 + 20 + 10) / 5, rel=1e-9)
    assert congestion_bounds(instance)["cells"] <= brute_force(instance)


@pytest.mark.parametrize(
    ("groups", "found"),
    [
        ([(0, 1), (1, 2)], [[(0, 1)], [(1, 2)], [(0, 1, 2)]]),
        ([(0, 1), (2, 3)], [[(0, 1), (2, 3)]]),
        ([(0, 1), (0, 1, 2), (3, 4)], [[(0, 1), (3, 4)], [(0, 1, 2)], [(0, 1, 2), (3, 4)]]),
        ([(0, 1, 2, 3, 4)], []),
    ],
)
def test_blocks_are_what_disjoint_groups_of_a_size_make_and_what_groups_connect(groups, found):
    instance = job(np.zeros((5, 5)), 2, tuple((members, 1.0) for members in groups))
    blocks = {
        frozenset(tuple(np.flatnonzero(labels == each).tolist()) for each in set(labels))
        for labels in partitions(instance)
    }
    assert {frozenset(each for each in partition if len(each) > 1) for partition in blocks} == set(
        map(frozenset, found)
    )


def test_a_topology_asks_them_beside_its_own():
    pairs = [((s, s + 1), 15) for s in (0, 2, 4)]
    across = [((first, first + 2, first + 4), 3.75) for first in (0, 1)]
    instance = job(np.zeros((6, 6)), 2, (*pairs, *across))
    assert PROBLEM.tightest_bound(instance) == blocks_bound(instance) > lower_bound(instance) * 1.2
    assert blocks_bound(job(np.ones((6, 6)) - np.eye(6), 2)) is None
