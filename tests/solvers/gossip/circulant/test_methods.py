"""Methods for the problem ``circulant``."""

from itertools import combinations

import networkx as nx
import numpy as np
import pytest
from volume import for_each, slow

import ddlopt
from ddlopt.models.gossip import CirculantInstance, Network, WeightsInstance, evaluate
from ddlopt.models.gossip.circulant.formulations.circulant_generators import CirculantGenerators, CirculantWeights
from ddlopt.solvers.catalogue import method
from ddlopt.solvers.contracts import Limits, Status
from ddlopt.solvers.exact import Exact
from ddlopt.solvers.gossip.circulant.enumeration import CirculantEnumeration
from ddlopt.solvers.gossip.circulant.kernels import extend
from ddlopt.solvers.gossip.circulant.weights import best_weights

TIGHT = Limits(gap=1e-7)
RULES = ("powers", "geometric-rings", "random-generators", "generator-exchange")


def instance(nodes, degree, goal="gap"):
    return CirculantInstance(name="c", nodes=nodes, degree=degree, goal=goal)


def sets(asked):
    for count in range(1, asked.degree + 1):
        for generators in combinations(asked.candidates, count):
            if sum(map(asked.links, generators)) <= asked.degree:
                yield [g - 1 for g in generators]


@for_each(("nodes", "degree"), [(3, 2), (8, 3), (9, 5), (12, 4), (15, 6), (16, 5), (18, 7), (20, 4)])
def test_gap_against_all_sets(nodes, degree):
    asked = instance(nodes, degree)
    best = max(asked.characters[:, chosen].sum(axis=1).min() for chosen in sets(asked))
    enumerated = CirculantEnumeration().solve(asked, TIGHT)
    assert enumerated.objective == pytest.approx(best, rel=1e-12)
    assert enumerated.status is Status.OPTIMAL
    program = Exact("milp", "gossip", CirculantGenerators()).solve(asked, TIGHT)
    assert program.objective == pytest.approx(best, rel=1e-7)
    assert program.status is Status.OPTIMAL


@pytest.mark.parametrize(("nodes", "degree"), [(5, 3), (8, 3), (9, 4), (12, 3), (12, 4), (14, 5)])
def test_factor_against_all_sets(nodes, degree):
    asked = instance(nodes, degree, "averaging")
    factors = []
    for chosen in sets(asked):
        weights, proven = best_weights(asked.characters[:, chosen])
        factors.append(np.abs(1 - asked.characters[:, chosen] @ weights).max())
        assert proven <= factors[-1] <= proven + 1e-8
    enumerated = CirculantEnumeration().solve(asked, TIGHT)
    assert enumerated.objective == pytest.approx(min(factors), abs=1e-8)
    assert enumerated.status is Status.OPTIMAL
    program = Exact("milp", "gossip", CirculantWeights()).solve(asked, TIGHT)
    assert program.objective == pytest.approx(min(factors), abs=1e-6)


@pytest.mark.parametrize("goal", ["gap", "averaging"])
def test_symmetry_rows_cost_nothing(goal):
    asked, kind = instance(18, 4, goal), CirculantGenerators if goal == "gap" else CirculantWeights
    with_rows = Exact("milp", "gossip", kind()).solve(asked, TIGHT)
    without = Exact("milp", "gossip", kind(symmetry=False)).solve(asked, TIGHT)
    assert with_rows.objective == pytest.approx(without.objective, abs=1e-6)


@pytest.mark.parametrize("goal", ["gap", "averaging"])
def test_starts(goal):
    asked, kind = instance(20, 4, goal), CirculantGenerators if goal == "gap" else CirculantWeights
    begun = method("random-generators", "gossip").solve(asked, TIGHT, seed=3).solution
    found = Exact("milp", "gossip", kind()).solve(asked, TIGHT, start=begun)
    assert found.status is Status.OPTIMAL
    assert found.objective == pytest.approx(CirculantEnumeration().solve(asked, TIGHT).objective, abs=1e-6)


