"""Lists of links with few hops, against all there are; and what they weigh, by hand."""

import itertools
from fractions import Fraction

import numpy as np
import pytest
from refusals import one_line
from topology_cases import all_to_all

from ddlopt.certificates.topology.hops.certificate import HopCertificate
from ddlopt.certificates.topology.hops.listing import Listing, bytes_beyond, bytes_times_length, key_of, least_hops
from ddlopt.models.errors import RefutedError


def never():
    return False


def distances_of(arcs):
    far = np.where(arcs > 0, 1, 99)
    np.fill_diagonal(far, 0)
    for middle in range(len(far)):
        far = np.minimum(far, far[:, middle, None] + far[middle])
    return far


@pytest.mark.parametrize(("degree", "most"), [(2, 0), (3, 0), (3, 4), (3, 20), (4, 20)])
def test_all_graphs_of_four_servers_are_listed(degree, most):
    pairs, wanted = list(itertools.combinations(range(4), 2)), set()
    for counts in itertools.product(range(degree + 1), repeat=len(pairs)):
        arcs = np.zeros((4, 4), dtype=np.int64)
        for (i, j), count in zip(pairs, counts, strict=True):
            arcs[i, j] = arcs[j, i] = count
        if (arcs.sum(axis=1) == degree).all() and distances_of(arcs).sum() <= least_hops(4, degree, True) + most:
            wanted.add(key_of(arcs))
    found = Listing(4, degree, most, duplex=True)
    assert {key for key, _ in found.digraphs(never)} == wanted
    assert found.complete


def test_a_proof_counts_what_it_lists_and_has_whole_tables():
    instance = all_to_all(4, 3, optics="duplex", groups=[((0, 1, 2, 3), 1.0)])
    listed = list(Listing(4, 3, 4, duplex=True).digraphs(never))
    heads = [each.tolist() for _, each in listed]
    ones = [[[1] * 3] * 4] * len(heads)
    good = HopCertificate(instance.name, instance.digest, Fraction(1, 10), 4, heads, ones)
    assert good.check(instance, never) == len(listed) > 0
    short = [[heads[0][0][:2], *heads[0][1:]], *heads[1:]]
    with one_line(RefutedError, "heads[0] has other sizes than 4 servers with 3 links each"):
        HopCertificate(instance.name, instance.digest, Fraction(1, 10), 4, short, ones).check(instance, never)


@pytest.mark.parametrize(("excess", "hops"), [(0, 18), (1, 18), (2, 20)])
def test_duplex_hops_are_even(excess, hops):
    """Each of four servers has two others at one hop and one at two: 16 in all, over 8 links."""
    assert bytes_beyond(all_to_all(4, 2, optics="duplex"), excess) == Fraction(hops, 8)
    assert bytes_beyond(all_to_all(4, 2), excess) == Fraction(16 + excess + 1, 8)


@pytest.mark.parametrize(("n", "ring"), [(16, 8 * 1 + 8 * 10), (18, 18 * 1)])
def test_rings_of_many_servers_may_be_several(n, ring):
    """Pairs are 1 apart, and 10 from others: a ring leaves each of them, but a permutation need not."""
    distances = np.full((n, n), 10) - 9 * np.kron(np.eye(n // 2, dtype=np.int64), np.ones((2, 2), np.int64))
    np.fill_diagonal(distances, 0)
    instance = all_to_all(n, groups=[(tuple(range(n)), 1.0)])
    assert bytes_times_length(instance, distances) == distances.sum() + ring * 2 * (1 - Fraction(1, n))
