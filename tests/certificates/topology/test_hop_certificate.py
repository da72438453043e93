"""Proofs by listing digraphs with few hops: what they prove, and what a forger may not."""

import json
import random
from collections import Counter
from fractions import Fraction

import numpy as np
import pytest
from refusals import one_line
from topology_cases import all_to_all, job
from volume import for_each

import ddlopt
from ddlopt import instances
from ddlopt.certificates.topology.hops.certificate import LONGEST, HopCertificate
from ddlopt.certificates.topology.hops.listing import key_of, least_hops
from ddlopt.frontier.topology.prove import prove
from ddlopt.models.errors import DdloptError, NotApplicableError, RefutedError, SolutionError

OPTIMA = {5: Fraction(3), 6: Fraction(21, 5), 7: Fraction(11, 2), 8: Fraction(20, 3), 9: Fraction(41, 5)}
"""Seconds of the busiest link with two ports, one byte for each pair."""
NEARLY = 1 - Fraction(1, 10**5)


def never():
    return False


@for_each("servers", OPTIMA)
def test_the_optimum_is_proven_and_nothing_above_it(servers):
    instance, optimum = instances.load(f"topology/all-to-all-n{servers}-d2"), OPTIMA[servers]
    proof = prove(instance, None, optimum * NEARLY, never)
    if proof is None:
        # The Moore bound says it without any list.
        assert optimum == Fraction(least_hops(servers, 2), 2 * servers)
    else:
        assert ddlopt.check_certificate(instance, proof).bound == optimum * NEARLY
        assert HopCertificate.from_data(json.loads(proof.text)) == proof
    assert prove(instance, None, optimum * (1 + Fraction(1, 10**4)), never) is None


@pytest.mark.parametrize("overlap", ["none", "full"])
def test_computation_bytes_and_bandwidth_count(overlap):
    plain = all_to_all(6)
    changed = {"compute_s": 2.5, "overlap": overlap, "link_bandwidth_bytes_per_s": 4.0, "parallel_links": False}
    instance = plain.model_copy(update=changed | {"traffic_bytes": 10 * plain.traffic_bytes})
    optimum = Fraction(21, 5) * 10 / 4 + (0 if overlap == "full" else Fraction(5, 2))
    proof = prove(instance, None, optimum * NEARLY, never)
    assert proof is not None
    assert ddlopt.check_certificate(instance, proof).bound == optimum * NEARLY
    assert prove(instance, None, optimum * (1 + Fraction(1, 10**4)), never) is None


@pytest.mark.parametrize(("reduced", "optimum"), [(0.0, 4.0), (0.3, 4.13125), (5.0, 6.7578125)])
def test_duplex_links_beside_an_all_reduce(reduced, optimum):
    # Optima of the branch and bound, which takes ten seconds for each.
    groups = [(tuple(range(8)), reduced)] if reduced else []
    instance = all_to_all(8, 3, optics="duplex", groups=groups, compute_s=1.0)
    target = (1 + Fraction(optimum)) * NEARLY
    proof = prove(instance, None, target, never)
    assert proof is not None
    assert ddlopt.check_certificate(instance, proof).bound == target
    assert prove(instance, None, target * (1 + Fraction(1, 10**3)), never) is None


@for_each(
    ("instance", "reason"),
    [
        (all_to_all(5, optics="duplex"), "use all ports"),
        (all_to_all(4, host_forwarding=False), "use all ports"),
        (all_to_all(4, groups=[((0, 1, 2), 3.0)]), "not all servers are symmetric"),
        (job(np.array([[0.0, 2.0, 1.0], [1.0, 0.0, 1.0], [1.0, 1.0, 0.0]])), "not the same for all pairs"),
        (all_to_all(40, 4), "sets of 4 neighbours"),
    ],
)
def test_what_is_not_listed_is_refused(instance, reason):
    assert prove(instance, None, Fraction(1000), never) is None
    proof = HopCertificate(instance.name, instance.digest, Fraction(1), 0, [], [])
    with one_line(NotApplicableError, reason):
        ddlopt.check_certificate(instance, proof)


