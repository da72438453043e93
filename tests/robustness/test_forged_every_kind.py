"""Every kind of proof, changed anywhere in its file: what is accepted claims no more than a known solution has.

The forger knows nothing of what stands in a file: it changes numbers, texts, lists and fields of its JSON. Kits beside
this one know their kind.
"""

import functools
import gzip
import json
import random
from collections import Counter
from fractions import Fraction

import lane_brute_force
import numpy as np
import pytest
from refusals import one_line
from volume import slow

import ddlopt
from ddlopt import instances
from ddlopt.certificates.own import own_certificate
from ddlopt.frontier.linear_proof.tree import prove
from ddlopt.instances.library import certificates
from ddlopt.models.catalogue import problems
from ddlopt.models.errors import DdloptError, RefutedError, SolutionError, SolverError
from ddlopt.solvers import proofs

BUNDLED = {
    "combinatorial": "topology/bert-n12-d4",
    "prices": "scheduling/elastic-j10-t10-g8",
    "labels of timelines": "compression/bert-base-n8-10g-budget-fusion",
    "labels of levels": "compression/levels-resnet50-powersgd",
    "labels of forward passes": "compression/forward-vgg16-n8x8-25g",
    "spectral": "gossip/wheel-n5-chain",
    "matchings": "gossip/ring-n8-half",
    "plans": "deployment/tiny-g2-m2-s1",
    "device sets": "deployment/partition-training-n40-k3",
    "stages": "deployment/pipeline-random-l8-k8",
    "choices": "codesign/tiny-factors-n6-d3",
    "tree": "scheduling/tiny-pollux",
    "sets of collectives": "topology/all-reduce-path-4",
    "prices of collectives": "topology/all-to-all-circulant-8-1-3",
}
"""The file in the library of an instance."""
MADE = {"hops": "topology/all-to-all-n6-d2", "placements": "aggregation/registers-tiny-collisions-n8-r3",
        "uniform plans": "deployment/step-tiny-l4-k4",
        "tree with fixing": "aggregation/hot-tiny-p9-s2", "tree with cuts": "aggregation/hot-tiny-p9-s2"}  # fmt: skip
"""What no small file of the library has, made here."""
LANES = lane_brute_force.random_lane_case(np.random.default_rng(10), fusion=True, goal="time", budget=True)
ALL = BUNDLED | MADE | {"labels of lanes": LANES}
NUMBERS = (0, 1, -1, 2, 2**31, 2**63, -(2**64), 2**4000, 0.5, 1e308, None, True, "1", [], {})
TEXTS = ("", "0", "1/0", "3/-4", "-3/4", "nan", "inf", "-inf", "1e999999999", "1_0", " 1", "٣", "1" * 5000, "0x1", 7)


@functools.cache
def file_of(kind):
    """What the file of a kind has."""
    name = ALL[kind]
    if kind in BUNDLED:
        return json.loads(gzip.decompress(certificates.file_of(name).read_bytes()))
    instance = ddlopt.load(name)
    if kind in ("hops", "placements", "uniform plans", "labels of lanes"):
        return json.loads(proofs.prove(instance, best(name), 1e-4, None, trees=False)[0].text)
    data = json.loads(proofs.prove(instance, instances.best(name), 1e-4, None, "exact")[0].text)
    if kind == "tree with cuts":
        return data
    claim = data.pop("cutoff")
    del data["cuts"]
    model = proofs._model(instance, proofs.formulation_by(instance, "exact"))
    return data | {"version": 2, "claim": claim, "nodes": prove(model, Fraction(claim), None, cuts=False).nodes}


def best(name):
    """The best known solution; of what is not bundled the optimum."""
    return instances.best(name) if isinstance(name, str) else lane_brute_force.brute_force(name)[1]


@functools.cache
def known(kind):
    return Fraction(ddlopt.check(ALL[kind], best(ALL[kind]), exact=True).objective)


def places(value, path=()):
    """Paths of all that stands in JSON, of long lists some."""
    yield path
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, each in items:
        yield from places(each, (*path, key))


def put(value, path, new):
    """The same JSON with something else at a path; ``new(old)`` says what."""
    if not path:
        return new(value)
    changed = dict(value) if isinstance(value, dict) else list(value)
    changed[path[0]] = put(changed[path[0]], path[1:], new)
    return changed


