"""Labels in whole numbers: they prove the optimum, and nothing beyond it, whatever the file says."""

import json
from dataclasses import replace
from fractions import Fraction

import lane_brute_force
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from timeline_brute_force import brute_force as wire_brute_force
from timeline_brute_force import random_levels_case, random_timeline_case
from volume import for_each

import ddlopt
from ddlopt.certificates.compression.label_proof.labels import front
from ddlopt.certificates.compression.timeline.certificate import TimelineCertificate
from ddlopt.certificates.own import own_certificate
from ddlopt.models.catalogue import problem_of
from ddlopt.models.compression import CompressionInstance, Gradient, Option, Stage, evaluate
from ddlopt.models.errors import RefutedError, SolutionError
from ddlopt.models.problem import path_of
from ddlopt.solvers import proofs
from ddlopt.solvers.provers import prover

ABOVE = Fraction(1, 10**5)
"""Far more than rounding, and less than anybody would miss."""


def never():
    return False


def proven(instance, claim):
    """The certificate of a claim, read again; None where none is made."""
    kind = problem_of(instance)
    made = prover(kind.path)(instance, None, claim, never)
    return made and type(made).from_data(json.loads(made.text))


def drawn(seed):
    rng = np.random.default_rng(seed)
    kinds = random_timeline_case, lane_brute_force.random_lane_case, random_timeline_case, random_levels_case
    return kinds[seed % 4](rng)


def brute_force(instance):
    """The optimum by an enumeration that knows the lanes, or one of the wire."""
    return (lane_brute_force.brute_force if getattr(instance, "lanes", ()) else wire_brute_force)(instance)


@for_each("seed", range(400))
def test_the_optimum_is_proven_and_nothing_beyond(seed):
    instance = drawn(seed)
    optimum, answer = brute_force(instance)
    if answer is None or optimum <= 1e-6:
        return
    exact = evaluate(instance, answer, exact=True).objective
    below = proven(instance, exact * (1 - ABOVE))
    assert below is not None
    assert proofs.check(instance, below).bound == below.claim
    assert proven(instance, exact * (1 + ABOVE)) is None
    with pytest.raises(RefutedError):
        proofs.check(instance, replace(below, claim=exact * (1 + ABOVE)))


def test_it_begins_anew_with_more_labels(monkeypatch):
    """Where parts of few labels are too many, or none can be parted further, parts of more labels prove it."""
    instance = drawn(0)
    _, answer = brute_force(instance)
    claim = evaluate(instance, answer, exact=True).objective * (1 - ABOVE)
    module = problem_of(instance).module("frontier", "prove")
    monkeypatch.setattr(module, "_MOST", (0, 0))
    assert proven(instance, claim) is None
    for parts in (1, 500):
        monkeypatch.setattr(module, "_MOST", (0, 1000))
        monkeypatch.setattr(module, "_MOST_PARTS", parts)
        found = proven(instance, claim)
        assert len(found.nodes) == 1
        assert proofs.check(instance, found).bound == claim


@settings(max_examples=30)
@given(st.data())
def test_no_prices_and_no_cases_prove_more(data):
    instance = drawn(data.draw(st.integers(0, 60)))
    n = len(instance.gradients)
    places = n * max(1, len(getattr(instance, "lanes", ())))
    weights = st.lists(st.integers(0, 2**20), min_size=places, max_size=places)
    drawn_prices = data.draw(st.lists(st.tuples(weights, st.integers(0, 2**26)), max_size=3))
    with_error = instance.error_budget is not None or instance.goal == "error"
    prices = [[list(range(places)), each, mu * with_error] for each, mu in drawn_prices]
    nodes, open_ones = [], 1
    while open_ones:
        if len(nodes) < 4 and data.draw(st.booleans()):
            nodes.append(["part", data.draw(st.integers(0, n - 1)), [0]])
            open_ones += 1
        else:
            nodes.append(["labels", list(range(len(prices)))])
            open_ones -= 1
    optimum, answer = brute_force(instance)
    if answer is None or optimum <= 1e-6:
        return
    claim = evaluate(instance, answer, exact=True).objective * (1 + ABOVE)
    kind = own_certificate(path_of(instance))
    forged = kind(instance.name, instance.digest, claim, prices, nodes)
    with pytest.raises(RefutedError):
        proofs.check(instance, kind.from_data(json.loads(forged.text)))


