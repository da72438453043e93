"""Dynamic programming over a tree decomposition, forth and back: least costs with each strategy and with each pair.

Nodes are eliminated in an order of small tables. The table of a node, over itself and its neighbours that are
eliminated later, is the sum of its own costs, those of its edges to them, and messages of tables before; its least over
the node goes as a message to the table of the neighbour that is eliminated next. From the last table back to the first
each then gets what it lacks, and in the end has at every entry the least cost of all choices that agree with it: its
*min-marginals*. Two passes give those of all strategies and of all pairs.

References
----------
S. L. Lauritzen, D. J. Spiegelhalter, "Local computations with probabilities on graphical structures and their
application to expert systems", J. R. Statist. Soc. B 50(2), 1988; with minimum and sum in place of sum and product: R.
Dechter, "Bucket elimination: a unifying framework for reasoning", Artificial Intelligence 113, 1999.
"""

import heapq
from collections.abc import Sequence
from itertools import pairwise
from math import prod
from typing import NamedTuple, Self

import numpy as np

from ddlopt.models.deployment.strategies.core import Core
from ddlopt.models.deployment.strategies.ragged import Floats, Ints

LARGEST = 2e5
"""Entries of a table; to fill such a table takes a millisecond."""
MOST = 5e6
"""Entries of all tables together."""

Shape = tuple[int, ...]


class Edge(NamedTuple):
    """An edge to a node that is eliminated later.

    Parameters
    ----------
    number : int
        In the core.
    forward : bool
        Whether the node that is eliminated later is its first.
    shape : tuple of int
        With which its costs are added to the table.
    rest : tuple of int
        Axes of the table that are neither end.
    """

    number: int
    forward: bool
    shape: Shape
    rest: Shape


class Bucket(NamedTuple):
    """Of what the table of a node is the sum, and where its least goes.

    Parameters
    ----------
    node : int
    others : tuple of int
        Axes of the table, besides the node, which is the last: its neighbours then with more than one strategy, last
        eliminated first.
    edges : tuple of Edge
    parent : int
        Place of the bucket that the message goes to; -1: none, as it is a number.
    shape : tuple of int
        With which the message is added there.
    rest : tuple of int
        Axes there that the message does not have.
    """

    node: int
    others: tuple[int, ...]
    edges: tuple[Edge, ...]
    parent: int
    shape: Shape
    rest: Shape


