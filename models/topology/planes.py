"""Which optical plane realises which link: edge colouring of the design's multigraph."""

import random
from collections import deque
from collections.abc import Iterator, Mapping, Sequence

Plane = tuple[tuple[int, int], ...]
"""Pairs of servers that one optical plane joins; no server appears twice in the same role."""

EXHAUSTIVE_LINKS = 24
"""Designs of at most this number of links get an exhaustive search before they are declared uncolourable."""
# Each begins in another order of links.
_RESTARTS = 40
# Kicks of Kempe chains: an order that does not work out by then begins anew.
_KICKS_PER_LINK = 60


def colour_planes(
    servers: int, links: Mapping[tuple[int, int], int], degree: int, seed: int = 0
) -> tuple[Plane, ...] | None:
    """Spread duplex links over ``degree`` planes so that each plane is a matching.

    Links are coloured one by one. A link whose ends have no free colour in common gets one by swapping two colours
    along an alternating (Kempe) chain; where every chain joins the link's two ends, which only odd cycles can cause,
    the link takes the place of a neighbour that is then coloured anew. Bipartite designs therefore always succeed
    (König).

    Parameters
    ----------
    servers : int
    links : mapping (i, j) -> count
        Undirected pairs, each once.
    degree : int
        Number of planes.
    seed : int
        Of the order of the links and of the choices among chains.

    Returns
    -------
    tuple of planes, or None
        None is a proof that there is no such colouring if some server has more than ``degree`` links, if an odd
        component is overfull, or up to ``EXHAUSTIVE_LINKS`` links; beyond that it means that none was found.
    """
    edges = _copies((min(pair), max(pair), count) for pair, count in links.items())
    if _obviously_uncolourable(servers, edges, degree):
        return None
    if not edges:
        return ((),) * degree
    colours = None
    rng = random.Random(seed)
    for _ in range(_RESTARTS):
        colours = _kempe(servers, edges, degree, rng)
        if colours is not None:
            break
    if colours is None and len(edges) <= EXHAUSTIVE_LINKS:
        colours = _exhaustive(edges, degree)
    return None if colours is None else _planes(edges, colours, degree)


def _copies(links: Iterator[tuple[int, int, int]]) -> list[tuple[int, int]]:
    return [(i, j) for i, j, count in sorted(links) for _ in range(count)]


def _planes(edges: Sequence[tuple[int, int]], colours: Sequence[int], degree: int) -> tuple[Plane, ...]:
    return tuple(tuple(edge for edge, c in zip(edges, colours, strict=True) if c == plane) for plane in range(degree))


def _obviously_uncolourable(servers: int, edges: Sequence[tuple[int, int]], degree: int) -> bool:
    """A server with too many links, or a component with more links than ``degree`` matchings can hold."""
    neighbours: list[list[int]] = [[] for _ in range(servers)]
    for u, v in edges:
        neighbours[u].append(v)
        neighbours[v].append(u)
    if any(len(around) > degree for around in neighbours):
        return True
    seen: set[int] = set()
    for root in range(servers):
        if root in seen:
            continue
        component, queue = {root}, deque([root])
        while queue:
            for v in neighbours[queue.popleft()]:
                if v not in component:
                    component.add(v)
                    queue.append(v)
        seen |= component
        if sum(len(neighbours[v]) for v in component) // 2 > degree * (len(component) // 2):
            return True
    return False


def _kempe(vertices: int, edges: Sequence[tuple[int, int]], colours: int, rng: random.Random) -> list[int] | None:
    """A proper colouring of ``edges`` by alternating chains and random kicks; None where patience ends."""
    colour = [-1] * len(edges)
    at = [[-1] * colours for _ in range(vertices)]  # the edge of each colour at each vertex

    def paint(edge: int, c: int) -> None:
        u, v = edges[edge]
        if colour[edge] >= 0:
            at[u][colour[edge]] = at[v][colour[edge]] = -1
        colour[edge] = c
        if c >= 0:
            at[u][c] = at[v][c] = edge

    def chain(vertex: int, first: int, second: int) -> tuple[list[int], int]:
        """Edges of the path that leaves ``vertex`` by colour ``first`` and alternates, and the path's far end."""
        path, c = [], first
        while (edge := at[vertex][c]) >= 0:
            path.append(edge)
            u, v = edges[edge]
            vertex, c = (v if vertex == u else u), (second if c == first else first)
        return path, vertex

    def fits(edge: int) -> bool:
        """Colour the edge, swapping colours along one chain if need be."""
        u, v = edges[edge]
        free_u = [c for c in range(colours) if at[u][c] < 0]
        free_v = [c for c in range(colours) if at[v][c] < 0]
        common = [c for c in free_u if at[v][c] < 0]
        if common:
            paint(edge, common[0])
            return True
        for a, b in ((a, b) for a in free_u for b in free_v):
            path, end = chain(v, a, b)
            if end != u:
                swapped = [(e, a + b - colour[e]) for e in path]
                for e in path:
                    paint(e, -1)
                for e, c in swapped:
                    paint(e, c)
                paint(edge, a)
                return True
        return False

    waiting = list(range(len(edges)))
    rng.shuffle(waiting)
    patience = _KICKS_PER_LINK * len(edges)
    while waiting:
        edge = waiting.pop()
        if fits(edge):
            continue
        if not patience:
            return None
        patience -= 1
        u, v = edges[edge] if rng.random() < 0.5 else edges[edge][::-1]
        c = rng.choice([c for c in range(colours) if at[u][c] < 0])
        kicked = at[v][c]
        paint(kicked, -1)
        paint(edge, c)
        waiting.append(kicked)
    return colour


def _exhaustive(edges: Sequence[tuple[int, int]], colours: int) -> list[int] | None:
    """A proper colouring by depth-first search on the edge with fewest colours left; None is a proof."""
    touching = [[f for f in range(len(edges)) if f != e and set(edges[e]) & set(edges[f])] for e in range(len(edges))]
    colour = [-1] * len(edges)

    def extend(used: int) -> bool:
        options = {
            e: set(range(min(used + 1, colours))) - {colour[f] for f in touching[e]}
            for e in range(len(edges))
            if colour[e] < 0
        }
        if not options:
            return True
        # An unused colour is as good as any other: only the first of them is tried.
        edge = min(options, key=lambda e: (len(options[e]), -sum(colour[f] >= 0 for f in touching[e])))
        for c in sorted(options[edge]):
            colour[edge] = c
            if extend(max(used, c + 1)):
                return True
        colour[edge] = -1
        return False

    return colour if extend(0) else None
