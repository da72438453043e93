"""Forged proofs for plans of matchings: whatever is accepted claims no more than a known plan has."""

import copy
from fractions import Fraction

import pytest
from forging import forge

from ddlopt.certificates.gossip.matchings import MatchingsCertificate

NAMES = ("gossip/ring-n8-half", "gossip/matcha-n8-single", "gossip/matcha-n8-100")


def numbers_of(value, path=()):
    """Where whole numbers stand."""
    if isinstance(value, list):
        for place, each in enumerate(value):
            yield from numbers_of(each, (*path, place))
    elif type(value) is int:
        yield path


def forged(rng, data):
    """A proof of which a number, a node or the claim is another one; it claims a little more."""
    data = copy.deepcopy(data)
    nodes, kind = data["nodes"], rng.choice(("number", "number", "number", "drop", "swap", "twice", "none"))
    if kind == "number":
        field = rng.choice(("nodes", "nodes", "symmetries"))
        places = list(numbers_of(data[field]))
        if places:
            *path, last = rng.choice(places)
            inner = data[field]
            for place in path:
                inner = inner[place]
            inner[last] = rng.choice((0, -inner[last], inner[last] + 1, inner[last] * 2, rng.randrange(2**20)))
    elif kind == "drop":
        del nodes[rng.randrange(len(nodes))]
    elif kind == "swap":
        one, other = rng.randrange(len(nodes)), rng.randrange(len(nodes))
        nodes[one], nodes[other] = nodes[other], nodes[one]
    elif kind == "twice":
        nodes.insert(rng.randrange(len(nodes)), copy.deepcopy(rng.choice(nodes)))
    data["claim"] = str(Fraction(data["claim"]) * (1 + rng.choice((0, Fraction(-1, 50), Fraction(1, 8000), 1))))
    return data


@pytest.mark.parametrize("name", NAMES)
def test_forged_proofs_claim_nothing_new(name):
    told = forge(name, 80, MatchingsCertificate, forged)
    assert told["long"] == 0
    assert told["accepted"] > 5
    assert told["refuted"] > 20


@pytest.mark.slow
def test_many_forged_proofs_claim_nothing_new():
    told = forge("gossip/matcha-n8-20", 600, MatchingsCertificate, forged) + forge(
        "gossip/ring-n8-half", 2000, MatchingsCertificate, forged
    )
    assert told["accepted"] > 100
    assert told["refuted"] > 1000
