"""Planes: every colouring is proper and complete, refusals are right."""

import random
from collections import Counter

import networkx as nx
import pytest
from volume import for_each

from ddlopt.models.topology.planes import colour_planes


def assert_matchings(planes, links, degree):
    assert planes is not None
    assert len(planes) == degree
    held = Counter()
    for plane in planes:
        servers = [server for pair in plane for server in pair]
        assert len(servers) == len(set(servers)), "a plane must be a matching"
        held.update(plane)
    assert held == Counter(links), "the planes must hold exactly the links"


@for_each(("servers", "degree"), [(6, 3), (12, 4), (12, 11), (32, 4), (64, 3)])
@for_each("seed", range(3))
def test_random_regular_graphs_are_coloured(servers, degree, seed):
    links = {tuple(sorted(edge)): 1 for edge in nx.random_regular_graph(degree, servers, seed=seed).edges}
    assert_matchings(colour_planes(servers, links, degree, seed), links, degree)


def test_bipartite_multigraphs_need_only_their_degree():
    rng = random.Random(3)
    links = Counter((i, 20 + j) for _ in range(5) for i, j in enumerate(rng.sample(range(20), 20)))
    assert max(links.values()) > 1
    assert_matchings(colour_planes(40, links, 5), links, 5)


def test_parallel_links_and_pairs_in_either_order():
    assert_matchings(colour_planes(4, {(1, 0): 2, (2, 3): 3}, 3), {(0, 1): 2, (2, 3): 3}, 3)


def test_no_links_give_empty_planes():
    assert colour_planes(3, {}, 2) == ((), ())


def edges(graph):
    return {tuple(sorted(edge)): 1 for edge in graph.edges}


@pytest.mark.parametrize(
    ("servers", "links", "degree"),
    [
        (3, edges(nx.cycle_graph(3)), 2),
        (5, edges(nx.complete_graph(5)), 4),
        (10, edges(nx.petersen_graph()), 3),
        (3, {(0, 1): 2, (1, 2): 1}, 2),
        (8, edges(nx.disjoint_union(nx.cycle_graph(5), nx.cycle_graph(3))), 2),
        (3, {(0, 1): 1, (1, 2): 1, (0, 2): 2}, 3),
    ],
    ids=["odd ring", "K5", "Petersen", "too many links", "odd component", "fat triangle"],
)
def test_uncolourable_designs_are_refused(servers, links, degree):
    assert colour_planes(servers, links, degree) is None


@for_each("seed", range(20))
def test_small_refusals_agree_with_an_independent_search(seed):
    """Against colouring the line graph by brute force over maximal matchings."""
    rng = random.Random(seed)
    links = Counter()
    for _ in range(9):
        links[tuple(sorted(rng.sample(range(6), 2)))] += 1
    degree = max(sum(c for pair, c in links.items() if v in pair) for v in range(6))

    def splits(left, planes):
        if not +left:
            return True
        if planes == 0:
            return False
        graph = nx.Graph(list(+left))
        clashes = nx.complement(nx.line_graph(graph))
        return any(splits(left - Counter(clique), planes - 1) for clique in named_cliques(clashes, left))

    def named_cliques(graph, left):
        for clique in nx.find_cliques(graph):
            yield [tuple(sorted(edge)) for edge in clique]

    planes = colour_planes(6, links, degree)
    assert (planes is not None) == splits(links, degree)
    if planes is not None:
        assert_matchings(planes, links, degree)
