"""Labels of the wire that may be interrupted: what they prove of all orders and parts, and what they do not."""

import json
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from forward_brute_force import optimum_of, tiny
from timeline_brute_force import brute_force
from volume import for_each, seeds

import ddlopt
from ddlopt.certificates.compression.forward.certificate import ForwardCertificate
from ddlopt.certificates.linear import LinearCertificate
from ddlopt.frontier.compression.forward.prove import prove
from ddlopt.models.compression import evaluate
from ddlopt.models.compression.forward.bounds import priority_timeline
from ddlopt.models.errors import RefutedError, SolutionError
from ddlopt.solvers import proofs

ABOVE = Fraction(1, 10**5)


def proven(instance, claim):
    made = prove(instance, None, claim, lambda: False)
    return made and ForwardCertificate.from_data(json.loads(made.text))


@for_each("seed", seeds(6, 100))
def test_the_relaxation_is_proven_and_nothing_beyond_the_optimum(seed):
    instance = tiny(np.random.default_rng(seed), budget=bool(seed % 2))
    relaxed = priority_timeline(instance)
    _, answer = brute_force(relaxed)
    least, optimum = evaluate(relaxed, answer, exact=True).objective, optimum_of(instance)
    found = proven(instance, least * (1 - ABOVE))
    assert proofs.check(instance, found).bound == found.claim
    assert found.claim < optimum
    assert proven(instance, least * (1 + ABOVE)) is None
    for claim in (least * (1 + ABOVE), optimum * (1 + ABOVE), 2 * optimum):
        with pytest.raises(RefutedError):
            proofs.check(instance, replace(found, claim=claim))


def test_what_is_proven_of_the_timeline_is_proven_of_it_alone():
    """The forward pass after it is no part of the timeline."""
    instance = tiny(np.random.default_rng(1))
    found = proven(instance, optimum_of(instance) / 2)
    with pytest.raises(SolutionError, match="not of"):
        proofs.check(instance.timeline, found)


def test_orders_that_matter_go_on_to_a_tree():
    name = "compression/forward-tiny-g6-whole"
    result, certificate = ddlopt.certify(name)
    assert result.gap <= 1e-4
    assert isinstance(certificate, LinearCertificate)
