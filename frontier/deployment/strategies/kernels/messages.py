"""Numba kernels of sequential reweighted message passing on a graph of strategies.

Each edge e has a message to either end: ``to_first[e]`` for the smaller node, ``to_second[e]`` for the larger, flat
with offsets ``first_start`` and ``second_start``. Messages move cost between an edge and its nodes: a node's cost is
its own and all messages to it, an edge's table is less those it sends. Whatever the messages, the sum of all least
costs and least entries of tables is below the cost of every choice.
"""

# mypy: disable-error-code="untyped-decorator, no-any-return"

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from ddlopt.models.kernels import helper, inner, kernel

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

_MIN = {"nnan", "nsz"}
"""What a compiler must be allowed to find minima several entries at a time; nothing is ever not a number here."""
# Rounding of one operation, relative: half a unit in the last place of a double.
UNIT = 2.0**-53


class Graph(NamedTuple):
    """Nodes, edges and tables of a core, with the edges of each node: ``around[at[i]:at[i + 1]]``.

    ``fringe`` are the nodes of trees that hang on the rest: one edge to an earlier node, and others of the fringe only.
    """

    start: Ints
    edges: Ints
    table_start: Ints
    table: Floats
    at: Ints
    around: Ints
    first_start: Ints
    second_start: Ints
    fringe: npt.NDArray[np.bool_]


class Messages(NamedTuple):
    """Flat messages to the smaller and to the larger node of each edge."""

    to_first: Floats
    to_second: Floats


GRAPH = "record(Graph, i8[::1], i8[:, ::1], i8[::1], f8[::1], i8[::1], i8[::1], i8[::1], i8[::1], b1[::1])"
MESSAGES = "record(Messages, f8[::1], f8[::1])"
"""Types of both, for signatures."""


@helper
def belief(i: int, graph: Graph, cost: Floats, messages: Messages, out: Floats) -> int:
    """Fill ``out`` with the costs of a node together with all messages to it; returns how many strategies it has."""
    first = graph.start[i]
    size = graph.start[i + 1] - first
    for a in range(size):
        out[a] = cost[first + a]
    for k in range(graph.at[i], graph.at[i + 1]):
        e = graph.around[k]
        if graph.edges[e, 0] == i:
            place = graph.first_start[e]
            for a in range(size):
                out[a] += messages.to_first[place + a]
        else:
            place = graph.second_start[e]
            for a in range(size):
                out[a] += messages.to_second[place + a]
    return size


@kernel("(i8, i8[:, ::1], i8[::1], i8[::1])")
def fringe_of(size: int, edges: Ints, at: Ints, around: Ints) -> npt.NDArray[np.bool_]:
    """(n,) which nodes are of the fringe."""
    fringe = np.zeros(size, np.bool_)
    for i in range(size - 1, -1, -1):
        earlier, hangs = 0, True
        for k in range(at[i], at[i + 1]):
            e = around[k]
            if edges[e, 1] == i:
                earlier += 1
            elif not fringe[edges[e, 1]]:
                hangs = False
        fringe[i] = hangs and earlier == 1
    return fringe


@inner(fastmath=_MIN)
def collect(e: int, onwards: bool, graph: Graph, messages: Messages, buffer: Floats) -> None:
    """Set a message of edge e to what the least entries of its table leave, less its own least.

    ``onwards``: the one to the larger node, otherwise that to the smaller one.
    """
    u, v = graph.edges[e, 0], graph.edges[e, 1]
    rows, columns = graph.start[u + 1] - graph.start[u], graph.start[v + 1] - graph.start[v]
    table, first, second = graph.table_start[e], graph.first_start[e], graph.second_start[e]
    if onwards:
        out = messages.to_second[second : second + columns]
        for b in range(columns):
            out[b] = np.inf
        for a in range(rows):
            offset = messages.to_first[first + a]
            line = graph.table[table + a * columns : table + (a + 1) * columns]
            for b in range(columns):
                value = line[b] - offset
                out[b] = value if value < out[b] else out[b]
        size = columns
    else:
        out = messages.to_first[first : first + rows]
        for b in range(columns):
            buffer[b] = messages.to_second[second + b]
        for a in range(rows):
            line = graph.table[table + a * columns : table + (a + 1) * columns]
            least = np.inf
            for b in range(columns):
                value = line[b] - buffer[b]
                least = value if value < least else least
            out[a] = least
        size = rows
    least = np.inf
    for b in range(size):
        least = min(least, out[b])
    for b in range(size):
        out[b] -= least


