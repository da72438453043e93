"""Numba kernel that enumerates placements in register arrays, with bounds: the parameter in the most trouble first.

See :mod:`ddlopt.solvers.aggregation.registers.kernels.annealing` for the tables, which it shares. Nothing here knows an
instance.
"""

# mypy: disable-error-code="untyped-decorator, no-any-return"

from typing import NamedTuple

import numpy as np

from ddlopt.models.kernels import inner, kernel
from ddlopt.models.tolerances import IMPROVEMENT_TOL
from ddlopt.solvers.aggregation.registers.kernels.annealing import WORK, Floats, Ints, Work

_TREE = (
    "record(Tree, i8[::1], i8[::1], i8[:, ::1], i8[::1], f8[:, ::1], i8[::1], i8[:, ::1], i8[::1], f8[::1], "
    "i8[:, ::1], f8[::1])"
)


class Tree(NamedTuple):
    """A partial placement: array of each parameter or -1, parameters in arrays, counts (T, R), largest counts (T,).

    ``rising`` (T, counts) is what an array of a batch costs at least, by its count; it never falls. ``beyond`` is the
    least bound of the branches cut. By depth: the parameter placed there, the arrays tried for it in order (-1 after
    the last), the next of them, the cost before and the largest counts before.
    """

    array: Ints
    held: Ints
    counts: Ints
    largest: Ints
    rising: Floats
    parameter: Ints
    tried: Ints
    following: Ints
    cost: Floats
    largest_before: Ints
    beyond: Floats


def empty_tree(work: Work, rising: Floats, cost: float) -> Tree:
    """A tree with nothing placed, which costs ``cost``."""
    n, arrays, batches = len(work.start) - 1, len(work.capacity), len(work.table)
    tree = Tree(
        np.full(n, -1, np.int64),
        np.zeros(arrays, np.int64),
        np.zeros((batches, arrays), np.int64),
        np.zeros(batches, np.int64),
        rising,
        np.full(n + 1, -1, np.int64),
        np.full((n + 1, arrays + 1), -1, np.int64),
        np.zeros(n + 1, np.int64),
        np.zeros(n + 1),
        np.zeros((n + 1, batches), np.int64),
        np.full(1, np.inf),
    )
    tree.cost[0] = cost
    return tree


@inner()
def _rise(work: Work, tree: Tree, i: int, r: int) -> float:
    """What the placement costs more with i in array r."""
    found = 0.0
    for k in range(work.start[i], work.start[i + 1]):
        t = work.batch[k]
        c = tree.counts[t, r]
        found += tree.rising[t, c + 1] - tree.rising[t, c]
        if c + 1 > tree.largest[t]:
            found += work.of_top * (work.top[t, c + 1] - work.top[t, tree.largest[t]])
    return found


@inner()
def _twin_is_empty(work: Work, tree: Tree, r: int) -> bool:
    """Whether an array before r is as empty and as large."""
    if tree.held[r] > 0:
        return False
    for other in range(r):  # noqa: SIM110, as a generator is nothing for Numba
        if tree.held[other] == 0 and work.capacity[other] == work.capacity[r]:
            return True
    return False


@inner()
def _least_rises(work: Work, tree: Tree, least: Floats, ties: Ints) -> int:
    """Least rise of every parameter that is not placed; returns the one with the largest, and the fewest ways to it."""
    chosen = -1
    for i in range(len(tree.array)):
        if tree.array[i] >= 0:
            continue
        least[i], ties[i] = np.inf, 0
        for r in range(len(work.capacity)):
            if tree.held[r] >= work.capacity[r] or _twin_is_empty(work, tree, r):
                continue
            rise = _rise(work, tree, i, r)
            if rise < least[i] - IMPROVEMENT_TOL:
                least[i], ties[i] = rise, 0
            if rise <= least[i] + IMPROVEMENT_TOL:
                ties[i] += 1
        if (
            chosen < 0
            or least[i] > least[chosen] + IMPROVEMENT_TOL
            or (least[i] > least[chosen] - IMPROVEMENT_TOL and ties[i] < ties[chosen])
        ):
            chosen = i
    return chosen


