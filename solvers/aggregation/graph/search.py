"""Our search over aggregation trees, and the greedy it begins with."""

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from ddlopt.models.aggregation.graph.bounds import graph_bound
from ddlopt.models.aggregation.graph.instance import AggregationTrees, GraphInstance
from ddlopt.models.contracts import Solution
from ddlopt.models.errors import NoSolutionError
from ddlopt.solvers.aggregation.graph.arrays import Case, case_of
from ddlopt.solvers.aggregation.graph.kernels import forest as kernels
from ddlopt.solvers.aggregation.graph.kernels.forest import Forest
from ddlopt.solvers.aggregation.graph.kernels.search import MOST_JOBS, search
from ddlopt.solvers.contracts import relative_gap
from ddlopt.solvers.heuristic import Answer, Clock, Heuristic


@dataclass(frozen=True)
class Effort:
    """What a search spends, and why so much."""

    attempts: int = 100
    """Orders of the jobs after which a greedy gives up: where tens of them fail, slots or budget are too few."""
    rounds: int = 200
    """Rounds between looks at the clock: some hundredths of a second."""
    dear: float = 1e3
    """Price of an aggregator, in those of arcs, where few are to be used: more than any route saves."""
    heat: float = 0.005
    """Part by which a solution may be worse than the one before it, at first."""
    rates_heat: float = 0.02
    """The same for a sum of rates, which falls at once where one job moves."""
    sharpness: float = 4.0
    """Of the prices for the first trees: half of the largest, as little is busy yet."""


_EFFORT = Effort()

_FIXED_DRAWS = 11
"""Random numbers of a round besides those for arcs and workers."""


@dataclass(frozen=True)
class GraphSearch(Heuristic, uses=("seed", "start")):
    """Ours: one to three jobs at a time are taken out of the network and sent anew, where it is least busy.

    A job is sent worker by worker in random order, each by the cheapest way (Dijkstra's algorithm, backwards from the
    server and from all nodes where a message of the job can be joined). The price of an arc or of an aggregator is the
    time that a message takes there, times a power of how busy it would be, times a random factor; joining messages
    earns what they no longer cost further on. A change stays where it is not much worse by a norm close to the largest
    load (*congestion*), the sum of all (*utilization*), or the sum of rates; how much worse falls to nothing.

    Parameters
    ----------
    rounds : int
        Of the search, where the time limit allows.
    heat : float, optional
        By which part a change may be worse at the beginning; None: 0.005, and 0.02 of a sum of rates, which takes few
        values.
    """

    rounds: int = 6000
    heat: float | None = None

    name: ClassVar[str] = "graph-search"
    covers: ClassVar[type[GraphInstance]] = GraphInstance
    kernels: ClassVar[tuple[str, ...]] = (
        "ddlopt.solvers.aggregation.graph.kernels.forest",
        "ddlopt.solvers.aggregation.graph.kernels.search",
    )

    def answer(self, instance: GraphInstance, seed: int, clock: Clock, start: Any) -> Answer[Solution]:
        """The best trees seen; a ``start`` is where the search begins."""
        case, rng = case_of(instance), np.random.default_rng(seed)
        now = case.read(start) if isinstance(start, AggregationTrees) else None
        if now is None:
            now = first_trees(case, rng, clock)
        best, before = Forest._make(each.copy() for each in now), case.forest(MOST_JOBS)
        hottest = (_EFFORT.rates_heat if instance.goal == "rates" else _EFFORT.heat) if self.heat is None else self.heat
        goal, done, bound = np.inf, 0, graph_bound(instance)
        while done < self.rounds and not clock.expired:
            gap = relative_gap(abs(goal), bound, instance.sense) if done else None
            if gap is not None and gap <= clock.gap:
                break
            rounds = min(_EFFORT.rounds, self.rounds - done)
            heat = hottest * (1 - (done + np.arange(rounds)) / self.rounds)
            draws = rng.random((rounds, _FIXED_DRAWS + case.draws))
            found = search(case.net, case.demand, case.rules, now, best, before, draws, heat)
            if found < goal:
                goal = found
                clock.report(abs(goal))
            done += rounds
        return case.answer(best), {"rounds": float(done)}


@dataclass(frozen=True)
class TakahashiMatsuyama(Heuristic, uses=("seed",)):
    """Of every job the Steiner tree of Takahashi and Matsuyama: the nearest worker first, each to the nearest node.

    A message may join where a switch aggregates, or has a free slot to begin; where it meets the tree elsewhere, it
    pays for the rest of its way too. Distances are seconds for a byte, whatever other jobs send. Jobs follow one
    another, the heaviest first.

    References
    ----------
    H. Takahashi, A. Matsuyama, "An approximate solution for the Steiner problem in graphs", Math. Japonica 24, 1980.
    """

    name: ClassVar[str] = "takahashi-matsuyama"
    covers: ClassVar[type[GraphInstance]] = GraphInstance
    kernels: ClassVar[tuple[str, ...]] = ("ddlopt.solvers.aggregation.graph.kernels.forest",)

    def answer(self, instance: GraphInstance, seed: int, clock: Clock, start: Any) -> Answer[Solution]:
        """A tree for every job; other orders of jobs and workers where one is left without."""
        case = case_of(instance)
        return case.answer(first_trees(case, np.random.default_rng(seed), clock, sharpness=0.0)), {}


def first_trees(case: Case, rng: np.random.Generator, clock: Clock, sharpness: float = _EFFORT.sharpness) -> Forest:
    """Job by job, the heaviest first, at the prices that the jobs before have made; other orders where that fails.

    Raises
    ------
    NoSolutionError
        If no order works.
    """
    order = case.heaviest_first()
    if case.demand.goal == kernels.UTILIZATION:
        sharpness = 0.0
    for attempt in range(_EFFORT.attempts):
        if attempt and clock.expired:
            break
        forest = case.forest()
        if all(_sent(case, forest, j, rng, sharpness, attempt) for j in order):
            return forest
        order = rng.permutation(len(order)).tolist()
    raise NoSolutionError("no order of the jobs gave each of them a tree within slots, budget and connections")


def _sent(case: Case, forest: Forest, j: int, rng: np.random.Generator, sharpness: float, attempt: int) -> bool:
    """Whether a job was given a tree; nodes that aggregate from the beginning are tried where it has none without.

    Where a first attempt fails, budget or slots are short: every other one has aggregators cost much, and half of them
    try such nodes first, which makes do with one aggregator.
    """
    prices = case.prices(forest, j, sharpness, None, _EFFORT.dear if attempt % 2 else 0.0)
    hubs = [-1.0, *rng.random(8)]
    for hub in hubs if attempt % 4 < 2 else reversed(hubs):
        # A first tree from the nearest worker on, others in any order.
        draw = rng.random(case.most_workers) if attempt or hub >= 0 else nearest_first(case, j)
        if kernels.route_job(case.net, case.demand, case.rules, forest, j, prices, draw, hub):
            return True
    return False


def nearest_first(case: Case, j: int) -> Any:
    """Numbers by which the workers of a job that are near to its server in time come first."""
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import dijkstra

    net, job = case.net, case.instance.jobs[j]
    count = len(case.instance.nodes)
    usable = net.forwards[net.head] | (net.head == job.server)
    reversed_ = csr_array((net.link_s[usable], (net.head[usable], net.tail[usable])), shape=(count, count))
    far = dijkstra(reversed_, indices=job.server)
    ranks = np.zeros(case.most_workers)
    ranks[: len(job.workers)] = far[list(job.workers)]
    return ranks
