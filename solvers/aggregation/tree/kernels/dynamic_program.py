"""Numba kernels of the dynamic program for aggregation in a tree; nothing here knows an instance.

The *anchors* of a node are the destination (row 0) and the useful switches above it, from the root down: where messages
that leave the node may be added up next. The table of a node has a row for each anchor and a column for each number of
switches that aggregate in its subtree, at most; an entry is the least cost of the subtree's messages until they have
reached the anchor.
"""

# mypy: disable-error-code="untyped-decorator, no-any-return"

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from ddlopt.models.kernels import inner, kernel

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

_LAYOUT = "record(Layout, i8[::1], i8[::1], i8[::1], i8[::1], i8[::1], b1[::1], i8[::1], i8[::1], i8[::1], i8)"
_STORE = "record(Store, f8[::1], i8[::1], i8[::1], i4[::1], i4[::1], i8[::1])"


class Layout(NamedTuple):
    """Where everything is kept; arrays have an entry for each node.

    ``post``: nodes, children first, the child with the largest subtree (``heavy``) before its siblings, so that it
    hands its table on to its parent, and few others wait meanwhile. ``rows``: anchors. ``above``: the useful switch
    next above, or -1. ``most``: last column of the table. ``base``: its place in the buffer of tables, which has
    ``length`` entries. ``thresholds``: place of its thresholds.
    """

    parents: Ints
    post: Ints
    heavy: Ints
    rows: Ints
    above: Ints
    useful: npt.NDArray[np.bool_]
    most: Ints
    base: Ints
    thresholds: Ints
    length: int


class Store(NamedTuple):
    """Tables that wait, and decisions.

    ``last[v]``: last column of the table of v so far; ``before[v]``: when its children had been added. A node
    aggregates where its row is below its threshold for the number of switches left, as farther anchors make that worth
    more: without it, at least one message goes all the way. ``split``: what a child that is not the heavy one has of
    the switches left when it is added, from ``place[v]`` on; there is room for some nodes only.
    """

    table: Floats
    last: Ints
    before: Ints
    threshold: npt.NDArray[np.int32]
    split: npt.NDArray[np.int32]
    place: Ints


@kernel("(i8[::1], i8[::1], b1[::1], i8)")
def layout(parents: Ints, order: Ints, useful: npt.NDArray[np.bool_], limit: int) -> Layout:
    """The layout for at most ``limit`` aggregating switches; 0 for any number, which only prices hold down."""
    n = len(parents)
    size, total, heavy = np.empty(n, np.int64), np.empty(n, np.int64), np.empty(n, np.int64)
    for v in range(n):
        size[v], total[v], heavy[v] = 1, 1 if useful[v] else 0, -1
    for at in range(n - 1, 0, -1):
        v = order[at]
        p = parents[v]
        size[p] += size[v]
        total[p] += total[v]
        if heavy[p] < 0 or size[v] > size[heavy[p]]:
            heavy[p] = v
    for v in range(n):
        total[v] = min(total[v], limit)
    # Breadth-first order has each node's children side by side: preorder with the heavy child last, then reversed.
    post, at_end = np.empty(n, np.int64), np.zeros(n, np.int64)
    place = np.zeros(n, np.int64)
    for v in order:
        p = parents[v]
        if p >= 0:
            if v == heavy[p]:
                place[v] = place[p] + size[p] - size[v]
            else:
                at_end[p] += size[v]
                place[v] = place[p] + at_end[p] - size[v] + 1
        post[n - 1 - place[v]] = v
    most, base = total, np.zeros(n, np.int64)
    rows, above = np.empty(n, np.int64), np.empty(n, np.int64)
    rows[:] = 1
    above[:] = -1
    thresholds, length, used = np.zeros(n, np.int64), 0, 0
    for v in order:
        p = parents[v]
        if p >= 0:
            rows[v] = rows[p] + useful[p]
            above[v] = p if useful[p] else above[p]
            base[v] = base[p]
            if heavy[p] != v:
                base[v] += rows[v] * (most[p] + 1)
        thresholds[v] = used
        used += most[v] + 1
        length = max(length, base[v] + (rows[v] + useful[v]) * (most[v] + 1))
    return Layout(parents, post, heavy, rows, above, useful, most, base, thresholds, length)


@kernel(f"({_LAYOUT}, {_STORE}, f8[::1], f8[::1], f8[::1], i8, i8)")
def advance(plan: Layout, kept: Store, loads: Floats, path: Floats, price: Floats, first: int, last: int) -> None:
    """Make the tables of the nodes ``post[first:last]``.

    Parameters
    ----------
    loads, path, price : float64, shape (n,)
        Messages that enter at a node, cost of one from there to the destination, and what a switch costs that
        aggregates.
    """
    rows, most = 0, 0
    for v in range(len(plan.rows)):
        rows, most = max(rows, plan.rows[v]), max(most, plan.most[v])
    far, line = np.empty(rows + 1), np.empty(most + 1)
    for at in range(first, last):
        v = plan.post[at]
        if plan.heavy[v] < 0:
            _begin(v, plan, kept)
        _add_own(v, plan, kept, loads[v], path, far)
        kept.before[v] = kept.last[v]
        if plan.useful[v]:
            _aggregate(v, plan, kept, price[v], far)
        p = plan.parents[v]
        if p >= 0:
            if plan.heavy[p] == v:
                _hand_on(v, p, plan, kept)
            else:
                _join(v, p, plan, kept, line)


