"""Matchings: data, check, second moments, bounds, the integer program of colourings."""

import itertools
from fractions import Fraction

import networkx as nx
import numpy as np
import pyomo.environ as pyo
import pytest
from refusals import one_line
from volume import for_each

from ddlopt.models.errors import InstanceError
from ddlopt.models.gossip import MatchingPlan, MatchingsInstance, Network, bound, evaluate
from ddlopt.models.gossip.matchings.edge_colouring import EdgeColouring
from ddlopt.models.gossip.matchings.formulations.fractional_matchings import FractionalMatchings
from ddlopt.models.gossip.matchings.second_moments import SecondMoment, activation_bound
from ddlopt.solvers.backends.highs import Highs
from ddlopt.solvers.contracts import Limits

EDGES = [[0, 1], [1, 2], [2, 3], [0, 3], [0, 2]]
MATCHINGS = ((0, 2), (1, 3), (4,))


def instance(**more):
    data = {"family": "gossip", "problem": "matchings", "name": "kite", "budget": 2.0}
    return MatchingsInstance.from_data(data | {"network": {"nodes": 4, "edges": EDGES}} | more)


def plan(probabilities, weights=(0.3, 0.4, 0.2, 0.5, 0.1), matchings=MATCHINGS):
    return MatchingPlan(
        instance="kite", matchings=matchings, probabilities=tuple(probabilities), weights=tuple(weights)
    )


@for_each(
    ("change", "line"),
    [
        ({"budget": -1}, "budget: Input should be greater than 0"),
        ({"times": [1, 2]}, "times has 2 entries, but there are 5 edges"),
        ({"times": [1, 2, 0, 1, 1]}, "times[2] is 0; the time of an edge must be above 0"),
        ({"edge_budgets": [1, 1, 1, 2, 1]}, "edge_budgets[3] is 2; expected a number above 0, at most 1"),
        ({"matchings": [[0, 2], [1, 3], [5]]}, "matchings[2] names edge 5, but there are 5 edges (0..4)"),
        ({"matchings": [[0, 2], [1, 3], [4, 0]]}, "edge 0 of matchings[2] is in matchings[0]; give it once"),
        ({"matchings": [[0, 2, 2], [1, 3], [4]]}, "edge 2 of matchings[0] is in matchings[0]; give it once"),
        ({"matchings": [[0, 2], [1, 3]]}, "edge 4 is in no matching; put it into one"),
        ({"matchings": [[0, 1], [2, 3], [4]]}, "edges 0 and 1 of matchings[0] meet at node 1"),
    ],
)
def test_bad_instances(change, line):
    with one_line(InstanceError, line):
        instance(**change)


def by_enumeration(asked, given):
    """ρ from all sets of active matchings, in floats."""
    n = asked.size
    moves = []
    for own in given.matchings:
        move = np.zeros((n, n))
        for edge in own:
            vector = np.zeros(n)
            vector[list(asked.network.edges[edge])] = 1.0, -1.0
            move += given.weights[edge] * np.outer(vector, vector)
        moves.append(move)
    total = np.zeros((n, n))
    if asked.activation == "single":
        cases = [(chance, [j]) for j, chance in enumerate(given.probabilities)]
        cases.append((1.0 - sum(given.probabilities), []))
    else:
        cases = []
        for active in itertools.product((0, 1), repeat=len(moves)):
            chance = np.prod([p if on else 1 - p for p, on in zip(given.probabilities, active, strict=True)])
            cases.append((chance, [j for j, on in enumerate(active) if on]))
    for chance, active in cases:
        matrix = np.eye(n) - sum((moves[j] for j in active), np.zeros((n, n)))
        total += chance * matrix.T @ matrix
    return np.linalg.norm(total - 1.0 / n, 2)


