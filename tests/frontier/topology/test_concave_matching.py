"""Concave matching: optimal on tiny cases, integral where it should be, never worse than repeated Blossom."""

import itertools

import networkx as nx
import numpy as np
import pyomo.environ as pyo
import pytest
from volume import for_each, seeds

from ddlopt.frontier.topology.formulations.concave_matching import ConcaveMatching
from ddlopt.models.topology import TopologyInstance
from ddlopt.models.topology.planes import colour_planes
from ddlopt.solvers.backends.highs import Highs
from ddlopt.solvers.contracts import Limits, Status


def random_instance(servers, degree, seed, **options):
    rng = np.random.default_rng(seed)
    traffic = rng.integers(0, 12, (servers, servers)) * (rng.random((servers, servers)) < 0.8)
    np.fill_diagonal(traffic, 0)
    traffic[0, 1] += 20
    figures = {"name": "x", "servers": servers, "degree": degree, "link_bandwidth_bytes_per_s": 1.0} | options
    return TopologyInstance(traffic_bytes=traffic, **figures)


def solve(formulation, instance, relaxed=False):
    model = pyo.ConcreteModel()
    model.topology = pyo.Block()
    formulation.build(model.topology, instance)
    model.objective = pyo.Objective(expr=model.topology.objective, sense=pyo.maximize)
    if relaxed:
        pyo.TransformationFactory("core.relax_integer_vars").apply_to(model)
    outcome = Highs().solve(model, Limits(gap=0.0))
    assert outcome.status is Status.OPTIMAL
    return outcome.objective, model.topology


def value_of(formulation, instance, links):
    """Value of links, from the statement of the problem."""
    total = 0.0
    for (i, j), count in links.items():
        bytes_ = instance.traffic_bytes[i, j] + (instance.traffic_bytes[j, i] if instance.optics == "duplex" else 0)
        total += bytes_ * sum(formulation.weight(c) for c in range(1, count + 1))
    return total


def degrees(instance, links):
    out, into = np.zeros(instance.servers, int), np.zeros(instance.servers, int)
    for (i, j), count in links.items():
        out[i] += count
        into[j] += count
    return (out + into,) if instance.optics == "duplex" else (out, into)


def brute_force(formulation, instance):
    """The best value over every number of links of every pair."""
    duplex, d = instance.optics == "duplex", instance.degree
    n = instance.servers
    pairs = list(itertools.combinations(range(n), 2) if duplex else itertools.permutations(range(n), 2))
    best = 0.0
    for counts in itertools.product(range(instance.most_links_of_a_pair + 1), repeat=len(pairs)):
        links = dict(zip(pairs, counts, strict=True))
        if max(side.max() for side in degrees(instance, links)) > d:
            continue
        value = value_of(formulation, instance, links)
        if value > best and (not (duplex and formulation.planes) or colour_planes(n, links, d) is not None):
            best = value
    return best


@for_each("diminishing", ["halving", "harmonic"])
@for_each(
    ("servers", "options"),
    [
        (3, {}),
        (4, {"parallel_links": False}),
        (4, {"optics": "duplex"}),
        (5, {"optics": "duplex", "parallel_links": False}),
    ],
)
@for_each("seed", seeds(1, 3))
def test_equals_brute_force(servers, options, diminishing, seed):
    instance = random_instance(servers, 2, seed, **options)
    for planes in (True, False) if instance.optics == "duplex" else (True,):
        formulation = ConcaveMatching(diminishing=diminishing, planes=planes)
        value, block = solve(formulation, instance)
        links = formulation.read_links(block)
        assert value == pytest.approx(brute_force(formulation, instance))
        assert value_of(formulation, instance, links) == pytest.approx(value)
        assert max(side.max() for side in degrees(instance, links)) <= instance.degree