@given(st.integers(3, 6).flatmap(lambda k: st.lists(st.tuples(*[st.integers(0, 4)] * k), min_size=1, max_size=12)))
def test_the_front_is_what_nothing_beats(labels):
    """By comparing all pairs."""
    points = set(labels)
    kept = {a for a in points if not any(b != a and all(x <= y for x, y in zip(b, a, strict=True)) for b in points)}
    found = front(np.array(labels, dtype=np.int64).T)
    assert sorted(map(tuple, found.T.tolist())) == sorted(kept)


def test_the_front_of_many(monkeypatch):
    """Longer than what is compared at once, and by the same rule."""
    labels = np.random.default_rng(5).integers(0, 12, size=(5, 300))
    once = front(labels)
    monkeypatch.setattr("ddlopt.certificates.compression.label_proof.labels._BLOCK", 7)
    assert 20 < once.shape[1] < 300
    assert np.array_equal(once, front(labels))


PLAIN, SMALL = (
    Option(label=label, compressor=kind, encode_s=encode, wire_s=wire, error=error)
    for label, kind, encode, wire, error in [("plain", "none", 0, 4, 0), ("small", "dgc", 1, 1, 1)]
)
TWO = CompressionInstance(
    name="two",
    gradients=(Gradient(name="a", shape=(1,), ready_s=1, menu=0), Gradient(name="b", shape=(1,), ready_s=2, menu=0)),
    menus=((PLAIN, SMALL),),
    error_budget=1,
)
"""One of the two may be small: 1 + 1 + 1 + 4 = 7 with the first, 1 + 4 + 1 = 6 with the second."""
GOOD = TimelineCertificate("two", TWO.digest, Fraction(6), [[[0], [1], 0]], [["labels", [0]]])


def test_a_proof_by_hand():
    assert brute_force(TWO)[0] == 6
    assert proofs.check(TWO, GOOD).bound == 6
    parted = [["part", 1, [0]], ["labels", [0]], ["labels", [0]]]
    assert proofs.check(TWO, TimelineCertificate("two", TWO.digest, Fraction(6), GOOD.prices, parted)).nodes == 3


@pytest.mark.parametrize(
    "changed",
    [
        {"claim": "6000001/1000000"},
        {"nodes": [["part", 0, [0]], ["labels", [0]]]},
        {"nodes": [["labels", [0]], ["labels", [0]]]},
        {"nodes": [["part", 2, [0]], ["labels", [0]], ["labels", [0]]]},
        {"nodes": [["part", 0, [2]], ["labels", [0]], ["labels", [0]]]},
        {"prices": [[[2], [1], 0]]},
    ],
)
def test_what_proves_nothing(changed):
    with pytest.raises(RefutedError):
        proofs.check(TWO, TimelineCertificate.from_data(json.loads(GOOD.text) | changed))


