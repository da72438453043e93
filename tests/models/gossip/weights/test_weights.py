"""Weights: data, check, exact mode, bounds, automorphisms."""

import math
from fractions import Fraction

import networkx as nx
import numpy as np
import pytest
from refusals import one_line
from volume import for_each, seeds

from ddlopt.models.errors import InstanceError, SolutionError
from ddlopt.models.gossip import GossipWeights, Network, WeightsInstance, bound, evaluate
from ddlopt.models.gossip.spectral.certificates import spectral_bound
from ddlopt.models.gossip.spectral.verified import largest_below
from ddlopt.models.gossip.weights import bounds
from ddlopt.models.gossip.weights.automorphisms import automorphisms

PATH = {"nodes": 3, "edges": [[0, 1], [1, 2]]}


def instance(graph, goal="averaging", budget=None, costs=()):
    graph = nx.convert_node_labels_to_integers(graph, ordering="sorted")
    network = Network(nodes=len(graph), edges=tuple(graph.edges()))
    return WeightsInstance(name="graph", network=network, goal=goal, budget=budget, costs=costs)


def answer(weights, **more):
    return GossipWeights(instance="graph", weights=tuple(weights), **more)


@for_each(
    ("change", "line"),
    [
        (
            {"network": {"nodes": 4, "edges": [[0, 1], [1, 3], [0, 3]]}},
            "the graph is disconnected: no path joins node 0 and node 2",
        ),
        ({"network": {"nodes": 2, "edges": [[0, 1], [1, 1]]}}, "edges[1] is a self-loop of node 1"),
        ({"network": {"nodes": 2, "edges": [[0, 1], [1, 0]]}}, "edges[1] joins nodes 1 and 0 again"),
        ({"network": {"nodes": 2, "edges": [[0, 2]]}}, "edges[0] names node 2, but there are 2 nodes (0..1)"),
        ({"network": PATH | {"names": ["a"]}}, "names has 1 entries, but there are 3 nodes"),
        ({"goal": "process", "budget": -1}, "budget is -1.0; goal 'process' needs one above 0"),
        ({"goal": "process"}, "budget is None; goal 'process' needs one above 0"),
        ({"budget": 2}, "budget is for goal 'process'; leave it out for goal 'averaging'"),
        ({"goal": "process", "budget": 1, "costs": [1]}, "costs has 1 entries, but there are 2 edges"),
        ({"goal": "process", "budget": 1, "costs": [1, 0]}, "costs[1] is 0; the cost of a rate must be above 0"),
    ],
)
def test_bad_instances(change, line):
    data = {"family": "gossip", "problem": "weights", "name": "bad", "network": PATH} | change
    with one_line(InstanceError, line):
        WeightsInstance.from_data(data)


def test_a_matrix_that_is_not_symmetric():
    data = {"family": "gossip", "problem": "weights", "instance": "graph", "matrix": [[0.5, 0.5], [0.4, 0.6]]}
    with pytest.raises(SolutionError, match=r"matrix\[0\]\[1\] is 0.5, but matrix\[1\]\[0\] is 0.4"):
        GossipWeights.from_data(data)


def test_path_by_hand():
    # W = [[½, ½, 0], [½, 0, ½], [0, ½, ½]] has eigenvalues 1, ½, −½
    found = evaluate(instance(nx.path_graph(3)), answer([0.5, 0.5]))
    assert found.feasible
    assert found.objective == pytest.approx(0.5, abs=1e-14)
    assert found.details["averaging_time"] == pytest.approx(1 / math.log(2))


def test_a_matrix_says_the_same_as_weights():
    matrix = [[0.5, 0.5, 0], [0.5, 0, 0.5], [0, 0.5, 0.5]]
    found = evaluate(instance(nx.path_graph(3), "chain"), GossipWeights(instance="graph", matrix=np.array(matrix)))
    assert found.feasible
    assert found.objective == pytest.approx(0.5, abs=1e-14)


