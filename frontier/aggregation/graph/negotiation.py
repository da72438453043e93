"""Jobs negotiate for links and aggregators until no link takes longer than a target."""

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from ddlopt.frontier.aggregation.graph.pricing import Floats, Tree, tree_of
from ddlopt.frontier.aggregation.graph.routers import Router, routers
from ddlopt.models.aggregation.graph.bounds import graph_bound
from ddlopt.models.aggregation.graph.instance import AggregationTrees, GraphInstance
from ddlopt.models.contracts import Solution
from ddlopt.models.sizes import LARGEST_COUNT
from ddlopt.models.tolerances import FEASIBILITY_TOL
from ddlopt.solvers.aggregation.graph.arrays import Case, case_of, objective_of
from ddlopt.solvers.aggregation.graph.search import first_trees
from ddlopt.solvers.heuristic import Answer, Clock, Heuristic


@dataclass(frozen=True)
class Effort:
    """What a search spends, and why so much."""

    parts: tuple[float, ...] = (0.5, 0.75, 0.9, 0.97, 1.0)
    """Of the way from the bound to the best, where targets are."""
    still: float = 0.2
    """Part of the jobs without any fault that are sent anew, too."""
    pressure: float = 0.5
    """Price of what is too busy in the first sweep: jobs may share at first."""
    growth: float = 1.2
    """From sweep to sweep: slow enough for jobs to find other ways."""
    hardest: float = 5.0
    """At most, so that the other prices still count."""
    memory: float = 2.0
    """What a sweep in which an arc was too busy adds to its price for good."""
    busy: float = 0.2
    """Part of an arc's price that is for being busy."""
    slot: float = 3.0
    """Price of a slot that another job has, in those of an arc that is too busy."""
    opening: float = 5.0
    """Price of an aggregator where there is a budget, in the first sweep."""
    dearer: float = 1.25
    """How that price rises where more is spent than there is."""
    cheaper: float = 0.95
    """How it falls where some of the budget is left."""


_EFFORT = Effort()


@dataclass(frozen=True)
class GraphNegotiation(Heuristic, uses=("seed", "start")):
    r"""Ours, after the routers of chips: jobs may share what there is not enough of, at a price that rises.

    For a target T, one job after another is taken out of the network and sent anew by a tree that is cheapest where an
    arc costs the more the busier it is, much more where it would be busier than T, and for good a little more after
    each sweep that has left it so. Slots are negotiated for in the same way, and the price of an aggregator follows the
    budget. Once all limits are kept, the target is lowered towards the bound; every other target begins with an empty
    network, the others with the best answer. Trees are cheapest by the dynamic program of
    :class:`~ddlopt.frontier.aggregation.graph.pricing.Pricing` where that is fast, else built worker
    by worker.

    References
    ----------
    L. McMurchie, C. Ebeling, "PathFinder: a negotiation-based performance-driven router for FPGAs", FPGA 1995, for
    routes; trees, aggregators and targets are ours.

    Parameters
    ----------
    sweeps : int
        Over all jobs for each target.
    rounds : int
        Times that all targets between the bound and the best are tried without success; each time with twice as many
        sweeps.
    known_s : float
        A bound that is known, beside that of :func:`~ddlopt.models.aggregation.graph.bounds.graph_bound`.
    """

    sweeps: int = 60
    rounds: int = 3
    known_s: float = 0.0

    name: ClassVar[str] = "graph-negotiation"
    covers: ClassVar[type[GraphInstance]] = GraphInstance
    kernels: ClassVar[tuple[str, ...]] = (
        "ddlopt.solvers.aggregation.graph.kernels.messages",
        "ddlopt.solvers.aggregation.graph.kernels.forest",
        "ddlopt.frontier.aggregation.graph.kernels.tree",
        "ddlopt.frontier.aggregation.graph.kernels.capacity",
    )

    def refuses(self, instance: Any) -> str | None:
        """Other goals and forced merging."""
        if instance.goal != "congestion" or instance.merging:
            return "it is for congestion without merging"
        return None

    def answer(self, instance: GraphInstance, seed: int, clock: Clock, start: Any) -> Answer[Solution]:
        """The best trees; a ``start`` is what the first target is below."""
        case, rng = case_of(instance), np.random.default_rng(seed)
        best = start if isinstance(start, AggregationTrees) else None
        high_s = None if best is None else objective_of(instance, best)
        if best is None or high_s is None:
            best = case.answer(first_trees(case, rng, clock))
            high_s = objective_of(instance, best) or math.inf
        clock.report(high_s)
        low_s = max(self.known_s, graph_bound(instance))
        sweeps, targets, negotiator = self.sweeps, 0, _Negotiator(case, rng)
        for _ in range(self.rounds):
            parts = iter(_EFFORT.parts)
            while (part := next(parts, None)) is not None and high_s > low_s * (1 + clock.gap) and not clock.expired:
                target_s = min(low_s + part * (high_s - low_s), high_s * (1 - 2 * FEASIBILITY_TOL))
                targets += 1
                negotiator.begin(best if targets % 2 else None, target_s)
                found = negotiator.agreed(sweeps, clock)
                found_s = None if found is None else objective_of(instance, found)
                if found is not None and found_s is not None and found_s < high_s:
                    best, high_s, parts = found, found_s, iter(_EFFORT.parts)
                    clock.report(high_s)
            sweeps *= 2
        return best, {"targets": float(targets), "sweeps": float(negotiator.swept)}


