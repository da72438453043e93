"""Forged proofs by prices: whatever is accepted claims no less than a known schedule has."""

import copy
import json
from fractions import Fraction

import pytest
from forging import forge
from volume import slow

import ddlopt
from ddlopt import instances
from ddlopt.certificates.scheduling import PriceCertificate
from ddlopt.frontier.scheduling.prove import prove
from ddlopt.models.errors import DdloptError

CLAIMS = (0, 0, Fraction(1, 50), Fraction(-1, 11_000), Fraction(-1, 9_000), Fraction(-1, 100), -1)
KINDS = ("none", "price", "price", "surplus", "surplus", "move", "drop", "odd", "free", "scale")


def forged(rng, data):
    """A proof of which some numbers are others."""
    prices, surplus = [list(row) for row in data["prices"]], list(data["surplus"])
    kind, slot, job = rng.choice(KINDS), rng.randrange(len(prices)), rng.randrange(len(surplus))
    factor = rng.choice((0, Fraction(1, 2), Fraction(9999, 10_000), Fraction(10_001, 10_000), 2, 2**70))
    scale = data["scale"]
    match kind:
        case "price":
            prices[slot] = [int(price * factor) for price in prices[slot]]
        case "surplus":
            surplus[job] = int(surplus[job] * factor)
        case "move":
            other = rng.randrange(len(surplus))
            surplus[job], surplus[other] = surplus[other], surplus[job]
        case "drop":
            del rng.choice((prices, surplus))[0]
        case "odd":
            rng.choice((prices[slot], surplus))[0] = rng.choice((-1, None, 0.0, "0", True, float("nan")))
        case "free":
            prices = [[0] * len(row) for row in prices]
        case "scale":
            scale = max(1, int(scale * factor))
    claim = str(Fraction(data["claim"]) * (1 + rng.choice(CLAIMS)))
    return data | {"scale": scale, "prices": prices, "surplus": surplus, "claim": claim} | charged(rng, data)


def charged(rng, data):
    """Charges, where there are any, of which sometimes one is another, missing or odd."""
    if "charges" not in data:
        return {}
    charges = copy.deepcopy(data["charges"])
    row = rng.choice([row for slot in charges for row in slot if row])
    match rng.choice(("none", "less", "more", "drop", "odd", "free")):
        case "less":
            row[:] = [each // 2 for each in row]
        case "more":
            row[:] = [each + data["scale"] // 100 for each in row]
        case "drop":
            del rng.choice((row, charges))[0]
        case "odd":
            row[0] = rng.choice((-1, None, 0.0, "0", True, float("nan"), []))
        case "free":
            return {}
    return {"charges": charges}


@pytest.mark.parametrize("name", ["scheduling/elastic-j10-t10-g8", "scheduling/energy-j20-t20-g16"])
def test_forged_prices_prove_nothing_new(name):
    told = forge(name, 20, PriceCertificate, forged, DdloptError)
    assert told["long"] == 0
    assert min(told["accepted"], told["refuted"], told["odd"]) >= 1


@pytest.mark.parametrize("what", [slow("change"), slow("runs"), "types"])
def test_forged_prices_of_plans_that_are_kept_or_on_types_prove_nothing_new(what):
    name = f"scheduling/{what}-j20-t20-g16"
    instance, best = instances.load(name), instances.best(name)
    known = Fraction(ddlopt.check(instance, best, exact=True).objective)
    proof = prove(instance, best, known * (1 + Fraction(1, 500)), lambda: False)
    assert proof is not None
    count = 20 if what == "types" else 40
    told = forge(name, count, PriceCertificate, forged, DdloptError, data=json.loads(proof.text))
    assert told["long"] == 0
    assert min(told["accepted"], told["refuted"], told["odd"]) >= 1


def test_forged_charges_prove_nothing_new():
    told = forge("scheduling/change-j20-t20-g16", 12, PriceCertificate, forged, DdloptError)
    assert told["long"] == 0
    assert min(told["refuted"], told["odd"]) >= 1


@pytest.mark.slow
def test_many_forged_prices_prove_nothing_new():
    told = forge("scheduling/fair-j20-t20-g16", 300, PriceCertificate, forged, DdloptError) + forge(
        "scheduling/philly-hour-j49-t48-g32", 300, PriceCertificate, forged, DdloptError
    )
    assert told["long"] == 0
    assert min(told["accepted"], told["refuted"], told["odd"]) > 30
