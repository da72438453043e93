"""What all kinds of proofs have in their files, at its limits."""

import json
from fractions import Fraction

import pytest
from refusals import one_line

from ddlopt.certificates.gossip.weights.certificate import SpectralCertificate
from ddlopt.certificates.own import fault_of_order
from ddlopt.models.errors import SolutionError

DATA = json.loads(SpectralCertificate("x", "0" * 64, Fraction(1, 2), ((1, 0, -1),)).text)


@pytest.mark.parametrize("sign", [1, -1])
def test_claims_are_below_what_a_number_can_be(sign):
    most = 2**1023
    assert SpectralCertificate.from_data(DATA | {"claim": str(sign * (most - 1))}).claim == sign * (most - 1)
    with one_line(SolutionError, "the claim is beyond what a number can be"):
        SpectralCertificate.from_data(DATA | {"claim": str(sign * most)})


@pytest.mark.parametrize(
    ("order", "fault"),
    [
        ([0], None),
        ([2, 0, 1], None),
        ([], "order is a list of 1 to"),
        ((0, 1), "order is a list of 1 to"),
        (None, "order is a list of 1 to"),
        ([1], "order has each group from 0 on once"),
        ([0, 0], "order has each group from 0 on once"),
        ([0, 1.0], "order has each group from 0 on once"),
        ([False, 1], "order has each group from 0 on once"),
    ],
)
def test_an_order_has_each_once(order, fault):
    found = fault_of_order(order, "group")
    assert found is None if fault is None else fault in found