@inner(inline="always")
def _still_to_come(work: Work, tree: Tree, least: Floats) -> float:
    """Least rises of parameters of which no two are in one batch, the largest first: what any completion costs more."""
    met = np.zeros(len(work.table), np.bool_)
    done = np.zeros(len(tree.array), np.bool_)
    found = 0.0
    while True:
        best = -1
        for i in range(len(tree.array)):
            if (
                tree.array[i] < 0
                and not done[i]
                and least[i] > IMPROVEMENT_TOL
                and (best < 0 or least[i] > least[best])
            ):
                best = i
        if best < 0:
            return found
        done[best] = True
        clear = True
        for k in range(work.start[best], work.start[best + 1]):
            clear = clear and not met[work.batch[k]]
        if clear:
            found += least[best]
            for k in range(work.start[best], work.start[best + 1]):
                met[work.batch[k]] = True


@inner()
def _open(work: Work, tree: Tree, depth: int, i: int) -> None:
    """List the arrays for i at this depth, the cheapest first."""
    tree.parameter[depth], tree.following[depth] = i, 0
    rises = np.empty(len(work.capacity))
    listed = 0
    for r in range(len(work.capacity)):
        if tree.held[r] >= work.capacity[r] or _twin_is_empty(work, tree, r):
            continue
        rise = _rise(work, tree, i, r)
        place = listed
        while place > 0 and rises[place - 1] > rise + IMPROVEMENT_TOL:
            rises[place] = rises[place - 1]
            tree.tried[depth, place] = tree.tried[depth, place - 1]
            place -= 1
        rises[place] = rise
        tree.tried[depth, place] = r
        listed += 1
    tree.tried[depth, listed] = -1


@inner(inline="always")
def _put(work: Work, tree: Tree, depth: int, i: int, r: int) -> None:
    tree.cost[depth + 1] = tree.cost[depth] + _rise(work, tree, i, r)
    tree.array[i] = r
    tree.held[r] += 1
    for t in range(len(tree.largest)):
        tree.largest_before[depth, t] = tree.largest[t]
    for k in range(work.start[i], work.start[i + 1]):
        t = work.batch[k]
        tree.counts[t, r] += 1
        tree.largest[t] = max(tree.largest[t], tree.counts[t, r])


@inner()
def _take_back(work: Work, tree: Tree, depth: int) -> None:
    i = tree.parameter[depth]
    r = tree.array[i]
    tree.array[i] = -1
    tree.held[r] -= 1
    for t in range(len(tree.largest)):
        tree.largest[t] = tree.largest_before[depth, t]
    for k in range(work.start[i], work.start[i + 1]):
        tree.counts[work.batch[k], r] -= 1


@inner(inline="always")
def _value(work: Work, tree: Tree) -> float:
    """Objective of a full placement."""
    table = top = 0.0
    for t in range(len(tree.largest)):
        for r in range(len(tree.held)):
            table += work.table[t, tree.counts[t, r]]
        top += work.top[t, tree.largest[t]]
    return work.of_table * table + work.of_top * top


@kernel(f"({WORK}, {_TREE}, i8, f8, i8[::1], f8, i8)")
def explore(work: Work, tree: Tree, depth: int, goal: float, best: Ints, step: float, nodes: int) -> tuple[int, float]:
    """Go on for so many nodes with placements that cost ``goal`` at most; returns depth and goal.

    The depth is -1 where all of them have been seen. A placement found goes into ``best``, and from then on only those
    that cost ``step`` less are looked for. ``tree.beyond`` is the least bound of the branches cut. A tree is begun with
    ``empty_tree`` and depth 0.
    """
    n = len(tree.array)
    least, ties = np.zeros(n), np.zeros(n, np.int64)
    if depth == 0 and tree.parameter[0] < 0:
        _open(work, tree, depth, _least_rises(work, tree, least, ties))
    for _ in range(nodes):
        while depth >= 0 and tree.tried[depth, tree.following[depth]] < 0:
            depth -= 1
            if depth >= 0:
                _take_back(work, tree, depth)
        if depth < 0:
            break
        r = tree.tried[depth, tree.following[depth]]
        tree.following[depth] += 1
        _put(work, tree, depth, tree.parameter[depth], r)
        depth += 1
        if depth < n:
            chosen = _least_rises(work, tree, least, ties)
            bound = tree.cost[depth] + _still_to_come(work, tree, least)
        else:
            chosen, bound = -1, _value(work, tree)
        if bound > goal + IMPROVEMENT_TOL:
            tree.beyond[0] = min(tree.beyond[0], bound)
        elif depth < n:
            _open(work, tree, depth, chosen)
            continue
        else:
            for i in range(n):
                best[i] = tree.array[i]
            goal = bound - step
        depth -= 1
        _take_back(work, tree, depth)
    return depth, goal