@pytest.mark.parametrize(
    ("activation", "probabilities"), [("independent", (0.9, 0.3, 0.6)), ("single", (0.5, 0.2, 0.1))]
)
def test_factor_by_enumeration_of_rounds(activation, probabilities):
    asked, given = instance(activation=activation), plan(probabilities)
    found = evaluate(asked, given)
    assert found.feasible
    assert found.objective == pytest.approx(by_enumeration(asked, given), abs=1e-14)
    proven = evaluate(asked, given, exact=True)
    assert isinstance(proven.objective, Fraction)
    assert 0 <= float(proven.objective) - found.objective < 1e-9
    assert found.details["time"] == pytest.approx(sum(probabilities))
    moment = SecondMoment(
        4, asked.network.ends, np.array(probabilities)[[0, 1, 0, 1, 2]], independent=activation == "independent"
    )
    assert moment.factor(np.array(given.weights)) == pytest.approx(found.objective, abs=1e-14)


@for_each(
    ("more", "given", "kinds"),
    [
        ({}, plan((1, 1, 0)), []),
        ({}, plan((1, 1, 0.1)), ["budget"]),
        ({}, plan((1.1, 0.5, 0.1)), ["probability"]),
        ({}, plan((-0.1, 0.5, 0.1)), ["probability"]),
        ({}, plan((1, 1, 0, 1), matchings=(*MATCHINGS, ())), []),
        ({}, plan((1, 0.5)), ["number of probabilities"]),
        ({}, plan((1, 0.5, 0.1), (0.1,)), ["number of weights"]),
        ({}, plan((0.1, 0.1, 0.1), matchings=((0, 2), (1, 3), ())), ["matchings of an edge"]),
        ({}, plan((0.1, 0.1, 0.1), matchings=((0, 2), (1, 3), (4, 5))), ["no such edge"]),
        ({}, plan((0.1, 0.1), matchings=((0, 2, 4), (1, 3))), ["edges of a matching at a node"] * 2),
        ({"times": [1, 2, 3, 1, 1]}, plan((0.5, 0.25, 0)), []),
        ({"times": [1, 2, 3, 1, 1]}, plan((0.5, 0.3, 0)), ["budget"]),
        ({"edge_budgets": [1, 1, 0.5, 1, 1]}, plan((0.6, 0.5, 0.1)), ["budget of an edge"]),
        ({"edge_budgets": [1, 1, 1, 1, 1e-9]}, plan((0.6, 0.5, 2e-9)), ["budget of an edge"]),
        ({"activation": "single"}, plan((0.6, 0.5, 0.1)), ["sum of probabilities"]),
        ({"matchings": MATCHINGS}, plan((0.6, 0.1, 0.5), matchings=((3, 1), (4,), (2, 0))), []),
        (
            {"matchings": MATCHINGS},
            plan((0.1,) * 4, matchings=((0, 2), (1,), (3,), (4,))),
            ["a matching that is not given"] * 2,
        ),
    ],
)
@for_each("exact", [False, True])
def test_violations(more, given, kinds, exact):
    found = [violation.kind for violation in evaluate(instance(**more), given, exact).violations]
    assert found == kinds


def test_a_probability_that_rounding_left_below_0_makes_no_round_shorter():
    asked = instance(times=[1, 1, 1, 1, 1e12])
    assert evaluate(asked, plan((1, 1, -1e-12))).feasible
    assert [each.kind for each in evaluate(instance(times=[2, 2, 2, 2, 1e12]), plan((1, 1, -1e-10))).violations] == [
        "budget"
    ]


@for_each("independent", [True, False])
@for_each("seed", range(4))
def test_no_bound_is_above_any_weights(independent, seed):
    rng = np.random.default_rng(seed)
    ends = np.array(EDGES)
    chances = rng.uniform(0, 0.3, 3)[[0, 1, 0, 1, 2]]
    moment = SecondMoment(4, ends, chances, independent)
    shared = np.ones((5, 1))
    factors = [moment.factor(rng.normal(0.5, 0.3, 5)) for _ in range(60)]
    same = [moment.factor(np.full(5, value)) for value in np.linspace(-0.2, 1.5, 60)]
    for _ in range(30):
        offered = rng.normal(size=(4, 4))
        offered = offered + offered.T if rng.random() < 0.5 else offered @ offered.T
        each, _ = moment.best_for(offered)
        one, _ = moment.best_for(offered, shared)
        assert each <= one + 1e-12
        assert each <= min(factors)
        assert one <= min(same)


