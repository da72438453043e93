"""Numba kernel of the networks that are set anew: how long demands take that share links on shortest paths."""

# mypy: disable-error-code="untyped-decorator, no-any-return"

import numpy as np
import numpy.typing as npt

from ddlopt.models.kernels import kernel

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]


@kernel("(const(i8[:, ::1]), const(i8[:, ::1]), const(f8[:, ::1]))")
def times_on_trees(circuits: Ints, turns: Ints, waiting: Floats) -> Floats:
    """Time until each demand is delivered if it gets on every link the share of what waits for that link that it is.

    A demand on a path with links e then takes as long as the slowest of them would take for all that waits for it.

    Parameters
    ----------
    circuits : (n, n) array
        Circuits from row to column.
    turns : (n, n) array
        For each source and server: at which server the search looks first. The search is breadth first, so that the
        paths of a source are a tree of shortest ones.
    waiting : (n, n) array
        Seconds that each demand takes on one circuit.

    Returns
    -------
    (n, n) array
        Seconds; infinite where no path leads. Meaningless where nothing waits.
    """
    n = len(circuits)
    heads = np.empty((n, n), np.int64)
    degree = np.zeros(n, np.int64)
    for v in range(n):
        for w in range(n):
            if circuits[v, w] > 0:
                heads[v, degree[v]] = w
                degree[v] += 1
    load = np.zeros((n, n))
    parent = np.full((n, n), -1, np.int64)
    order = np.empty((n, n), np.int64)
    reached = np.empty(n, np.int64)
    below = np.empty(n)
    for s in range(n):
        parent[s, s] = s
        order[s, 0] = s
        write = 1
        read = 0
        while read < write:
            v = order[s, read]
            read += 1
            for k in range(degree[v]):
                w = heads[v, (turns[s, v] + k) % degree[v]]
                if parent[s, w] < 0:
                    parent[s, w] = v
                    order[s, write] = w
                    write += 1
        reached[s] = write
        below[:] = waiting[s]
        for place in range(write - 1, 0, -1):
            w = order[s, place]
            v = parent[s, w]
            below[v] += below[w]
            load[v, w] += below[w]
    times = np.full((n, n), np.inf)
    for s in range(n):
        times[s, s] = 0.0
        for place in range(1, reached[s]):
            w = order[s, place]
            v = parent[s, w]
            times[s, w] = max(times[s, v], load[v, w] / circuits[v, w])
    return times
