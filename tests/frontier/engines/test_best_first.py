"""Open nodes by their bounds."""

import random

import pytest

from ddlopt.frontier.engines.best_first import OpenNodes


def test_nodes_come_by_bound_and_equal_ones_as_they_were_opened():
    nodes: OpenNodes[str] = OpenNodes()
    for bound, name in ((2.0, "c"), (1.0, "a"), (2.0, "d"), (1.0, "b")):
        nodes.push(bound, name)
    assert [nodes.pop() for _ in range(4)] == [(1.0, "a"), (1.0, "b"), (2.0, "c"), (2.0, "d")]
    assert not nodes


def test_nodes_need_no_order_among_themselves():
    nodes: OpenNodes[object] = OpenNodes()
    for _ in range(3):
        nodes.push(0.0, object())
    assert len(list(nodes)) == len(nodes) == 3


def test_a_raised_node_keeps_its_place_among_equal_ones():
    nodes: OpenNodes[str] = OpenNodes()
    nodes.push(0.0, "first")
    nodes.push(1.0, "second")
    nodes.raise_first(1.0)
    assert nodes.first() == (1.0, "first")
    nodes.raise_first(3.0)
    assert nodes.first() == (1.0, "second")
    assert nodes.least == 1.0


def test_what_is_put_off_stays_in_the_bound():
    nodes: OpenNodes[int] = OpenNodes()
    assert nodes.bound == nodes.least == float("inf")
    nodes.push(4.0, 0)
    nodes.put_off(3.0)
    nodes.put_off(5.0)
    assert (nodes.least, nodes.bound) == (4.0, 3.0)
    nodes.pop()
    assert (nodes.least, nodes.bound) == (float("inf"), 3.0)


@pytest.mark.parametrize("seed", range(5))
def test_the_knapsack_of_most_worth(seed):
    rng = random.Random(seed)
    items = sorted(
        ((rng.randint(1, 9), rng.randint(1, 9)) for _ in range(9)), key=lambda item: item[0] / item[1], reverse=True
    )
    room = 20

    def loss(place: int, worth: float, left: int) -> float:
        """Minus the worth with parts of items."""
        for value, size in items[place:]:
            part = min(1.0, left / size)
            worth, left = worth + part * value, left - round(part * size)
            if part < 1:
                break
        return -worth

    best = max(
        sum(items[i][0] for i in range(9) if chosen >> i & 1)
        for chosen in range(1 << 9)
        if sum(items[i][1] for i in range(9) if chosen >> i & 1) <= room
    )
    nodes: OpenNodes[tuple[int, int, int]] = OpenNodes()
    nodes.push(loss(0, 0, room), (0, 0, room))
    found = 0
    while nodes and nodes.least < -found:
        _, (place, worth, left) = nodes.pop()
        found = max(found, worth)
        if place < len(items):
            value, size = items[place]
            nodes.push(loss(place + 1, worth, left), (place + 1, worth, left))
            if size <= left:
                nodes.push(loss(place + 1, worth + value, left - size), (place + 1, worth + value, left - size))
        assert -nodes.bound >= best or found == best
    assert found == best
