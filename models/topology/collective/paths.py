"""Shortest paths of a collective's links at prices, and how often paths use a link."""

import itertools
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from heapq import heappop, heappush
from math import inf
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_array
from scipy.sparse.csgraph import dijkstra

from ddlopt.models.topology.collective.instance import Arc, CollectiveInstance, Path

Prices = Mapping[Arc, Any]
_LINK_ITSELF = 1e-12
"""Of the largest price, that each link costs besides: below what prices are known by, above what is rounded."""


def shortest(instance: CollectiveInstance, prices: Prices) -> tuple[list[list[Any]], list[list[Path]]]:
    """Costs of shortest paths between accelerators, and these paths, of few links where prices tie.

    Where none is, the path is empty, and the cost more than that of any tree of paths. Floating-point prices go through
    a compiled search, all sources at once; whole numbers and fractions are added up as they are. Where one price is a
    million million times another one, a path of floats may be dearer than its cost, which is that of the cheapest path.
    """
    count = instance.accelerators
    dear = 1 + count * sum(prices.values())
    costs: list[list[Any]] = [[dear] * count for _ in range(count)]
    paths: list[list[Path]] = [[()] * count for _ in range(count)]
    befores: Iterable[Mapping[int, int]]
    least = None
    if all(type(each) is float for each in prices.values()):
        befores, least = _compiled(instance, prices)
    else:
        befores = [_tree(instance, prices, source) for source in range(count)]
    for source, before in enumerate(befores):
        known: dict[int, tuple[Any, Path]] = {source: (0, (source,))}
        for target in range(count):
            way = [target]
            while way[-1] not in known and way[-1] in before:
                way.append(before[way[-1]])
            if way[-1] not in known:
                continue  # a broadcast need not come back: dearer than any tree, and without a path
            cost, path = known[way[-1]]
            for node in way[-2::-1]:
                cost, path = cost + prices[path[-1], node], (*path, node)
                known[node] = cost, path
            costs[source][target] = cost if least is None else min(cost, float(least[source, target]))
            paths[source][target] = path if target != source else ()
    return costs, paths


def _compiled(instance: CollectiveInstance, prices: Prices) -> tuple[Iterator[dict[int, int]], npt.NDArray[np.float64]]:
    """The node before each node on a short path out of each accelerator, and what the cheapest to each node cost."""
    # A link costs a little by itself: where prices tie, that makes paths short, and no link is free.
    itself = max(prices.values()) * _LINK_ITSELF or 1.0
    arcs = list(instance.bandwidth)
    weights = np.array([prices[arc] for arc in arcs])
    ends, everybody = np.array(arcs), range(instance.accelerators)

    def graph(weights: npt.NDArray[np.float64]) -> csr_array:
        return csr_array((weights, (ends[:, 0], ends[:, 1])), shape=(instance.nodes, instance.nodes))

    _, befores = dijkstra(graph(weights + itself), indices=everybody, return_predecessors=True)
    # Beside a price that is 1e12 times theirs that little is more than many links cost, and the cheapest path another.
    return _trees(befores), dijkstra(graph(weights), indices=everybody)


def _trees(befores: npt.NDArray[np.int32]) -> Iterator[dict[int, int]]:
    for row in befores:
        there = np.flatnonzero(row >= 0)
        yield dict(zip(there.tolist(), row[there].tolist(), strict=True))


def _tree(instance: CollectiveInstance, prices: Prices, source: int) -> dict[int, int]:
    """The node before each node on a shortest path out of an accelerator, in the arithmetic of the prices."""
    before: dict[int, int] = {}
    done: set[int] = set()
    reach: dict[int, tuple[Any, int]] = {source: (0, 0)}
    waiting = [(0, 0, source)]
    while waiting:
        cost, links, node = heappop(waiting)
        if node in done:
            continue
        done.add(node)
        for other in instance.heads.get(node, ()):
            further = (cost + prices[node, other], links + 1)
            if other not in reach or further < reach[other]:
                reach[other], before[other] = further, node
                heappush(waiting, (*further, other))
    return before


def through_switches(
    instance: CollectiveInstance, prices: Mapping[Arc, float]
) -> tuple[list[list[float]], list[list[Path]]]:
    """Paths between accelerators over switches only; costs are infinite where there are none."""
    count = instance.accelerators
    costs: list[list[float]] = [[inf] * count for _ in range(count)]
    paths: list[list[Path]] = [[()] * count for _ in range(count)]
    for source in range(count):
        reach: dict[int, tuple[float, Path]] = {source: (0.0, (source,))}
        waiting = [source]
        while waiting:  # few switches lie in a row: nodes are simply taken up again when they get cheaper
            node = waiting.pop(0)
            for other in instance.heads.get(node, ()):
                cost = reach[node][0] + prices[node, other]
                if other not in reach or cost < reach[other][0]:
                    reach[other] = cost, (*reach[node][1], other)
                    if other >= count:
                        waiting.append(other)
        for target, (cost, path) in reach.items():
            if target < count and target != source:
                costs[source][target], paths[source][target] = cost, path
    return costs, paths


def loads(paths: Iterable[Path]) -> Counter[Arc]:
    """How often each link is used."""
    return Counter(link for path in paths for link in itertools.pairwise(path))