def test_quadratic_form_and_slopes_by_differences():
    rng = np.random.default_rng(1)
    for independent in (True, False):
        ends, chances, weights = np.array(EDGES), rng.uniform(0, 0.3, 3)[[0, 1, 0, 1, 2]], rng.normal(size=5)
        offered = rng.normal(size=(4, 4))
        offered = offered @ offered.T
        offered -= offered.mean(axis=0)
        offered -= offered.mean(axis=1)[:, None]
        offered /= np.trace(offered)

        def value(own, ends=ends, weights=weights, offered=offered, independent=independent):
            return float((offered * SecondMoment(4, ends, own, independent).matrix(weights)).sum())

        moment = SecondMoment(4, ends, chances, independent)
        b, quadratic = moment.quadratic(offered)
        assert 1 - 2 * b @ weights + weights @ quadratic @ weights == pytest.approx(value(chances), abs=1e-14)
        slopes = moment.slopes(weights, offered)
        for own in ([0, 2], [1, 3], [4]):
            step = np.zeros(5)
            step[own] = 1e-6
            measured = (value(chances + step) - value(chances - step)) / 2e-6
            assert slopes[own].sum() == pytest.approx(measured, abs=1e-8)


@for_each("seed", range(4))
def test_no_activation_is_above_its_bound(seed):
    rng = np.random.default_rng(seed)
    ends = np.array(EDGES)
    most, times = rng.uniform(0.3, 1.0, 3), rng.uniform(1.0, 3.0, 3)
    parts = [(ends[list(own)], float(times[j]), float(most[j])) for j, own in enumerate(MATCHINGS)]
    laplacians = [sum(np.outer(v, v) for v in (np.eye(4)[i] - np.eye(4)[j] for i, j in part)) for part, _, _ in parts]
    reached = {True: 0.0, False: 0.0}
    for _ in range(200):
        chances = rng.uniform(0, most)
        chances *= min(1.0, 1.5 / (chances @ times))
        for single in (True, False):
            own = chances * min(1.0, 1.0 / chances.sum()) if single else chances
            value = np.linalg.eigvalsh(sum(c * m for c, m in zip(own, laplacians, strict=True)))[1]
            reached[single] = max(reached[single], float(value))
    for _ in range(50):
        offered = rng.normal(size=(4, 4))
        offered = offered + offered.T
        assert activation_bound(offered, parts, 1.5) >= reached[False]
        assert activation_bound(offered, parts, 1.5, rng.uniform(0, 3)) >= reached[True]


@for_each("activation", ["independent", "single"])
@for_each("budget", [0.3, 0.8, 1.7, 2.6])
def test_no_plan_is_below_the_bound(activation, budget):
    rng = np.random.default_rng(7)
    asked = instance(activation=activation, budget=budget)
    best = 1.0
    for _ in range(400):
        share = rng.dirichlet(np.ones(3) * 0.5) * budget
        share = np.minimum(share, 1.0) if activation == "independent" else share / max(1.0, share.sum()) * (1 - 1e-12)
        weights = np.full(5, 0.5) if rng.random() < 0.5 else rng.uniform(0.1, 0.6, 5)
        found = evaluate(asked, plan(share, weights))
        assert found.feasible
        best = min(best, found.objective)
    assert 0 < bound(asked) <= best < 1


def test_a_probability_is_held_against_the_limit_that_it_passes():
    for first, limit in ((1.1, 1), (-0.1, 0)):
        (told,) = evaluate(instance(), plan((first, 0.5, 0.1))).violations
        assert (told.lhs, told.rhs) == (first, limit)