@pytest.mark.parametrize(
    "changed",
    [
        {"version": 2},
        {"version": True},
        {"claim": "1/0"},
        {"prices": {}},
        {"prices": [[[0], [1]]]},
        {"prices": [[[0], [1, 1], 0]]},
        {"prices": [[[1, 0], [1, 1], 0]]},
        {"prices": [[[0, 0], [1, 1], 0]]},
        {"prices": [[[0], [-1], 0]]},
        {"prices": [[[0, 1], [1, -1], 0]]},
        {"prices": [[[0], [2**26 + 1], 0]]},
        {"prices": [[[0, 1], [2**26, 1], 0]]},
        {"prices": [[[0], [1], 2**26 + 1]]},
        {"prices": [[[0], [1.0], 0]]},
        {"prices": [[[True], [1], 0]]},
        {"prices": [[[0], [1], 0]] * 4001},
        {"nodes": []},
        {"nodes": {}},
        {"nodes": [["labels", [1]]]},
        {"nodes": [["labels"]]},
        {"nodes": [["labels", [0.0]]]},
        {"nodes": [["part", 0, []]]},
        {"nodes": [["part", -1, [0]]]},
        {"nodes": [["part", 0, [0], 1]]},
        {"nodes": [3]},
        {"more": 1},
    ],
)
def test_odd_files_are_refused(changed, tmp_path):
    file = tmp_path / "proof.json"
    file.write_text(json.dumps(json.loads(GOOD.text) | changed))
    with pytest.raises(SolutionError):
        ddlopt.check_certificate(TWO, file)


def test_prices_of_errors_need_a_budget():
    free = TWO.model_copy(update={"error_budget": None})
    forged = TimelineCertificate("two", free.digest, Fraction(1), [[[0], [1], 1]], [["labels", [0]]])
    with pytest.raises(RefutedError, match="no budget"):
        proofs.check(free, forged)


CPU = CompressionInstance.from_data(
    TWO.model_dump()
    | {
        "menus": (
            (
                Option(label="wire", stages=(Stage(lane="wire", busy_s=4),), wire_s=0),
                Option(label="cpu", stages=(Stage(lane="wire"), Stage(lane="cpu", busy_s=5)), wire_s=0),
            ),
        ),
        "lanes": ("wire", "cpu"),
        "error_budget": None,
    }
)
"""Both on the wire: 1 + 4 + 4 = 9; the first on the CPU: 1 + 5 or 2 + 4; the second there waits for the wire: 5 + 5."""
LANES = TimelineCertificate("two", CPU.digest, Fraction(6), [], [["labels", []]])


def test_lanes_by_hand():
    assert brute_force(CPU)[0] == 6
    assert proofs.check(CPU, LANES).bound == 6
    # Place 3 is the second gradient on the CPU: neither way weighs that the first is no longer on the wire.
    priced = replace(LANES, prices=[[[0, 3], [1, 1], 0]], nodes=[["labels", [0]]])
    assert proofs.check(CPU, priced).bound == 6
    with pytest.raises(RefutedError):
        proofs.check(CPU, replace(LANES, claim=Fraction(6000001, 10**6)))
    with pytest.raises(RefutedError, match="place 4, but there are 2 gradients on 2 lanes"):
        proofs.check(CPU, replace(LANES, prices=[[[4], [1], 0]]))


def test_an_option_of_another_lane_is_not_left_out():
    """It takes less of each lane, but waits where the other does not: 1 .. 5 on the wire before the CPU."""
    slow = CPU.menus[0][0].model_copy(update={"stages": (Stage(lane="wire", busy_s=9),)})
    beside = CPU.menus[0][1].model_copy(update={"label": "beside", "stages": (Stage(lane="cpu", busy_s=6),)})
    waits = CPU.menus[0][1]
    instance = CompressionInstance.from_data(
        CPU.model_dump()
        | {
            "gradients": [each.model_dump() | {"menu": place} for place, each in enumerate(CPU.gradients)],
            "menus": [[slow.model_dump()], [waits.model_dump(), beside.model_dump()]],
        }
    )
    assert brute_force(instance)[0] == 10  # the wire's; the CPU ends at 8, or at 15
    forged = TimelineCertificate("two", instance.digest, Fraction(15), [], [["labels", []]])
    with pytest.raises(RefutedError):
        proofs.check(instance, forged)
    assert proofs.check(instance, replace(forged, claim=Fraction(10))).bound == 10
