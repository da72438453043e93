"""Aggregation on shortest routes: not at all, at the first switch, or where a simple rule says."""

import copy
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.csgraph import dijkstra

from ddlopt.models.aggregation import evaluate
from ddlopt.models.aggregation.graph.instance import AggregationTrees, GraphInstance, GraphJob
from ddlopt.models.contracts import Solution
from ddlopt.models.errors import NoSolutionError, OptionError
from ddlopt.models.tolerances import IMPROVEMENT_TOL
from ddlopt.solvers.heuristic import Answer, Clock, Heuristic

STRATEGIES = ("none", "first-switch", "level", "top", "max")

Route = tuple[int, ...]


@dataclass(frozen=True)
class ShortestRoutes(Heuristic, uses=("seed",)):
    """Routes are shortest by time for a byte; of several, messages take those with the least load so far.

    *none*: every worker's message travels to the server. Otherwise the messages of a job share one tree, and

    *first-switch*: the first switch of a worker's route with a free slot aggregates, where two messages have it first;

    *level*: of each job the switches at one distance from the server, that which saves the most messages;

    *top*: the switches nearest to the servers, as far as slots and budget go;

    *max*: those where the most messages of a job meet, as far as they go.

    A switch at which one message of the job arrives does not aggregate, though the rule chose it.

    Parameters
    ----------
    rule : {"none", "first-switch", "level", "top", "max"}

    References
    ----------
    The rules level, top and max are those that R. Segal, C. Avin, G. Scalosub compare with on trees ("SOAR: Minimizing
    network utilization with bounded in-network computing", CoNEXT 2021).
    """

    rule: str = "none"

    covers: ClassVar[type[GraphInstance]] = GraphInstance

    def __post_init__(self) -> None:
        if self.rule not in STRATEGIES:
            raise OptionError(f"rule is '{self.rule}'; use one of: {', '.join(STRATEGIES)}")

    @property
    def name(self) -> str:
        """As in the catalogue."""
        return self.rule

    def answer(self, instance: GraphInstance, seed: int, clock: Clock, start: Any) -> Answer[Solution]:
        """The routes, if they keep to connections and merging."""
        paths = Paths(instance, seed)
        order = sorted(range(len(instance.jobs)), key=lambda j: (-instance.jobs[j].gradient_bytes, j))
        routes: list[list[Route]] = [[] for _ in order]
        for j in order:
            routes[j] = paths.of(instance.jobs[j], shared=self.rule != "none")
        chosen = [set[int]() for _ in order]
        if self.rule == "first-switch":
            chosen = _first_switches(instance, routes)
        elif self.rule == "level":
            chosen = _levels(instance, routes)
        elif self.rule in ("top", "max"):
            chosen = _ranked(instance, routes, nearest=self.rule == "top")
        trees = tuple(aggregated(each, nodes) for each, nodes in zip(routes, chosen, strict=True))
        solution = AggregationTrees(instance=instance.name, trees=trees)
        violations = evaluate(instance, solution).violations
        if violations:
            raise NoSolutionError(f"the routes break a rule of the instance: {violations[0]}")
        return solution, {}


class Paths:
    """Shortest routes, spread over ties by what has been sent so far."""

    def __init__(self, instance: GraphInstance, seed: int) -> None:
        self._instance = instance
        self._link_s = np.repeat([1 / link.bandwidth_bytes_per_s for link in instance.links], 2)
        self._load_s = np.zeros(len(instance.arcs))
        self._luck = np.random.default_rng(seed).random(len(instance.arcs))
        self._leaving: list[list[int]] = [[] for _ in instance.nodes]
        for number, (tail, _) in enumerate(instance.arcs):
            self._leaving[tail].append(number)

    def of(self, job: GraphJob, shared: bool) -> list[Route]:
        """A route of each worker; ``shared``: those that meet stay together, and load an arc once."""
        far = self.far(job.server)
        after: dict[int, int] = {}
        routes = []
        for worker in job.workers:
            node, route = worker, [worker]
            while node != job.server:
                arc = after.get(node) if shared else None
                if arc is None:
                    arc = self._next(node, far, job.server)
                    after[node] = arc
                    self._load_s[arc] += job.gradient_bytes * self._link_s[arc]
                node = self._instance.arcs[arc][1]
                route.append(node)
            routes.append(tuple(route))
        return routes

    def far(self, server: int) -> list[tuple[float, int]]:
        """Of each node the seconds of a byte from there, and how many links a shortest route has."""
        nodes = self._instance.nodes
        ends = np.array(self._instance.arcs)
        usable = np.array([node.forwards for node in nodes])[ends[:, 1]] | (ends[:, 1] == server)
        backwards = csr_array(
            (self._link_s[usable], (ends[usable, 1], ends[usable, 0])), shape=(len(nodes), len(nodes))
        )
        seconds, nexts = dijkstra(backwards, indices=server, return_predecessors=True)
        hops = {server: 0}
        for node in np.flatnonzero(np.isfinite(seconds)).tolist():
            way = [node]
            while way[-1] not in hops:
                way.append(int(nexts[way[-1]]))
            for behind in reversed(way[:-1]):
                hops[behind] = hops[int(nexts[behind])] + 1
        return [(float(each), hops.get(node, 0)) for node, each in enumerate(seconds)]

    def _next(self, node: int, far: list[tuple[float, int]], server: int) -> int:
        """Arc towards the server with the least load; where several have it, by lot.

        Of links that take next to nothing only one direction leads there: the other one would be as short in floats.
        """
        tight = [
            arc
            for arc in self._leaving[node]
            for head in [self._instance.arcs[arc][1]]
            if (head == server or self._instance.nodes[head].forwards)
            and far[head] < far[node]
            and self._link_s[arc] + far[head][0] <= far[node][0] * (1 + IMPROVEMENT_TOL)
        ]
        return min(tight, key=lambda arc: (self._load_s[arc], self._luck[arc]))


