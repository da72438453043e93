"""Interchangeable servers, and rows that leave few of their numberings.

If exchanging two servers leaves the traffic as it is, it turns every design into another one that is as good; so one
numbering of each set of such twins is enough.
"""

from collections import deque
from collections.abc import Mapping
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from ddlopt.models.topology.instance import TopologyInstance

if TYPE_CHECKING:
    import pyomo.environ as pyo

Pair = tuple[int, int]


def interchangeable(instance: TopologyInstance) -> list[tuple[int, ...]]:
    """Largest sets of at least two servers any two of which can be exchanged without a change of traffic.

    All-reduce groups count as well: exchanged servers must be in the same ones.
    """
    traffic, groups = instance.traffic_bytes, [set(group.members) for group in instance.allreduce_groups]
    classes: list[list[int]] = []
    for server in range(instance.servers):
        for twins in classes:
            order = np.arange(instance.servers)
            order[[server, twins[0]]] = twins[0], server
            same = np.array_equal(traffic[np.ix_(order, order)], traffic)
            if same and all((server in members) == (twins[0] in members) for members in groups):
                twins.append(server)
                break
        else:
            classes.append([server])
    return [tuple(twins) for twins in classes if len(twins) > 1]


def add_numbering(block: "pyo.Block", instance: TopologyInstance) -> None:
    """Constrain ``joined[i, j]`` so that few of the numberings of twins are left.

    If all servers are twins and must reach each other, they are numbered breadth first from server 0: the first
    in-neighbour of j precedes j, and nobody after j has an earlier one. Otherwise the twins next to one chosen server
    come before those that are not.
    """
    import pyomo.environ as pyo

    classes, n = interchangeable(instance), instance.servers
    if _breadth_first(instance, classes):
        block.FOUND = pyo.RangeSet(1, n - 1, doc="servers but the first")
        block.OVERTAKING = pyo.Set(dimen=2, initialize=[(i, j) for j in range(1, n - 1) for i in range(j)])

        @block.Constraint(block.FOUND, doc="each server is found from one before it")
        def servers_are_found_in_turn(b: Any, j: int) -> Any:
            return sum(b.joined[i, j] for i in range(j)) >= 1

        @block.Constraint(block.OVERTAKING, doc="who is found from i comes after all found from servers before i")
        def servers_are_numbered_breadth_first(b: Any, i: int, j: int) -> Any:
            return b.joined[i, j + 1] <= sum(b.joined[h, j] for h in range(i + 1))

        return
    root = _root(instance, classes)
    followers = [(a, b) for twins in classes for a, b in _consecutive(twins, root)]
    block.FOLLOWERS = pyo.Set(dimen=2, initialize=followers, doc="twins, one after the other")

    @block.Constraint(block.FOLLOWERS, doc="twins next to the root come first")
    def twins_next_to_the_root_come_first(b: Any, i: int, j: int) -> Any:
        return b.joined[root, i] >= b.joined[root, j]


def renumbering(instance: TopologyInstance, counts: Mapping[Pair, int]) -> list[int]:
    """New number of each server such that links ``counts`` satisfy :func:`add_numbering`; traffic stays the same."""
    classes, n = interchangeable(instance), instance.servers
    numbers = list(range(n))
    if _breadth_first(instance, classes):
        found, queue = [0], deque([0])
        while queue:
            i = queue.popleft()
            new = [j for j in range(n) if j not in found and counts.get((i, j), 0) > 0]
            found += new
            queue += new
        if len(found) == n:
            for number, server in enumerate(found):
                numbers[server] = number
        return numbers
    root = _root(instance, classes)
    for twins in classes:
        free = [server for server in twins if server != root]
        for number, server in zip(free, sorted(free, key=lambda j: counts.get((root, j), 0) == 0), strict=True):
            numbers[server] = number
    return numbers


def _breadth_first(instance: TopologyInstance, classes: list[tuple[int, ...]]) -> bool:
    return instance.host_forwarding and bool(classes) and len(classes[0]) == instance.servers


def _root(instance: TopologyInstance, classes: list[tuple[int, ...]]) -> int:
    """A server without twins if there is one, so that none of them is fixed."""
    with_twins = {server for twins in classes for server in twins}
    return min(range(instance.servers), key=lambda server: (server in with_twins, server))


def _consecutive(twins: tuple[int, ...], root: int) -> list[Pair]:
    rest = [server for server in twins if server != root]
    return list(pairwise(rest))
