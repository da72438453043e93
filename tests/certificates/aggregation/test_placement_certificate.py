"""Proofs for placements in registers: what is accepted is no more than the best of all placements has."""

import itertools
import json
from fractions import Fraction

import numpy as np
import pytest
from refusals import one_line
from volume import for_each, slow

import ddlopt
from ddlopt import instances
from ddlopt.certificates.aggregation.registers.certificate import PlacementCertificate
from ddlopt.instances.library import certificates
from ddlopt.models.aggregation import RegisterInstance
from ddlopt.models.errors import NotApplicableError, RefutedError, SolutionError, SolverError
from ddlopt.solvers import proofs

NAME = "aggregation/registers-tiny-collisions-n8-r3"
TINY = instances.load(NAME)
GOOD = PlacementCertificate(TINY.name, TINY.digest, Fraction(33), list(range(8)))


def proven(instance, claim, order):
    certificate = PlacementCertificate(instance.name, instance.digest, Fraction(claim), [int(i) for i in order])
    return proofs.check(instance, certificate).bound


def random_instance(rng):
    """Few parameters; arrays may differ, batches may be equal, of one parameter or of all."""
    n, arrays = int(rng.integers(3, 7)), int(rng.integers(2, 4))
    even = -(-n // arrays)
    capacity = [int(c) for c in rng.integers(0, even + 2, arrays)]
    capacity[0] += max(0, n - sum(capacity))
    batches = [
        tuple(int(i) for i in rng.permutation(n)[: rng.integers(1, n + 1)]) for _ in range(int(rng.integers(1, 8)))
    ]
    whole = rng.random() < 0.5
    return RegisterInstance(
        name="random",
        parameters=n,
        arrays=arrays,
        capacity=even if rng.random() < 0.5 else tuple(capacity),
        entries=arrays,
        batches=(*batches, batches[0]),
        weights=() if whole else tuple(float(w) for w in rng.integers(1, 9, len(batches) + 1) / 4),
        goal="collisions",
    )


def optimum(instance):
    """By all placements, from the objective's definition."""
    best = None
    for place in itertools.product(range(instance.arrays), repeat=instance.parameters):
        if any(place.count(r) > capacity for r, capacity in enumerate(instance.capacities)):
            continue
        cost = sum(
            Fraction(weight) * sum(place[i] == place[j] for i, j in itertools.combinations(batch, 2))
            for batch, weight in zip(instance.batches, instance.batch_weights, strict=True)
        )
        best = cost if best is None else min(best, cost)
    return best


@for_each("seed", range(60))
def test_the_optimum_is_proven_and_nothing_above_it(seed):
    rng = np.random.default_rng(seed)
    instance = random_instance(rng)
    best, order = optimum(instance), rng.permutation(instance.parameters)
    assert proven(instance, best, order) == best
    for more in (Fraction(1, 1000), Fraction(1), Fraction(10**300)):
        with one_line(RefutedError, "of 'random' a placement is left"):
            proven(instance, best + more, order)


@for_each("seed", range(10))
def test_weights_that_are_rounded_prove_a_little_less(seed):
    rng = np.random.default_rng(seed)
    drawn = random_instance(rng)
    weights = [float(w) for w in 10.0 ** int(rng.integers(-90, 90)) * rng.uniform(0.1, 1, len(drawn.batches))]
    instance = RegisterInstance.from_data(drawn.model_dump() | {"weights": weights})
    best, order = optimum(instance), range(instance.parameters)
    assert proven(instance, best * (1 - Fraction(1, 10**9)), order)
    with one_line(RefutedError, "is left"):
        proven(instance, best * (1 + Fraction(1, 10**9)) + (best == 0), order)


def test_beginnings_are_counted_whatever_is_looked_at_at_once(monkeypatch):
    whole = GOOD.check(TINY, lambda: False)
    monkeypatch.setattr("ddlopt.certificates.aggregation.registers.certificate._PORTION", 5000)
    assert GOOD.check(TINY, lambda: False) == whole > 0


def test_full_arrays_take_no_more():
    """One parameter is with each of three others in a batch: there is no pair only if these fit into one array."""
    batches = [(0, 1), (0, 2), (0, 3)]
    for capacity, pairs in (((2, 2), 1), ((1, 3), 0), ((3, 1), 0)):
        star = RegisterInstance(
            name="star", parameters=4, arrays=2, capacity=capacity, entries=2, batches=batches, goal="collisions"
        )
        assert proven(star, pairs, range(4)) == pairs == optimum(star)
        with one_line(RefutedError, "of 'star' a placement is left"):
            proven(star, pairs + 1, range(4))


def test_small_instances_are_certified(tmp_path):
    result, certificate = ddlopt.certify(NAME, out=tmp_path / "proof.json.gz")
    assert isinstance(certificate, PlacementCertificate)
    assert (str(result.status), str(result.evidence)) == ("optimal", "certificate")
    assert ddlopt.check_certificate(NAME, tmp_path / "proof.json.gz").bound == certificate.claim


@pytest.mark.parametrize("name", [NAME, slow("aggregation/registers-n40-r8-collisions")])
def test_a_bundled_one_holds(name):
    found = ddlopt.check_certificate(name, certificates.file_of(name))
    objective = ddlopt.check(name, instances.best(name), exact=True).objective
    assert objective * Fraction(9999, 10_000) <= found.bound <= objective


@for_each(
    "changed, error, line",
    [
        ({"order": [0, 1]}, RefutedError, "the order has 2 parameters, but there are 8"),
        ({"claim": "34"}, RefutedError, "the claim of 34 pairs does not follow"),
        ({"order": [0, 1, 1]}, SolutionError, "order has each parameter from 0 on once"),
        ({"order": [0, 1, True]}, SolutionError, "order has each parameter from 0 on once"),
        ({"order": []}, SolutionError, "order is a list of 1 to"),
        ({"order": None}, SolutionError, "order is a list of 1 to"),
        ({"claim": "1" + 400 * "0"}, SolutionError, "the claim is beyond what a number can be"),
        ({"claim": "nan"}, SolutionError, "the claim a fraction"),
        ({"more": 1}, SolutionError, "expected the fields"),
    ],
)
def test_what_proves_nothing(changed, error, line):
    with one_line(error, line):
        proofs.check(TINY, PlacementCertificate.from_data(json.loads(GOOD.text) | changed))


def test_what_is_not_gone_through():
    with one_line(NotApplicableError, "for few collisions"):
        proven(instances.load("aggregation/registers-tiny-n8-r3"), 1, range(8))
    wide = RegisterInstance(
        name="wide", parameters=300, arrays=300, capacity=1, entries=1, batches=[(0, 1)], goal="collisions"
    )
    with one_line(NotApplicableError, "300 parameters in 300 arrays are too many"):
        proven(wide, 0, range(300))


@pytest.mark.parametrize("claim", [-1, 0])
def test_claims_that_say_nothing(claim):
    assert proven(TINY, claim, range(8)) == claim


def test_long_checks_are_given_up():
    name = "aggregation/registers-n24-r8-collisions"
    instance = instances.load(name)
    certificate = PlacementCertificate(instance.name, instance.digest, Fraction(265), list(range(24)))
    with one_line(SolverError, "given up after 0.01 s"):
        ddlopt.check_certificate(name, certificate, time_limit=0.01)
