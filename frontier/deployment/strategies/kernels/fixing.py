"""Numba kernel of choices by messages: nodes are fixed a few at a time, and messages passed anew in between."""

# mypy: disable-error-code="untyped-decorator, no-any-return"

import numpy as np
import numpy.typing as npt

from ddlopt.frontier.deployment.strategies.kernels.messages import GRAPH, MESSAGES, Graph, Messages, belief, sweep
from ddlopt.models.kernels import helper, kernel

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]


@kernel(f"({GRAPH}, f8[::1], {MESSAGES}, i8[::1], i8[::1], f8, i8[::1])")
def fix(
    graph: Graph,
    cost: Floats,
    messages: Messages,
    order: Ints,
    ends: Ints,
    penalty: float,
    chosen: Ints,
) -> None:
    """Choose for the nodes in an order, ``ends[k]`` of them before messages are passed for the k-th time.

    Each gets the strategy with which the bound rises least, given what the nodes before have.

    Parameters
    ----------
    cost, messages
        Changed.
    order : (n,) array
        All nodes.
    ends : (b,) array
        Increasing, from 0 to n.
    penalty : float
        What strategies cost from then on that a fixed node has not.
    chosen : (n,) array
        Filled.
    """
    width = 0
    for i in range(len(chosen)):
        width = max(width, graph.start[i + 1] - graph.start[i])
        chosen[i] = -1
    now = np.empty(width)
    for part in range(len(ends) - 1):
        if part:
            sweep(graph, cost, messages, True, width)
            sweep(graph, cost, messages, False, width)
        for k in range(ends[part], ends[part + 1]):
            i = order[k]
            count = belief(i, graph, cost, messages, now)
            for place in range(graph.at[i], graph.at[i + 1]):
                add_edge(graph, messages, graph.around[place], i, chosen, now)
            best = 0
            for a in range(count):
                if now[a] < now[best]:
                    best = a
            chosen[i] = best
            for a in range(count):
                if a != best:
                    cost[graph.start[i] + a] += penalty


@helper
def add_edge(graph: Graph, messages: Messages, e: int, i: int, chosen: Ints, out: Floats) -> None:
    """Add to ``out``, by strategy of node i, what edge e costs less its messages; the least where the other is free."""
    u, v = graph.edges[e, 0], graph.edges[e, 1]
    rows, columns = graph.start[u + 1] - graph.start[u], graph.start[v + 1] - graph.start[v]
    to_first = messages.to_first[graph.first_start[e] : graph.first_start[e] + rows]
    to_second = messages.to_second[graph.second_start[e] : graph.second_start[e] + columns]
    place = graph.table_start[e]
    if u == i:
        first, last = (0, columns) if chosen[v] < 0 else (chosen[v], chosen[v] + 1)
        for a in range(rows):
            least = np.inf
            for b in range(first, last):
                least = min(least, graph.table[place + a * columns + b] - to_second[b])
            out[a] += least - to_first[a]
    else:
        first, last = (0, rows) if chosen[u] < 0 else (chosen[u], chosen[u] + 1)
        for b in range(columns):
            least = np.inf
            for a in range(first, last):
                least = min(least, graph.table[place + a * columns + b] - to_first[a])
            out[b] += least - to_second[b]
