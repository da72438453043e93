"""Least closed tours over all accelerators: exact for few, and by local search."""

from itertools import pairwise

import numpy as np
import numpy.typing as npt

from ddlopt.models.tolerances import ROUNDING

Floats = npt.NDArray[np.float64]
EXACT = 12
"""Nodes up to which tours are exact: a table of 2^(n-1) n entries, made n at a time."""


def least_tour(costs: Floats) -> tuple[float, list[int]]:
    """The closed tour over all nodes with the least sum, by dynamic programming over sets (Held and Karp).

    Parameters
    ----------
    costs : (n, n) float array
        Infinite where there is no arc.

    Returns
    -------
    float
        Infinite where there is no tour.
    list of int
        From node 0; empty where there is none.
    """
    count = len(costs)
    if count == 2:
        return float(costs[0, 1] + costs[1, 0]), [0, 1]
    others = count - 1
    table = np.full((1 << others, others), np.inf)
    before = np.full((1 << others, others), -1, dtype=np.int64)
    table[1 << np.arange(others), np.arange(others)] = costs[0, 1:]
    inner = costs[1:, 1:]
    for held in range(1, 1 << others):
        row = table[held]
        if not np.isfinite(row).any():
            continue
        reach = row[:, None] + inner
        best, last = reach.min(axis=0), reach.argmin(axis=0)
        for node in range(others):
            larger = held | (1 << node)
            if larger != held and best[node] < table[larger, node]:
                table[larger, node], before[larger, node] = best[node], last[node]
    everything = (1 << others) - 1
    ends = table[everything] + costs[1:, 0]
    node = int(ends.argmin())
    if not np.isfinite(ends[node]):
        return np.inf, []
    value, held, tour = float(ends[node]), everything, []
    while node >= 0:
        tour.append(node + 1)
        node, held = int(before[held, node]), held & ~(1 << node)
    return value, [0, *tour[::-1]]


def good_tour(costs: Floats, rng: np.random.Generator, starts: int = 4) -> tuple[float, list[int]]:
    """A closed tour by nearest neighbours from several nodes, then by moving runs of up to three nodes (Or-opt)."""
    best, order = np.inf, list[int]()
    count = len(costs)
    finite = costs[np.isfinite(costs)]
    # What is not joined costs more than any tour, so that differences are numbers.
    costs = np.where(np.isfinite(costs), costs, 1 + 2 * count * finite.max())
    np.fill_diagonal(costs, 0.0)
    for first in rng.permutation(count)[:starts]:
        tour = _nearest(costs, int(first))
        tour = _improved(costs, tour)
        value = length(costs, tour)
        if value < best:
            best, order = value, tour
    return (best, order) if best <= count * finite.max() else (np.inf, order)


def length(costs: Floats, tour: list[int]) -> float:
    """Sum of the arcs of a closed tour."""
    return float(sum(costs[a, b] for a, b in pairwise([*tour, tour[0]])))


def _nearest(costs: Floats, first: int) -> list[int]:
    tour, left = [first], set(range(len(costs))) - {first}
    while left:
        here = tour[-1]
        following = min(left, key=lambda node: (costs[here, node], (node - here) % len(costs)))
        tour.append(following)
        left.discard(following)
    return tour


def _improved(costs: Floats, tour: list[int]) -> list[int]:
    """Move runs of one to three nodes to where they cost least, until none gains."""
    count = len(tour)
    gained = True
    while gained:
        gained = False
        for run in (1, 2, 3):
            if count <= run + 1:
                break
            for _ in range(count):
                moved, rest = tour[:run], tour[run:]
                here = costs[rest[-1], moved[0]] + costs[moved[-1], rest[0]]
                a, b = np.array(rest[:-1]), np.array(rest[1:])
                spared = here + costs[a, b] - costs[rest[-1], rest[0]]
                gains = spared - costs[a, moved[0]] - costs[moved[-1], b]
                place = int(gains.argmax())
                # Of all that is added up: runs between links without a price would gain by rounding for ever.
                if gains[place] > ROUNDING * (here + costs[a[place], b[place]]):
                    tour = rest[: place + 1] + moved + rest[place + 1 :]
                    gained = True
                tour = tour[1:] + tour[:1]
    return tour
