"""Numba kernels of local search on a graph of strategies: costs of an edge at a given end, and rows of memory.

What is kept in rows of memory is in a tree over the rows: adding to a range of rows takes a logarithmic number of
steps, and the largest excess is at the root.
"""

# mypy: disable-error-code="untyped-decorator, no-any-return"

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from ddlopt.frontier.deployment.strategies.kernels.messages import Graph
from ddlopt.models.kernels import helper

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]


class Items(NamedTuple):
    """What rows of memory keep, as in a core's ``Memory``; the items of node i are ``of[at[i]:at[i + 1]]``."""

    low: Ints
    high: Ints
    start: Ints
    use: Floats
    at: Ints
    of: Ints


@helper
def add_given(graph: Graph, e: int, i: int, other: int, out: Floats) -> None:
    """Add to the costs ``out`` of node i those of edge e, the other end's strategy given."""
    place = graph.table_start[e]
    if graph.edges[e, 0] == i:
        columns = graph.start[graph.edges[e, 1] + 1] - graph.start[graph.edges[e, 1]]
        for a in range(len(out)):
            out[a] += graph.table[place + a * columns + other]
    else:
        for a in range(len(out)):
            out[a] += graph.table[place + other * len(out) + a]


@helper
def tree_of(room: Floats, largest: Floats, added: Floats) -> None:
    """Fill the tree over rows with minus their room; arrays of twice a power of two that is at least their number."""
    half = len(largest) // 2
    for k in range(len(largest)):
        added[k], largest[k] = 0.0, -np.inf
    for k in range(len(room)):
        largest[half + k] = -room[k]
    for k in range(half - 1, 0, -1):
        largest[k] = max(largest[2 * k], largest[2 * k + 1])


@helper
def add_range(largest: Floats, added: Floats, low: int, high: int, amount: float) -> None:
    """Add to the rows ``low:high``."""
    half = len(largest) // 2
    left, right = low + half, high + half
    first, last = left, right - 1
    while left < right:
        if left & 1:
            largest[left] += amount
            added[left] += amount
            left += 1
        if right & 1:
            right -= 1
            largest[right] += amount
            added[right] += amount
        left >>= 1
        right >>= 1
    for leaf in (first, last):
        k = leaf >> 1
        while k:
            largest[k] = max(largest[2 * k], largest[2 * k + 1]) + added[k]
            k >>= 1
