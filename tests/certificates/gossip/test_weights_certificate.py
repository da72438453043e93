"""Proofs by vectors: what any vectors prove holds for all weights, and forged files prove nothing."""

import json
import random
from fractions import Fraction

import networkx as nx
import numpy as np
import pytest

import ddlopt
from ddlopt.certificates.gossip.weights.certificate import SpectralCertificate, bound_of_vectors
from ddlopt.models.errors import RefutedError, SolutionError
from ddlopt.models.gossip.network import Network
from ddlopt.models.gossip.spectral.certificates import best_matrix
from ddlopt.models.gossip.weights.evaluate import evaluate_weights
from ddlopt.models.gossip.weights.instance import GossipWeights, WeightsInstance
from ddlopt.solvers import proofs
from ddlopt.solvers.gossip.weights.prove import _vectors

GOALS = ("averaging", "chain", "process", "pairwise")


def drawn(rng, goal):
    n = rng.randrange(2, 7)
    edges = [(i, j) for i in range(n) for j in range(i + 1, n) if j == i + 1 or rng.random() < 0.4]
    limits = {"budget": rng.choice((1.0, 0.3, 7.0))} if goal == "process" else {}
    if goal == "process" and rng.random() < 0.5:
        limits["costs"] = tuple(rng.choice((1.0, 0.1, 3.0)) for _ in edges)
    return WeightsInstance(name="drawn", network=Network(nodes=n, edges=edges), goal=goal, **limits)


