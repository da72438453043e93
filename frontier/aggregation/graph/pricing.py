"""The cheapest aggregation tree of one job at given prices of links and switches, by dynamic programming."""

import math
from collections import Counter
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_array
from scipy.sparse.csgraph import dijkstra

from ddlopt.frontier.aggregation.graph.joined import CapacitatedMerge, Joined, Message, UncapacitatedMerge
from ddlopt.frontier.aggregation.graph.kernels import tree as kernels
from ddlopt.frontier.aggregation.graph.kernels.capacity import Places, room_tables
from ddlopt.frontier.aggregation.graph.states import States
from ddlopt.models.aggregation.graph.instance import GraphInstance
from ddlopt.models.aggregation.graph.network import Arc, JobNetwork
from ddlopt.models.tolerances import ROUNDING

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

MOST_PAIRS = 300_000
"""Of a state and a part of it, up to which the dynamic program takes a second or less in networks of 100 switches."""


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

    and the server gets the whole in a limited number of parts. It is that of Dreyfus and Wagner for Steiner trees,
    where not only the whole may be divided among several messages, and a meeting costs something. Workers whose only
    link leads to the same switch are not told apart, so S says how many of each group there are.

    A switch may aggregate twice in such a tree. As one switch, it costs no more; so the least cost is right. Where arcs
    have room for a limited number of messages that end behind them, parts are put together arc by arc: with k messages
    ended behind arcs 1 to i,

    .. math:: A^i_S(u) = \min_{P \subseteq S} \big( M_P(t_i) + c_i + \beta_u + A^{i-1}_{S \setminus P}(u) \big),

    t being the other ends of the arcs and c their costs. Then a switch that aggregates twice, or two messages on an arc
    further away, make the least cost a lower bound.

    Parameters
    ----------
    instance : GraphInstance
    network : JobNetwork
        Of a job; switches that aggregate forward.
    """

    instance: GraphInstance
    network: JobNetwork

    @cached_property
    def _states(self) -> States:
        groups = self.network.groups
        workers = frozenset(self._place[v] for v in groups if v in self.network.job.workers)
        return States(tuple(groups.values()), tuple(self._place[v] for v in groups), workers)

    @property
    def pairs(self) -> int:
        """Pairs of a state and a part of it."""
        return self._states.pairs

    @cached_property
    def _nodes(self) -> list[int]:
        return [*self.network.nodes, self.network.job.server]

    @cached_property
    def _place(self) -> dict[int, int]:
        return {node: place for place, node in enumerate(self._nodes)}

    def cheapest(
        self, cost: Floats, opening: Floats, ending: Floats, most: int, residual: Ints | None = None
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
        residual : (arcs,) array, optional
            Messages that may end behind each arc, in a switch.
        """
        most -= self.network.direct
        if most < 0 or not self.network.groups:
            return (math.inf, None) if most < 0 else (0.0, tree_of(self._direct(), self.network.job.server))
        distance, before = self._distances(cost)
        able = np.full(len(self._nodes), math.inf)
        for v in self.network.able:
            if v in self._place:
                able[self._place[v]] = opening[v]
        states, whole = self._states, int(sum(self.network.groups.values()))
        found: Joined
        if residual is None or all(residual[self.instance.arc_of[arc]] >= whole for arc in self.network.arcs):
            tables = kernels.tables(
                states.order, *states.leading, states.start, states.own, distance, able, ending[self._nodes]
            )
            found = UncapacitatedMerge(tables, states)
        else:
            places = self._ends(cost, np.minimum(residual, whole), able)
            local = states.local(ending[self._nodes])
            limits = (states.order, *states.parts, states.start, states.home, local, distance, able)
            found = CapacitatedMerge(room_tables(*limits, ending[self._nodes], places), places)
        most = min(most, whole)
        message = found.tables.message[:, -1].copy()
        total, first = kernels.delivered(states.order, *states.leading, message, most)
        least = float(total[most, -1]) - 2 * whole * self._raised(cost)
        return least, self._tree(found, first, most, before) if math.isfinite(least) else None

    def _ends(self, cost: Floats, residual: Ints, able: Floats) -> Places:
        """Where messages may end: as many places for each arc into a switch that can aggregate as it has room."""
        number, place = self.instance.arc_of, self._place
        into: list[list[tuple[int, float]]] = [[] for _ in self._nodes]
        for one, other in self.network.arcs:
            if math.isfinite(able[place[other]]):
                arc = number[one, other]
                into[place[other]] += [(place[one], cost[arc])] * int(residual[arc])
        flat = [each for every in into for each in every]
        at = np.concatenate(([0], np.cumsum([len(each) for each in into])))
        tails = np.array([tail for tail, _ in flat], dtype=np.int64)
        return Places(at.astype(np.int64), tails, np.array([price for _, price in flat], dtype=np.float64))

    def _distances(self, cost: Floats, start: int | None = None) -> tuple[Floats, Ints]:
        """From all nodes or from one, and the last node but one on each way."""
        place, network = self._place, self.network
        number = self.instance.arc_of
        rows = [place[one] for one, _ in network.arcs]
        columns = [place[two] for _, two in network.arcs]
        values = np.array([cost[number[arc]] for arc in network.arcs])
        values = np.maximum(values, _least_cost(values))
        graph = csr_array((values, (rows, columns)), shape=(len(place), len(place)))
        origin = None if start is None else place[start]
        distance, before = dijkstra(graph, indices=origin, return_predecessors=True)
        return distance, before.astype(np.int64)

    def _raised(self, cost: Floats) -> float:
        """By how much a way may be said to cost more than it does, as every arc costs something; of 2 W messages each.

        Of the W workers each sends one, and fewer switches do, where two meet or more.
        """
        values = np.array([cost[self.instance.arc_of[arc]] for arc in self.network.arcs])
        floor = _least_cost(values)
        return floor * (len(self._nodes) - 1) if float(values.min(initial=floor)) < floor else 0.0

    def spread(self, tree: Tree, cost: Floats, residual: Ints) -> Tree:
        """The same messages from the same senders to the same ends, over other links where one has too many.

        Parameters
        ----------
        tree : Tree
        cost : (arcs,) array
            Of a message on each arc of the instance.
        residual : (arcs,) array
            Messages that an arc should have at most.
        """
        hosts, number = dict(self.network.sent), self.instance.arc_of
        dear = 1e3 * (float(cost.max()) + ROUNDING)
        used = np.zeros(len(cost), dtype=np.int64)
        for arc, messages in tree.messages.items():
            used[number[arc]] = messages
        routes = []
        for route in tree.routes:
            head = route[:1] if route[0] in hosts else ()
            body = route[len(head) :]
            own = [number[arc] for arc in pairwise(body)]
            if any(used[place] > residual[place] for place in own):
                used[own] -= 1
                distance, before = self._distances(cost + np.where(used + 1 > residual, dear, 0.0), body[0])
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

    def _tree(self, found: Joined, first: Ints, most: int, before: Ints) -> Tree | None:
        """Follow the choices from the server down."""
        server = len(self._nodes) - 1
        waiting: list[Message] = []
        state = len(found.tables.message) - 1
        for number in range(most, 0, -1):
            if state:
                part = int(first[number, state])
                waiting.append(Message(part, server, server))
                state -= part
        routes: dict[int, tuple[int, ...]] = {}
        raw: dict[int, list[tuple[int, ...]]] = {}
        for part, last, end in waiting:
            node = int(found.tables.origin[part, last])
            way = [end] if end == last else [end, last]
            while way[-1] != node:
                way.append(int(before[node, way[-1]]))
            way.reverse()
            # A way that leads through its end is over there.
            route = tuple(self._nodes[place] for place in way[: way.index(end) + 1])
            if not found.joins(part, node):
                raw.setdefault(self._nodes[node], []).append(route)
                continue
            routes.setdefault(self._nodes[node], route)
            waiting += found.ended(part, node)
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


def _least_cost(values: Floats) -> float:
    """What an arc costs at least: without a cost it would be none, and of ways without any the shortest is wanted."""
    return ROUNDING * max(1.0, float(values.max(initial=0.0)))
