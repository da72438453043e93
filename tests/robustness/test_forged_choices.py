"""Forged proofs by choices of strategies: whatever is accepted claims no more than a known plan takes."""

import copy
from fractions import Fraction

import pytest
from forging import forge

from ddlopt.certificates.codesign import ChoiceCertificate

CLAIMS = (0, 0, Fraction(-1, 50), Fraction(1, 20_000), Fraction(1, 9_000), Fraction(1, 100), 1)
ARRAYS = ("words", "part_words", "lengths", "prices", "images")


def forged(rng, data):
    """A proof with another job, another number in a job's design, or another claim."""
    jobs = copy.deepcopy(data["jobs"])
    job = rng.choice(jobs)
    kind = rng.choice(("none", "drop", "twice", "strategy", "swap", "bound", "number", "number", "row", "odd"))
    if kind == "drop":
        jobs.remove(job)
    elif kind == "twice":
        jobs.append(job)
    elif kind == "strategy":
        place = rng.randrange(len(job["choices"]))
        job["choices"][place] = rng.choice((0, job["choices"][place] + 1, 2**31 - 1, -1, None, True))
    elif kind == "swap":
        other = rng.choice(jobs)
        job["choices"], other["choices"] = other["choices"], job["choices"]
    elif kind == "bound":
        name, more = rng.choice(("unit_exponent", "bound_units")), rng.choice((1, -1, 10, 2**20))
        job["design"][name] += more
    elif kind in ("number", "row"):
        table = job["design"][rng.choice(ARRAYS)]
        if table:
            place = rng.randrange(len(table))
            row = table[place] if isinstance(table[place], list) else table
            place = rng.randrange(len(row))
            if kind == "number":
                row[place] = rng.choice((row[place] + 1, row[place] - 1, -row[place], row[place] * 2, 0))
            else:
                del row[place]
    elif kind == "odd":
        job[rng.choice(("choices", "design"))] = rng.choice((None, [], {}, 0, "0", [[0]], [2**63]))
    return data | {"jobs": jobs, "claim": str(Fraction(data["claim"]) * (1 + rng.choice(CLAIMS)))}


@pytest.mark.parametrize("name", ["codesign/tiny-cosets-n6-d2", "codesign/tiny-factors-n6-d3"])
def test_forged_proofs_claim_nothing_new(name):
    told = forge(name, 15, ChoiceCertificate, forged)
    assert told["long"] == 0
    assert min(told["accepted"], told["refuted"], told["odd"]) >= 1


@pytest.mark.slow
def test_many_forged_proofs_claim_nothing_new():
    told = forge("codesign/tiny-cosets-n6-d2", 400, ChoiceCertificate, forged)
    assert told["long"] == 0
    assert min(told["accepted"], told["refuted"], told["odd"]) > 30
