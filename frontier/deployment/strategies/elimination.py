"""Exact elimination of nodes whose choice no row of memory depends on: dynamic programming over the graph.

To eliminate a node is to put, in place of all costs that depend on it, their least for each choice of its neighbours.
With one or two neighbours (leaves, and nodes between two others) what comes of it is a cost of a node or of an edge, so
the rest is again a graph of strategies. All nodes, with prices in place of memory, are a matter of
:mod:`ddlopt.frontier.deployment.strategies.junction_tree`.

References
----------
U. Bertelè, F. Brioschi, "Nonserial dynamic programming", Academic Press 1972. R. Dechter, "Bucket elimination: a
unifying framework for reasoning", Artificial Intelligence 113, 1999.
"""

import heapq
from dataclasses import dataclass, replace
from math import prod
from typing import NamedTuple

import numpy as np

from ddlopt.models.deployment.strategies.core import Core
from ddlopt.models.deployment.strategies.ragged import Floats, Ints

Scope = tuple[int, ...]


class Step(NamedTuple):
    """An eliminated node, its neighbours then, and its best strategy for each choice of theirs."""

    node: int
    neighbours: Scope
    best: Ints


@dataclass(frozen=True)
class Rest:
    """What is left.

    Parameters
    ----------
    tables : dict
        Costs by the nodes that they depend on.
    left : tuple of int
        Nodes that were not eliminated, in order.
    steps : tuple of Step
    """

    tables: dict[Scope, Floats]
    left: tuple[int, ...]
    steps: tuple[Step, ...]

    def extended(self, chosen: Ints) -> Ints:
        """Complete (n,) places that are right for the nodes left; those of the others are overwritten."""
        chosen = chosen.copy()
        for node, neighbours, best in reversed(self.steps):
            chosen[node] = best[tuple(chosen[list(neighbours)])]
        return chosen


def eliminate(core: Core, most_neighbours: int, largest: float, keep: int) -> Rest:
    """Eliminate nodes, those first that need the smallest tables, as long as tables stay small.

    Nodes with a single strategy go before, however many neighbours they have: what is left of an edge is a cost of its
    other node.

    Parameters
    ----------
    core : Core
    most_neighbours : int
        Of a node that is eliminated.
    largest : float
        Entries of a table.
    keep : int
        Of this many nodes none is eliminated any more.
    """
    counts = core.counts.tolist()
    bounds = core.start.tolist()
    tables: dict[Scope, Floats] = {(i,): core.cost[bounds[i] : bounds[i + 1]] for i in range(core.size)}
    starts = core.table_start.tolist()
    at: list[set[Scope]] = [{(i,)} for i in range(core.size)]
    for e, (u, v) in enumerate(core.edges.tolist()):
        tables[u, v] = core.table[starts[e] : starts[e + 1]].reshape(counts[u], counts[v])
        at[u].add((u, v))
        at[v].add((u, v))
    stays = core.has_memory.tolist()

    def price(node: int) -> float:
        met = {j for scope in at[node] for j in scope}
        if len(met) > most_neighbours + 1:
            return np.inf
        return prod(float(counts[j]) for j in met)

    gone: set[int] = set()
    steps: list[Step] = []
    for node in range(core.size):
        if counts[node] == 1 and not stays[node] and core.size - len(gone) > keep:
            _drop_single(node, tables, at, steps)
            gone.add(node)
    waiting = [(price(i), i) for i in range(core.size) if not stays[i] and i not in gone]
    heapq.heapify(waiting)
    while waiting and core.size - len(gone) > keep:
        size, node = heapq.heappop(waiting)
        if node in gone:
            continue
        now = price(node)
        if now > size:
            heapq.heappush(waiting, (now, node))
            continue
        if now > largest:
            break
        neighbours = _eliminate_one(node, tables, at, steps)
        gone.add(node)
        for j in neighbours:
            if not stays[j]:
                heapq.heappush(waiting, (price(j), j))
    return Rest(tables, tuple(i for i in range(core.size) if i not in gone), tuple(steps))


def _drop_single(node: int, tables: dict[Scope, Floats], at: list[set[Scope]], steps: list[Step]) -> None:
    for scope in sorted(at[node]):
        others = tuple(j for j in scope if j != node)
        table = tables.pop(scope).squeeze(scope.index(node))
        tables[others] = tables[others] + table if others in tables else table
        for j in others:
            at[j].discard(scope)
            at[j].add(others)
    steps.append(Step(node, (), np.zeros((), dtype=np.int64)))


def _eliminate_one(node: int, tables: dict[Scope, Floats], at: list[set[Scope]], steps: list[Step]) -> Scope:
    scopes = sorted(at[node])
    neighbours = tuple(sorted({j for scope in scopes for j in scope if j != node}))
    axes = {j: axis for axis, j in enumerate((*neighbours, node))}
    total: Floats = np.zeros((1,) * len(axes))
    for scope in scopes:
        table = tables.pop(scope)
        # Axes of a table are in the order of its scope; the node's own comes last.
        order = sorted(range(len(scope)), key=lambda k: axes[scope[k]])
        shape = [1] * len(axes)
        for k in order:
            shape[axes[scope[k]]] = table.shape[k]
        total = total + table.transpose(order).reshape(shape)
        for j in scope:
            at[j].discard(scope)
    best = total.argmin(axis=-1)
    least = np.take_along_axis(total, best[..., None], axis=-1)[..., 0]
    steps.append(Step(node, neighbours, best))
    if neighbours in tables:
        tables[neighbours] = tables[neighbours] + least
    else:
        tables[neighbours] = least
        for j in neighbours:
            at[j].add(neighbours)
    return neighbours


def without_passages(core: Core, largest: float = 1e6) -> tuple[Core, Rest]:
    """The core without nodes free of memory that have one strategy or at most two neighbours; others have their costs.

    Nodes of the smaller core are ``rest.left``, in this order; one node at least is left.
    """
    rest = eliminate(core, 2, largest, keep=1)
    return rebuilt(core, rest), rest


def rebuilt(core: Core, rest: Rest) -> Core:
    """A core of the nodes left, where all tables are over two nodes at most."""
    left = np.array(rest.left, dtype=np.int64)
    place = np.full(core.size, -1)
    place[left] = np.arange(len(left))
    constant = float(rest.tables.get((), np.zeros(())))
    cost = [rest.tables[(i,)] for i in rest.left]
    cost[0] = cost[0] + constant
    scopes = sorted(scope for scope in rest.tables if len(scope) == 2)
    edges = place[np.array(scopes, dtype=np.int64).reshape(-1, 2)]
    counts = core.counts[left]
    sizes = counts[edges[:, 0]] * counts[edges[:, 1]]
    owner = np.repeat(np.arange(core.size), core.counts)
    kept = place[owner] >= 0
    return replace(
        core,
        start=_offsets(counts),
        cost=np.concatenate(cost),
        original=core.original[kept],
        class_of=np.arange(len(left)),
        edges=edges,
        table_start=_offsets(sizes),
        table=np.concatenate([rest.tables[scope].ravel() for scope in scopes]) if scopes else np.zeros(0),
        memory=replace(core.memory, node=place[core.memory.node]),
    )


def _offsets(sizes: Ints) -> Ints:
    offsets = np.zeros(len(sizes) + 1, dtype=np.int64)
    np.cumsum(sizes, out=offsets[1:])
    return offsets
