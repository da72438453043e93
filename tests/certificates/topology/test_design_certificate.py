"""Certificates: what the check takes and refuses, and that what its rules strike off is in no good design."""

import dataclasses
import itertools
from fractions import Fraction
from math import ceil

import numpy as np
import pytest
from brute_force import routed_congestion
from topology_cases import job
from volume import for_each

from ddlopt.certificates.topology import DesignCertificate, check_certificate
from ddlopt.certificates.topology.colouring import TooLongError, colourable
from ddlopt.certificates.topology.format import (
    BRANCH,
    CLOSED,
    ELSEWHERE,
    END,
    FIRST_WEIGHT,
    IMAGE,
    MOST_PRICE,
    MOST_UNITS,
    UNCOLOURABLE,
)
from ddlopt.certificates.topology.kernels import propagate, refuted
from ddlopt.certificates.topology.statement import neighbour_sets, statement_of
from ddlopt.frontier.topology.branch_and_bound.branch_and_bound import BranchAndBound
from ddlopt.frontier.topology.branch_and_bound.integer_instance import (
    always_filled,
    integer_instance,
    number_of_sets,
    unit_of,
)
from ddlopt.instances import load
from ddlopt.models.errors import SolutionError
from ddlopt.models.topology import AllReduceGroup, TopologyInstance
from ddlopt.solvers.contracts import Limits


def uneven(n=4):
    traffic = 1.0 + np.arange(n * n).reshape(n, n) % 7
    np.fill_diagonal(traffic, 0)
    return job(traffic)


@pytest.fixture(scope="module")
def plain():
    instance = uneven(5)
    return instance, BranchAndBound(opening=0.01).certified(instance, Limits())[1]


@pytest.fixture(scope="module")
def symmetric():
    instance = load("all-to-all-n6-d2")
    return instance, BranchAndBound(opening=0.01).certified(instance, Limits())[1]


def refused(instance, certificate, match=None, **changes):
    with pytest.raises(SolutionError, match=match):
        check_certificate(instance, dataclasses.replace(certificate, **changes))


def changed(array, place, value):
    other = array.copy()
    other[place] = value
    return other


def test_bytes_are_rounded_down_and_must_fit():
    traffic = np.array([[0, 1e-9, 2 / 3], [1e9, 0, 0], [7.25, 3.0, 0]])
    instance = job(traffic, groups=[((0, 1, 2), 1e8 / 3), ((0, 2), 5.0)])
    statement, unit = statement_of(instance, 1), Fraction(2)
    for s in range(3):
        for t in range(3):
            exact = Fraction(float(traffic[s, t])) + (5 if {s, t} == {0, 2} else 0)
            assert statement.demand[s, t] * unit <= exact < (statement.demand[s, t] + 1) * unit
    assert statement.hop[0] * unit <= Fraction(4, 3) * Fraction(1e8 / 3) < (statement.hop[0] + 1) * unit
    assert statement.joined.sum() == 6
    assert statement.demand[0, 1] == 0
    with pytest.raises(SolutionError, match="too small"):
        statement_of(instance, 0)


@for_each("options", [{}, {"parallel_links": False}, {"optics": "duplex"}, {"host_forwarding": False}])
def test_search_and_check_read_an_instance_alike(options):
    instance = job(uneven(5).traffic_bytes, 3, [((0, 1, 3), 7.0), ((1, 4), 2.0)], **options)
    integers, statement = integer_instance(instance), statement_of(instance, int(np.log2(float(unit_of(instance)))))
    pairs = (
        (integers.bytes, statement.demand), (integers.wanted, statement.joined), (integers.member, statement.member),
        (integers.hop, statement.hop), (integers.options, statement.sets), (integers.ends, statement.most_links),
        (integers.exact, statement.filled),
    )  # fmt: skip
    assert all(np.array_equal(one, other) for one, other in pairs)
    assert np.array_equal(statement.links_in.sum(axis=2), (statement.sets >= 0).sum(axis=2))


@pytest.mark.parametrize(
    ("options", "sets"),
    [
        ({}, [(1, 1), (1, 2), (1, 3), (2, 2), (2, 3), (3, 3)]),
        ({"parallel_links": False}, [(1, 2), (1, 3), (2, 3), (1, -1), (2, -1), (3, -1), (-1, -1)]),
    ],
)
def test_neighbour_sets_of_a_server(options, sets):
    instance = job(np.ones((4, 4)) - np.eye(4), **options)
    assert always_filled(instance) == (not options)
    assert number_of_sets(instance) == len(sets)
    assert [tuple(row) for row in neighbour_sets(instance, 0)] == sets


