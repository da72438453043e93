"""Parts of TopologyFinder: routes by coin change, the choice of permutations, and matchings."""

import itertools

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog
from volume import for_each

from ddlopt.models.topology import TopologyInstance
from ddlopt.models.topology.permutations import totients
from ddlopt.solvers.topology.draft import Draft
from ddlopt.solvers.topology.routing import UNREACHABLE, Network
from ddlopt.solvers.topology.topoopt.coin_change import coin_change_mod
from ddlopt.solvers.topology.topoopt.matching import heaviest_matching, repeated_matching
from ddlopt.solvers.topology.topoopt.select_permutations import choose_geometric, select_permutations


def test_a_table_by_hand():
    """Coins 1 and 3 modulo 8: 7 = 3 + 3 + 1, 5 = 3 + 1 + 1, 2 = 1 + 1, 4 = 3 + 1, 6 = 3 + 3."""
    table = coin_change_mod(8, (1, 3))
    assert table.hops.tolist() == [0, 1, 2, 1, 2, 3, 2, 3]
    assert sorted(table.coins(7)) == [1, 3, 3]
    assert table.coins(0) == ()
    path = table.path(6, 5)
    assert (path[0], path[-1], len(path)) == (6, 5, 4)


def test_coins_that_do_not_generate():
    table = coin_change_mod(12, (4,))
    assert not table.complete
    assert table.hops.tolist() == [0, -1, -1, -1, 1, -1, -1, -1, 2, -1, -1, -1]
    with pytest.raises(ValueError, match="do not generate Z_12"):
        table.coins(3)


@settings(deadline=None)
@given(st.integers(2, 40), st.data())
def test_hops_are_distances_and_paths_are_walks(n, data):
    coins = data.draw(st.lists(st.integers(1, n - 1), max_size=4))
    seed = data.draw(st.sampled_from([None, 0, 1]))
    table = coin_change_mod(n, coins, seed)
    network = Network.of(n, {(v, (v + c) % n): 1 for v in range(n) for c in coins})
    hops = np.where(table.hops < 0, UNREACHABLE, table.hops)
    assert (network.distances[0] == hops).all()
    assert table.complete == bool((table.hops >= 0).all())
    for target in np.flatnonzero(table.hops > 0).tolist():
        source = data.draw(st.integers(0, n - 1))
        path = table.path(source, (source + target) % n)
        assert len(path) == table.hops[target] + 1
        assert all((j - i) % n in coins for i, j in itertools.pairwise(path))


def test_seeds_break_ties():
    tables = [coin_change_mod(64, (1, 5, 21), seed).last.tolist() for seed in (None, 3, 3, 4)]
    assert tables[1] == tables[2] != tables[3]
    assert tables[0] == coin_change_mod(64, (21, 5, 1)).last.tolist()


@for_each(
    ("size", "count", "expected"),
    [
        (8, 2, (1, 3)),  # x = 2.83
        (12, 2, (1, 5)),
        (12, 3, (1, 5, 11)),  # 2.29 -> 5, 11.4 -> 11
        (12, 4, (1, 5, 11, 7)),  # 1.86 -> 5, 9.31 -> 11 (nearer than 7), then what is left
        (16, 2, (1, 3)),  # 4 is as near to 3 as to 5: the smaller
        (16, 3, (1, 3, 7)),  # 2.52 -> 3, 7.56 -> 7
        (16, 4, (1, 3, 5, 9)),
        (16, 1, (1,)),
        (16, 0, ()),
    ],
)
def test_paper_rule_on_all_generators(size, count, expected):
    assert select_permutations(totients(size), size, count) == expected


def test_paper_rule_gives_all_where_more_are_wanted():
    assert sorted(select_permutations(totients(12), 12, 9)) == [1, 5, 7, 11]
    assert select_permutations((), 12, 2) == ()


def test_exact_powers_are_hit_exactly():
    """In Z_4097 with 8 = 4096 ** (1 / 4) the series 1, 8, 64, 512 is a multiplicative circulant."""
    assert select_permutations((1, 7, 8, 9, 63, 64, 65, 511, 512, 513), 4096, 4) == (1, 8, 64, 512)


@for_each(
    ("size", "count", "both_ways", "expected"),
    [
        (16, 2, True, (1, 5)),  # ratio 3.87: 1, then the next at or above 3.87
        (16, 3, True, (1, 3, 7)),  # ratio 2.47: 1, 3, 7 (6.08)
        (16, 3, False, (1, 5, 15)),  # ratio 3.87: ends at the largest
        (12, 2, True, (1, 5)),
        (128, 4, True, (1, 5, 13, 39)),  # ratio 3.36
        (6, 2, True, (1, 5)),  # a generator and its reverse: the rule has no guard
        (16, 1, True, (1,)),
        (16, 0, True, ()),
    ],
)
def test_released_rule(size, count, both_ways, expected):
    assert choose_geometric(totients(size), count, both_ways) == expected


@pytest.mark.parametrize("both_ways", [True, False])
def test_released_rule_always_gives_distinct_candidates(both_ways):
    for size in range(2, 60):
        for count in range(1, size):
            chosen = choose_geometric(totients(size), count, both_ways)
            assert len(set(chosen)) == len(chosen) == min(count, len(totients(size)))
            assert set(chosen) <= set(totients(size))


def congestion(n, generators):
    """Bytes on the busiest link when everybody sends one byte to everybody: one flow from server 0, by symmetry."""
    d = len(generators)
    balance = np.zeros((n, n * d + 1))  # columns: arc (u, g), then z
    loads = np.zeros((d, n * d + 1))
    for k, g in enumerate(generators):
        for u in range(n):
            balance[(u + g) % n, u * d + k] += 1
            balance[u, u * d + k] -= 1
            loads[k, u * d + k] = 1
    loads[:, -1] = -1
    cost = np.append(np.zeros(n * d), 1.0)
    return linprog(cost, A_ub=loads, b_ub=np.zeros(d), A_eq=balance[1:], b_eq=np.ones(n - 1)).fun


@for_each(
    ("size", "count", "expected"),
    [(8, 2, 7.0), (12, 2, 15.0), (12, 3, 8.0), (12, 4, 5.0), (16, 2, 30.0), (16, 3, 34 / 3), (16, 4, 7.5)],
)
def test_congestion_of_the_paper_rule(size, count, expected):
    """The optimum over circulants is 23 at (16, 2), 22/3 at (12, 3), 14/3 at (12, 4) and 7.25 at (16, 4)."""
    assert congestion(size, select_permutations(totients(size), size, count)) == pytest.approx(expected)


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