def test_keys_are_tables_of_copies():
    rng = np.random.default_rng(1)
    for _ in range(20):
        arcs = rng.integers(0, 3, (7, 7))
        order = rng.permutation(7)
        assert key_of(arcs) == key_of(arcs[np.ix_(order, order)])
        other = arcs.copy()
        other[0, 1] += 256
        assert key_of(arcs) != key_of(other)


NAME = "topology/all-to-all-n6-d2"
INSTANCE = instances.load(NAME)
GOOD = json.loads(prove(INSTANCE, None, OPTIMA[6] * NEARLY, never).text)


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"excess": -1}, "excess is a whole number"),
        ({"excess": True}, "excess is a whole number"),
        ({"excess": 2.0}, "excess is a whole number"),
        ({"excess": 10**7}, "excess is a whole number"),
        ({"excess": GOOD["excess"] - 1}, "no more than"),
        ({"excess": GOOD["excess"] + 1}, "is not among those of the proof"),
        ({"heads": None}, "heads has a list for each server"),
        ({"heads": [[[-1, 1]] * 6]}, "heads has a list for each server"),
        ({"heads": [[[0.5, 1]] * 6]}, "heads has a list for each server"),
        ({"heads": [[[6, 1]] * 6] * 5}, "leads to server 6, but there are 6"),
        ({"heads": GOOD["heads"][1:]}, "digraphs have lengths for"),
        ({"heads": GOOD["heads"][1:], "lengths": GOOD["lengths"][1:]}, "is not among those of the proof"),
        ({"heads": [rows[1:] for rows in GOOD["heads"]]}, "heads[0] has other sizes than 6 servers with 2 links each"),
        ({"lengths": [[[1]] * 6] * 5}, "lengths[0] has other sizes than 6 servers with 2 links each"),
        ({"lengths": [[[LONGEST + 1, 1]] * 6] * 5}, "lengths has a list for each server"),
        ({"lengths": [[[0, 0]] * 6] * 5}, "no more than 0 s"),
        ({"claim": "21/5"}, "less than the claim of 4.2"),
        ({"claim": "inf"}, "the claim a fraction"),
        ({"more": 1}, "is no hops certificate"),
    ],
)
def test_hostile_files_are_refused_in_a_line(changed, words, tmp_path):
    path = tmp_path / "proof.json"
    path.write_text(json.dumps(GOOD))
    assert ddlopt.check_certificate(NAME, path).bound == OPTIMA[6] * NEARLY
    path.write_text(json.dumps(GOOD | changed))
    with one_line((SolutionError, RefutedError), words):
        ddlopt.check_certificate(NAME, path)


def forged(rng):
    """A proof of which some numbers are others."""
    data = json.loads(json.dumps(GOOD))
    for _ in range(rng.randrange(1, 4)):
        place, server, link = rng.randrange(len(data["heads"])), rng.randrange(6), rng.randrange(2)
        match rng.choice(("head", "length", "scale", "drop", "copy", "excess", "shorter")):
            case "head":
                data["heads"][place][server][link] = rng.randrange(6)
            case "length":
                data["lengths"][place][server][link] = rng.choice((0, 1, rng.randrange(LONGEST), LONGEST))
            case "scale":
                data["lengths"][place] = [[each // 3 for each in row] for row in data["lengths"][place]]
            case "drop":
                for name in ("heads", "lengths"):
                    data[name] = data[name][:place] + data[name][place + 1 :] or data[name]
            case "copy":
                data["heads"][place] = data["heads"][0]
            case "excess":
                data["excess"] += rng.choice((-1, 1))
            case "shorter":
                del data["lengths"][place][server]
                break
    return data | {"claim": str(Fraction(data["claim"]) * rng.choice((1, 1, NEARLY, Fraction(11, 10), Fraction(1, 2))))}


def test_forgeries_prove_nothing_new():
    rng, told = random.Random(0), Counter()
    for _ in range(400):
        try:
            claimed = ddlopt.check_certificate(INSTANCE, HopCertificate.from_data(forged(rng))).bound
        except DdloptError as refused:
            told["long"] += "\n" in str(refused)
            told["refused"] += 1
        else:
            assert claimed <= OPTIMA[6]
            told["accepted"] += 1
    assert told["long"] == 0
    assert min(told["refused"], told["accepted"]) > 20
