"""Numba kernels of local search on a graph of strategies: random forests solved exactly, and single nodes.

What is kept in rows of memory is in a tree over the rows: adding to a range of rows takes a logarithmic number of
steps, and the largest excess is at the root.
"""

# mypy: disable-error-code="untyped-decorator, no-any-return"

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from ddlopt.frontier.deployment.strategies.kernels.messages import GRAPH, Graph
from ddlopt.models.kernels import helper, kernel

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
def _root(group: Ints, i: int) -> int:
    while group[i] != i:
        group[i] = group[group[i]]
        i = group[i]
    return i


@kernel(f"({GRAPH}, i8[::1], b1[::1])")
def random_forest(graph: Graph, order: Ints, inside: npt.NDArray[np.bool_]) -> None:
    """Set ``inside`` (n,) for nodes that are taken in this order unless they would close a cycle with others taken."""
    size = len(graph.start) - 1
    group, seen = np.empty(size, np.int64), np.empty(size, np.int64)
    for i in range(size):
        group[i], seen[i], inside[i] = i, -1, False
    for i in order:
        fits = True
        for k in range(graph.at[i], graph.at[i + 1]):
            e = graph.around[k]
            j = graph.edges[e, 0] + graph.edges[e, 1] - i
            if inside[j]:
                root = _root(group, j)
                if seen[root] == i:
                    fits = False
                    break
                seen[root] = i
        if fits:
            inside[i] = True
            for k in range(graph.at[i], graph.at[i + 1]):
                e = graph.around[k]
                j = graph.edges[e, 0] + graph.edges[e, 1] - i
                if inside[j]:
                    group[_root(group, j)] = i


@kernel(f"({GRAPH}, f8[::1], b1[::1], i8[::1])", fastmath={"nnan", "nsz"})
def solve_forest(graph: Graph, cost: Floats, inside: npt.NDArray[np.bool_], chosen: Ints) -> None:
    """Choose at least cost for the nodes ``inside``, which make a forest, the choice of all others given."""
    size = len(graph.start) - 1
    parent_edge, order = np.empty(size, np.int64), np.empty(size, np.int64)
    for i in range(size):
        parent_edge[i] = -1
    waiting = np.zeros(size, np.bool_)
    length = 0
    for root in range(size):
        if not inside[root] or waiting[root]:
            continue
        waiting[root] = True
        order[length] = root
        head = length
        length += 1
        while head < length:
            i = order[head]
            head += 1
            for k in range(graph.at[i], graph.at[i + 1]):
                e = graph.around[k]
                j = graph.edges[e, 0] + graph.edges[e, 1] - i
                if inside[j] and not waiting[j]:
                    waiting[j] = True
                    parent_edge[j] = e
                    order[length] = j
                    length += 1
    total, best = np.empty(len(cost)), np.empty(len(cost))
    for a in range(len(cost)):
        total[a] = cost[a]
    for step in range(length - 1, -1, -1):
        i = order[step]
        first = graph.start[i]
        count = graph.start[i + 1] - first
        for k in range(graph.at[i], graph.at[i + 1]):
            e = graph.around[k]
            j = graph.edges[e, 0] + graph.edges[e, 1] - i
            if not inside[j]:
                add_given(graph, e, i, chosen[j], total[first : first + count])
        e = parent_edge[i]
        if e < 0:
            continue
        j = graph.edges[e, 0] + graph.edges[e, 1] - i
        out = total[graph.start[j] : graph.start[j + 1]]
        place = graph.table_start[e]
        if graph.edges[e, 0] == i:
            columns = len(out)
            for b in range(columns):
                best[b] = np.inf
            for a in range(count):
                line = graph.table[place + a * columns : place + (a + 1) * columns]
                own = total[first + a]
                for b in range(columns):
                    value = own + line[b]
                    best[b] = value if value < best[b] else best[b]
            for b in range(columns):
                out[b] += best[b]
        else:
            for b in range(len(out)):
                line = graph.table[place + b * count : place + (b + 1) * count]
                least = np.inf
                for a in range(count):
                    value = total[first + a] + line[a]
                    least = value if value < least else least
                out[b] += least
    for step in range(length):
        i = order[step]
        first = graph.start[i]
        count = graph.start[i + 1] - first
        e = parent_edge[i]
        if e >= 0:
            j = graph.edges[e, 0] + graph.edges[e, 1] - i
            add_given(graph, e, i, chosen[j], total[first : first + count])
        # Among equals the one that is chosen already.
        best_place = min(chosen[i], count - 1)
        for a in range(count):
            if total[first + a] < total[first + best_place]:
                best_place = a
        chosen[i] = best_place


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
