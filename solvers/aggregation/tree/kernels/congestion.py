"""Numba kernel that finds the fewest aggregating switches of a tree under limits on links."""

# mypy: disable-error-code="untyped-decorator, no-any-return"

import numpy as np
import numpy.typing as npt

from ddlopt.models.kernels import inner, kernel

Ints = npt.NDArray[np.int64]


@kernel("(const(i8[::1]), const(i8[::1]), const(i8[::1]), const(b1[::1]), const(i8[::1]), i8)")
def fewest(
    parents: Ints, order: Ints, loads: Ints, useful: npt.NDArray[np.bool_], limit: Ints, most: int
) -> tuple[int, npt.NDArray[np.bool_]]:
    """Fewest switches that aggregate such that no link has more messages than its limit.

    Parameters
    ----------
    parents, order : int64, shape (n,)
        -1 above the root; each node after its parent.
    loads, limit : int64, shape (n,)
        Messages that enter at a node, and that its link may carry.
    useful : bool, shape (n,)
        Nodes that may aggregate.
    most : int
        It gives up beyond.

    Returns
    -------
    count : int
        -1 where there is no such set, or none within ``most``.
    chosen : bool, shape (n,)
    """
    n = len(parents)
    messages, saving, chosen = loads.copy(), np.zeros(n, np.int64), np.zeros(n, np.bool_)
    # Leftist heaps by saving: of the nodes in a subtree that may still aggregate, none above another.
    heap, left, right, rank = np.full(n, -1), np.full(n, -1), np.full(n, -1), np.ones(n, np.int64)
    count = 0
    for at in range(n - 1, -1, -1):
        v = order[at]
        if messages[v] > limit[v] and useful[v]:
            chosen[v] = True
            count += 1
            messages[v] = 1
            heap[v] = -1
        while messages[v] > limit[v] and heap[v] >= 0:
            u = heap[v]
            heap[v] = _merged(left[u], right[u], saving, left, right, rank)
            chosen[u] = True
            count += 1
            messages[v] -= saving[u]
        if messages[v] > limit[v] or count > most:
            return -1, chosen
        if useful[v] and not chosen[v]:
            saving[v] = messages[v] - 1
            heap[v] = v if saving[v] > 0 else -1
        p = parents[v]
        if p >= 0:
            messages[p] += messages[v]
            heap[p] = _merged(heap[p], heap[v], saving, left, right, rank)
    return count, chosen


@inner()
def _merged(one: int, other: int, saving: Ints, left: Ints, right: Ints, rank: Ints) -> int:
    """The heap of two heaps; at most a logarithm of their size deep."""
    if one < 0:
        return other
    if other < 0:
        return one
    if saving[one] < saving[other]:
        one, other = other, one
    right[one] = _merged(right[one], other, saving, left, right, rank)
    if left[one] < 0 or rank[left[one]] < rank[right[one]]:
        left[one], right[one] = right[one], left[one]
    rank[one] = 1 if right[one] < 0 else rank[right[one]] + 1
    return one
