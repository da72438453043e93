"""The cheapest aggregation tree of one job at given prices of links and switches, by dynamic programming."""

import math
from collections import Counter
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise, product

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_array
from scipy.sparse.csgraph import dijkstra

from ddlopt.models.aggregation.graph import GraphInstance
from ddlopt.models.aggregation.graph_network import Arc, JobNetwork
from ddlopt.solvers.aggregation import graph_tree_kernels as kernels

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

MOST_PAIRS = 300_000
"""Of a state and a part of it, up to which the dynamic program takes a second or less in networks of 100 switches."""
_LEAST = 1e-12
"""Cost of an arc without a price, as a part of the largest: routes are short, too."""
_HAIR = 1e-9


@dataclass(frozen=True)
class Tree:
    """A tree of one job.

    Parameters
    ----------
    routes : tuple of tuples of int
    messages : mapping
        On each arc, those that no decision changes included.
    ended : mapping
        Messages that end in each switch that aggregates.
    """

    routes: tuple[tuple[int, ...], ...]
    messages: dict[Arc, int]
    ended: dict[int, int]

    def arriving(self, server: int) -> int:
        """Messages that the server gets."""
        return sum(route[-1] == server for route in self.routes)


def tree_of(routes: tuple[tuple[int, ...], ...], server: int) -> Tree:
    """The tree with these routes."""
    messages = Counter(arc for route in routes for arc in pairwise(route))
    ended = Counter(route[-1] for route in routes if route[-1] != server)
    return Tree(routes, dict(messages), dict(ended))