@pytest.mark.parametrize(
    ("matrix", "kind"),
    [
        ([[0.5, 0.25, 0.25], [0.25, 0.5, 0.25], [0.25, 0.25, 0.5]], "weight where there is no edge"),
        ([[0.5, 0.25, 0], [0.25, 0.5, 0.25], [0, 0.25, 0.75]], "sum of a row"),
        ([[0.5, 0.5], [0.5, 0.5]], "rows of the matrix"),
    ],
)
def test_matrices_that_do_not_fit(matrix, kind):
    found = evaluate(instance(nx.path_graph(3)), GossipWeights(instance="graph", matrix=np.array(matrix)))
    assert [violation.kind for violation in found.violations] == [kind]
    assert found.objective is None


@for_each(
    ("goal", "weights", "kinds"),
    [
        ("averaging", [0.5], ["number of weights"]),
        ("chain", [-0.1, 0.5], ["weight below 0"]),
        ("chain", [0.6, 0.6], ["more than all is given away"]),
        ("process", [0.6, 0.6], ["budget"]),
        ("process", [-0.1, 0.6], ["weight below 0"]),
        ("pairwise", [1, 0.5, 0.6, 1], ["more than all is given away"]),
        ("pairwise", [1, 0.5], ["number of weights"]),
        ("averaging", [-0.1, 0.9], []),
    ],
)
@for_each("exact", [False, True])
def test_violations(goal, weights, kinds, exact):
    found = evaluate(instance(nx.path_graph(3), goal, 1.0 if goal == "process" else None), answer(weights), exact)
    assert [violation.kind for violation in found.violations] == kinds


def test_costs_count():
    costly = instance(nx.path_graph(3), "process", 1.0, (3.0, 1.0))
    assert evaluate(costly, answer([0.2, 0.4])).feasible
    assert not evaluate(costly, answer([0.4, 0.2])).feasible


def test_a_rate_that_rounding_left_below_0_pays_for_no_other():
    dear = instance(nx.complete_graph(3), "process", 1.0, (1.0, 1.0, 1e12))
    assert evaluate(dear, answer([0.5, 0.5, -1e-12])).feasible
    found = evaluate(dear, answer([50.0, 50.0, -1e-10]))
    assert [violation.kind for violation in found.violations] == ["budget"]


def test_pairwise_by_simulation_of_the_expectation():
    graph = nx.path_graph(3)
    calls = [1.0, 0.3, 0.7, 1.0]  # 0→1, 1→0, 1→2, 2→1
    expected = np.zeros((3, 3))
    for (i, j), chance in zip([(0, 1), (1, 0), (1, 2), (2, 1)], calls, strict=True):
        step = np.eye(3)
        step[[i, i, j, j], [i, j, i, j]] = 0.5
        expected += chance / 3 * step
    found = evaluate(instance(graph, "pairwise"), answer(calls))
    assert found.objective == pytest.approx(np.linalg.eigvalsh(expected)[1], abs=1e-14)


def by_determinants(matrix, value):
    """Whether value·I − matrix is positive definite, by elimination in rational numbers."""
    n = len(matrix)
    rows = [[Fraction(value) * (i == j) - matrix[i][j] for j in range(n)] for i in range(n)]
    for k in range(n):
        if rows[k][k] <= 0:
            return False
        for i in range(k + 1, n):
            factor = rows[i][k] / rows[k][k]
            rows[i] = [a - factor * b for a, b in zip(rows[i], rows[k], strict=True)]
    return True


