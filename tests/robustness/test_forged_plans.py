"""Forged proofs for plans: whatever is accepted claims no more than a known plan takes."""

import json
import random
from collections import Counter
from fractions import Fraction
from gzip import decompress

import pytest

import ddlopt
from ddlopt import instances
from ddlopt.instances.library import certificates
from ddlopt.models.deployment.plan.certificate import PlanCertificate
from ddlopt.models.errors import RefutedError, SolutionError

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


def forge(name, count):
    """How many forgeries were accepted and refused."""
    rng, instance, told = random.Random(name), instances.load(name), Counter()
    path = certificates.file_of(name)
    assert path is not None
    data = json.loads(decompress(path.read_bytes()))
    known = ddlopt.check(instance, instances.best(name), exact=True).objective
    for _ in range(count):
        changed = forged(rng, data)
        try:
            claimed = ddlopt.check_certificate(instance, PlanCertificate.from_data(changed)).bound
        except SolutionError as refused:
            told["refuted" if isinstance(refused, RefutedError) else "odd"] += 1
            told["long"] += "\n" in str(refused)
            assert sorted(map(repr, changed["order"])) != sorted(map(repr, data["order"])) or (
                Fraction(changed["claim"]) > known
            )
        else:
            assert claimed <= known
            told["accepted"] += 1
    return told


@pytest.mark.parametrize("name", ["deployment/tiny-g2-m2-s1", "deployment/tiny-g3-m3-s3"])
def test_forged_proofs_claim_nothing_new(name):
    told = forge(name, 40)
    assert told["long"] == 0
    assert min(told["accepted"], told["refuted"], told["odd"]) >= 3


@pytest.mark.slow
def test_many_forged_proofs_claim_nothing_new():
    told = forge("deployment/tiny-g3-m2-s2", 800) + forge("deployment/tiny-g4-m3-s5", 5)
    assert told["long"] == 0
    assert min(told["accepted"], told["refuted"], told["odd"]) > 50
