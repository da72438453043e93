import itertools
from collections import Counter

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ddlopt.solvers.topology.routing import UNREACHABLE, Network, balanced_paths, k_shortest_paths, shortest_paths


def ordered_pairs(n):
    return np.array(list(itertools.permutations(range(n), 2)), dtype=np.int32)


def circulant(n, generators):
    return Network.of(n, {(v, (v + g) % n): 1 for v in range(n) for g in generators})


@st.composite
def strongly_connected(draw):
    n = draw(st.integers(2, 7))
    arcs = set(draw(st.lists(st.sampled_from(list(itertools.permutations(range(n), 2))), max_size=20)))
    return n, arcs | {(v, (v + 1) % n) for v in range(n)}


@given(strongly_connected(), st.integers(1, 6), st.integers(0, 3))
@settings(deadline=None)
def test_the_k_shortest_paths_are_the_shortest_there_are(graph, k, seed):
    n, arcs = graph
    network = Network.of(n, dict.fromkeys(arcs, 1))
    pairs = ordered_pairs(n)[:: max(1, n - 3)]
    sets = k_shortest_paths(network, pairs, k, seed)
    for q, (i, j) in enumerate(pairs.tolist()):
        everything = sorted((len(p), tuple(p)) for p in nx.all_simple_paths(nx.DiGraph(arcs), i, j))
        found = sets.of_pair(q)
        assert len(set(found)) == len(found) == min(k, len(everything))
        assert {(len(p), p) for p in found} <= set(everything)
        assert [len(p) for p in found] == [length for length, _ in everything[: len(found)]]


def test_distances_of_what_is_not_joined():
    network = Network.of(3, {(0, 1): 2})
    assert network.distances.tolist() == [[0, 1, UNREACHABLE], [UNREACHABLE, 0, UNREACHABLE], [UNREACHABLE] * 2 + [0]]
    assert network.unreachable(ordered_pairs(3)) == (0, 2)
    with pytest.raises(ValueError, match=r"\(1, 0\)"):
        k_shortest_paths(network, np.array([[0, 1], [1, 0]], dtype=np.int32), 1)


def test_a_long_ring_has_one_path_per_pair():
    network = circulant(60, [1])
    sets = k_shortest_paths(network, ordered_pairs(60), 4)
    assert np.diff(sets.owned).tolist() == [1] * 60 * 59


def test_shortest_paths_are_drawn_uniformly_by_seed():
    """From 0 to 3 in Z_16 with +1 and +2 there are two shortest paths, from 0 to 5 three."""
    network = circulant(16, [1, 2])
    pairs = np.array([[0, 3], [0, 5]], dtype=np.int32)
    drawn = [shortest_paths(network, pairs, seed) for seed in range(400)]
    assert drawn[7] == shortest_paths(network, pairs, 7)
    for place, ways in ((0, 2), (1, 3)):
        counts = Counter(paths[place] for paths in drawn)
        assert len(counts) == ways
        assert min(counts.values()) > 400 / ways * 0.7


def test_balancing_spreads_over_equal_paths():
    """Four unit demands from 0 to 5 over two disjoint two-hop paths, one of them with doubled links."""
    network = Network.of(4, {(0, 1): 1, (1, 3): 1, (0, 2): 3, (2, 3): 3})
    pairs = np.array([[0, 3]] * 4, dtype=np.int32)
    loads = np.zeros(4)
    paths = balanced_paths(network, k_shortest_paths(network, pairs, 2), np.ones(4), loads)
    assert Counter(paths) == {(0, 1, 3): 1, (0, 2, 3): 3}
    assert loads[network.arc[0, 2]] == 3
    assert loads[network.arc[0, 1]] == 1


def test_balancing_starts_with_the_largest_and_minds_what_is_there():
    network = Network.of(4, {(0, 1): 1, (1, 3): 1, (0, 2): 1, (2, 3): 1})
    pairs = np.array([[0, 3], [0, 3]], dtype=np.int32)
    loads = np.zeros(4)
    loads[network.arc[2, 3]] = 10.0
    paths = balanced_paths(network, k_shortest_paths(network, pairs, 2), np.array([1.0, 8.0]), loads)
    assert paths == [(0, 1, 3), (0, 1, 3)]
    loads[:] = 0
    loads[network.arc[2, 3]] = 7.5
    assert balanced_paths(network, k_shortest_paths(network, pairs, 2), np.array([1.0, 8.0]), loads) == [
        (0, 2, 3),
        (0, 1, 3),
    ]