@for_each("goal", ["averaging", "chain", "process", "pairwise"])
def test_exact_objectives_are_proven_and_near(goal):
    rng = np.random.default_rng(3)
    graph = nx.gnm_random_graph(9, 16, seed=4)
    asked = instance(graph, goal, 20.0 if goal == "process" else None)
    count = 32 if goal == "pairwise" else 16
    given = answer((rng.uniform(0.01, 0.12, count)).tolist())
    plain, proven = evaluate(asked, given), evaluate(asked, given, exact=True)
    assert isinstance(proven.objective, Fraction)
    worse = float(proven.objective) - plain.objective
    assert abs(worse) < 1e-9
    n = 9
    weights = [Fraction(value) for value in given.weights]
    if goal == "pairwise":
        weights = [(weights[2 * e] + weights[2 * e + 1]) / (2 * n) for e in range(16)]
    laplacian = [[Fraction(0)] * n for _ in range(n)]
    for (i, j), weight in zip(asked.network.edges, weights, strict=True):
        laplacian[i][j] -= weight
        laplacian[j][i] -= weight
        laplacian[i][i] += weight
        laplacian[j][j] += weight
    share = Fraction(1, n)
    if goal == "process":  # L + large·J − λI is positive definite just below the second eigenvalue
        negative = [[-laplacian[i][j] - 100 * share for j in range(n)] for i in range(n)]
        assert by_determinants(negative, -proven.objective)
        return
    beside = [[Fraction(i == j) - laplacian[i][j] - share for j in range(n)] for i in range(n)]
    assert by_determinants(beside, proven.objective)
    if goal != "pairwise":
        assert by_determinants([[-value for value in row] for row in beside], proven.objective)


def test_largest_below_is_above_the_largest_eigenvalue():
    rng = np.random.default_rng(0)
    for n in (3, 20, 60):
        matrix = rng.normal(size=(n, n))
        matrix += matrix.T
        matrix -= matrix.mean(axis=0)
        matrix -= matrix.mean(axis=1)[:, None]
        matrix = (matrix + matrix.T) / 2
        top = np.linalg.eigvalsh(matrix)[-1]
        assert top <= float(largest_below(matrix, 0.0)) <= top + 1e-9 * max(1.0, abs(top))


@for_each("goal", ["averaging", "chain", "process", "pairwise"])
@for_each("seed", seeds(2, 6))
def test_no_certificate_is_beyond_any_weights(goal, seed):
    """Whatever matrix is offered, the bound that it gives holds for whatever weights are offered."""
    rng = np.random.default_rng(seed)
    graph = nx.connected_watts_strogatz_graph(8, 4, 0.5, seed=seed)
    asked = instance(graph, goal, 3.0 if goal == "process" else None)
    count = len(asked.network.edges) * (2 if goal == "pairwise" else 1)
    values = []
    for _ in range(40):
        weights = rng.uniform(0, 1, count)
        if goal == "averaging":
            weights = rng.normal(0.2, 0.1, count)
        elif goal == "process":
            weights *= 3.0 / weights.sum() * (1 - 1e-12)
        elif goal == "chain":
            weights /= asked.network.degrees.max()
        else:
            weights /= asked.network.degrees[asked.network.ends.ravel()]
        found = evaluate(asked, answer(weights.tolist()))
        assert found.feasible
        values.append(found.objective)
    for _ in range(40):
        offered = rng.normal(size=(8, 8))
        offered = offered + offered.T if rng.random() < 0.5 else rng.choice([-1, 1]) * offered @ offered.T
        proven = spectral_bound(asked, offered, rng.uniform(0, 1, 8) if goal == "chain" else None)
        if goal == "process":
            assert proven >= max(values)
        else:
            assert proven <= min(values)
    if goal == "process":
        assert bound(asked) >= max(values)
    else:
        assert 0 < bound(asked) <= min(values)