@for_each("seed", range(5))
def test_one_way_linear_program_has_integral_optima(seed):
    instance = random_instance(12, 4, seed)
    formulation = ConcaveMatching()
    value, block = solve(formulation, instance)
    assert not any(variable.is_integer() for variable in block.copy.values()), "one-way copies are continuous"
    links = formulation.read_links(block)
    assert value_of(formulation, instance, links) == pytest.approx(value)


@pytest.mark.parametrize("seed", range(3))
def test_duplex_equals_matching_on_the_expanded_graph(seed):
    """Each server becomes d interfaces, each copy a pair of nodes: a b-matching as a matching (Tutte)."""
    instance = random_instance(6, 3, seed, optics="duplex")
    formulation = ConcaveMatching(planes=False)
    graph = nx.Graph()
    worth = instance.traffic_bytes + instance.traffic_bytes.T
    for i, j in itertools.combinations(range(6), 2):
        for c in (1, 2, 3):
            weight = worth[i, j] * formulation.weight(c)
            tail, head = ("copy", i, j, c, 0), ("copy", i, j, c, 1)
            # A laid copy matches both ends to interfaces, an idle one matches them with each other.
            graph.add_edge(tail, head, weight=weight)
            for a in range(3):
                graph.add_edge((i, a), tail, weight=weight)
                graph.add_edge((j, a), head, weight=weight)
    matched = nx.max_weight_matching(graph)
    idle = sum(data["weight"] for u, v, data in graph.edges(data=True) if u[0] == v[0] == "copy")
    expanded = sum(graph.edges[edge]["weight"] for edge in matched) - idle
    assert solve(formulation, instance)[0] == pytest.approx(expanded)


def test_planes_matter_on_a_triangle():
    triangle = [[0, 1, 1], [0, 0, 1], [0, 0, 0]]
    instance = TopologyInstance(
        name="x", servers=3, degree=2, link_bandwidth_bytes_per_s=1.0, optics="duplex", traffic_bytes=triangle
    )
    assert solve(ConcaveMatching(planes=False), instance)[0] == pytest.approx(3.0)
    assert solve(ConcaveMatching(), instance)[0] == pytest.approx(2.0)
    one_link_each = ConcaveMatching(planes=False, degree=1)
    assert solve(one_link_each, instance, relaxed=True)[0] == pytest.approx(1.5), "the odd cycle's fractional matching"
    assert solve(one_link_each, instance)[0] == pytest.approx(1.0)


@for_each("seed", range(4))
def test_never_worse_than_repeated_blossom(seed):
    """d rounds of a largest matching with halved demand, as the paper lays duplex links."""
    instance = random_instance(10, 3, seed, optics="duplex")
    formulation = ConcaveMatching()
    left = instance.traffic_bytes + instance.traffic_bytes.T
    links: dict[tuple[int, int], int] = {}
    for _ in range(3):
        graph = nx.Graph()
        pairs = itertools.combinations(range(10), 2)
        graph.add_weighted_edges_from((i, j, left[i, j]) for i, j in pairs if left[i, j] > 0)
        for i, j in (tuple(sorted(edge)) for edge in nx.max_weight_matching(graph)):
            links[i, j] = links.get((i, j), 0) + 1
            left[i, j] /= 2
    value, block = solve(formulation, instance)
    assert value >= value_of(formulation, instance, links) - 1e-6
    assert colour_planes(10, formulation.read_links(block), 3) is not None


def test_degree_and_copies_can_be_held_back():
    instance = random_instance(6, 4, 0)
    for formulation in (ConcaveMatching(degree=2), ConcaveMatching(copies=1)):
        links = formulation.read_links(solve(formulation, instance)[1])
        assert max(side.max() for side in degrees(instance, links)) == (formulation.degree or 4)
        assert max(links.values()) <= (formulation.copies or 2)


@pytest.mark.parametrize("name", ["copies", "degree"])
def test_impossible_options_are_refused(name):
    with pytest.raises(ValueError, match=f"{name} must be at least 1, got 0"):
        ConcaveMatching(**{name: 0})