def weights_for(rng, instance):
    """Feasible weights; some take all that there is."""
    edges, goal = instance.network.edges, instance.goal
    whole = 1 if rng.random() < 0.7 else rng.random()
    if goal == "averaging":
        return [rng.uniform(-0.3, 0.9) for _ in edges]
    values = [rng.randrange(1, 9) for _ in range(len(edges) * (2 if goal == "pairwise" else 1))]
    if goal == "process":
        costs = instance.costs or (1.0,) * len(edges)
        spent = sum(a * b for a, b in zip(values, costs, strict=True))
        return [v * instance.budget * whole * (1 - 1e-12) / spent for v in values]
    given = [0] * instance.size
    for place, value in enumerate(values):
        i, j = edges[place // 2] if goal == "pairwise" else edges[place]
        given[i if goal == "chain" or place % 2 == 0 else j] += value
        if goal == "chain":
            given[j] += value
    return [v * whole * (1 - 1e-12) / max(given) for v in values]


def vectors(rng, instance):
    """What a matrix at random suggests, and some figures of it changed."""
    n, two_sided = instance.size, instance.goal in ("averaging", "chain")
    half = np.array([[rng.gauss(0, 1) for _ in range(n)] for _ in range(n)])
    prices = np.array([rng.choice((0.0, rng.random())) for _ in range(n)])
    matrix, prices = best_matrix(instance, half @ half.T if rng.random() < 0.7 else half + half.T, prices)
    plus, minus, unit = _vectors(*np.linalg.eigh(matrix), rng.choice((3, 8, 20)), two_sided)
    sides = [[list(each) for each in side] for side in (plus, minus)]
    for side in sides:
        for each in side:
            if rng.random() < 0.2:
                each[rng.randrange(n)] += rng.choice((-1, 1, 5))
    whole = tuple(int(price * unit**2) for price in prices) if instance.goal == "chain" else ()
    return tuple(map(tuple, sides[0])), tuple(map(tuple, sides[1])), whole


@pytest.mark.parametrize("goal", GOALS)
def test_any_vectors_prove_what_holds_for_all_weights(goal):
    rng, told = random.Random(goal), 0
    for _ in range(120):
        instance = drawn(rng, goal)
        bound = bound_of_vectors(instance, *vectors(rng, instance))
        if bound is None:
            continue
        told += goal == "process" or bound > 0
        for _ in range(3):
            answer = GossipWeights(instance="drawn", weights=tuple(weights_for(rng, instance)))
            found = evaluate_weights(instance, answer, exact=True)
            assert found.feasible
            assert found.objective <= bound if goal == "process" else found.objective >= bound, instance.to_json()
    assert told > 20


@pytest.mark.parametrize("goal", GOALS)
def test_random_graphs_are_proven(goal):
    graph = nx.random_regular_graph(3, 10, seed=1)
    network = Network(nodes=10, edges=sorted(tuple(sorted(edge)) for edge in graph.edges))
    instance = WeightsInstance(name="ten", network=network, goal=goal, budget=1.5 if goal == "process" else None)
    result, certificate = ddlopt.certify(instance, time_limit=30)
    assert (str(result.status), str(result.evidence)) == ("optimal", "certificate")
    assert isinstance(certificate, SpectralCertificate)
    proven = ddlopt.check_certificate(instance, certificate)
    exact = ddlopt.check(instance, result.solution, exact=True).objective
    sign = -1 if goal == "process" else 1
    assert 0 <= sign * (exact - proven.bound) <= Fraction(1, 10**4) * abs(exact)


PATH = WeightsInstance(name="path", network=Network(nodes=3, edges=[(0, 1), (1, 2)]), goal="chain")
PROCESS = WeightsInstance(name="path", network=PATH.network, goal="process", budget=1.0)
GOOD = SpectralCertificate("path", PATH.digest, Fraction(1, 2), ((1, 0, -1),), (), (0, 1, 0))
"""⟨Z, I⟩ = 2 and z = (1, 1), so that ρ >= (2 - 1) / 2 with the price 1 at the node in the middle."""


def test_a_proof_by_hand():
    assert bound_of_vectors(PATH, GOOD.plus, (), GOOD.prices) == Fraction(1, 2)
    assert proofs.check(PATH, GOOD).bound == Fraction(1, 2)
    assert bound_of_vectors(PATH, GOOD.plus) == 0
    assert bound_of_vectors(PROCESS, ((1, 0, -1),)) == Fraction(1, 2)
    # Of (2, 2, 1) the part across (1, 1, 1) has the square 9 - 25/3; edges change by 1 - 0 and 1 - 1.
    assert bound_of_vectors(PATH, GOOD.plus, ((2, 2, 1),)) == (2 - Fraction(2, 3) - 1) / (2 + Fraction(2, 3))


@pytest.mark.parametrize(
    ("instance", "changed"),
    [
        (PATH, {"plus": []}),
        (PATH, {"plus": [[0, 0, 0]]}),
        (PATH, {"plus": [[1, 1, 1]]}),
        (PATH, {"plus": [[1, 0]]}),
        (PATH, {"plus": [[1, 0, -1, 0]]}),
        (PATH, {"plus": [[1, 0, -1]] * 7}),
        (PATH, {"prices": [0, 1]}),
        (PATH, {"prices": [-1, 1, -1]}),
        (PATH, {"prices": []}),
        (PATH, {"claim": "501/1000"}),
        (PATH, {"claim": "2"}),
        (PATH, {"minus": [[1, 0, -1]]}),
        (PROCESS, {"minus": [[2, 0, -2]], "prices": [], "claim": "1/2"}),
        (PROCESS, {"prices": [0, 1, 0], "claim": "1/2"}),
        (PROCESS, {"prices": [], "claim": "499/1000"}),
        (PROCESS, {"prices": [], "claim": "-1"}),
    ],
)
def test_what_proves_nothing(instance, changed):
    data = json.loads(GOOD.text) | {"instance_digest": instance.digest}
    with pytest.raises(RefutedError):
        proofs.check(instance, SpectralCertificate.from_data(data | changed))


@pytest.mark.parametrize(
    "changed",
    [
        {"version": 2},
        {"format": "x"},
        {"claim": "1/0"},
        {"claim": 3},
        {"claim": "nan"},
        {"instance": 3},
        {"instance_digest": None},
        {"plus": {}},
        {"plus": [3]},
        {"plus": [[1.0, 0, 1]]},
        {"plus": [[True, 0, 1]]},
        {"plus": [["1", 0, 1]]},
        {"plus": [[2**256, 0, 1]]},
        {"minus": None},
        {"prices": [0.5, 0, 0]},
        {"prices": {"0": 1}},
        {"more": 1},
    ],
)
def test_odd_files_are_refused(changed, tmp_path):
    file = tmp_path / "proof.json"
    file.write_text(json.dumps(json.loads(GOOD.text) | changed))
    with pytest.raises(SolutionError):
        ddlopt.check_certificate(PATH, file)


def test_it_is_of_this_instance():
    with pytest.raises(SolutionError, match="the certificate is of 'path'"):
        ddlopt.check_certificate(PROCESS, GOOD)
    other = ddlopt.load("scheduling/tiny-gangs")
    forged = SpectralCertificate(other.name, other.digest, GOOD.claim, GOOD.plus)
    with pytest.raises(SolutionError, match="says nothing of a"):
        ddlopt.check_certificate(other, forged)
