"""The gap of circulant graphs in whole numbers is that of the best of all sets, tried one by one."""

import random
from fractions import Fraction
from itertools import combinations
from math import cos, pi

import pytest

from ddlopt import check_certificate, instances
from ddlopt.certificates.gossip.circulant import exact_bounds
from ddlopt.certificates.gossip.circulant.exact_bounds import _above, exact_circulant_bound
from ddlopt.models.catalogue import problem_of
from ddlopt.models.errors import NotApplicableError, RefutedError
from ddlopt.models.gossip import CirculantGraph, CirculantInstance, evaluate
from ddlopt.solvers.proofs import CombinatorialCertificate


def largest(nodes, degree):
    """Of all sets, whatever they leave free: eigenvalues by the formula."""
    candidates = range(1, nodes // 2 + 1)
    best = 0.0
    for count in range(1, len(candidates) + 1):
        for chosen in combinations(candidates, count):
            if sum(1 if 2 * g == nodes else 2 for g in chosen) <= degree:
                sums = (
                    sum((2 - 2 * cos(2 * pi * k * g / nodes)) / (2 if 2 * g == nodes else 1) for g in chosen)
                    for k in range(1, nodes)
                )
                best = max(best, min(sums))
    return best


@pytest.mark.parametrize("nodes", range(3, 15))
def test_it_is_that_of_the_best_set(nodes):
    for degree in range(2, nodes):
        bound = exact_circulant_bound(CirculantInstance(name="c", nodes=nodes, degree=degree))
        assert float(bound) == pytest.approx(largest(nodes, degree), rel=1e-12, abs=1e-12), degree


def test_no_graph_that_is_checked_exactly_exceeds_it():
    rng = random.Random(1)
    for _ in range(40):
        nodes = rng.randrange(5, 40)
        degree = rng.randrange(2, min(nodes, 7))
        instance = CirculantInstance(name="c", nodes=nodes, degree=degree)
        chosen = tuple(rng.sample(range(1, (nodes + 1) // 2), min(degree // 2, (nodes - 1) // 2)))
        found = evaluate(instance, CirculantGraph(instance="c", generators=chosen), exact=True)
        assert found.feasible
        assert found.objective <= exact_circulant_bound(instance)


def test_cosines_are_enclosed():
    # 2 - 2 cos of pi/3, pi/2, 2 pi/3 and pi are whole; that of pi/4 is 2 less the root of 2.
    unit = Fraction(1, 2**48)
    for turn, whole in (
        (Fraction(1, 3), 1),
        (Fraction(1, 2), 2),
        (Fraction(2, 3), 3),
        (Fraction(1), 4),
        (Fraction(0), 0),
    ):
        assert 0 <= _above(Fraction(turn)) * unit - whole <= unit
    root = 2 - _above(Fraction(1, 4)) * unit
    assert root**2 <= 2 < (root + unit) ** 2
    for place in range(1, 1000):
        value = _above(Fraction(place, 1000)) * unit
        assert 0 <= value - Fraction(2 - 2 * cos(pi * place / 1000)) + Fraction(1, 2**50) <= 2 * unit


@pytest.mark.parametrize("name", ["circulant-n64-d8-gap", "circulant-n64-d12-gap", "circulant-n256-d6-gap"])
def test_best_known_graphs_meet_it(name):
    instance = instances.load(f"gossip/{name}")
    best = problem_of(instance).evaluate(instance, instances.best(f"gossip/{name}"), exact=True).objective
    assert 0 <= exact_circulant_bound(instance) - best <= 1e-9 * best


def test_claims_below_it_are_refused(tmp_path):
    instance = instances.load("gossip/circulant-n64-d8-gap")
    bound = exact_circulant_bound(instance)
    for claim, holds in ((bound, True), (bound + 1, True), (bound - Fraction(1, 2**48), False), (Fraction(-1), False)):
        path = tmp_path / "proof.json.gz"
        CombinatorialCertificate(instance.name, instance.digest, claim).save(path)
        if holds:
            assert check_certificate(instance, path).bound == claim
        else:
            with pytest.raises(RefutedError, match="combinatorial bound"):
                check_certificate(instance, path)


def test_what_is_too_much_is_refused_before_it_is_begun(monkeypatch):
    large = CirculantInstance(name="large", nodes=4096, degree=2047)
    with pytest.raises(NotApplicableError, match="too many sets"):
        exact_circulant_bound(large)
    with pytest.raises(NotApplicableError, match="averaging"):
        exact_circulant_bound(CirculantInstance(name="c", nodes=9, degree=4, goal="averaging"))
    monkeypatch.setattr(exact_bounds, "_MOST_SUMS", 1)
    with pytest.raises(NotApplicableError, match="too many sets"):
        exact_circulant_bound(CirculantInstance(name="c", nodes=9, degree=4))
