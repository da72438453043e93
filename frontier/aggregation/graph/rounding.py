"""Trees drawn in the shares of the linear relaxation."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, ClassVar

import numpy as np

from ddlopt.frontier.aggregation.graph.relaxation import Program, Relaxed, columns_of, starts
from ddlopt.models.aggregation import evaluate
from ddlopt.models.aggregation.graph.instance import AggregationTrees, GraphInstance
from ddlopt.models.errors import NoSolutionError, SolverError
from ddlopt.solvers.aggregation.graph.strategies import Paths, Residual, Route, aggregated, meeting
from ddlopt.solvers.certify import MethodOutput
from ddlopt.solvers.contracts import Limits, better
from ddlopt.solvers.heuristic import CertifiedMethod, Clock

_LARGEST = 150_000
"""Columns of the relaxation beyond which it takes minutes."""
# Exponent of the load in prices, as the largest of the search.
_SHARPNESS = 8
_DRAWS = 8
"""Trees of a job, of which the best is taken."""


@dataclass(frozen=True)
class RelaxedRounding(CertifiedMethod, uses=("seed",)):
    """A linear relaxation, whose optimum is a bound, and routes drawn in its shares.

    From each worker the route goes on at every node over an arc drawn with the probability of its share in the flow of
    that worker, until it meets that of another worker of the job; from there on they stay together. Of eight such trees
    a job takes the one that adds the least to the sum of powers of loads, and jobs follow one another (in place of the
    conditional expectations that make rounding deterministic). Where messages meet, switches aggregate in the order of
    their shares and of the messages, as far as slots and budget go. The best of all rounds is the answer.

    Parameters
    ----------
    rounds : int

    References
    ----------
    P. Raghavan, C. D. Thompson, "Randomized rounding", Combinatorica 7, 1987; GRID (J. Fang, G. Zhao, H. Xu, C. Wu,
    Z. Yu, "GRID: gradient routing with in-network aggregation for distributed training", IEEE/ACM Transactions on
    Networking 31, 2023) rounds one in which a worker sends to the server or to one switch.
    """

    rounds: int = 30

    name: ClassVar[str] = "lp-rounding"
    covers: ClassVar[type[GraphInstance]] = GraphInstance

    def refuses(self, instance: Any) -> str | None:
        """Other problems, and relaxations that are too large."""
        reason = super().refuses(instance)
        if reason is None and columns_of(instance) > _LARGEST:
            return f"the relaxation has about {columns_of(instance)} columns, more than {_LARGEST}"
        return reason

    def find(self, instance: GraphInstance, limits: Limits, seed: int, clock: Clock, start: Any) -> MethodOutput:
        """The best of all rounds, and the bound."""
        try:
            relaxed = Program(instance).solve(clock.left_s)
        except SolverError as problem:
            raise NoSolutionError(str(problem)) from None
        rng, best = np.random.default_rng(seed), None
        violation = ""
        for number in range(self.rounds):
            if number and clock.expired:
                break
            solution = _drawn(instance, relaxed, rng)
            found = evaluate(instance, solution)
            if not found.feasible or found.objective is None:
                violation = str(found.violations[0])
                continue
            value = float(found.objective)
            if best is None or better(value, best[0], instance.sense):
                best = value, solution
                clock.report(value, relaxed.bound)
        if best is None:
            raise NoSolutionError(f"no round kept the rules of the instance; the last one: {violation}")
        return MethodOutput(best[1], bound=relaxed.bound)


def _drawn(instance: GraphInstance, relaxed: Relaxed, rng: np.random.Generator) -> AggregationTrees:
    """One round."""
    residual, paths = Residual(instance), Paths(instance, 0)
    link_s = np.repeat([1 / link.bandwidth_bytes_per_s for link in instance.links], 2)
    load_s = np.zeros(len(instance.arcs))
    trees: list[tuple[Route, ...]] = [()] * len(instance.jobs)
    weight = [job.gradient_bytes * len(job.workers) for job in instance.jobs]
    for j in sorted(range(len(instance.jobs)), key=lambda j: (-weight[j] * (1 + 0.5 * rng.random()), j)):
        job, found = instance.jobs[j], None
        size = 1.0 if instance.goal == "rates" else job.gradient_bytes
        power = 1 if instance.goal == "utilization" else _SHARPNESS
        distances = paths.distances_s(job.server)
        for _ in range(_DRAWS):
            routes = _walks(instance, relaxed, j, rng, distances)
            nodes = _aggregators(relaxed, routes, j, residual)
            tree = aggregated(routes, set(nodes))
            loads = load_s.copy()
            for route in tree:
                for arc in pairwise(route):
                    loads[instance.arc_of[arc]] += size * link_s[instance.arc_of[arc]]
            most = float(loads.max())
            norm = most * float(((loads / most) ** power).sum()) ** (1 / power)
            if found is None or norm < found[0]:
                found = norm, tree, loads
        assert found is not None
        trees[j], load_s = found[1], found[2]
        for node in {route[-1] for route in trees[j]} - {job.server}:
            residual.take(j, node)
    return AggregationTrees(instance=instance.name, trees=tuple(trees))


def _aggregators(relaxed: Relaxed, routes: Sequence[Route], j: int, residual: Residual) -> list[int]:
    figures = meeting(routes)
    order = sorted(figures, key=lambda v: (-relaxed.aggregates.get((j, v), 0.0), -figures[v][1], v))
    fitting = [v for v in order if residual.fits(j, v)]
    return fitting if residual.left is None else fitting[: residual.left]


def _walks(
    instance: GraphInstance, relaxed: Relaxed, j: int, rng: np.random.Generator, distances_s: Any
) -> list[Route]:
    """Routes of the workers of a job, which share one tree."""
    job = instance.jobs[j]
    after: dict[int, int] = {}
    for start, workers in starts(instance, job).items():
        shares: dict[int, list[tuple[float, int]]] = {}
        for arc, share in relaxed.flow.get((j, start), {}).items():
            tail, head = instance.arcs[arc]
            shares.setdefault(tail, []).append((share, head))
        path = [start]
        while path[-1] != job.server and path[-1] not in after:
            following = _step(instance, job.server, path[-1], shares, rng, distances_s)
            path = path[: path.index(following)] if following in path else path
            path.append(following)
        after.update(pairwise(path))
        after.update({worker: start for worker in workers if worker != start and worker not in after})
    routes = []
    for worker in job.workers:
        route = [worker]
        while route[-1] != job.server:
            route.append(after.get(route[-1], job.server))
        routes.append(tuple(route))
    return routes


def _step(
    instance: GraphInstance,
    server: int,
    node: int,
    shares: dict[int, list[tuple[float, int]]],
    rng: np.random.Generator,
    distances_s: Any,
) -> int:
    """The next node: drawn in the shares, or on a shortest route where there are none."""
    options = [(share, head) for share, head in shares.get(node, []) if head == server or instance.nodes[head].forwards]
    if options:
        total = math.fsum(share for share, _ in options)
        mark = rng.random() * total
        for share, head in options:
            mark -= share
            if mark <= 0:
                return head
        return options[-1][1]
    near = [head for tail, head in instance.arcs if tail == node and (head == server or instance.nodes[head].forwards)]
    return min(near, key=lambda head: (distances_s[head], head))
