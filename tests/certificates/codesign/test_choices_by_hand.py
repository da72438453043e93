"""Figures of choices of strategies that are small enough to be calculated by hand."""

from fractions import Fraction
from types import SimpleNamespace

import pytest

from ddlopt import instances
from ddlopt.certificates.codesign.certificate import needed_bytes, not_gone_through
from ddlopt.certificates.codesign.exact import ROOM, ExactFigures, part_of

GROUPS = {(0, 1, 2, 3): Fraction(4), (0, 1): Fraction(2)}
"""Hops of a ring carry 2 · 3/4 · 4 = 6 bytes among four, and 2 · 1/2 · 2 = 2 among two."""
PAIRS = {(0, 1): Fraction(1), (0, 2): Fraction(3), (0, 3): Fraction(2), (2, 1): Fraction(5)}


@pytest.mark.parametrize(
    ("n", "d", "optics", "links", "hops"),
    [
        (4, 1, "one_way", 4, 3 * 1 + 2 * 2 + 1 * 3 + 5),  # the largest piece goes to the next server, and so on
        (4, 3, "one_way", 12, 11),
        (5, 2, "duplex", 8, 3 + 2 + 2 * 1 + 5),  # each of two links takes a pair of servers; one is left over
        (4, 1, "duplex", 4, 5 + 3 + 2),  # each hears one other alone, and counts what is received from it
    ],
)
def test_links_are_busy_by_sums_and_by_hops(n, d, optics, links, hops):
    fabric = SimpleNamespace(layers=(), servers=n, degree=d, optics=optics, link_bandwidth_bytes_per_s=1.0)
    figures, more = ExactFigures(fabric), [Fraction(0)] * (n - 4)
    out, into = [6 + 2 + 6, 6 + 2, 6 + 5, 6, *more], [6 + 2, 6 + 2 + 1 + 5, 6 + 3, 6 + 2, *more]
    in_rings = 4 * 6 + 2 * 2
    assert figures.loads((GROUPS, PAIRS)) == [
        *(Fraction(each) * ROOM / d for each in (*out, *into)), Fraction(in_rings + hops) * ROOM / links,
    ]  # fmt: skip


def test_nothing_is_no_job():
    figures = ExactFigures(instances.load("codesign/tiny-tables-n4-d2"))
    assert figures.job(({(0, 1): Fraction(0)}, {(0, 1): Fraction(0)})) is None
    job = figures.job(({(0, 1): Fraction(0), (2, 3): Fraction(1)}, {}))
    assert [each.members for each in job.allreduce_groups] == [(2, 3)]


def test_parts_are_of_groups_and_of_pairs():
    more = {(0, 1, 2): Fraction(3)}, {(0, 1): Fraction(2)}
    less = {(0, 1, 2): Fraction(2)}, {(0, 1): Fraction(2)}
    assert (part_of(more, less), part_of(less, more)) == (1, Fraction(2, 3))
    assert part_of(more, (less[0], {})) == Fraction(3, 2)


@pytest.mark.parametrize(("overlap", "compute", "needed"), [("none", 3, 4), ("full", 3, 10), ("full", 5, 0)])
def test_a_claim_needs_bytes_beside_what_is_computed(overlap, compute, needed):
    figures = SimpleNamespace(
        compute=lambda _: Fraction(compute), instance=SimpleNamespace(overlap=overlap), rate=Fraction(2)
    )
    assert needed_bytes(figures, (), Fraction(5)) == needed


@pytest.mark.parametrize(
    ("servers", "sizes", "edges", "line"),
    [
        (2, [300, 300], [(0, 1)], None),
        (2, [400, 300], [(0, 1)], "too many pairs"),
        (2, [300, 300], [(0, 1)] * 2, "too many pairs"),
        (2, [2] * 40, [], None),
        (2, [2] * 41, [], "choices are too many"),
        (2, [1] * 1001, [], "layers and 0 edges"),
        (2, [1], [(0, 0)] * 1001, "1 layers and 1001 edges"),
        (17, [1], [], "17 servers"),
    ],
)
def test_what_is_not_gone_through(servers, sizes, edges, line):
    layers = [SimpleNamespace(strategies=range(size)) for size in sizes]
    found = not_gone_through(SimpleNamespace(servers=servers, layers=layers, edges=edges))
    assert (line in found) if line else found is None
