"""Numba kernel of local search: trees of a few nodes are chosen anew at prices of memory, and kept if that helps."""

# mypy: disable-error-code="untyped-decorator, no-any-return"

import numpy as np
import numpy.typing as npt

from ddlopt.frontier.deployment.strategies.kernels.memory_rows import Items, add_given, add_range, tree_of
from ddlopt.frontier.deployment.strategies.kernels.messages import GRAPH, Graph
from ddlopt.models.kernels import helper, inner, kernel

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

_ITEMS = "record(Items, i8[::1], i8[::1], i8[::1], f8[::1], i8[::1], i8[::1])"


@helper
def _drawn(rng: np.random.Generator, span: int) -> int:
    return int(rng.integers(0, span))


@helper
def grow_tree(
    graph: Graph, root: int, wanted: int, mark: Ints, stamp: int, order: Ints, via: Ints, rng: np.random.Generator
) -> int:
    """A random induced tree around ``root``; fills its nodes, each after the one it hangs on, and the edges to that.

    ``mark`` is ``stamp`` for nodes inside and ``-stamp`` for nodes that would close a cycle. Returns how many nodes.
    """
    order[0], via[0] = root, -1
    mark[root] = stamp
    length, tries = 1, 0
    while length < wanted and tries < 4 * wanted:
        tries += 1
        i = order[_drawn(rng, length)]
        span = graph.at[i + 1] - graph.at[i]
        if span == 0:
            break
        e = graph.around[graph.at[i] + _drawn(rng, span)]
        j = graph.edges[e, 0] + graph.edges[e, 1] - i
        if mark[j] == stamp or mark[j] == -stamp:
            continue
        met = 0
        for k in range(graph.at[j], graph.at[j + 1]):
            f = graph.around[k]
            if mark[graph.edges[f, 0] + graph.edges[f, 1] - j] == stamp:
                met += 1
                if met > 1:
                    break
        if met > 1:
            mark[j] = -stamp
            continue
        mark[j] = stamp
        order[length], via[length] = j, e
        length += 1
    return length


@inner(fastmath={"nnan", "nsz"})
def solve_tree(
    graph: Graph, cost: Floats, order: Ints, via: Ints, length: int, mark: Ints, stamp: int, chosen: Ints, total: Floats
) -> None:
    """Choose at least cost for the nodes of a tree, the choice of all others given; ``total`` (k,) is a buffer."""
    for step in range(length):
        i = order[step]
        first, last = graph.start[i], graph.start[i + 1]
        for a in range(first, last):
            total[a] = cost[a]
        for k in range(graph.at[i], graph.at[i + 1]):
            e = graph.around[k]
            j = graph.edges[e, 0] + graph.edges[e, 1] - i
            if mark[j] != stamp:
                add_given(graph, e, i, chosen[j], total[first:last])
    for step in range(length - 1, 0, -1):
        i, e = order[step], via[step]
        j = graph.edges[e, 0] + graph.edges[e, 1] - i
        out = total[graph.start[j] : graph.start[j + 1]]
        own = total[graph.start[i] : graph.start[i + 1]]
        place = graph.table_start[e]
        if graph.edges[e, 0] == i:
            columns = len(out)
            for b in range(columns):
                least = np.inf
                for a in range(len(own)):
                    value = own[a] + graph.table[place + a * columns + b]
                    least = value if value < least else least
                out[b] += least
        else:
            for b in range(len(out)):
                least = np.inf
                for a in range(len(own)):
                    value = own[a] + graph.table[place + b * len(own) + a]
                    least = value if value < least else least
                out[b] += least
    for step in range(length):
        i, e = order[step], via[step]
        own = total[graph.start[i] : graph.start[i + 1]]
        if e >= 0:
            j = graph.edges[e, 0] + graph.edges[e, 1] - i
            add_given(graph, e, i, chosen[j], own)
        best = chosen[i]
        for a in range(len(own)):
            if own[a] < own[best]:
                best = a
        chosen[i] = best