class _Negotiator:
    """Trees, what they load, and prices."""

    def __init__(self, case: Case, rng: np.random.Generator) -> None:
        self._case, self._rng = case, rng
        self._instance = case.instance
        self._routers: tuple[Router, ...] = routers(case, rng)
        self._arcs = case.net.link_s
        self._rates = case.net.switch_s
        self.swept = 0

    def begin(self, answer: AggregationTrees | None, target_s: float) -> None:
        """Start from an answer or from an empty network, towards a target."""
        self._target_s = target_s * (1 + FEASIBILITY_TOL)
        jobs = self._instance.jobs
        trees = [()] * len(jobs) if answer is None else answer.trees
        self._trees = [tree_of(routes, jobs[j].server) for j, routes in enumerate(trees)]
        self._used = np.zeros(len(self._instance.nodes), dtype=np.int64)
        self._opened = 0
        self._load, self._switch = np.zeros(len(self._arcs)), np.zeros(len(self._rates))
        self._past, self._past_slots = np.zeros(len(self._arcs)), np.zeros(len(self._rates))
        for j in range(len(jobs)):
            self._put(j, 1)

    def agreed(self, sweeps: int, clock: Clock) -> AggregationTrees | None:
        """Trees that keep the target and all limits, if ``sweeps`` over the jobs lead to some."""
        slots, budget = self._case.net.slots, self._instance.aggregators
        price = 0.0 if budget is None else _EFFORT.opening
        pressure = _EFFORT.pressure
        for _ in range(sweeps):
            for j in self._rng.permutation(len(self._trees)).tolist():
                if clock.expired:
                    return None
                if self._at_fault(j) or self._rng.random() < _EFFORT.still:
                    self._put(j, -1)
                    self._trees[j] = self._sent(j, pressure, price)
                    self._put(j, 1)
            self.swept += 1
            busy, full = self._load > self._target_s, self._used > slots
            late = self._switch > self._target_s
            over = budget is not None and self._opened > budget
            if not (busy.any() or full.any() or late.any() or over) and all(tree.routes for tree in self._trees):
                return AggregationTrees(instance=self._instance.name, trees=tuple(tree.routes for tree in self._trees))
            self._past += _EFFORT.memory * busy
            self._past_slots += full + _EFFORT.memory * late
            pressure = min(_EFFORT.hardest, pressure * _EFFORT.growth)
            if budget is not None and self._opened != budget:
                price *= _EFFORT.dearer if over else _EFFORT.cheaper
        return None

    def _put(self, j: int, sign: int) -> None:
        """Add or take away what a job loads."""
        job, tree = self._instance.jobs[j], self._trees[j]
        for arc, number in tree.messages.items():
            place = self._instance.arc_of[arc]
            self._load[place] += sign * number * job.gradient_bytes * self._arcs[place]
        for v, number in tree.ended.items():
            self._switch[v] += sign * number * job.gradient_bytes * self._rates[v]
            self._used[v] += sign * job.slots
        self._opened += sign * len(tree.ended)

    def _at_fault(self, j: int) -> bool:
        """Whether a job has no tree yet, or a part in something that there is not enough of."""
        tree, budget = self._trees[j], self._instance.aggregators
        if not tree.routes:
            return True
        if budget is not None and self._opened > budget and tree.ended:
            return True
        if any(self._load[self._instance.arc_of[arc]] > self._target_s for arc in tree.messages):
            return True
        slots = self._case.net.slots
        return any(self._used[v] > slots[v] or self._switch[v] > self._target_s for v in tree.ended)

    def _sent(self, j: int, pressure: float, price: float) -> Tree:
        """The tree of a job that is cheapest now; its old one where none was found."""
        job, slots = self._instance.jobs[j], self._case.net.slots
        time = job.gradient_bytes * self._arcs
        cost = time / time.max() * (1 + self._past) * self._factors(self._load + time, pressure)
        ending = job.gradient_bytes * self._rates
        if ending.any():
            ending = ending / time.max() * self._factors(self._switch + ending, pressure)
        opening = price + self._past_slots + _EFFORT.slot * pressure * (self._used + job.slots > slots)
        residual = np.floor(np.clip((self._target_s - self._load) / time, 0, LARGEST_COUNT)).astype(np.int64)
        able = np.where(slots < job.slots, np.inf, opening)
        return self._routers[j].tree(cost, able, ending, self._most(j), residual) or self._trees[j]

    def _factors(self, load: Floats, pressure: float) -> Floats:
        beyond = load / self._target_s - 1
        factors: Floats = 1 + _EFFORT.busy * load / self._target_s + pressure * (1 + beyond) * (beyond > 0)
        return factors

    def _most(self, j: int) -> int:
        """Messages of a job that may arrive at its server by the target, and by the limit of connections."""
        instance, job = self._instance, self._instance.jobs[j]
        most = len(job.workers) if instance.connections is None else min(len(job.workers), instance.connections)
        width = sum(1 / float(self._arcs[place]) for place, arc in enumerate(instance.arcs) if arc[1] == job.server)
        return max(1, min(most, math.floor(self._target_s * width / job.gradient_bytes)))
