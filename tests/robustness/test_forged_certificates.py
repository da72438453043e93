"""Forged certificates: none that proves nothing is accepted, and none ends the process.

What is accepted must be accepted by a slow second reading of the rules (:mod:`.slow_replay`), too, and must not claim
that no design has the load that a known one has.
"""

import itertools
from collections import Counter
from fractions import Fraction

import numpy as np
import pytest
from robustness.forgeries import SMALLEST, Forger, learnt, made
from robustness.slow_replay import proves
from topology_cases import job
from volume import for_each

from ddlopt.certificates.topology import DesignCertificate, check_certificate
from ddlopt.certificates.topology.format import BRANCH, CLOSED, ELSEWHERE, END, FIRST_WEIGHT, IMAGE, UNCOLOURABLE
from ddlopt.frontier.topology.branch_and_bound.branch_and_bound import BranchAndBound
from ddlopt.instances import load
from ddlopt.models.errors import SolutionError
from ddlopt.models.topology import evaluate
from ddlopt.solvers.contracts import Limits

TRAFFIC = np.array([[0, 3, 1, 4], [1, 0, 5, 2], [6, 5, 0, 3], [2, 2, 4, 0]], dtype=float)


def equal(n):
    return np.ones((n, n)) - np.eye(n)


def turns(n):
    """The identity and all other rotations."""
    return [[(v + turn) % n for v in range(n)] for turn in range(n)]


def shuffles(n, step):
    """Some permutations, the identity first."""
    return [*itertools.permutations(range(n))][::step]


RING, FIVE = np.roll(np.eye(4), 1, axis=1), np.roll(np.eye(5), 1, axis=1)
TRIANGLES = [[*one, *other] for one in itertools.permutations((0, 1, 2)) for other in itertools.permutations((3, 4, 5))]
TRIANGLES += [[*other, *one] for *one, a, b, c in TRIANGLES for other in [(a, b, c)]]
CASES = {
    "all alike": (job(equal(6)), shuffles(6, 7)),
    "one link each": (job(equal(5) + 2 * FIVE @ FIVE, degree=1), turns(5)),
    "uneven": (job(TRAFFIC), shuffles(4, 24)),
    "duplex": (job(equal(5), optics="duplex"), shuffles(5, 7)),
    "duplex, uneven": (job(TRAFFIC, optics="duplex"), shuffles(4, 24)),
    "duplex triangles": (job(np.kron(np.eye(2), equal(3)), optics="duplex"), TRIANGLES),
    "no parallel links": (job(equal(5) + FIVE, parallel_links=False), turns(5)),
    "nobody forwards": (job(TRAFFIC, 3, host_forwarding=False), shuffles(4, 24)),
    "groups": (job(RING, groups=[((0, 1, 2, 3), 4.0), ((0, 2), 3.0), ((1, 3), 3.0)]), turns(4)),
}


class Base:
    """An instance with the load of a good design, a true certificate and automorphisms."""

    def __init__(self, case):
        self.instance, self.automorphisms = CASES[case]
        result, self.certificate = BranchAndBound(opening=0.01).certified(self.instance, Limits())
        self.load = evaluate(self.instance, result.solution, exact=True).details["max_link_load_bytes"]
        assert proves(self.instance, self.certificate) == check_certificate(self.instance, self.certificate).bound_bytes
        assert self.certificate.bound < self.load <= self.certificate.bound * Fraction(1001, 1000)

    def forger(self, seed):
        return Forger(self.instance, self.certificate, self.automorphisms, np.random.default_rng(seed))

    def judged(self, forged, what):
        """``refused`` or ``true``; a certificate that should not have been accepted is an error."""
        try:
            bound = check_certificate(self.instance, forged).bound_bytes
        except SolutionError:
            return "refused"
        assert proves(self.instance, forged) == bound, what
        assert bound < self.load, what
        return "true"


_bases = {}


def base(case):
    if case not in _bases:
        _bases[case] = Base(case)
    return _bases[case]


def tried(case, times, seed=0):
    """Try so many forgeries; how many were refused, and how many hold."""
    forger, counts = base(case).forger(seed), Counter()
    for number in range(times):
        forged, what = forger.one()
        counts[base(case).judged(forged, f"{case}, number {number}: {what}")] += 1
    return counts


@pytest.mark.parametrize("case", CASES)
def test_forgeries_are_refused(case):
    counts = tried(case, 60)
    assert counts["refused"] > 30


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES)
def test_thousands_of_forgeries_are_refused(case, capsys):
    counts = tried(case, 3000, seed=1)
    with capsys.disabled():
        tried_, refused, true = counts.total(), counts["refused"], counts["true"]
        print(f"\n{case}: {tried_} forgeries tried, {refused} refused, {true} hold, crashed: 0")
    assert counts["refused"] > 2000


@pytest.mark.slow
@for_each("case", CASES)
def test_a_forger_that_learns_from_the_checker_gets_nowhere(case):
    for seed in range(20):
        forger = base(case).forger(seed)
        forged, accepted = learnt(forger, 100, claim=1.002)
        assert not accepted, f"{case}, seed {seed}: {float(forged.bound)}"