def aggregated(routes: Sequence[Route], nodes: set[int]) -> tuple[Route, ...]:
    """Routes of one tree, cut at the nodes that aggregate; those where one message arrives do not."""
    nodes = {node for node in nodes if any(node in route[:-1] for route in routes)}
    while True:
        cut: dict[Route, None] = {}
        for route in routes:
            begin = 0
            for place in range(1, len(route)):
                if route[place] in nodes or place == len(route) - 1:
                    cut.setdefault(route[begin : place + 1])
                    begin = place
        arrived = Counter(route[-1] for route in cut)
        workers = {route[0] for route in routes}
        idle = {node for node in nodes if arrived[node] + (node in workers) < 2}
        if not idle:
            return tuple(sorted(cut))
        nodes = nodes - idle


class Residual:
    """Slots and budget that are left."""

    def __init__(self, instance: GraphInstance) -> None:
        self._slots = [node.slots for node in instance.nodes]
        self.left = instance.aggregators
        self._need = [job.slots for job in instance.jobs]

    def fits(self, j: int, node: int) -> bool:
        """Whether the node can aggregate for the job."""
        return self._slots[node] >= self._need[j] and (self.left is None or self.left > 0)

    def take(self, j: int, node: int) -> None:
        """Have it do so."""
        self._slots[node] -= self._need[j]
        if self.left is not None:
            self.left -= 1


def _first_switches(instance: GraphInstance, routes: Sequence[Sequence[Route]]) -> list[set[int]]:
    residual = Residual(instance)
    chosen = []
    for j, each in enumerate(routes):
        first = Counter(next((node for node in route[1:-1] if residual.fits(j, node)), -1) for route in each)
        nodes = set()
        for node, count in first.most_common():
            if node >= 0 and count > 1 and residual.fits(j, node):
                residual.take(j, node)
                nodes.add(node)
        chosen.append(nodes)
    return chosen


def meeting(routes: Sequence[Route]) -> dict[int, tuple[int, int]]:
    """Of nodes where two messages or more meet: hops to the server, and messages."""
    count = Counter(node for route in routes for node in route[:-1])
    hops = {node: len(route) - 1 - place for route in routes for place, node in enumerate(route[:-1])}
    return {node: (hops[node], number) for node, number in count.items() if number > 1}


def _ranked(instance: GraphInstance, routes: Sequence[Sequence[Route]], nearest: bool) -> list[set[int]]:
    residual = Residual(instance)
    chosen = [set[int]() for _ in routes]
    found = [(j, node, *figures) for j, each in enumerate(routes) for node, figures in meeting(each).items()]
    found.sort(key=lambda each: (each[2] if nearest else -each[3], -each[3] if nearest else each[2], each[0], each[1]))
    for j, node, _, _ in found:
        if residual.fits(j, node):
            residual.take(j, node)
            chosen[j].add(node)
    return chosen


def _levels(instance: GraphInstance, routes: Sequence[Sequence[Route]]) -> list[set[int]]:
    residual = Residual(instance)
    chosen = [set[int]() for _ in routes]
    for j, each in enumerate(routes):
        figures = meeting(each)
        levels: dict[int, list[int]] = {}
        for node in sorted(figures, key=lambda node: (-figures[node][1], node)):
            levels.setdefault(figures[node][0], []).append(node)
        options: list[tuple[int, int, list[int]]] = []
        for nodes in levels.values():
            trial = copy.deepcopy(residual)
            taken = []
            for node in nodes:
                if trial.fits(j, node):
                    trial.take(j, node)
                    taken.append(node)
            messages = sum(len(route) - 1 for route in aggregated(each, set(taken)))
            options.append((messages, len(options), taken))
        if options:
            chosen[j] = set(min(options)[2])
            for node in chosen[j]:
                residual.take(j, node)
    return chosen
