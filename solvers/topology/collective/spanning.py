"""Least spanning trees out of a root among many accelerators, in floating point; their arcs lead over switches."""

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_array
from scipy.sparse.csgraph import dijkstra

from ddlopt.models.topology.collective.instance import Arc, CollectiveInstance, Path

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
_LINK_ITSELF = 1e-12
"""Of the largest price, that each link costs besides: below what prices are known by, above what is rounded."""


def least_spanning(costs: Floats, root: int) -> list[int]:
    """A spanning tree out of the root with the least sum of costs: Chu, Liu and Edmonds, all cycles of a round at once.

    Parameters
    ----------
    costs : (n, n) float array
        Of the arc from row to column; infinite where there is none. What stands on the diagonal does not matter.
    root : int

    Returns
    -------
    list of int
        The node before each node; -1 at the root.

    Notes
    -----
    For exact costs and few nodes there is :func:`~ddlopt.frontier.topology.collective.arborescence.least_arborescence`.
    """
    count = len(costs)
    left: Floats = costs.astype(np.float64).copy()
    tails, heads = np.indices((count, count))
    where = np.arange(count)
    rounds: list[tuple[Ints, Ints, Ints, Ints]] = []
    while True:
        size, top = len(left), int(where[root])
        np.fill_diagonal(left, np.inf)
        best = left.argmin(axis=0)
        columns = np.arange(size)
        rounds.append((where.copy(), tails[best, columns], heads[best, columns], best))
        label = _merged(best, top)
        groups = int(label.max()) + 1
        if groups == size:
            break
        in_cycle = np.bincount(label, minlength=groups)[label] > 1
        left[:, in_cycle] -= left[best[in_cycle], columns[in_cycle]]
        left, tails, heads = _contracted(left, tails, heads, label, groups)
        where = label[where]
    return _expanded(rounds, root, count)


def _merged(best: Ints, root: int) -> Ints:
    """Numbers of the nodes of the next round: those of a cycle have one."""
    size = len(best)
    label, seen, groups = np.full(size, -1), np.zeros(size, np.int64), 0
    seen[root] = -1
    for first in range(size):
        node = first
        while not seen[node]:
            seen[node] = first + 1
            node = int(best[node])
        if seen[node] == first + 1 and label[node] < 0:
            while label[node] < 0:
                label[node] = groups
                node = int(best[node])
            groups += 1
    alone = np.flatnonzero(label < 0)
    label[alone] = groups + np.arange(len(alone))
    return label


def _contracted(left: Floats, tails: Ints, heads: Ints, label: Ints, groups: int) -> tuple[Floats, Ints, Ints]:
    """The cheapest arc between each two groups."""
    order = np.argsort(label, kind="stable")
    begins = np.searchsorted(label[order], np.arange(groups))
    ends = np.append(begins[1:], len(label))
    alone = order[begins]
    rows, row_tails, row_heads = left[alone], tails[alone], heads[alone]
    for group in np.flatnonzero(ends - begins > 1):
        members = order[begins[group] : ends[group]]
        place = members[left[members].argmin(axis=0)]
        columns = np.arange(len(label))
        rows[group], row_tails[group], row_heads[group] = (each[place, columns] for each in (left, tails, heads))
    found, found_tails, found_heads = rows[:, alone], row_tails[:, alone], row_heads[:, alone]
    for group in np.flatnonzero(ends - begins > 1):
        members = order[begins[group] : ends[group]]
        place = members[rows[:, members].argmin(axis=1)]
        lines = np.arange(groups)
        found[:, group], found_tails[:, group], found_heads[:, group] = (
            each[lines, place] for each in (rows, row_tails, row_heads)
        )
    return found, found_tails, found_heads


def _expanded(rounds: list[tuple[Ints, Ints, Ints, Ints]], root: int, count: int) -> list[int]:
    """The arcs into nodes of the last round, and, round by round before it, all arcs of cycles but those entered."""
    where, tails, heads, _ = rounds[-1]
    entering = {(int(tails[v]), int(heads[v])) for v in range(len(tails)) if v != where[root]}
    for where, tails, heads, _ in rounds[-2::-1]:
        entered = {int(where[head]) for _, head in entering}
        entering |= {(int(tails[v]), int(heads[v])) for v in range(len(tails)) if v != where[root] and v not in entered}
    before = [-1] * count
    for tail, head in entering:
        before[head] = tail
    return before


def over_switches(instance: CollectiveInstance, prices: Mapping[Arc, float]) -> tuple[Floats, Ints]:
    """Costs of least paths between accelerators over switches alone, and the node before each node on these.

    Accelerators stand in it twice, once as beginnings and, behind all nodes, as ends.
    """
    count, nodes = instance.accelerators, instance.nodes
    tails = np.array([i for i, _ in instance.bandwidth])
    heads = np.array([j if j >= count else nodes + j for _, j in instance.bandwidth])
    # A link costs a little by itself: where prices tie, that makes paths short.
    least = max(prices.values()) * _LINK_ITSELF or 1.0
    weights = np.array([prices[link] + least for link in instance.bandwidth])
    graph = csr_array((weights, (tails, heads)), shape=(nodes + count, nodes + count))
    costs, before = dijkstra(graph, indices=range(count), return_predecessors=True)
    return np.ascontiguousarray(costs[:, nodes:]), before


def path_of(instance: CollectiveInstance, before: Ints, first: int, last: int) -> Path:
    """The path between two accelerators, of what :func:`over_switches` gives."""
    way = [last]
    node = int(before[first, instance.nodes + last])
    while node != first:
        way.append(node)
        node = int(before[first, node])
    return first, *way[::-1]