def forged(rng, data):
    """The file with one to three changes, often with a claim that is better."""
    for _ in range(rng.randrange(1, 4)):
        # Each field as often as each other, however long they are.
        field = rng.choice(sorted(set(data) - {"claim"}))
        path = rng.choice(list(places(data[field], (field,))))
        data = put(data, path, lambda old: another(rng, old))
    if rng.random() < 0.7:
        claim = rng.choice((Fraction(1, 10**6), Fraction(1, 1000), Fraction(1, 3), 2, -1)) * rng.choice((1, -1))
        data = data | {"claim": str(Fraction(data["claim"]) * (1 + claim))}
    return data


def another(rng, old):
    """Something else in place of what stands in a file."""
    if isinstance(old, bool) or old is None or isinstance(old, dict):
        return rng.choice(NUMBERS)
    if isinstance(old, int):
        return rng.choice((old + 1, old - 1, -old, 2 * old, old // 2, *NUMBERS))
    if isinstance(old, str):
        return rng.choice((old[:-1], old + "0", old[::-1], *TEXTS))
    if isinstance(old, list):
        changed = list(old)
        match rng.choice(("drop", "twice", "swap", "odd", "empty")):
            case "drop" if old:
                del changed[rng.randrange(len(old))]
            case "twice" if old:
                changed.insert(rng.randrange(len(old)), rng.choice(old))
            case "swap" if old:
                rng.shuffle(changed)
            case "odd":
                changed.insert(rng.randrange(len(old) + 1), rng.choice(NUMBERS))
            case _:
                changed = []
        return changed
    return rng.choice(NUMBERS)


def accepts(kind, text, path, time_limit=20.0):
    """What the checker makes of a file; what it accepts claims no more than is known."""
    name = ALL[kind]
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    try:
        found = ddlopt.check_certificate(name, path, time_limit=time_limit)
    except SolverError:
        return "given up"
    except DdloptError as refused:
        return "long" if "\n" in str(refused) else "refuted" if isinstance(refused, RefutedError) else "odd"
    sign = 1 if ddlopt.load(name).sense == "minimize" else -1
    assert sign * found.bound <= sign * known(kind)
    return "accepted"


def test_every_kind_is_here():
    own = {own_certificate(path) for path in problems()} - {None}
    assert {each.format for each in own} <= {file_of(kind)["format"] for kind in ALL}
    assert {file_of(kind).get("version") for kind in ALL if "tree" in kind} == {1, 2, 3}


@pytest.mark.parametrize("kind", ALL)
@pytest.mark.parametrize("count", [9, slow(1500)])
def test_changed_anywhere_nothing_new_is_proven(kind, count, tmp_path):
    rng, told, data = random.Random(kind), Counter(), file_of(kind)
    path = tmp_path / "proof.json"
    assert accepts(kind, json.dumps(data), path, None) == "accepted"
    for _ in range(count):
        told[accepts(kind, json.dumps(forged(rng, data)), path)] += 1
    assert told["odd"] + told["refuted"] > count / 3
    assert not told["long"]


@pytest.mark.parametrize("kind", ALL)
def test_contents_that_are_none(kind, tmp_path):
    path, data = tmp_path / "proof.json", file_of(kind)
    text, claim = json.dumps(data), json.dumps(data["claim"])
    twice = text.replace(f'"claim": {claim}', f'"claim": {claim}, "claim": {claim}', 1)
    assert twice != text
    contents = {
        "a field twice": twice,
        "cut off": text[: len(text) // 2],
        "something behind": text + "{}",
        "deep": '{"format": ' + "[" * 100_000,
        "not a number": text.replace(claim, "NaN", 1),
        "not in UTF-8": text.encode() + b"\xff",
        "packed and cut off": gzip.compress(text.encode())[:-5],
        "another instance's digest": json.dumps(data | {"instance_digest": "0" * 64}),
        "no digest": json.dumps(data | {"instance_digest": None}),
        "a field more": json.dumps(data | {"note": "trust me"}),
        **{f"claim {each!r:.20}": json.dumps(data | {"claim": each}) for each in TEXTS if each not in ("0", "-3/4")},
    }
    for content, told in contents.items():
        assert accepts(kind, told, path) == "odd", content


def test_names_prove_nothing(tmp_path):
    """A file of one instance with another one's name, or with its digest, too."""
    other, path = instances.load("scheduling/tiny-capped"), tmp_path / "proof.json"
    path.write_text(json.dumps(file_of("tree") | {"instance": other.name}))
    with one_line(SolutionError, "is of 'tiny-capped'"):
        ddlopt.check_certificate(other, path)
    path.write_text(json.dumps(file_of("tree") | {"instance": other.name, "instance_digest": other.digest}))
    with one_line(SolutionError, "is of another formulation"):
        ddlopt.check_certificate(other, path)
