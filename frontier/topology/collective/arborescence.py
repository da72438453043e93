"""Least spanning trees out of a root, in whatever numbers the costs are: floats to search, whole ones to prove."""

from collections.abc import Sequence
from typing import Any


def least_arborescence(costs: Sequence[Sequence[Any]], root: int) -> tuple[Any, list[int]]:
    """A spanning tree out of the root with the least sum of costs, by the algorithm of Chu, Liu and Edmonds.

    Parameters
    ----------
    costs : (n, n) numbers
        Of the arc from row to column, not negative; what stands on the diagonal does not matter.
    root : int

    Returns
    -------
    number
        The sum; in the arithmetic of the costs.
    list of int
        The node before each node; -1 at the root.

    Notes
    -----
    At most n contractions of a cycle, each :math:`O(n^2)`.

    References
    ----------
    J. Edmonds, "Optimum branchings", Journal of Research of the National Bureau of Standards 71B, 1967.
    """
    count = len(costs)
    before = _parents([list(row) for row in costs], root)
    return sum(costs[before[node]][node] for node in range(count) if node != root), before


def _parents(costs: list[list[Any]], root: int) -> list[int]:
    count = len(costs)
    best = [-1] * count
    for node in range(count):
        if node != root:
            best[node] = min((tail for tail in range(count) if tail != node), key=lambda tail: costs[tail][node])
    cycle = _cycle(best, root)
    if not cycle:
        return best
    # The cycle becomes one node, the last one; to enter it at a node spares that node's arc within it.
    inside = set(cycle)
    outside = [node for node in range(count) if node not in inside]
    place = len(outside)
    smaller: list[list[Any]] = [[0] * (place + 1) for _ in range(place + 1)]
    entry, leaves = [0] * place, [0] * place
    for a, one in enumerate(outside):
        for b, other in enumerate(outside):
            smaller[a][b] = costs[one][other]
        entry[a] = min(cycle, key=lambda node: costs[one][node] - costs[best[node]][node])
        smaller[a][place] = costs[one][entry[a]] - costs[best[entry[a]]][entry[a]]
        leaves[a] = min(cycle, key=lambda node: costs[node][one])
        smaller[place][a] = costs[leaves[a]][one]
    found = _parents(smaller, outside.index(root))
    for a, one in enumerate(outside):
        if found[a] >= 0:
            best[one] = leaves[a] if found[a] == place else outside[found[a]]
    entered = found[place]
    best[entry[entered]] = outside[entered]
    return best


def _cycle(before: list[int], root: int) -> list[int]:
    """Nodes of a cycle of arcs into each node; empty where there is none."""
    seen = [0] * len(before)
    for first in range(len(before)):
        node = first
        while node != root and not seen[node]:
            seen[node] = first + 1
            node = before[node]
        if node != root and seen[node] == first + 1:
            cycle, after = [node], before[node]
            while after != node:
                cycle.append(after)
                after = before[after]
            return cycle
    return []