def test_larger_gaps_are_proven():
    """(n, d) and λ₂ by an enumeration of all sets in NumPy."""
    for nodes, degree in ((64, 4), (48, 6), (64, 8)):
        asked = instance(nodes, degree)
        pool, count = range((nodes - 1) // 2), degree // 2
        listed = np.array(list(combinations(pool, count)))
        spectra = asked.characters[:, listed].sum(axis=2)
        with_half = np.array(list(combinations(pool, count - 1)))
        halved = asked.characters[:, with_half].sum(axis=2) + asked.characters[:, -1:]
        best = max(spectra.min(axis=0).max(), halved.min(axis=0).max())
        found = CirculantEnumeration().solve(asked, TIGHT)
        assert found.objective == pytest.approx(best, rel=1e-12)
        assert found.gap <= 1e-9


def test_kernel_finds_the_best_addition():
    rng = np.random.default_rng(0)
    for _ in range(20):
        table, base = rng.random((9, 5)), rng.random(5)
        highest = np.vstack([np.maximum.accumulate(table[::-1], axis=0)[::-1], np.zeros((1, 5))])
        picks = np.full(3, -1)
        value, visited = extend(table, highest, 2, base, 3, -1.0, picks)
        listed = {chosen: (base + table[list(chosen)].sum(axis=0)).min() for chosen in combinations(range(2, 9), 3)}
        assert value == pytest.approx(max(listed.values()), rel=1e-12)
        assert listed[tuple(picks.tolist())] == pytest.approx(value, rel=1e-12)
        assert visited > 0
        assert extend(table, highest, 2, base, 3, value + 1e-9, picks)[0] == value + 1e-9


@pytest.mark.parametrize("generators", [(1, 3), (1, 4, 6), (2, 3)])
def test_one_weight_a_generator_is_enough(generators):
    """The interior-point method may give each link a weight of its own, and finds nothing better."""
    graph = nx.circulant_graph(12, generators)
    network = Network(nodes=12, edges=tuple(graph.edges()))
    free = method("fastest-weights", "gossip").solve(WeightsInstance(name="w", network=network), TIGHT)
    asked = instance(12, 6, "averaging")
    weights, proven = best_weights(asked.characters[:, [g - 1 for g in generators]])
    assert free.objective == pytest.approx(proven, abs=1e-7)
    assert len(weights) == len(generators)


@pytest.mark.parametrize("name", RULES)
@pytest.mark.parametrize("goal", ["gap", "averaging"])
@pytest.mark.parametrize("sizes", [((7, 3),), slow(((12, 5), (32, 4)))])
def test_rules(name, goal, sizes):
    sense = 1 if goal == "gap" else -1
    for nodes, degree in sizes:
        asked = instance(nodes, degree, goal)
        best = CirculantEnumeration().solve(asked, TIGHT).objective
        found = method(name, "gossip").solve(asked, TIGHT, seed=1)
        again = method(name, "gossip").solve(asked, TIGHT, seed=1)
        assert found.solution == again.solution
        assert sense * found.objective <= sense * best + 1e-8


def test_powers_are_digits():
    found = method("powers", "gossip").solve(instance(64, 6), TIGHT)
    assert found.solution.generators == (1, 4, 16)
    assert method("geometric-rings", "gossip").solve(instance(64, 6), TIGHT).details["rings"] == 3


def test_best_takes_what_can_prove():
    assert method("exact", "gossip").solve(ddlopt.load("gossip/circulant-n64-d4-gap"), TIGHT).status is Status.OPTIMAL
    assert CirculantEnumeration(most_sets=3).refuses(instance(20, 4)).endswith("more than 3")
    wrong = CirculantGenerators().refuses(instance(20, 4, "averaging"))
    assert wrong == "it is for goal 'gap', not 'averaging'"


def test_a_deadline_claims_nothing():
    found = CirculantEnumeration().solve(instance(64, 12), Limits(time_s=1e-9))
    assert found.checked
    assert found.status is Status.FEASIBLE
    assert evaluate(instance(64, 12), found.solution).feasible
