"""The check of certificates: what the integers say, and that every falsification is refused."""

import dataclasses
from fractions import Fraction

import numpy as np
import pytest

from ddlopt.instances import load
from ddlopt.models.errors import SolutionError
from ddlopt.models.topology import AllReduceGroup, TopologyInstance
from ddlopt.models.topology.design_certificate import check_certificate
from ddlopt.models.topology.neighbour_sets import (
    ALIKE,
    BRANCH,
    CLOSED,
    ELSEWHERE,
    END,
    UNITS,
    WEIGHTS,
    always_filled,
    number_of_sets,
    task_of,
    unit_of,
)
from ddlopt.solvers.contracts import Limits
from ddlopt.solvers.topology.branch_and_bound import BranchAndBound


def make_instance(traffic, d=2, groups=(), **options):
    return TopologyInstance(
        name="test",
        servers=len(traffic),
        degree=d,
        link_bandwidth_bytes_per_s=1.0,
        traffic_bytes=traffic,
        allreduce_groups=tuple(AllReduceGroup(members=m, gradient_bytes=b) for m, b in groups),
        **options,
    )


def uneven(n=4):
    traffic = 1.0 + np.arange(n * n).reshape(n, n) % 7
    np.fill_diagonal(traffic, 0)
    return make_instance(traffic)


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


def test_bytes_are_rounded_down_and_fit():
    traffic = np.array([[0, 1e-9, 2 / 3], [1e9, 0, 0], [7.25, 3.0, 0]])
    instance = make_instance(traffic, groups=[((0, 1, 2), 1e8 / 3), ((0, 2), 5.0)])
    task, unit = task_of(instance), unit_of(instance)
    for s in range(3):
        for t in range(3):
            extra = Fraction(5) if {s, t} == {0, 2} else 0
            exact = Fraction(float(traffic[s, t])) + extra
            assert task.bytes[s, t] * unit <= exact < (task.bytes[s, t] + 1) * unit
    assert task.hop[0] * unit <= Fraction(4, 3) * Fraction(1e8 / 3) < (task.hop[0] + 1) * unit
    everything = int(task.bytes.sum()) + 3 * int(task.hop.sum())
    assert UNITS / 4 < everything <= UNITS
    assert task.wanted.sum() == 6
    assert task.bytes[0, 1] == 0


@pytest.mark.parametrize(
    ("options", "sets"),
    [
        ({}, [(1, 1), (1, 2), (1, 3), (2, 2), (2, 3), (3, 3)]),
        ({"parallel_links": False}, [(1, 2), (1, 3), (2, 3), (1, -1), (2, -1), (3, -1), (-1, -1)]),
    ],
)
def test_neighbour_sets_of_a_server(options, sets):
    instance = make_instance(np.ones((4, 4)) - np.eye(4), **options)
    assert always_filled(instance) == (not options)
    assert number_of_sets(instance) == len(sets)
    assert [tuple(row) for row in task_of(instance).options[0].tolist()] == sets


def test_whole_certificates_hold(plain, symmetric):
    for instance, certificate in (plain, symmetric):
        checked = check_certificate(instance, certificate)
        assert checked.complete
        assert checked.applications > 0
        lower = dataclasses.replace(certificate, bound_bytes=certificate.bound_bytes * 0.97)
        assert check_certificate(instance, lower).complete


def test_a_sample_is_called_one(plain):
    checked = check_certificate(*plain, sample=0.5)
    assert not checked.complete
    assert checked.nodes < check_certificate(*plain).nodes


def test_more_than_was_proved_is_refused(plain, symmetric):
    for instance, certificate in (plain, symmetric):
        refused(instance, certificate, "do not refute", bound_bytes=certificate.bound_bytes * 1.01)
    refused(*plain, "more than there are", bound_bytes=1e9)


def test_another_instance_is_refused(plain, symmetric):
    less = plain[0].traffic_bytes * 0.98
    refused(make_instance(less), plain[1])
    refused(load("all-to-all-n7-d2"), symmetric[1], "do not fit")


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


def test_a_child_left_out_is_refused(plain):
    instance, certificate = plain
    words = certificate.words.tolist()
    place = next(i for i, word in enumerate(words) if word == BRANCH)
    first = place + 2
    # The first child with all below it: up to the word that begins its next sibling.
    depth, end = 0, first + 1
    while True:
        word = words[end]
        end += 2 if word in (ELSEWHERE, ALIKE) else 1
        if word == BRANCH:
            depth, end = depth + 1, end + 1
            continue
        if word in (CLOSED, ELSEWHERE, ALIKE, END):
            if word == END:
                depth -= 1
            if depth == 0:
                break
            end += words[end] != END
    shorter = np.array(words[:first] + words[end:], dtype=np.int32)
    parts = certificate.parts - (end - first) * (certificate.parts > place)
    refused(instance, certificate, "leaves out", words=shorter, parts=parts)


def test_images_that_are_none_are_refused(symmetric):
    instance, certificate = symmetric
    turned = certificate.alike.copy()
    turned[:, 1:] = np.roll(turned[:, 1:], 1, axis=1)
    refused(instance, certificate, "image", alike=turned)
    refused(
        instance, certificate, "by a permutation", alike=changed(certificate.alike, (0, 1), certificate.alike[0, 2])
    )
    itself = next(p for p, start in enumerate(certificate.parts) if certificate.words[start] == ALIKE)
    refused(instance, certificate, "another image", alike=changed(certificate.alike, (0, 0), itself))
    far = make_instance(np.triu(np.ones((6, 6)), 1) + 2 * np.tril(np.ones((6, 6)), -1))
    refused(far, certificate)


@pytest.mark.parametrize(
    ("word", "fault"),
    [(BRANCH, "."), (ELSEWHERE, "."), (ALIKE, "."), (-8, "no meaning"), (WEIGHTS - 10**6, "not there")],
)
def test_words_out_of_place_are_refused(plain, word, fault):
    instance, certificate = plain
    refused(instance, certificate, fault, words=changed(certificate.words, 0, word))


def test_words_cut_off_are_refused(plain):
    instance, certificate = plain
    for length in range(1, len(certificate.words), 7):
        refused(instance, certificate, words=certificate.words[:length])


def test_prices_that_no_design_pays_are_refused(plain):
    instance, certificate = plain
    refused(instance, certificate, "out of range", prices=changed(certificate.prices, (0, -1), -1))
    refused(instance, certificate, "out of range", prices=changed(certificate.prices, (0, 0), 2**50))
    refused(instance, certificate, "do not fit", prices=certificate.prices[:, 1:])
    strict = TopologyInstance(**{**instance.model_dump(), "parallel_links": False})
    kept = BranchAndBound(opening=0.01).certified(strict, Limits())[1]
    refused(strict, kept, "negative price", prices=changed(kept.prices, (0, 0), -5))
    duplex = load("tiny-n5-d3-duplex")
    kept = BranchAndBound(opening=0.01).certified(duplex, Limits())[1]
    refused(duplex, kept, "cancel out", prices=changed(kept.prices, (0, 1), kept.prices[0, 1] + 1))


def test_a_colourable_design_must_not_be_called_uncolourable():
    instance = load("tiny-n5-d3-duplex")
    certificate = BranchAndBound(opening=0.01).certified(instance, Limits())[1]
    words = certificate.words.copy()
    # Parts of complete designs: one list of weights and CLOSED. Claim of all of them what holds of few.
    for start in certificate.parts[1:]:
        if words[start] <= WEIGHTS and words[start + 1] == CLOSED:
            words[start] = -6
    refused(instance, certificate, "uncolourable", words=words)