def test_whole_certificates_hold(plain, symmetric):
    for instance, certificate in (plain, symmetric):
        checked = check_certificate(instance, certificate)
        assert checked.bound_bytes == certificate.bound == Fraction(certificate.bound_bytes)
        assert checked.applications > 0
        check_certificate(instance, dataclasses.replace(certificate, bound_units=certificate.bound_units * 97 // 100))


def test_the_bound_in_seconds_is_exact():
    for overlap, seconds in (("none", lambda c, s: c + s), ("full", max)):
        slow = {"link_bandwidth_bytes_per_s": 3.0, "compute_s": 0.1, "overlap": overlap}
        instance = TopologyInstance(**{**uneven().model_dump(), **slow})
        certificate = BranchAndBound(opening=0.01).certified(instance, Limits())[1]
        checked = check_certificate(instance, certificate)
        assert checked.bound_s == seconds(Fraction(0.1), certificate.bound / 3)


def test_more_than_was_proved_is_refused(plain, symmetric):
    for instance, certificate in (plain, symmetric):
        refused(instance, certificate, "do not refute", bound_units=certificate.bound_units * 101 // 100)
        for units in (0, -1, MOST_UNITS + 1, 2**70, 1.5, True, np.int64(5), None):
            refused(instance, certificate, "bound is not a whole number", bound_units=units)
        refused(instance, certificate, "too small", unit_exponent=certificate.unit_exponent - 2)
        for exponent in (10**9, -(10**9), 0.0, None):
            refused(instance, certificate, "unit is not", unit_exponent=exponent)


def test_another_instance_is_refused(plain, symmetric):
    less = job(plain[0].traffic_bytes * 0.98)
    refused(less, plain[1], "another instance")
    refused(less, plain[1], instance_digest=less.digest)
    other = load("all-to-all-n7-d2")
    refused(other, symmetric[1], "columns; the instance needs", instance_digest=other.digest)


def test_every_weight_that_is_made_useless_is_noticed_somewhere(plain):
    instance, certificate = plain
    noticed = 0
    for number in range(len(certificate.lengths)):
        lengths = changed(certificate.lengths, number, 1)
        prices = changed(certificate.prices, number, 0)
        try:
            check_certificate(instance, dataclasses.replace(certificate, lengths=lengths, prices=prices))
        except SolutionError:
            noticed += 1
    assert noticed > len(certificate.lengths) / 4


def test_a_set_left_out_is_refused():
    instance = uneven(3)
    row = np.full((1, 9), 100, np.uint16), np.zeros((1, 4), np.int64), np.zeros((0, 4), np.int32)
    whole = [BRANCH, 0, 0, FIRST_WEIGHT, CLOSED, 1, FIRST_WEIGHT, CLOSED, 2, FIRST_WEIGHT, CLOSED, END]

    def certificate(words):
        words, parts = np.array(words, np.int32), np.array([len(words)], np.uint32)
        return DesignCertificate("", instance.digest, unit_exponent, 2**24, words, parts, *row)

    unit_exponent = int(np.log2(float(unit_of(instance))))
    check_certificate(instance, certificate(whole))
    for first in (2, 5, 8):
        refused(instance, certificate(whole[:first] + whole[first + 3 :]), "leaves out")
    refused(instance, certificate(whole[:5] + whole[2:]), "comes twice")
    refused(instance, certificate([*whole, CLOSED]), "goes on after")


def test_images_that_are_none_are_refused(symmetric):
    instance, certificate = symmetric
    images = certificate.images
    turned = images.copy()
    turned[:, 1:] = np.roll(turned[:, 1:], 1, axis=1)
    refused(instance, certificate, "image", images=turned)
    refused(instance, certificate, "no permutation", images=changed(images, (0, 1), images[0, 2]))
    for part in (-1, len(certificate.part_words), 2**31 - 1):
        refused(instance, certificate, "image of a part that is not there", images=changed(images, (0, 0), part))
    refused(instance, certificate, "not before it", images=changed(images, (0, 0), len(certificate.part_words) - 1))
    skewed = job(np.triu(np.ones((6, 6)), 1) + 2 * np.tril(np.ones((6, 6)), -1))
    refused(skewed, certificate, "changes the traffic", instance_digest=skewed.digest)
    grouped = job(instance.traffic_bytes, groups=[((0, 1, 2), 1e-9)])
    refused(grouped, certificate, "changes the all-reduce groups", instance_digest=grouped.digest)


@for_each(
    ("word", "fault"),
    [
        (BRANCH, "."), (ELSEWHERE, "."), (IMAGE, "."), (END, "no meaning"), (-8, "no meaning"),
        (UNCOLOURABLE, "several are left"), (FIRST_WEIGHT - 10**6, "not there"), (10**6, "out of range"),
    ],
)  # fmt: skip
def test_words_out_of_place_are_refused(plain, word, fault):
    instance, certificate = plain
    refused(instance, certificate, fault, words=changed(certificate.words, 0, word))


def test_words_cut_off_are_refused(plain):
    instance, certificate = plain
    refused(instance, certificate, "do not make up its words", words=certificate.words[:-1])
    counts = certificate.part_words.astype(np.int64)
    for length in range(1, len(certificate.words), 7):
        ends = np.minimum(np.cumsum(counts), length)
        left = np.diff(ends, prepend=0)
        left = left[left > 0].astype(np.uint32)
        refused(instance, certificate, words=certificate.words[:length], part_words=left)


def test_prices_that_no_design_pays_are_refused(plain):
    instance, certificate = plain
    refused(instance, certificate, "out of range", prices=changed(certificate.prices, (0, -1), -1))
    for price in (2**46 + 1, -(2**46) - 1, np.iinfo(np.int64).min, np.iinfo(np.int64).max):
        refused(instance, certificate, "out of range", prices=changed(certificate.prices, (0, 0), price))
    refused(instance, certificate, "columns", prices=np.ascontiguousarray(certificate.prices[:, 1:]))
    strict = TopologyInstance(**{**instance.model_dump(), "parallel_links": False})
    kept = BranchAndBound(opening=0.01).certified(strict, Limits())[1]
    assert kept.prices[:, :-1].min() == 0
    assert check_certificate(strict, kept).bound_bytes
    refused(strict, kept, "negative price", prices=changed(kept.prices, (0, 0), -5))
    duplex = load("tiny-n5-d3-duplex")
    kept = BranchAndBound(opening=0.01).certified(duplex, Limits())[1]
    refused(duplex, kept, "cancel out", prices=changed(kept.prices, (0, 1), kept.prices[0, 1] + 1))


def test_a_colourable_design_must_not_be_called_uncolourable():
    traffic = np.array([[0.0, 1], [1, 0]])
    duplex, one_way = job(traffic, 1, optics="duplex"), job(traffic, 1)
    idle = [1, FIRST_WEIGHT, CLOSED]
    for instance, columns, rest, fault in ((duplex, 5, idle, "that is not"), (one_way, 3, [], "no meaning here")):
        words = np.array([BRANCH, 0, 0, UNCOLOURABLE, *rest, END], np.int32)
        arrays = np.ones((1, 4), np.uint16), np.zeros((1, columns), np.int64), np.zeros((0, 3), np.int32)
        parts = np.array([len(words)], np.uint32)
        refused(instance, DesignCertificate("", instance.digest, -20, 2**21, words, parts, *arrays), fault)


def test_colourings():
    triangle = [(0, 1), (1, 2), (0, 2)]
    assert colourable(triangle, 3)
    assert not colourable(triangle, 2)
    petersen = [(i, (i + 1) % 5) for i in range(5)] + [(i, i + 5) for i in range(5)]
    petersen += [(5 + i, 5 + (i + 2) % 5) for i in range(5)]
    assert not colourable(petersen, 3)
    assert colourable(petersen, 4)
    assert colourable([(0, 1)] * 4, 4)
    assert not colourable([(0, 1)] * 4, 3)
    assert colourable([], 1)
    with pytest.raises(TooLongError, match="65 links"):
        colourable([(0, 1)] * 65, 65)


CASES = {
    "one way": (3, 2, {}, ()),
    "one way, four": (4, 1, {}, ()),
    "no parallel links": (4, 2, {"parallel_links": False}, ()),
    "duplex": (4, 2, {"optics": "duplex"}, ()),
    "duplex, odd": (3, 2, {"optics": "duplex"}, ()),
    "duplex, no parallel links": (4, 2, {"optics": "duplex", "parallel_links": False}, ()),
    "nobody forwards": (3, 2, {"host_forwarding": False}, ()),
    "nobody forwards, duplex": (4, 3, {"host_forwarding": False, "optics": "duplex"}, ()),
    "ring": (4, 2, {"parallel_links": False}, (((0, 1, 2, 3), 9.0), ((1, 3), 4.0))),
    "rings": (3, 2, {}, (((0, 1, 2), 9.0), ((0, 1, 2), 5.0))),
    "ring, duplex": (4, 2, {"optics": "duplex"}, (((0, 1, 2), 9.0),)),
    "ring, nobody forwards": (3, 2, {"host_forwarding": False}, (((0, 1, 2), 9.0),)),
}
EXPONENT = -14


def instance_of(case, rng):
    n, degree, options, groups = CASES[case]
    traffic = np.round(rng.gamma(2.0, 3.0, (n, n))) * (rng.random((n, n)) < 0.7) * (~np.eye(n, dtype=bool))
    traffic[0, 1] += 1.0
    groups = tuple(AllReduceGroup(members=members, gradient_bytes=size) for members, size in groups)
    return TopologyInstance(
        name=case,
        servers=n,
        degree=degree,
        link_bandwidth_bytes_per_s=1.0,
        traffic_bytes=traffic,
        allreduce_groups=groups,
        **options,
    )


def designs(instance, statement):
    """Every design as the number of each server's set, with its load; those that cannot serve all are left out."""
    n, duplex = instance.servers, statement.duplex
    for chosen in itertools.product(range(statement.sets.shape[1]), repeat=n):
        links = statement.links_in[range(n), chosen].astype(int)
        if links.sum(axis=0).max() > instance.degree or (duplex and (links != links.T).any()):
            continue
        pairs = [(s, v) for s in range(n) for v in range(s) for _ in range(links[s, v])]
        if duplex and not colourable(pairs, instance.degree):
            continue
        load = routed_congestion(instance, {(s, v): int(links[s, v]) for s, v in np.argwhere(links).tolist()})
        if np.isfinite(load):
            yield np.array(chosen), load


def weights(statement, rng):
    """Lengths and prices within the rules: small, equal, large, or of one kind of arcs only."""
    n = len(statement.sets)
    most = int(rng.choice([1, 2, 5, 4096, 65535]))
    lengths = rng.integers(0, most + 1, n * n) if rng.random() < 0.8 else np.full(n * n, most)
    lengths[rng.random(n * n) < rng.choice([0.0, 0.3, 0.7])] = 0
    scale = int(rng.choice([0, 1, most * 2**16, most * 2**22, MOST_PRICE]))
    prices = rng.integers(-scale, scale + 1, (n, n) if statement.duplex else n)
    if statement.duplex:
        prices = np.triu(prices, 1) - np.triu(prices, 1).T
    elif not statement.filled:
        prices = abs(prices)
    tax = rng.integers(0, scale + 1) if rng.random() < 0.5 else 0
    return lengths.astype(np.uint16), np.append(prices.ravel(), tax).astype(np.int64)


def struck_off(case, seed, rounds):
    """Try that many weights; how many sets they struck off, and cases they refuted."""
    rng = np.random.default_rng(seed)
    instance = instance_of(case, rng)
    statement = statement_of(instance, EXPONENT)
    n, many, d = statement.sets.shape
    known = list(designs(instance, statement))
    if not known:
        return 0
    loads = np.array([load for _, load in known])
    servers, struck = np.arange(n), 0
    for _ in range(rounds):
        z = ceil(rng.choice(loads) * (1 + 1e-9) / 2.0**EXPONENT) + 1
        good = [chosen for chosen, load in known if load <= z * 2.0**EXPONENT * (1 - 1e-9)]
        # A case to which a good design belongs, for some servers what it has; sets of others are struck off by chance.
        kept = good[rng.integers(len(good))]
        allowed = rng.random((n, many)) < rng.choice([0.3, 0.8, 1.0])
        decided = rng.random(n) < rng.choice([0.0, 0.4, 1.0])
        allowed[decided] = False
        allowed[servers, kept] = True
        inside = [chosen for chosen in good if allowed[servers, chosen].all()]
        figures = np.array([z, statement.most_links, statement.forwarding, statement.duplex], dtype=np.int64)
        for _ in range(4):
            before = allowed.sum()
            assert propagate(allowed, statement.links_in, d, statement.duplex)
            lengths, prices = weights(statement, rng)
            assert not refuted(
                statement.demand, statement.joined, statement.member, statement.hop, statement.sets, figures, allowed,
                lengths, prices,
            )  # fmt: skip
            struck += before - allowed.sum()
            for chosen in inside:
                assert allowed[servers, chosen].all()
    return struck


@pytest.mark.parametrize("case", [case for case in CASES if CASES[case][0] == 3])
def test_what_is_struck_off_is_in_no_good_design(case):
    assert struck_off(case, 0, 60) > 0


@pytest.mark.slow
@for_each("case", CASES)
def test_what_is_struck_off_is_in_no_good_design_of_several_instances(case):
    assert sum(struck_off(case, seed, 1000) for seed in range(1, 5)) > 100
