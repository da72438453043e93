r"""A bound from prices of links.

Let each byte on link e cost :math:`\pi_e \ge 0`. In T seconds links carry at most :math:`T \sum_e B_e \pi_e` worth of
bytes. Each byte of the collective has to be somewhere, and that costs at least:

* all-gather: a least spanning tree out of its root, in the mean over roots (reduce-scatter: into it);
* broadcast: a least spanning tree out of the root;
* all-reduce: a least tree into and a least tree out of the same root, for the root where the sum is least;
* all-to-all: a shortest path, in the mean over all ordered pairs and (N - 1) times.

Trees are over accelerators, where an arc is a shortest path of any links. So :math:`T \ge M c(\pi) / \sum_e B_e \pi_e`.
The best prices attain the optimum of the linear program over trees (or paths), whose dual they are; prices of 1 on the
links out of a set are the bound of a cut.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from heapq import heappop, heappush
from math import inf
from typing import Any

import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.csgraph import dijkstra

from ddlopt.models.topology.collective.arborescence import least_arborescence
from ddlopt.models.topology.collective.cuts import whole
from ddlopt.models.topology.collective.instance import Arc, CollectiveInstance, Path

Prices = Mapping[Arc, Any]
_LINK_ITSELF = 1e-12
"""Of the largest price, that each link costs besides: below what prices are known by, above what is rounded."""


@dataclass(frozen=True)
class Wanted:
    """What costs least for a part of the bytes.

    Parameters
    ----------
    part : Fraction
        Of M.
    cost : number
        Per byte.
    root : int
    gather, spread : tuple of paths
        As of a :class:`~ddlopt.models.topology.collective.instance.Tree`.
    """

    part: Fraction
    cost: Any
    root: int
    gather: tuple[Path, ...] = ()
    spread: tuple[Path, ...] = ()


def cheapest(instance: CollectiveInstance, prices: Prices) -> list[Wanted]:
    """For each root, or pair of an all-to-all, the tree or path that costs least; in the arithmetic of the prices.

    In an all-reduce each root may have all bytes; elsewhere the parts add up to what the collective has.
    """
    count = instance.accelerators
    costs, paths = shortest(instance, prices)
    if instance.collective == "all-to-all":
        part = Fraction(1, count)
        pairs = [(i, j) for i in range(count) for j in range(count) if i != j]
        return [Wanted(part, costs[i][j], i, spread=(paths[i][j],)) for i, j in pairs]
    roots = range(count) if instance.root is None else (instance.root,)
    backwards = [list(row) for row in zip(*costs, strict=True)]
    found = []
    for root in roots:
        cost: Any = 0
        gather: tuple[Path, ...] = ()
        spread: tuple[Path, ...] = ()
        if instance.collective in ("reduce-scatter", "all-reduce"):
            value, before = least_arborescence(backwards, root)
            cost, gather = cost + value, tuple(paths[v][u] for v, u in enumerate(before) if u >= 0)
        if instance.collective != "reduce-scatter":
            value, before = least_arborescence(costs, root)
            cost, spread = cost + value, tuple(paths[u][v] for v, u in enumerate(before) if u >= 0)
        part = Fraction(1) if instance.collective == "all-reduce" else Fraction(1, len(roots))
        found.append(Wanted(part, cost, root, gather, spread))
    return found


def least_cost(instance: CollectiveInstance, found: list[Wanted]) -> Any:
    """What a byte of the collective costs at least, of what :func:`cheapest` found."""
    if instance.collective == "all-reduce":
        return min(each.cost for each in found)
    return sum(each.part * each.cost for each in found)


def price_bound(instance: CollectiveInstance, prices: Mapping[Arc, Fraction]) -> Fraction:
    """Seconds below which no plan is, by prices that are not negative; links without one cost nothing.

    Raises
    ------
    ValueError
        If no link has a price.
    """
    numbers, _ = whole([prices.get(link, Fraction(0)) for link in instance.bandwidth])
    if not any(numbers):
        raise ValueError("no link has a price")
    known = dict(zip(instance.bandwidth, numbers, strict=True))
    worth = sum((Fraction(each) * known[link] for link, each in instance.bandwidth.items()), Fraction(0))
    least = Fraction(least_cost(instance, cheapest(instance, known)))
    return Fraction(instance.collective_bytes) * least / worth


def shortest(instance: CollectiveInstance, prices: Prices) -> tuple[list[list[Any]], list[list[Path]]]:
    """Costs of shortest paths between accelerators, and these paths, of few links where prices tie.

    Where none is, the path is empty, and the cost more than that of any tree of paths. Floating-point prices go through
    a compiled search, all sources at once; whole numbers and fractions are added up as they are.
    """
    count = instance.accelerators
    dear = 1 + count * sum(prices.values())
    costs: list[list[Any]] = [[dear] * count for _ in range(count)]
    paths: list[list[Path]] = [[()] * count for _ in range(count)]
    befores: Iterable[Mapping[int, int]]
    if all(type(each) is float for each in prices.values()):
        befores = _compiled(instance, prices)
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
            costs[source][target] = cost
            paths[source][target] = path if target != source else ()
    return costs, paths


def _compiled(instance: CollectiveInstance, prices: Prices) -> Iterator[dict[int, int]]:
    """The node before each node on a shortest path out of each accelerator, all by one search."""
    # A link costs a little by itself: where prices tie, that makes paths short, and no link is free.
    least = max(prices.values()) * _LINK_ITSELF or 1.0
    arcs = list(instance.bandwidth)
    weights = np.array([prices[arc] + least for arc in arcs])
    ends = np.array(arcs)
    graph = csr_array((weights, (ends[:, 0], ends[:, 1])), shape=(instance.nodes, instance.nodes))
    _, befores = dijkstra(graph, indices=range(instance.accelerators), return_predecessors=True)
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
