"""Forged proofs for plans: whatever is accepted claims no more than a known plan takes."""

from fractions import Fraction

import pytest
from forging import forge

from ddlopt.certificates.deployment.plan import PlanCertificate

CLAIMS = (0, 0, Fraction(-1, 50), Fraction(1, 20_000), Fraction(1, 9_000), Fraction(1, 100), 1)


def forged(rng, data):
    """A proof of which the order or the claim is another one."""
    order, kind = list(data["order"]), rng.choice(("shuffle", "shuffle", "number", "drop", "twice", "none"))
    place = rng.randrange(len(order))
    if kind == "shuffle":
        rng.shuffle(order)
    elif kind == "number":
        order[place] = rng.choice((-1, order[place] + 1, 2**63, None, 0.0, "0"))
    elif kind == "drop":
        del order[place]
    elif kind == "twice":
        order.append(order[place])
    return data | {"order": order, "claim": str(Fraction(data["claim"]) * (1 + rng.choice(CLAIMS)))}


def rightly(changed, data, known):
    """Any order of all groups proves what holds."""
    return sorted(map(repr, changed["order"])) != sorted(map(repr, data["order"])) or Fraction(changed["claim"]) > known


@pytest.mark.parametrize("name", ["deployment/tiny-g2-m2-s1", "deployment/tiny-g3-m3-s3"])
def test_forged_proofs_claim_nothing_new(name):
    told = forge(name, 40, PlanCertificate, forged, rightly=rightly)
    assert told["long"] == 0
    assert min(told["accepted"], told["refuted"], told["odd"]) >= 3


@pytest.mark.slow
def test_many_forged_proofs_claim_nothing_new():
    told = forge("deployment/tiny-g3-m2-s2", 800, PlanCertificate, forged, rightly=rightly) + forge(
        "deployment/tiny-g4-m3-s5", 5, PlanCertificate, forged, rightly=rightly
    )
    assert told["long"] == 0
    assert min(told["accepted"], told["refuted"], told["odd"]) > 50
