"""Maximum flows in whole numbers of any size, in plain Python: what a bound by a minimum cut is recomputed with."""

from collections.abc import Iterable


def maximum_flow(nodes: int, arcs: Iterable[tuple[int, int, int]], source: int, sink: int) -> int:
    """Value of a maximum flow, by Dinic's algorithm.

    Parameters
    ----------
    nodes : int
    arcs : iterable of (tail, head, capacity)
        Capacities are whole and not negative.
    source, sink : int

    Returns
    -------
    int

    References
    ----------
    E. A. Dinic, "Algorithm for solution of a problem of maximum flow in networks with power estimation", 1970.
    """
    out: list[list[int]] = [[] for _ in range(nodes)]
    heads: list[int] = []
    left: list[int] = []
    for tail, head, capacity in arcs:
        out[tail].append(len(heads))
        out[head].append(len(heads) + 1)
        heads += [head, tail]
        left += [capacity, 0]
    value = 0
    while True:
        levels = _levels(out, heads, left, source)
        if levels[sink] < 0:
            return value
        value += _blocking(out, heads, left, levels, source, sink)


def _levels(out: list[list[int]], heads: list[int], left: list[int], source: int) -> list[int]:
    levels = [-1] * len(out)
    levels[source] = 0
    waiting = [source]
    for node in waiting:
        for arc in out[node]:
            if left[arc] and levels[heads[arc]] < 0:
                levels[heads[arc]] = levels[node] + 1
                waiting.append(heads[arc])
    return levels


def _blocking(
    out: list[list[int]], heads: list[int], left: list[int], levels: list[int], source: int, sink: int
) -> int:
    """Send what fits along shortest paths, one after the other."""
    following, path, total = [0] * len(out), list[int](), 0
    node = source
    while True:
        if node == sink:
            amount = min(left[arc] for arc in path)
            total += amount
            for arc in path:
                left[arc] -= amount
                left[arc ^ 1] += amount
            place = next(place for place, arc in enumerate(path) if not left[arc])
            node = heads[path[place] ^ 1]
            del path[place:]
        elif following[node] < len(out[node]):
            arc = out[node][following[node]]
            if left[arc] and levels[heads[arc]] == levels[node] + 1:
                path.append(arc)
                node = heads[arc]
            else:
                following[node] += 1
        elif path:
            node = heads[path.pop() ^ 1]
            following[node] += 1
        else:
            return total