@for_each(
    ("graph", "order", "edges", "arcs"),
    [
        (nx.complete_graph(6), 720, 1, 1),
        (nx.petersen_graph(), 120, 1, 1),
        (nx.hypercube_graph(4), 384, 1, 1),
        (nx.path_graph(7), 2, 3, 6),
        (nx.star_graph(5), 120, 1, 2),
        (nx.grid_2d_graph(5, 5, periodic=True), 200, 1, 1),
        (nx.complete_bipartite_graph(2, 3), 12, 1, 2),
        (nx.karate_club_graph(), 480, 64, 126),
        (nx.frucht_graph(), 1, 18, 36),
    ],
)
def test_automorphisms(graph, order, edges, arcs):
    network = instance(graph).network
    found = automorphisms(network)
    assert found.group.order() == order
    assert (found.edge_orbits.max() + 1, found.arc_orbits.max() + 1) == (edges, arcs)
    linked = {frozenset(edge) for edge in network.edges}
    for image in found.generators:
        assert {frozenset((int(image[i]), int(image[j]))) for i, j in network.edges} == linked


def test_edge_orbits_are_those_of_the_whole_group():
    graph = nx.convert_node_labels_to_integers(nx.ladder_graph(4))
    network = instance(graph).network
    whole = nx.algorithms.isomorphism.GraphMatcher(graph, graph).isomorphisms_iter()
    classes = {}
    for image in whole:
        for place, (i, j) in enumerate(network.edges):
            other = frozenset((image[i], image[j]))
            classes.setdefault(place, set()).add(other)
    orbits = automorphisms(network).edge_orbits
    for place in range(len(network.edges)):
        same = {frozenset(network.edges[other]) for other in np.flatnonzero(orbits == orbits[place])}
        assert same == classes[place]


@pytest.mark.parametrize("graph", [nx.complete_graph(4), nx.petersen_graph(), nx.star_graph(4), nx.path_graph(3)])
def test_bounds_are_met_where_all_edges_are_alike(graph):
    """Then equal weights are best, and what they reach is a matter of the Laplacian's eigenvalues."""
    values = np.linalg.eigvalsh(nx.laplacian_matrix(graph).toarray())
    least, most = values[1], values[-1]
    for goal in ("averaging", "chain"):
        assert bound(instance(graph, goal)) == pytest.approx((most - least) / (most + least))
    assert bound(instance(graph, "process", budget=2)) == pytest.approx(2 * least / graph.number_of_edges())


def test_bounds_of_a_path_of_four_and_of_graphs_that_are_large(monkeypatch):
    """After a round an end has heard of two of four nodes, after two of three."""
    distances = np.abs(np.subtract.outer(np.arange(4), np.arange(4)))
    assert bounds._by_distance(distances) == pytest.approx(max((1 / 3) ** (1 / 2), (1 / 9) ** (1 / 4)))
    assert bounds._by_distance(np.where(distances > 1, 3, distances)) == pytest.approx((1 / 3) ** (1 / 4))
    path = nx.path_graph(4)
    assert bound(instance(path)) == pytest.approx(0.6806873381910694)
    monkeypatch.setattr(bounds, "_MANY_NODES", 3)
    assert bound(instance(path)) == pytest.approx((1 / 3) ** (1 / 2))
    assert bound(instance(path, "process", budget=1)) == pytest.approx(2 / 3)  # degrees of 2 over n - 1
    monkeypatch.setattr(bounds, "_MANY_NODES", 4)
    assert bound(instance(path)) == pytest.approx(0.6806873381910694)


def test_only_the_slowest_vector_proves_the_bound_of_a_ladder():
    """Of 2 x 3 nodes: from one end to the other; across, which is twice as fast, is left out."""
    ladder = instance(nx.grid_2d_graph(3, 2))
    slow = np.repeat([1.0, 0.0, -1.0], 2) / 2
    assert bound(ladder) == pytest.approx(spectral_bound(ladder, np.outer(slow, slow)))
    both = np.outer(slow, slow) + np.outer(*[np.tile([1.0, -1.0], 3) / 6**0.5] * 2)
    assert bound(ladder) > spectral_bound(ladder, both) + 1e-3


def test_a_budget_may_be_used_up():
    asked = instance(nx.path_graph(3), "process", budget=2)
    for exact in (False, True):
        assert evaluate(asked, answer((1, 1)), exact).feasible
        assert not evaluate(asked, answer((1, 1 + 1e-6)), exact).feasible
