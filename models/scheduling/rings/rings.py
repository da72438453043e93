r"""Rings through a network: closed walks that visit the servers of a job.

Workers of a job are identical and every link of its ring needs the same bandwidth b, so that all that matters of a ring
is how often it passes over each arc. A closed walk through given servers with passes :math:`f_{uv}` exists exactly if f
is a circulation whose support is connected and contains these servers (Euler).

**Tree lemma.** On a tree network let a job have workers on both sides of the link e in exactly those cases where
e *separates* it. Every ring of the job passes over each separating link at least once in either direction, and one
ring, the same for all links, passes over each of them exactly once in either direction and over no other link.

*Proof.* Taking e away leaves two sides. A closed walk that visits servers on both has to go over and come back, and e
is the only way: at least one pass in either direction. For the converse take the least subtree that contains the job's
servers: its links are the separating ones, for a link of it with all servers on one side could be cut off together with
the other side. The depth-first tour of this subtree visits all its nodes and passes over each of its links once down
and once up. ∎

Bandwidth on a tree therefore depends on which links separate a job, not on any routing; that is what
:func:`separating_links` is for. On other networks shorter rings may cost others more, and :func:`find_ring` is a
heuristic there.
"""

import itertools
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from heapq import heappop, heappush
from typing import NamedTuple

from ddlopt.models.errors import NotApplicableError, SolverError
from ddlopt.models.scheduling.instance import Job, SchedulingInstance
from ddlopt.models.scheduling.network import Network
from ddlopt.models.tolerances import left_let_pass

Arc = tuple[int, int]
Ring = tuple[int, ...]

_CROWDED = 1e-3
"""What a pass over an arc that is then full costs on top of a hop."""


class SeparatingLink(NamedTuple):
    """A link of a tree network with servers on both sides.

    ``below`` are the servers, in increasing order, of the side with fewer of them; ``arcs`` are its two directions, and
    ``bandwidth_bytes_per_s`` is the smaller one of theirs, for every ring takes both.
    """

    arcs: tuple[Arc, Arc]
    below: tuple[int, ...]
    bandwidth_bytes_per_s: float


def ring_rate(job: Job) -> float:
    """Bandwidth in bytes/s that a job's ring takes each time it passes over an arc; 0 where its timing names none."""
    return job.timing.bandwidth_bytes_per_s if job.timing.kind == "ring" else 0.0


def separating_links(instance: SchedulingInstance) -> list[SeparatingLink]:
    """The links of a tree network that have servers on both sides.

    Raises
    ------
    NotApplicableError
        If there is no network, or it is no tree.
    """
    tree = _tree_of(instance)
    arcs = _network(instance).arcs
    servers = set(range(instance.server_count))
    below: dict[int, set[int]] = {node: {node} & servers for node in tree.order}
    for node in reversed(tree.order[1:]):
        below[tree.parent[node]] |= below[node]
    found = []
    for node in tree.order[1:]:
        if below[node] and below[node] != servers:
            up = node, tree.parent[node]
            far = min(below[node], servers - below[node], key=lambda side: (len(side), 0 in side))
            bandwidth = min(arcs[up], arcs[up[::-1]])
            found.append(SeparatingLink((up, up[::-1]), tuple(sorted(far)), bandwidth))
    return found


def tree_ring(instance: SchedulingInstance, servers: Iterable[int]) -> Ring:
    """The ring of the tree lemma: nodes of a closed walk, the first not repeated; () for fewer than two servers.

    Raises
    ------
    NotApplicableError
        If the network is no tree.
    """
    return _tour(_tree_of(instance), tuple(sorted(set(servers))))


def euler_ring(passes: Mapping[Arc, int], servers: Iterable[int]) -> Ring:
    """A closed walk that makes these passes over arcs; () for fewer than two servers.

    Passes that hang together with no server are left out.

    Raises
    ------
    SolverError
        If a node has more passes in than out, or the servers do not hang together.
    """
    wanted = sorted(set(servers))
    if len(wanted) < 2:
        return ()
    balance: Counter[int] = Counter()
    following: dict[int, list[int]] = defaultdict(list)
    for (u, v), count in sorted(passes.items(), reverse=True):
        following[u] += [v] * count
        balance[u] -= count
        balance[v] += count
    odd = sorted(node for node, surplus in balance.items() if surplus)
    if odd:
        raise SolverError(f"no ring: node {odd[0]} has {balance[odd[0]]:+d} passes more in than out")
    walk, stack = [], [wanted[0]]
    while stack:
        if following[stack[-1]]:
            stack.append(following[stack[-1]].pop())
        else:
            walk.append(stack.pop())
    missed = sorted(set(wanted) - set(walk))
    if missed:
        raise SolverError(f"no ring: server {missed[0]} does not hang together with server {wanted[0]}")
    return tuple(reversed(walk[1:]))


