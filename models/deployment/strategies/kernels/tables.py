"""Numba kernels on graphs of strategies: what is consistent, smaller tables, merged tables.

Node i has strategies ``start[i]:start[i + 1]``; edge e joins ``edges[e, 0] < edges[e, 1]`` and its table, row by row,
begins at ``table_start[e]``. A forbidden pair is infinite. Nothing here knows an instance.
"""

# mypy: disable-error-code="untyped-decorator, no-any-return"

import numpy as np
import numpy.typing as npt

from ddlopt.models.kernels import kernel

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]


@kernel("(i8[::1], i8[:, ::1], i8[::1], f8[::1], b1[::1])")
def keep_consistent(start: Ints, edges: Ints, table_start: Ints, table: Floats, alive: Flags) -> None:
    """Clear ``alive`` (k,) of strategies that some neighbour has no allowed partner for, until nothing changes."""
    changed = True
    while changed:
        changed = False
        for e in range(len(edges)):
            u, v = edges[e, 0], edges[e, 1]
            first, last = start[v], start[v + 1]
            for a in range(start[u], start[u + 1]):
                row = table_start[e] + (a - start[u]) * (last - first) - first
                if alive[a]:
                    found = False
                    for b in range(first, last):
                        if alive[b] and table[row + b] < np.inf:
                            found = True
                            break
                    if not found:
                        alive[a] = False
                        changed = True
            for b in range(first, last):
                if alive[b]:
                    found = False
                    place = table_start[e] + b - first
                    for a in range(start[u], start[u + 1]):
                        if alive[a] and table[place] < np.inf:
                            found = True
                            break
                        place += last - first
                    if not found:
                        alive[b] = False
                        changed = True


@kernel("(i8[::1], i8[:, ::1], i8[::1], f8[::1], b1[::1], i8[::1], f8[::1])")
def smaller_tables(
    start: Ints, edges: Ints, table_start: Ints, table: Floats, alive: Flags, new_start: Ints, new_table: Floats
) -> None:
    """Copy to ``new_table`` (offsets ``new_start``) what is left of the tables."""
    for e in range(len(edges)):
        u, v = edges[e, 0], edges[e, 1]
        first, last = start[v], start[v + 1]
        target = new_start[e]
        for a in range(start[u], start[u + 1]):
            if alive[a]:
                row = table_start[e] + (a - start[u]) * (last - first) - first
                for b in range(first, last):
                    if alive[b]:
                        new_table[target] = table[row + b]
                        target += 1


@kernel("(i8[::1], i8[:, ::1], i8[::1], const(f8[::1]), i8[::1], i8[::1], f8[::1], f8[::1])")
def add_tables(
    size: Ints, ends: Ints, table_start: Ints, table: Floats, into: Ints, cost_start: Ints, cost: Floats, sums: Floats
) -> None:
    """Add up tables of edges that join the same two nodes, and those of edges from a node to itself to its costs.

    Parameters
    ----------
    size : (n,) strategies of the nodes
    ends : (m, 2) nodes, in any order
    table_start, table : of those edges
    into : (m,) offset in ``sums`` of the table with the smaller node first
    cost_start, cost : costs of nodes, changed
    sums : tables, changed; zero before
    """
    for e in range(len(ends)):
        u, v = ends[e, 0], ends[e, 1]
        place = table_start[e]
        if u == v:
            for a in range(size[u]):
                cost[cost_start[u] + a] += table[place + a * size[u] + a]
        elif u < v:
            for k in range(size[u] * size[v]):
                sums[into[e] + k] += table[place + k]
        else:
            for a in range(size[u]):
                for b in range(size[v]):
                    sums[into[e] + b * size[u] + a] += table[place]
                    place += 1


@kernel("(f8[::1], i8[::1], i8[::1])")
def least_over_ranges(values: Floats, low: Ints, high: Ints) -> Floats:
    """(q,) the least of ``values[low:high]`` of each range; ranges are not empty."""
    size = len(values)
    levels = 1
    while (1 << levels) <= size:
        levels += 1
    tree = np.empty((levels, size))
    for i in range(size):
        tree[0, i] = values[i]
    for k in range(1, levels):
        step = 1 << (k - 1)
        for i in range(size - (1 << k) + 1):
            tree[k, i] = min(tree[k - 1, i], tree[k - 1, i + step])
    least = np.empty(len(low))
    for q in range(len(low)):
        k = 0
        while (1 << (k + 1)) <= high[q] - low[q]:
            k += 1
        least[q] = min(tree[k, low[q]], tree[k, high[q] - (1 << k)])
    return least