@kernel(f"({GRAPH}, f8[::1], {MESSAGES}, b1, i8)")
def sweep(graph: Graph, cost: Floats, messages: Messages, onwards: bool, width: int) -> None:
    """Pass messages through all nodes, in their order or backwards.

    A node takes all that edges to nodes passed before have, and gives equal shares to edges to those that come; the
    fringe gives everything towards the rest and is given nothing, for what it had it would only give back.
    """
    size = len(graph.start) - 1
    now, buffer = np.empty(width), np.empty(width)
    for step in range(size):
        i = step if onwards else size - 1 - step
        if onwards and graph.fringe[i]:
            continue
        ahead = behind = 0
        for k in range(graph.at[i], graph.at[i + 1]):
            e = graph.around[k]
            if (graph.edges[e, 0] == i) == onwards:
                if not (onwards and graph.fringe[graph.edges[e, 1]]):
                    ahead += 1
            else:
                collect(e, onwards, graph, messages, buffer)
                if onwards or not graph.fringe[graph.edges[e, 1]]:
                    behind += 1
        if ahead == 0:
            continue
        count = belief(i, graph, cost, messages, now)
        part = 1.0 / max(ahead, behind)
        for k in range(graph.at[i], graph.at[i + 1]):
            e = graph.around[k]
            if (graph.edges[e, 0] == i) == onwards and not (onwards and graph.fringe[graph.edges[e, 1]]):
                if onwards:
                    out = messages.to_first[graph.first_start[e] : graph.first_start[e] + count]
                else:
                    out = messages.to_second[graph.second_start[e] : graph.second_start[e] + count]
                for a in range(count):
                    out[a] -= part * now[a]


@kernel(f"({GRAPH}, f8[::1], {MESSAGES}, i8, i8[::1], f8[::1], f8[::1])")
def least_costs(
    graph: Graph, cost: Floats, messages: Messages, width: int, items: Ints, least: Floats, error: Floats
) -> None:
    """Fill ``least`` (n,) with each node's least cost, ``error`` (n,) with what rounding may change it by.

    ``items`` (n,) says of how many products with prices the costs are sums.
    """
    size = len(graph.start) - 1
    now = np.empty(width)
    for i in range(size):
        count = belief(i, graph, cost, messages, now)
        smallest, largest = np.inf, 0.0
        for a in range(count):
            smallest = min(smallest, now[a])
            largest = max(largest, abs(cost[graph.start[i] + a]))
        for k in range(graph.at[i], graph.at[i + 1]):
            e = graph.around[k]
            widest = 0.0
            if graph.edges[e, 0] == i:
                for a in range(graph.first_start[e], graph.first_start[e + 1]):
                    widest = max(widest, abs(messages.to_first[a]))
            else:
                for a in range(graph.second_start[e], graph.second_start[e + 1]):
                    widest = max(widest, abs(messages.to_second[a]))
            largest += widest
        least[i] = smallest
        error[i] = UNIT * (graph.at[i + 1] - graph.at[i] + items[i] + 4) * largest


@kernel(f"({GRAPH}, {MESSAGES}, f8[::1], f8[::1])", fastmath=_MIN)
def least_entries(graph: Graph, messages: Messages, least: Floats, error: Floats) -> None:
    """Fill ``least`` (m,) with the least entry of each table less its messages, ``error`` (m,) as for nodes."""
    for e in range(len(graph.edges)):
        u, v = graph.edges[e, 0], graph.edges[e, 1]
        rows, columns = graph.start[u + 1] - graph.start[u], graph.start[v + 1] - graph.start[v]
        out = messages.to_second[graph.second_start[e] : graph.second_start[e] + columns]
        smallest, widest, tallest = np.inf, 0.0, 0.0
        for b in range(columns):
            widest = max(widest, abs(out[b]))
        for a in range(rows):
            place = graph.table_start[e] + a * columns
            line = graph.table[place : place + columns]
            offset = messages.to_first[graph.first_start[e] + a]
            tallest = max(tallest, abs(offset))
            lowest = np.inf
            for b in range(columns):
                value = (line[b] - offset) - out[b]
                lowest = value if value < lowest else lowest
            smallest = lowest if lowest < smallest else smallest
        least[e] = smallest
        # An entry that attains the least is no larger than both messages and the least together.
        error[e] = 4 * UNIT * (abs(smallest) + 2 * (widest + tallest))