@helper
def tree_cost(graph: Graph, cost: Floats, order: Ints, length: int, mark: Ints, stamp: int, chosen: Ints) -> float:
    """Cost of a tree's nodes and of all edges at them."""
    total = 0.0
    for step in range(length):
        i = order[step]
        total += cost[graph.start[i] + chosen[i]]
        for k in range(graph.at[i], graph.at[i + 1]):
            e = graph.around[k]
            u, v = graph.edges[e, 0], graph.edges[e, 1]
            if mark[u + v - i] != stamp or i < u + v - i:
                columns = graph.start[v + 1] - graph.start[v]
                total += graph.table[graph.table_start[e] + chosen[u] * columns + chosen[v]]
    return total


@kernel(f"({GRAPH}, {_ITEMS}, f8[::1], f8[::1], f8[::1], i8[::1], i8, i8, npy_rng)")
def improve(
    graph: Graph,
    items: Items,
    cost: Floats,
    priced: Floats,
    limit: Floats,
    chosen: Ints,
    steps: int,
    largest_tree: int,
    rng: np.random.Generator,
) -> float:
    """Choose random trees anew, at prices or at a part of them; keep what is no dearer and fits into memory.

    Parameters
    ----------
    cost, priced : (k,) arrays
        Costs of strategies without and with prices of memory.
    limit : (r,) array
        Of each row; the choice given keeps it.
    chosen : (n,) array
        Changed.

    Returns
    -------
    float
        By how much the cost has fallen.
    """
    size = len(graph.start) - 1
    half = 1
    while half < max(1, len(limit)):
        half *= 2
    largest, added = np.empty(2 * half), np.empty(2 * half)
    tree_of(limit, largest, added)
    for i in range(size):
        for k in range(items.at[i], items.at[i + 1]):
            item = items.of[k]
            use = items.use[items.start[item] + chosen[i]]
            if use > 0:
                add_range(largest, added, items.low[item], items.high[item], use)
    slack = max(0.0, largest[1])
    mark = np.zeros(size, np.int64)
    order, via = np.empty(largest_tree, np.int64), np.empty(largest_tree, np.int64)
    before, tried = np.empty(largest_tree, np.int64), np.empty(largest_tree, np.int64)
    total, mixed = np.empty(len(cost)), np.empty(len(cost))
    gained = 0.0
    for step in range(steps):
        stamp = step + 1
        root = _drawn(rng, size)
        wanted = 1 + int(rng.random() ** 2 * largest_tree)
        length = grow_tree(graph, root, wanted, mark, stamp, order, via, rng)
        part = _drawn(rng, 4) / 2.0
        for k in range(length):
            i = order[k]
            before[k] = chosen[i]
            for a in range(graph.start[i], graph.start[i + 1]):
                mixed[a] = cost[a] + part * (priced[a] - cost[a])
        was = tree_cost(graph, cost, order, length, mark, stamp, chosen)
        solve_tree(graph, mixed, order, via, length, mark, stamp, chosen, total)
        now = tree_cost(graph, cost, order, length, mark, stamp, chosen)
        if now <= was:
            _swap(items, order, length, before, chosen, largest, added)
            if largest[1] <= slack:
                gained += was - now
                continue
            for k in range(length):
                tried[k] = chosen[order[k]]
                chosen[order[k]] = before[k]
            _swap(items, order, length, tried, chosen, largest, added)
        for k in range(length):
            chosen[order[k]] = before[k]
    return gained


@helper
def _swap(items: Items, order: Ints, length: int, before: Ints, chosen: Ints, largest: Floats, added: Floats) -> None:
    """Take what the nodes used ``before`` out of the rows and put in what they use now."""
    for k in range(length):
        i = order[k]
        if before[k] == chosen[i]:
            continue
        for place in range(items.at[i], items.at[i + 1]):
            item = items.of[place]
            start = items.start[item]
            change = items.use[start + chosen[i]] - items.use[start + before[k]]
            if change != 0:
                add_range(largest, added, items.low[item], items.high[item], change)
