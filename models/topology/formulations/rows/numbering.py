"""Rows that leave few of the numberings of interchangeable servers.

If all pairs exchange the same, every renumbering turns a design into another one that is as good, and one numbering of
each is enough: breadth first from server 0.
"""

from collections.abc import Mapping
from typing import Any

import pyomo.environ as pyo

from ddlopt.models.topology.instance import TopologyInstance


def add_numbering(block: pyo.Block, instance: TopologyInstance) -> None:
    """Constrain ``links_between[i, j]``: the first in-neighbour of j precedes j, and nobody after j has an earlier one.

    Servers must be interchangeable, and reach each other.
    """
    n, most = instance.servers, instance.most_links_of_a_pair
    block.FOUND = pyo.RangeSet(1, n - 1, doc="servers but the first")
    block.OVERTAKING = pyo.Set(dimen=2, initialize=[(i, j) for j in range(1, n - 1) for i in range(j)])

    @block.Constraint(block.FOUND, doc="each server is found from one before it")
    def servers_are_found_in_turn(b: Any, j: int) -> Any:
        return sum(b.links_between[i, j] for i in range(j)) >= 1

    @block.Constraint(block.OVERTAKING, doc="who is found from i comes after all found from servers before i")
    def servers_are_numbered_breadth_first(b: Any, i: int, j: int) -> Any:
        return b.links_between[i, j + 1] <= most * sum(b.links_between[h, j] for h in range(i + 1))


def renumbering(servers: int, counts: Mapping[tuple[int, int], int]) -> list[int]:
    """New number of each server such that links ``counts`` of ordered pairs satisfy :func:`add_numbering`."""
    found = [0]
    for i in found:  # grows on the way
        found += [j for j in range(servers) if j not in found and counts.get((i, j), 0) > 0]
    found += [server for server in range(servers) if server not in found]  # out of reach: they serve nobody
    return [found.index(server) for server in range(servers)]