def find_ring(
    instance: SchedulingInstance, servers: Iterable[int], residual: Mapping[Arc, float], rate: float
) -> Ring | None:
    """A ring through servers within the bandwidth that is left; None if none is found.

    On a tree there is one, or none. Otherwise the ring goes to the nearest server next, over what is left, from one
    start after another until one comes back. This may miss a ring.

    Parameters
    ----------
    servers : iterable of int
        Fewer than two need no ring: ().
    residual : mapping
        Bandwidth left by arc, bytes/s; arcs that are not named have none.
    rate : float
        Bandwidth in bytes/s that each pass over an arc takes.

    Raises
    ------
    NotApplicableError
        If the instance has no network.
    """
    wanted = tuple(sorted(set(servers)))
    if len(wanted) < 2:
        return ()
    network = _network(instance)
    tree = _tree(network, instance.server_count)
    if tree is not None:
        ring = _tour(tree, wanted)
        fits = all(_times(network, residual, arc, rate) for arc in itertools.pairwise((*ring, ring[0])))
        return ring if fits else None
    room = _Room(network, residual, rate)
    walks = (room.walk_to_nearest(start, wanted) for start in wanted)
    return next((walk for walk in walks if walk is not None), None)


def _network(instance: SchedulingInstance) -> Network:
    if instance.network is None:
        raise NotApplicableError(f"'{instance.name}' has no network, so there are no rings")
    return instance.network


class _Tree(NamedTuple):
    """Nodes in breadth-first order, parents before children, and the parent and depth of each."""

    order: tuple[int, ...]
    parent: dict[int, int]
    depth: dict[int, int]


def _tree_of(instance: SchedulingInstance) -> _Tree:
    tree = _tree(_network(instance), instance.server_count)
    if tree is None:
        raise NotApplicableError(f"the network of '{instance.name}' is no tree")
    return tree


@lru_cache(maxsize=64)
def _tree(network: Network, servers: int) -> _Tree | None:
    """The tree from its busiest node; None if the network is no tree."""
    if not network.is_tree(servers):
        return None
    if not network.arcs:
        return _Tree((0,), {}, {0: 0})
    root = max(network.neighbours, key=lambda node: (len(network.neighbours[node]), node))
    order, parent, depth = [root], {}, {root: 0}
    for node in order:
        for child in network.neighbours[node]:
            if child not in depth:
                parent[child], depth[child] = node, depth[node] + 1
                order.append(child)
    return _Tree(tuple(order), parent, depth)


def _tour(tree: _Tree, servers: Sequence[int]) -> Ring:
    """Depth-first tour of the least subtree that contains the servers, from the first of them."""
    if len(servers) < 2:
        return ()
    below: Counter[int] = Counter()
    for server in servers:
        node = server
        while node in tree.parent:
            below[node] += 1
            node = tree.parent[node]
    neighbours: dict[int, list[int]] = defaultdict(list)
    for node, count in below.items():
        if count < len(servers):
            neighbours[node].append(tree.parent[node])
            neighbours[tree.parent[node]].append(node)
    for targets in neighbours.values():
        targets.sort(reverse=True)
    walk, path, seen = [servers[0]], [servers[0]], {servers[0]}
    while path:
        while neighbours[path[-1]] and neighbours[path[-1]][-1] in seen:
            neighbours[path[-1]].pop()
        if neighbours[path[-1]]:
            path.append(neighbours[path[-1]].pop())
            seen.add(path[-1])
        else:
            path.pop()
        if path:
            walk.append(path[-1])
    return tuple(walk[:-1])


def _times(network: Network, residual: Mapping[Arc, float], arc: Arc, rate: float) -> int:
    """How often a ring may pass over an arc; any number that it could make use of counts as many."""
    many = 1 << 30
    if arc not in residual:
        return 0
    left = left_let_pass(residual[arc], network.arcs[arc])
    if left < 0:
        return 0
    return many if rate * many <= left else int(left // rate)


class _Room:
    """The arcs that are left, how often a ring may pass over each, and what a pass costs."""

    def __init__(self, network: Network, residual: Mapping[Arc, float], rate: float) -> None:
        self.times: dict[Arc, int] = {}
        self.following: dict[int, list[tuple[int, float]]] = defaultdict(list)
        for arc in sorted(network.arcs):
            times = _times(network, residual, arc, rate)
            if times:
                self.times[arc] = times
                self.following[arc[0]].append((arc[1], 1.0 + _CROWDED / times))

    def paths_from(self, start: int, used: Mapping[Arc, int]) -> tuple[dict[int, float], dict[int, int]]:
        """Length of the shortest paths over arcs that may be passed once more, and the node before each node.

        The start itself is reached at length 0.
        """
        length, before = {start: 0.0}, {}
        heap = [(0.0, start)]
        while heap:
            distance, node = heappop(heap)
            if distance > length[node]:
                continue
            for target, cost in self.following.get(node, ()):
                further = distance + cost
                if (
                    further < length.get(target, float("inf"))
                    and used.get((node, target), 0) < self.times[node, target]
                ):
                    length[target], before[target] = further, node
                    heappush(heap, (further, target))
        return length, before

    def walk_to_nearest(self, start: int, servers: Sequence[int]) -> Ring | None:
        """The ring that goes on to the nearest server that it has not visited, and back to the start at the end."""
        used: Counter[Arc] = Counter()
        ring: list[int] = []
        here, left = start, set(servers) - {start}
        while here != start or not ring:
            length, before = self.paths_from(here, used)
            targets = (left & set(before)) if left else {start} & set(before)
            if not targets:
                return None
            end = min(targets, key=lambda node: (length[node], node))
            path = _path(before, here, end)
            used.update(itertools.pairwise(path))
            ring += path[:-1]
            left -= set(ring) | {end}
            here = end
        return tuple(ring)


def _path(before: Mapping[int, int], start: int, end: int) -> list[int]:
    path = [end]
    while path[-1] != start:
        path.append(before[path[-1]])
    return path[::-1]