@dataclass(frozen=True)
class Pricing:
    r"""The dynamic program of one job.

    In the order of how many gradients are in them, sets S of the job's workers get the least cost of one message with
    their sum in node v: it was sent by a switch u, where messages of parts of S ended, or by the worker itself,

    .. math::
        M_S(v) = \min_u \big( A_S(u) + d(u, v) \big), \qquad
        A_S(u) = \alpha_u + \min_{S = P_1 + \dots + P_k,\ k \ge 2} \textstyle\sum_i \big( M_{P_i}(u) + \beta_u \big),

    and the server gets the whole in at most so many parts. It is that of Dreyfus and Wagner for Steiner trees, where
    not only the whole may be divided among several messages, and a meeting costs something. Workers whose only link
    leads to the same switch are not told apart, so S says how many of each group there are.

    A switch may aggregate twice in such a tree. As one switch, it costs no more; so the least cost is right, unless
    there are limits of messages that end in a switch: then it is a lower bound.

    Parameters
    ----------
    instance : GraphInstance
    network : JobNetwork
        Of a job; switches that aggregate forward.
    """

    instance: GraphInstance
    network: JobNetwork

    @cached_property
    def _sizes(self) -> list[int]:
        return [number + 1 for number in self.network.groups.values()]

    @property
    def pairs(self) -> int:
        """Pairs of a state and a part of it."""
        return math.prod(size * (size + 1) // 2 for size in self._sizes)

    @cached_property
    def _nodes(self) -> list[int]:
        return [*self.network.nodes, self.network.job.server]

    @cached_property
    def _place(self) -> dict[int, int]:
        return {node: place for place, node in enumerate(self._nodes)}

    @cached_property
    def _states(self) -> tuple[Ints, Ints, Ints, Ints, Ints]:
        """``order``, ``part_at``, ``parts``, ``start`` and ``own``, as the kernels want them."""
        strides = np.concatenate(([1], np.cumprod(self._sizes)[:-1])).astype(np.int64) if self._sizes else np.zeros(0)
        digits = [tuple(reversed(each)) for each in product(*(range(size) for size in reversed(self._sizes)))]
        part_at, parts = [0], []
        start, own = np.full(len(digits), -1, dtype=np.int64), np.full(len(digits), -1, dtype=np.int64)
        groups = list(self.network.groups)
        for state in digits:
            lowest = next((g for g, number in enumerate(state) if number), None)
            if lowest is not None:
                ranges = [range(int(g == lowest), number + 1) for g, number in enumerate(state)]
                parts += [int(np.dot(part, strides)) for part in product(*ranges)]
                if sum(state) == 1:
                    place = len(part_at) - 1
                    start[place] = self._place[groups[lowest]]
                    if groups[lowest] in self.network.job.workers:
                        own[place] = start[place]
            part_at.append(len(parts))
        totals = np.array([sum(state) for state in digits])
        order = np.argsort(totals, kind="stable")[1:].astype(np.int64)
        return order, np.array(part_at, dtype=np.int64), np.array(parts, dtype=np.int64), start, own

    def cheapest(
        self, cost: Floats, opening: Floats, ending: Floats, most: int, most_ended: Ints
    ) -> tuple[float, Tree | None]:
        """Least cost of what is decided, and a tree; None where the switches of the one found do not make one.

        Parameters
        ----------
        cost : (arcs,) array
            Of a message on each arc of the instance.
        opening, ending : (nodes,) arrays
            Of a switch that aggregates, and of a message that ends there.
        most : int
            Messages that may arrive at the server, those of workers without another link included.
        most_ended : (nodes,) array
            Messages that may end in each switch, those of workers that only have a link to it not included.
        """
        order, part_at, parts, start, own = self._states
        most -= self.network.direct
        if most < 0 or not self.network.groups:
            return (math.inf, None) if most < 0 else (0.0, tree_of(self._direct(), self.network.job.server))
        distance, before = self._distances(cost)
        able = np.full(len(self._nodes), math.inf)
        for v in self.network.able:
            if v in self._place:
                able[self._place[v]] = opening[v]
        whole = int(sum(self.network.groups.values()))
        ended = np.minimum(most_ended[self._nodes], whole)
        counting = int(ended.min() < whole)
        limits = (order, part_at, parts, start, own, distance, able, ending[self._nodes], counting * ended, counting)
        found = kernels.tables(*limits)
        most = min(most, whole)
        total, first = kernels.delivered(order, part_at, parts, found.message[:, -1].copy(), most)
        least = float(total[most, -1])
        room = counting * ended
        return least, self._tree(found, first, most, before, room) if math.isfinite(least) else None

    def _distances(self, cost: Floats, start: int | None = None) -> tuple[Floats, Ints]:
        """From all nodes or from one, and the last node but one on each way."""
        place, network = self._place, self.network
        number = self.instance.arc_of
        rows = [place[one] for one, _ in network.arcs]
        columns = [place[two] for _, two in network.arcs]
        values = np.array([cost[number[arc]] for arc in network.arcs])
        values = np.maximum(values, _LEAST * max(1.0, float(values.max(initial=0.0))))
        graph = csr_array((values, (rows, columns)), shape=(len(place), len(place)))
        origin = None if start is None else place[start]
        distance, before = dijkstra(graph, indices=origin, return_predecessors=True)
        return distance, before.astype(np.int64)

    def spread(self, tree: Tree, cost: Floats, room: Floats) -> Tree:
        """The same messages from the same senders to the same ends, over other links where one has too many.

        Parameters
        ----------
        tree : Tree
        cost : (arcs,) array
            Of a message on each arc of the instance.
        room : (arcs,) array
            Messages that an arc should have at most.
        """
        hosts, number = dict(self.network.sent), self.instance.arc_of
        dear = 1e3 * (float(cost.max()) + _LEAST)
        used = np.zeros(len(cost), dtype=np.int64)
        for arc, messages in tree.messages.items():
            used[number[arc]] = messages
        routes = []
        for route in tree.routes:
            head = route[:1] if route[0] in hosts else ()
            body = route[len(head) :]
            own = [number[arc] for arc in pairwise(body)]
            if any(used[place] > room[place] for place in own):
                used[own] -= 1
                distance, before = self._distances(cost + np.where(used + 1 > room, dear, 0.0), body[0])
                if math.isfinite(distance[self._place[body[-1]]]):
                    body = self._way(before, body[0], body[-1])
                used[[number[arc] for arc in pairwise(body)]] += 1
            routes.append((*head, *body))
        return tree_of(tuple(sorted(routes)), self.network.job.server)

    def _way(self, before: Ints, start: int, end: int) -> tuple[int, ...]:
        way = [self._place[end]]
        while self._nodes[way[-1]] != start:
            way.append(int(before[way[-1]]))
        return tuple(self._nodes[place] for place in reversed(way))

    def _direct(self) -> tuple[tuple[int, ...], ...]:
        return tuple(arc for arc in self.network.sent if arc[1] == self.network.job.server)

    def _tree(self, found: kernels.Tables, first: Ints, most: int, before: Ints, room: Ints) -> Tree | None:
        """Follow the choices from the server down."""
        waiting: list[tuple[int, int]] = []
        state = len(found.message) - 1
        for number in range(most, 0, -1):
            if state:
                part = int(first[number, state])
                waiting.append((part, len(self._nodes) - 1))
                state -= part
        routes: dict[int, tuple[int, ...]] = {}
        raw: dict[int, list[tuple[int, ...]]] = {}
        for part, end in waiting:
            node = int(found.origin[part, end])
            way = [end]
            while way[-1] != node:
                way.append(int(before[node, way[-1]]))
            route = tuple(self._nodes[place] for place in reversed(way))
            split = int(found.split[part, node])
            if split < 0:
                raw.setdefault(self._nodes[node], []).append(route)
                continue
            routes.setdefault(self._nodes[node], route)
            waiting += self._ended(found, part, node, split, int(room[node]))
        return self._sound([*routes.values(), *self._of_workers(raw, set(routes))])

    def _of_workers(self, raw: dict[int, list[tuple[int, ...]]], used: set[int]) -> list[tuple[int, ...]]:
        """Routes of workers, from those of raw messages by where they start."""
        hosts = dict(self.network.sent)
        found: list[tuple[int, ...]] = []
        for worker in self.network.job.workers:
            gate = hosts.get(worker, worker)
            own = (worker,) if worker in hosts else ()
            if gate == self.network.job.server:
                found.append((worker, gate))
            elif raw.get(gate):
                found.append((*own, *raw[gate].pop()))
            elif own and gate in used:
                found.append((worker, gate))
        return found

    def _sound(self, routes: list[tuple[int, ...]]) -> Tree | None:
        """The tree, if all who must send do so once."""
        tree = tree_of(tuple(sorted(routes)), self.network.job.server)
        starts = sorted(route[0] for route in routes)
        return tree if starts == sorted({*self.network.job.workers, *tree.ended}) else None

    def _ended(self, found: kernels.Tables, state: int, node: int, split: int, room: int) -> list[tuple[int, int]]:
        """Messages that arrive in the node and make up the state, without those that start there; and the node."""
        start = self._states[3]
        counting = len(found.first) > 1
        ended, rest, part = [], state, split
        while rest:
            if start[part] != node:
                ended.append((part, node))
                room -= int(counting)
            rest -= part
            part = int(found.first[room, rest, node]) if rest else 0
        return ended
