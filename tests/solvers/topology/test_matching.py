import networkx as nx
import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from ddlopt.models.topology import TopologyInstance
from ddlopt.solvers.topology.draft import Draft
from ddlopt.solvers.topology.topoopt.matching import heaviest_matching, repeated_matching


def instance(n, degree, optics="duplex", parallel_links=True):
    return TopologyInstance(
        name="test",
        servers=n,
        degree=degree,
        link_bandwidth_bytes_per_s=1,
        optics=optics,
        parallel_links=parallel_links,
        traffic_bytes=np.ones((n, n)) - np.eye(n),
    )


def symmetric(n, values):
    matrix = np.zeros((n, n))
    for (i, j), value in values.items():
        matrix[i, j] = matrix[j, i] = value
    return matrix


DEMAND = symmetric(4, {(0, 1): 8, (2, 3): 6, (0, 2): 5})


def test_halving_by_hand():
    """01 and 23 weigh 14, then 7 against 5 for 02; then 3.5 against 5."""
    draft = Draft(instance(4, 3))
    joined = repeated_matching(draft, DEMAND, 3, np.random.default_rng(0))
    assert joined == [(0, 1), (2, 3), (0, 1), (2, 3), (0, 2)]
    assert draft.links == {(0, 1): 2, (2, 3): 2, (0, 2): 1}
    assert draft.transmitters.tolist() == [0, 1, 0, 1]


def test_harmonic_by_hand():
    """01 and 23 weigh 14, then 7 against 5, then 4.67 against 5; in the fourth round still 4.67 against 2.5."""
    draft = Draft(instance(6, 4))
    demand = np.pad(DEMAND, (0, 2))
    joined = repeated_matching(draft, demand, 4, np.random.default_rng(0), diminishing="harmonic")
    assert joined == [(0, 1), (2, 3), (0, 1), (2, 3), (0, 2), (0, 1), (2, 3)]


def test_one_way_links_are_laid_in_both_directions():
    draft = Draft(instance(4, 2, "one_way"))
    repeated_matching(draft, DEMAND, 1, np.random.default_rng(0))
    assert draft.links == {(0, 1): 1, (1, 0): 1, (2, 3): 1, (3, 2): 1}


def test_no_parallel_links_where_they_are_forbidden():
    draft = Draft(instance(4, 3, parallel_links=False))
    assert repeated_matching(draft, DEMAND, None, np.random.default_rng(0)) == [(0, 1), (2, 3), (0, 2)]


def test_perfect_matchings_join_whom_nothing_asks_for():
    draft = Draft(instance(5, 2))
    joined = repeated_matching(draft, symmetric(5, {(1, 2): 3.0}), 1, np.random.default_rng(0), perfect=True)
    assert (1, 2) in joined
    assert len(joined) == 2


def test_ties_are_broken_by_the_generator():
    everybody = ~np.eye(12, dtype=bool)
    found = {tuple(heaviest_matching(np.ones((12, 12)), everybody, np.random.default_rng(s))) for s in range(9)}
    assert len(found) == 9


@given(st.integers(2, 9), st.integers(0, 1000), st.booleans())
@settings(deadline=None)
def test_the_matching_is_as_heavy_as_networkx_says(n, seed, perfect):
    rng = np.random.default_rng(seed)
    weights = np.triu(rng.integers(0, 20, (n, n)), 1).astype(float)
    weights += weights.T
    allowed = np.triu(rng.random((n, n)) < 0.6, 1)
    allowed |= allowed.T
    pairs = heaviest_matching(weights, allowed, rng, perfect)
    graph = nx.Graph()
    graph.add_nodes_from(range(n))
    graph.add_weighted_edges_from((i, j, weights[i, j]) for i, j in np.argwhere(np.triu(allowed)))
    expected = nx.max_weight_matching(graph, maxcardinality=perfect)
    assert len({server for pair in pairs for server in pair}) == 2 * len(pairs)
    assert all(allowed[pair] for pair in pairs)
    assert sum(weights[pair] for pair in pairs) == sum(weights[i, j] for i, j in expected)
    if perfect:
        assert len(pairs) == len(expected)


class TestDraft:
    def test_ports_and_parallel_links_limit_what_fits(self):
        draft = Draft(instance(4, 2, "one_way"))
        assert draft.fits([(0, 1), (0, 2)])
        assert not draft.fits([(0, 1), (0, 2), (0, 3)])
        assert not draft.fits([(1, 0), (2, 0), (3, 0)])
        assert draft.fits([(0, 1), (0, 1)])
        assert not Draft(instance(4, 2, "one_way", parallel_links=False)).fits([(0, 1), (0, 1)])
        duplex = Draft(instance(4, 2))
        assert not duplex.fits([(0, 1), (0, 2), (0, 3)])
        assert not duplex.fits([(0, 1), (0, 2), (0, 1)])

    def test_rings(self):
        assert Draft(instance(4, 2, "one_way")).ring_links([2, 0, 3]) == [(2, 0), (0, 3), (3, 2)]
        assert len(Draft(instance(4, 2, "one_way")).ring_links([2, 0, 3], both_ways=True)) == 6
        assert Draft(instance(4, 2)).ring_links([2, 0, 3]) == [(0, 2), (0, 3), (2, 3)]
        assert Draft(instance(4, 2)).ring_links([3, 1]) == [(1, 3)]
        assert Draft(instance(4, 2, "one_way")).ring_links([3, 1]) == [(3, 1), (1, 3)]

    def test_taking_away_gives_the_ports_back(self):
        draft = Draft(instance(4, 2))
        draft.add([(0, 1), (1, 2)])
        draft.add([(0, 1)], -1)
        assert draft.transmitters.tolist() == [2, 1, 1, 2]
        assert draft.network().tails.tolist() == [1, 2]

    def test_an_odd_cycle_loses_its_lightest_link(self):
        draft = Draft(instance(5, 2))
        draft.add(draft.ring_links(range(5)))
        worth = np.full((5, 5), 3.0)
        worth[3, 2] = 1.0
        planes = draft.colour(worth, seed=0)
        assert draft.links == {(0, 1): 1, (1, 2): 1, (3, 4): 1, (0, 4): 1}
        assert sorted(link for plane in planes for link in plane) == sorted(draft.links)

    def test_what_joins_two_parts_is_never_dropped(self):
        """Two triangles, one link of each doubled, hang together by a light bridge.

        Four links on three servers need four planes, and there are three: each triangle gives up a link.
        """
        draft = Draft(instance(6, 3))
        draft.add([(0, 1), (0, 1), (0, 2), (1, 2), (3, 4), (3, 4), (3, 5), (4, 5), (2, 5)])
        worth = np.full((6, 6), 5.0)
        worth[2, 5] = 0.0
        draft.colour(worth, seed=0)
        assert draft.links[2, 5] == 1
        assert sum(draft.links.values()) == 7
        assert nx.is_connected(nx.Graph(list(draft.links)))