SIX = "topology/all-to-all-n6-d2"
E = -24
FLAT = [4096] * 36
SAME = list(range(6))


def claimed(instance, parts, bound=27.0, exponent=E, **arrays):
    return made(instance, exponent, int(bound / 2.0**exponent), parts, **arrays)


def image_of_itself():
    instance = load(SIX)
    return instance, claimed(instance, [[FIRST_WEIGHT, IMAGE, 0]], lengths=[FLAT], images=[[0, *SAME]])


def image_of_itself_on_danoint():
    instance = load("topology/danoint")
    parts = [[FIRST_WEIGHT, IMAGE, 0]]
    return instance, claimed(instance, parts, 496.0, -20, lengths=[[4096] * 64], images=[[0, *range(8)]])


def image_of_itself_elsewhere(order):
    instance = load(SIX)
    parts = [[IMAGE, 0], [ELSEWHERE, 0]] if order else [[ELSEWHERE, 1], [IMAGE, 0]]
    return instance, claimed(instance, parts, images=[[order, *SAME]])


def images_of_each_other(reverse):
    instance = load(SIX)
    sets = [*itertools.combinations_with_replacement(range(1, 6), 2)]
    images = []
    for here in sets:
        alike = [ends for ends in sets if len(set(ends)) == len(set(here))]
        origin = alike[(alike.index(here) + 1) % len(alike)]
        taken = dict(zip(origin, here, strict=True)) | {0: 0}
        rest = [v for v in SAME if v not in taken.values()]
        images.append([sets.index(origin), *(taken[v] if v in taken else rest.pop() for v in SAME)])
    parts = [[FIRST_WEIGHT, IMAGE, k] for k in range(len(sets))]
    root = [BRANCH, 0, *(word for k in range(len(sets)) for word in (k, ELSEWHERE, k)), END]
    if reverse:
        parts = parts[::-1]
        root = [BRANCH, 0, *(word for k in range(len(sets)) for word in (k, ELSEWHERE, len(sets) - 1 - k)), END]
        images = [[len(sets) - 1 - origin, *order] for origin, *order in images]
    return instance, claimed(instance, [*parts, root], lengths=[FLAT], images=images)


def prices_that_wrap():
    instance = load(SIX)
    prices = [[SMALLEST] * 4 + [2**46] * 2 + [0]]
    return instance, claimed(instance, [[FIRST_WEIGHT, CLOSED]], lengths=[FLAT], prices=prices)


def lengths_of(values):
    instance = load(SIX)
    certificate = claimed(instance, [[FIRST_WEIGHT, CLOSED]], lengths=[FLAT])
    return instance, DesignCertificate(**{**vars(certificate), "lengths": values})


def parts_of(values):
    instance = load(SIX)
    certificate = claimed(instance, [[FIRST_WEIGHT, CLOSED]], lengths=[FLAT])
    return instance, DesignCertificate(**{**vars(certificate), "part_words": values})


def one_way_called_uncolourable():
    # The cycle 0 → 1 → 2 → 0 has load 10, the other one 20. As a graph the links 0 → 1 and 1 → 2 share server 1.
    instance = job(10 * np.roll(np.eye(3), 1, axis=1), degree=1)
    parts = [[BRANCH, 0, 0, UNCOLOURABLE, 1, FIRST_WEIGHT, CLOSED, END]]
    return instance, claimed(instance, parts, 19.5, lengths=[[100] * 9])


ONCE_ACCEPTED = {
    "image of itself": image_of_itself,
    "image of itself, danoint": image_of_itself_on_danoint,
    "image of itself elsewhere": lambda: image_of_itself_elsewhere(0),
    "image of what names it": lambda: image_of_itself_elsewhere(1),
    "images of each other": lambda: images_of_each_other(False),
    "images of each other, reversed": lambda: images_of_each_other(True),
    "prices that wrap": prices_that_wrap,
    "long lengths": lambda: lengths_of(np.full((1, 36), 2**62, np.int64)),
    "negative lengths": lambda: lengths_of(np.full((1, 36), -(2**40), np.int64)),
    "lengths that are none": lambda: lengths_of(np.full((1, 36), np.nan)),
    "a part before the memory": lambda: parts_of(np.array([-(10**12)], np.int64)),
    "no parts": lambda: parts_of(np.zeros(0, np.uint32)),
    "parts that wrap": lambda: parts_of(np.array([2**32 - 1, 3], np.uint32)),
    "half a part": lambda: parts_of(np.array([0.5])),
    "one-way called uncolourable": one_way_called_uncolourable,
}


@for_each("name", ONCE_ACCEPTED)
def test_what_once_got_through_is_refused(name):
    """Each of these was accepted by the first checker, or ended its process, or is a near relation of one that did."""
    instance, certificate = ONCE_ACCEPTED[name]()
    with pytest.raises(SolutionError):
        check_certificate(instance, certificate)