@inner(inline="always")
def _begin(v: int, plan: Layout, kept: Store) -> None:
    """The table of a leaf before its own messages."""
    width = plan.most[v] + 1
    kept.last[v] = 0
    for row in range(plan.rows[v] + plan.useful[v]):
        kept.table[plan.base[v] + row * width] = 0.0


@inner(inline="always")
def _add_own(v: int, plan: Layout, kept: Store, load: float, path: Floats, far: Floats) -> None:
    """Carry what enters at v to each anchor, at a distance that ``far`` then has."""
    width, columns = plan.most[v] + 1, kept.last[v] + 1
    anchor = plan.above[v]
    for row in range(plan.rows[v] - 1, -1, -1):
        far[row] = path[v] - (path[anchor] if row else 0.0)
        if row:
            anchor = plan.above[anchor]
        if load > 0.0:
            start = plan.base[v] + row * width
            for i in range(start, start + columns):
                kept.table[i] += load * far[row]


@inner(inline="always")
def _aggregate(v: int, plan: Layout, kept: Store, price: float, far: Floats) -> None:
    """Let v aggregate where that costs less; the last row, for which v is the anchor, then goes."""
    rows, most, last = plan.rows[v], plan.most[v], kept.last[v]
    table, width = kept.table, plan.most[v] + 1
    own, limits = plan.base[v] + rows * width, plan.thresholds[v]
    shift = 1 if most > 0 else 0
    if last < most:
        for row in range(rows):
            start = plan.base[v] + row * width
            for i in range(last + 1, most + 1):
                table[start + i] = table[start + last]
    farthest = 0
    for i in range(shift, most + 1):
        low, high = 0, rows
        while low < high:
            row = (low + high) // 2
            if table[own + i - shift] + (far[row] + price) < table[plan.base[v] + row * width + i]:
                low = row + 1
            else:
                high = row
        kept.threshold[limits + i] = low
        farthest = max(farthest, low)
    mine = table[own : own + most + 1 - shift]
    for row in range(farthest):
        start, added = plan.base[v] + row * width + shift, far[row] + price
        theirs = table[start : start + most + 1 - shift]
        for i in range(len(mine)):
            theirs[i] = min(theirs[i], mine[i] + added)
    kept.last[v] = most


@inner(inline="always")
def _hand_on(v: int, p: int, plan: Layout, kept: Store) -> None:
    """The table of v becomes that of its parent, whose rows are longer."""
    old, new, start, last = plan.most[v] + 1, plan.most[p] + 1, plan.base[p], kept.last[v]
    kept.last[p] = last
    if old == new:
        return
    for row in range(plan.rows[v] - 1, -1, -1):
        for i in range(last, -1, -1):
            kept.table[start + row * new + i] = kept.table[start + row * old + i]


@inner(inline="always")
def _join(v: int, p: int, plan: Layout, kept: Store, line: Floats) -> None:
    """Add the table of v to that of its parent: each row is the best split of switches between them."""
    mine, sum_width, table = plan.most[v] + 1, plan.most[p] + 1, kept.table
    old, added = kept.last[p], kept.last[v]
    new = min(plan.most[p], old + added)
    for row in range(plan.rows[v]):
        one, other = plan.base[p] + row * sum_width, plan.base[v] + row * mine
        if added == 0:
            for i in range(old + 1):
                table[one + i] += table[other]
            continue
        choice = kept.place[v] + row * sum_width
        if added == 1:
            _join_one(table[one : one + new + 1], table[other], table[other + 1], old, line, kept.split[choice:])
            continue
        line[: new + 1] = np.inf
        for a in range(added + 1):
            cost = table[other + a]
            for i in range(a, min(new, old + a) + 1):
                if table[one + i - a] + cost < line[i]:
                    line[i] = table[one + i - a] + cost
                    kept.split[choice + i] = a
        for i in range(new + 1):
            table[one + i] = line[i]
    kept.last[p] = new


@inner()
def _join_one(
    costs: Floats, without: float, taken: float, old: int, line: Floats, split: npt.NDArray[np.int32]
) -> None:
    """The same for a child with two columns, as most leaves have; written such that compilers use vectors."""
    for i in range(len(costs)):
        line[i] = costs[min(i, old)]
    costs[0], split[0] = line[0] + without, 0
    for i in range(1, len(costs)):
        keeping, taking = line[i] + without, line[i - 1] + taken
        costs[i] = min(keeping, taking)
        split[i] = taking < keeping


@kernel(f"({_LAYOUT}, {_STORE}, i8[::1], i8[::1], b1[::1], i8, i8)")
def look_back(
    plan: Layout, kept: Store, row: Ints, left: Ints, found: npt.NDArray[np.bool_], first: int, last: int
) -> None:
    """Note in ``found`` which of the nodes ``post[first:last]`` aggregate; those after them have been looked at.

    Parameters
    ----------
    row, left : int64, shape (n,)
        Of nodes looked at: the row of their children, and the switches that are left for children yet to come. Of the
        root: before it is looked at, the switches of the whole tree.
    """
    for at in range(last - 1, first - 1, -1):
        v = plan.post[at]
        p, mine = plan.parents[v], left[v]
        if p >= 0:
            row[v], mine = row[p], left[p]
            if plan.heavy[p] != v:
                mine = 0
                if plan.most[v] > 0:
                    mine = kept.split[kept.place[v] + row[v] * (plan.most[p] + 1) + left[p]]
                left[p] -= mine
        if plan.useful[v] and row[v] < kept.threshold[plan.thresholds[v] + mine]:
            found[v] = True
            row[v] = plan.rows[v]
            if plan.most[v] > 0:
                mine -= 1
        left[v] = min(mine, kept.before[v])