def test_a_small_budget_bounds_more_than_the_graph():
    complete = Network(nodes=6, edges=tuple(nx.complete_graph(6).edges()))
    small = MatchingsInstance(name="a", network=complete, budget=0.1)
    # One of at most 3 edges a round of 0.1: 1 − 3 · 2 · 0.1 / 1.9 / 5
    assert bound(small) == pytest.approx(1 - 0.6 / 1.9 / 5)
    assert bound(MatchingsInstance(name="b", network=complete, budget=5.0)) < 1e-6
    # Of edges that take unlike times the quickest counts.
    timed = MatchingsInstance(name="c", network=complete, budget=0.05, times=(0.5, *[2.0] * 14))
    assert bound(timed) == pytest.approx(1 - 0.6 / 1.9 / 5)


@for_each(
    ("graph", "index"),
    [
        (nx.petersen_graph(), 4),
        (nx.cycle_graph(7), 3),
        (nx.complete_graph(5), 5),
        (nx.complete_graph(6), 5),
        (nx.hypercube_graph(3), 3),
        (nx.star_graph(4), 4),
    ],
)
def test_chromatic_index_by_the_integer_program(graph, index):
    graph = nx.convert_node_labels_to_integers(graph)
    network = Network(nodes=len(graph), edges=tuple(graph.edges()))
    instance = MatchingsInstance(name="graph", network=network, budget=1.0)
    degree = int(network.degrees.max())
    for colours in {degree, index}:
        model = pyo.ConcreteModel()
        model.colouring = pyo.Block()
        formulation = EdgeColouring(colours)
        formulation.build(model.colouring, instance)
        model.objective = pyo.Objective(expr=model.colouring.objective, sense=pyo.maximize)
        outcome = Highs().solve(model, Limits(gap=0.0))
        found = formulation.read(model.colouring, instance)
        if colours < index:
            assert found is None
            assert outcome.bound < len(network.edges)
        else:
            assert outcome.objective == pytest.approx(len(network.edges))
            MatchingsInstance(name="it fits", network=network, budget=1.0, matchings=found)


@for_each("seed", range(4))
def test_no_single_matching_is_below_the_bound_of_fractional_ones(seed):
    rng = np.random.default_rng(seed)
    times, budgets = rng.uniform(1, 2, 5).tolist(), rng.uniform(0.2, 1, 5).tolist()
    asked = instance(activation="single", budget=0.9, times=times, edge_budgets=budgets)
    inside, factors = FractionalMatchings(asked), []
    for _ in range(200):
        chances = rng.dirichlet(np.ones(3) * 0.5)
        chances = np.minimum(chances, [min(budgets[e] for e in own) for own in MATCHINGS])
        chances *= min(
            1.0, 0.9 / sum(c * max(times[e] for e in own) for c, own in zip(chances, MATCHINGS, strict=True))
        )
        found = evaluate(asked, plan(chances * (1 - 1e-12), [0.5] * 5))
        assert found.feasible
        factors.append(found.objective)
    for _ in range(60):
        offered = rng.normal(size=(4, 4))
        assert inside.bound(offered + offered.T, rng.uniform(-0.5, 1, 9) * (rng.random(9) < 0.5)) <= min(factors)


def test_fractional_matchings_by_hand():
    pair = MatchingsInstance(
        name="pair", network=Network(nodes=2, edges=((0, 1),)), budget=1.0, edge_budgets=(0.3,), activation="single"
    )
    # q = 0.3 at most, and λ₂ = 2q
    assert FractionalMatchings(pair).bound(np.eye(2), np.zeros(5)) == pytest.approx(0.7)
    triangle = MatchingsInstance(
        name="triangle", network=Network(nodes=3, edges=((0, 1), (1, 2), (0, 2))), budget=2.0, activation="single"
    )
    # One edge at a time: λ₂ is 1, with q = 1/3 for each
    assert FractionalMatchings(triangle).rows @ np.full(3, 1 / 3) == pytest.approx([2 / 3] * 3 + [1 / 3] * 3 + [1])
    prices = np.array([0, 0, 0, 0, 0, 0, 2.0])
    assert FractionalMatchings(triangle).bound(np.eye(3), prices) == pytest.approx(0.5)
