"""Shapes of drawn networks for pipelines."""

import pytest
from volume import for_each

from ddlopt.instances.generators.deployment import generate


def edges(**options):
    return [(edge.maker, edge.user) for edge in generate("pipeline", 1, **options).edges]


def test_branches_and_cells_by_hand():
    assert edges(layers=5, shape="branches") == [(0, 1), (0, 3), (1, 2), (2, 6), (3, 4), (4, 5), (5, 6)]
    assert edges(layers=4, shape="branches", width=3) == [(0, 1), (0, 2), (0, 3), (1, 5), (2, 5), (3, 4), (4, 5)]
    # A cell of two chains of four, and one of a block less.
    cells = edges(layers=16, shape="cells")
    assert cells[:3] == [(0, 1), (0, 5), (1, 2)]
    assert {maker for maker, user in cells if user == 9} == {4, 8}
    assert {maker for maker, user in cells if user == 17} == {12, 16}
    assert (9, 10) in cells
    assert (9, 13) in cells


@for_each("width", [1, 2, 5, 40])
def test_ranks_read_the_rank_before_and_are_read(width):
    found = edges(layers=30, shape="layered", width=width)
    rank = {0: 0, 31: 1 + -(-30 // width)} | {place: 1 + (place - 1) // width for place in range(1, 31)}
    assert all(rank[user] == rank[maker] + 1 for maker, user in found)
    assert {maker for maker, _ in found} == set(range(31))
    assert {user for _, user in found} == set(range(1, 32))


@pytest.mark.parametrize("shape", ["branches", "cells", "layered"])
def test_one_block_wide_is_a_chain(shape):
    assert edges(layers=9, shape=shape, width=1) == edges(layers=9, shape="chain")
