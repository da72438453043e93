"""A bound for placements in register arrays that needs no solver."""

from collections.abc import Iterable, Iterator
from itertools import combinations

import numpy as np
import numpy.typing as npt

from ddlopt.models.aggregation.registers.batches import Merged, merged
from ddlopt.models.aggregation.registers.instance import RegisterInstance


def registers_bound(instance: RegisterInstance) -> float:
    r"""Floors of all batches, and what parameters add of which any two are in one batch.

    A batch by itself takes :math:`f_t = \lceil |S_t| / K \rceil` packets, or more where the capacities are uneven;
    or the pairs of :math:`|S_t|` parameters spread evenly over the arrays. With goal ``packets`` let there be more than
    R parameters of which any two are in a batch with :math:`f_t = 1`. Two of them are in one array, so that one of the
    batches takes another packet. Such sets are sought greedily, each with batches of its own, and each adds the least
    weight among its batches.
    """
    batches = merged(instance)
    return batches.floor + (_cliques(instance, batches) if instance.goal == "packets" else 0.0)


def _cliques(instance: RegisterInstance, batches: Merged) -> float:
    """What sets of more parameters than arrays add."""
    weights = dict(zip(batches.batches, batches.weights.tolist(), strict=True))
    return float(sum(min(weights[batch] for batch in used) for _, used in _disjoint_cliques(instance, batches)))


def disjoint_cliques(instance: RegisterInstance) -> list[tuple[list[int], list[tuple[int, ...]]]]:
    """Sets of more parameters than arrays, two of them always in a batch with floor 1; and those batches, each once."""
    return list(_disjoint_cliques(instance, merged(instance)))


def _disjoint_cliques(instance: RegisterInstance, batches: Merged) -> Iterator[tuple[list[int], list[tuple[int, ...]]]]:
    arrays = sum(1 for capacity in instance.capacities if capacity)
    single = [place for place, floor in enumerate(batches.floors.tolist()) if floor == 1]
    free = {place: set(batches.batches[place]) for place in single}
    while True:
        near = _neighbours(instance.parameters, free.values())
        clique = _clique(near, arrays + 1)
        if not clique:
            return
        used = _cover(clique, free)
        yield clique, [batches.batches[place] for place in used]
        for place in used:
            del free[place]


def _neighbours(count: int, batches: Iterable[set[int]]) -> npt.NDArray[np.int64]:
    """(n, n) number of batches that two parameters share."""
    near = np.zeros((count, count), dtype=np.int64)
    for batch in batches:
        members = list(batch)
        near[np.ix_(members, members)] += 1
    np.fill_diagonal(near, 0)
    return near


def _clique(near: npt.NDArray[np.int64], size: int) -> list[int]:
    """Parameters of which any two share a batch, as many as ``size``; empty where a greedy search finds none."""
    joined = near > 0
    for first in np.argsort(-joined.sum(axis=1), kind="stable").tolist():
        if joined[first].sum() + 1 < size:
            break
        clique, open_ = [first], joined[first].copy()
        while len(clique) < size and open_.any():
            chosen = int(np.argmax(np.where(open_, (joined & open_).sum(axis=1), -1)))
            clique.append(chosen)
            open_ &= joined[chosen]
        if len(clique) == size:
            return clique
    return []


def _cover(clique: list[int], free: dict[int, set[int]]) -> list[int]:
    """Batches in which any two of the clique are together, found greedily."""
    left, used = set(combinations(sorted(clique), 2)), []
    while left:
        gain = {place: sum(1 for i, j in left if i in batch and j in batch) for place, batch in free.items()}
        best = max(gain, key=lambda place: gain[place])
        used.append(best)
        left -= {(i, j) for i, j in left if i in free[best] and j in free[best]}
    return used