class JunctionTree:
    """Buckets of a core, in the order of elimination.

    Parameters
    ----------
    core : Core
    buckets : sequence of Bucket
    """

    def __init__(self, core: Core, buckets: Sequence[Bucket]) -> None:
        self.core, self.buckets = core, tuple(buckets)
        self._spans = list(pairwise(core.start.tolist()))
        spans, shapes = pairwise(core.table_start.tolist()), core.counts[core.edges].tolist()
        self._costs = [core.table[low:high].reshape(shape) for (low, high), shape in zip(spans, shapes, strict=True)]

    @classmethod
    def of(cls, core: Core, largest: float = LARGEST, most: float = MOST) -> Self | None:
        """Eliminate always the node with the smallest table; None where tables grow too large."""
        order = _order(core, largest, most)
        if order is None:
            return None
        place = {node: k for k, (node, _) in enumerate(order)}
        counts, ends = core.counts.tolist(), core.edges.tolist()
        axes_of = [(*sorted(others, key=lambda j: -place[j]), node) for node, others in order]
        edges_of: list[list[int]] = [[] for _ in order]
        for e, (i, j) in enumerate(ends):
            edges_of[min(place[i], place[j])].append(e)
        buckets = []
        for axes, its in zip(axes_of, edges_of, strict=True):
            *others, node = axes
            edges = [Edge(e, ends[e][1] == node, *_fitted(ends[e], axes, counts)) for e in its]
            parent = place[others[-1]] if others else -1
            shape, rest = _fitted(others, axes_of[parent], counts) if others else ((), ())
            buckets.append(Bucket(node, tuple(others), tuple(edges), parent, shape, rest))
        return cls(core, buckets)

    def solve(self, cost: Floats) -> tuple[float, Ints]:
        """Least cost at (k,) costs of strategies, infinite where no choice is allowed, and (n,) places that have it."""
        totals, _, value = self._forward(cost)
        chosen = np.zeros(self.core.size, dtype=np.int64)
        for bucket, total in zip(reversed(self.buckets), reversed(totals), strict=True):
            chosen[bucket.node] = int(total[tuple(chosen[list(bucket.others)])].argmin())
        return value, chosen

    def marginals(self, cost: Floats) -> tuple[float, Floats, Floats]:
        """Least cost; (k,) least costs with each strategy; least costs with each pair, in order of the core's table."""
        totals, messages, value = self._forward(cost)
        core = self.core
        strategies, pairs = np.full(len(core.cost), np.inf), np.full(len(core.table), np.inf)
        beliefs = totals
        for bucket, total, message in reversed(list(zip(self.buckets, totals, messages, strict=True))):
            whole = np.array(value) if bucket.parent < 0 else beliefs[bucket.parent].min(axis=bucket.rest)
            # What does not end well in its own table does not with anything else.
            lacking = np.subtract(whole, message, out=np.zeros_like(message), where=np.isfinite(message))
            total += lacking[..., None]
            low, high = self._spans[bucket.node]
            strategies[low:high] = total.min(axis=tuple(range(total.ndim - 1)))
            for edge in bucket.edges:
                least = total.min(axis=edge.rest)
                low, high = core.table_start[edge.number : edge.number + 2]
                pairs[low:high] = (least if edge.forward else least.T).ravel()
        return value, strategies, pairs

    def _forward(self, cost: Floats) -> tuple[list[Floats], list[Floats], float]:
        """Tables and messages of all buckets, and the least cost."""
        totals: list[Floats] = []
        for bucket in self.buckets:
            low, high = self._spans[bucket.node]
            shape = (*(self.core.counts[list(bucket.others)].tolist()), high - low)
            totals.append(np.broadcast_to(cost[low:high], shape).copy())
        messages, value = [], 0.0
        for bucket, total in zip(self.buckets, totals, strict=True):
            for edge in bucket.edges:
                costs = self._costs[edge.number]
                total += (costs if edge.forward else costs.T).reshape(edge.shape)
            message = total.min(axis=-1)
            messages.append(message)
            if bucket.parent < 0:
                value += float(message)
            else:
                totals[bucket.parent] += message.reshape(bucket.shape)
        return totals, messages, value


def _order(core: Core, largest: float, most: float) -> list[tuple[int, set[int]]] | None:
    """Nodes in the order of elimination, each with its neighbours then.

    Those with a single strategy come last and are nobody's neighbours: costs of their edges depend on the other end.
    """
    counts = core.counts.tolist()
    around: list[set[int]] = [set() for _ in counts]
    for i, j in core.edges.tolist():
        if counts[i] > 1 and counts[j] > 1:
            around[i].add(j)
            around[j].add(i)

    def entries(node: int) -> int:
        size: int = prod((counts[j] for j in around[node]), start=counts[node])
        return size

    waiting = [(entries(node), node) for node in range(core.size) if counts[node] > 1]
    heapq.heapify(waiting)
    order: list[tuple[int, set[int]]] = []
    gone = [False] * core.size
    total = 0
    while waiting:
        size, node = heapq.heappop(waiting)
        if gone[node]:
            continue
        now = entries(node)
        if now > size:
            heapq.heappush(waiting, (now, node))
            continue
        total += now
        if now > largest or total > most:
            return None
        gone[node] = True
        others = around[node]
        order.append((node, others))
        for j in others:
            around[j] |= others
            around[j] -= {j, node}
            heapq.heappush(waiting, (entries(j), j))
    return order + [(node, set()) for node in range(core.size) if counts[node] == 1]


def _fitted(nodes: Sequence[int], axes: Sequence[int], counts: Sequence[int]) -> tuple[Shape, Shape]:
    """With which shape costs of some nodes are added to a table, and the axes of it that they do not have."""
    shape = tuple(counts[j] if j in nodes else 1 for j in axes)
    return shape, tuple(axis for axis, j in enumerate(axes) if j not in nodes)
