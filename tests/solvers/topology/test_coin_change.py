import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ddlopt.solvers.topology.routing import UNREACHABLE, Network
from ddlopt.solvers.topology.topoopt.coin_change import coin_change_mod


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