@kernel(f"({GRAPH}, f8[::1], {MESSAGES}, i8, i8[::1])", fastmath=_MIN)
def decode(graph: Graph, cost: Floats, messages: Messages, width: int, chosen: Ints) -> None:
    """Choose node by node, the earlier ones' choice given, the later ones' as their messages have it."""
    size = len(graph.start) - 1
    now = np.empty(width)
    for i in range(size):
        first = graph.start[i]
        count = graph.start[i + 1] - first
        for a in range(count):
            now[a] = cost[first + a]
        for k in range(graph.at[i], graph.at[i + 1]):
            e = graph.around[k]
            if graph.edges[e, 0] == i:
                for a in range(count):
                    now[a] += messages.to_first[graph.first_start[e] + a]
            else:
                u = graph.edges[e, 0]
                place = graph.table_start[e] + chosen[u] * count
                for a in range(count):
                    now[a] += graph.table[place + a]
        best = 0
        for a in range(count):
            if now[a] < now[best]:
                best = a
        chosen[i] = best


@kernel(f"({GRAPH}, f8[::1], {MESSAGES}, i8, f8[::1], f8[::1], f8[::1], f8[::1])", fastmath=_MIN)
def least_with(
    graph: Graph,
    cost: Floats,
    messages: Messages,
    width: int,
    node_error: Floats,
    edge_error: Floats,
    excess: Floats,
    pairs: Floats,
) -> None:
    """By how much the bound rises with each strategy (``excess``, (k,)) and with each pair (``pairs``), at least.

    A rise is a sum of differences of costs of a node and of entries of tables. Rounding changes a difference by less
    than three times the error in :func:`least_costs` or :func:`least_entries`, and by units of the rise itself, as it
    does every sum; four times the errors and twice the units are subtracted.
    """
    size = len(graph.start) - 1
    now, below = np.empty(width), np.empty(width)
    own = np.empty(len(excess))
    for i in range(size):
        count = belief(i, graph, cost, messages, now)
        least = np.inf
        for a in range(count):
            least = min(least, now[a])
        for a in range(count):
            own[graph.start[i] + a] = now[a] - least
    for a in range(len(own)):
        excess[a] = own[a]
    for e in range(len(graph.edges)):
        u, v = graph.edges[e, 0], graph.edges[e, 1]
        first, second = graph.start[u], graph.start[v]
        rows, columns = graph.start[u + 1] - first, graph.start[v + 1] - second
        wrong = 4 * (node_error[u] + node_error[v] + edge_error[e])
        least = np.inf
        for a in range(rows):
            line = pairs[graph.table_start[e] + a * columns : graph.table_start[e] + (a + 1) * columns]
            offset = messages.to_first[graph.first_start[e] + a]
            for b in range(columns):
                value = graph.table[graph.table_start[e] + a * columns + b] - offset
                value -= messages.to_second[graph.second_start[e] + b]
                line[b] = value
                least = min(least, value)
        for b in range(columns):
            below[b] = np.inf
        for a in range(rows):
            line = pairs[graph.table_start[e] + a * columns : graph.table_start[e] + (a + 1) * columns]
            lowest = np.inf
            for b in range(columns):
                value = line[b] - least
                lowest = min(lowest, value)
                below[b] = min(below[b], value)
                line[b] = max(0.0, (value + own[first + a] + own[second + b]) * (1 - 16 * UNIT) - wrong)
            excess[first + a] += lowest
        for b in range(columns):
            excess[second + b] += below[b]
    for i in range(size):
        wrong = node_error[i]
        for k in range(graph.at[i], graph.at[i + 1]):
            wrong += edge_error[graph.around[k]]
        units = 2 * UNIT * (graph.at[i + 1] - graph.at[i] + 4)
        for a in range(graph.start[i], graph.start[i + 1]):
            excess[a] = max(0.0, excess[a] * (1 - units) - 4 * wrong)
