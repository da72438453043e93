"""A network with jobs as arrays for kernels, and the way back to an answer."""

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from ddlopt.models.aggregation import evaluate
from ddlopt.models.aggregation.graph.instance import AggregationTrees, GraphInstance
from ddlopt.solvers.aggregation.graph.kernels.forest import (
    CONGESTION,
    RATES,
    UTILIZATION,
    Demand,
    Forest,
    insert_job,
    set_prices,
)
from ddlopt.solvers.aggregation.graph.kernels.messages import Net, Prices, Rules

_GOALS = {"utilization": UTILIZATION, "congestion": CONGESTION, "rates": RATES}
# More than any count of trees: no limit.
_ANY = 2**31


@dataclass(frozen=True)
class Case:
    """An instance as the kernels take it.

    Parameters
    ----------
    instance : GraphInstance
    net : Net
    demand : Demand
    rules : Rules
    """

    instance: GraphInstance
    net: Net
    demand: Demand
    rules: Rules

    @property
    def draws(self) -> int:
        """Random numbers for one job: a factor for each arc, and one for each worker."""
        return len(self.instance.arcs) + self.most_workers

    @property
    def most_workers(self) -> int:
        """Of one job."""
        return max(len(job.workers) for job in self.instance.jobs)

    def forest(self, trees: int | None = None) -> Forest:
        """No trees yet, and room for those of all jobs or for a number of them."""
        n, m = len(self.instance.nodes), len(self.instance.arcs)
        jobs = len(self.instance.jobs) if trees is None else trees
        senders = 2 * self.most_workers + 2
        return Forest(
            np.zeros((jobs, senders, n), np.int64),
            np.zeros((jobs, senders), np.int64),
            np.full((jobs, n), -1),
            np.zeros((jobs, n), np.bool_),
            np.zeros((jobs, 1), np.int64),
            np.zeros((jobs, m), np.int64),
            np.zeros((jobs, n), np.int64),
            np.zeros(m),
            np.zeros(n),
            np.zeros(n, np.int64),
        )

    def prices(
        self, forest: Forest, j: int, sharpness: float, noise: npt.NDArray[np.float64] | None, opening: float
    ) -> Prices:
        """Prices of a job; see :func:`~ddlopt.solvers.aggregation.graph.kernels.forest.set_prices`."""
        m, n = len(self.instance.arcs), len(self.instance.nodes)
        prices = Prices(np.empty(m), np.empty(n), np.empty(n))
        factors = np.ones(m) if noise is None else noise
        set_prices(self.net, self.demand, forest, j, sharpness, factors, opening, prices)
        return prices

    def answer(self, forest: Forest) -> AggregationTrees:
        """The routes of a forest."""
        trees = tuple(self.routes(forest, j) for j in range(len(self.instance.jobs)))
        return AggregationTrees(instance=self.instance.name, trees=trees)

    def routes(self, forest: Forest, j: int) -> tuple[tuple[int, ...], ...]:
        """Those of one job."""
        routes = []
        for o in range(int(forest.senders[j, 0])):
            arcs = forest.routes[j, o, : forest.length[j, o]]
            routes.append((int(self.net.tail[arcs[0]]), *self.net.head[arcs].tolist()))
        return tuple(sorted(routes))

    def read(self, solution: AggregationTrees) -> Forest | None:
        """The forest of an answer; None where that is not feasible, or has more senders than a search makes."""
        forest = self.forest()
        most = forest.routes.shape[1]
        if any(len(tree) > most for tree in solution.trees) or not evaluate(self.instance, solution).feasible:
            return None
        for j, tree in enumerate(solution.trees):
            forest.senders[j] = len(tree)
            for o, route in enumerate(tree):
                arcs = [self.instance.arc_of[arc] for arc in pairwise(route)]
                forest.routes[j, o, : len(arcs)] = arcs
                forest.length[j, o] = len(arcs)
                forest.number[j, route[0]] = o
                if route[-1] != self.instance.jobs[j].server:
                    forest.aggregates[j, route[-1]] = True
            insert_job(self.net, self.demand, forest, j)
        return forest

    def heaviest_first(self) -> list[int]:
        """Jobs by the bytes that they send together."""
        jobs = self.instance.jobs
        return sorted(range(len(jobs)), key=lambda j: (-jobs[j].gradient_bytes * len(jobs[j].workers), j))


def case_of(instance: GraphInstance) -> Case:
    """The arrays of an instance."""
    arcs = np.array(instance.arcs)
    count, jobs, nodes = len(instance.nodes), instance.jobs, instance.nodes
    entering = np.argsort(arcs[:, 1], kind="stable")
    first = np.concatenate(([0], np.cumsum(np.bincount(arcs[:, 1], minlength=count))))
    link_s = np.repeat([1 / link.bandwidth_bytes_per_s for link in instance.links], 2)
    switch_s = [0.0 if node.aggregation_bytes_per_s is None else 1 / node.aggregation_bytes_per_s for node in nodes]
    net = Net(
        np.ascontiguousarray(arcs[:, 0]),
        np.ascontiguousarray(arcs[:, 1]),
        first,
        entering,
        np.array([node.forwards for node in nodes]),
        link_s,
        np.array(switch_s),
        np.array([node.slots for node in nodes]),
    )
    demand = Demand(
        np.cumsum([0] + [len(job.workers) for job in jobs]),
        np.array([worker for job in jobs for worker in job.workers]),
        np.array([job.server for job in jobs]),
        np.array([job.gradient_bytes for job in jobs], dtype=float),
        np.array([job.slots for job in jobs]),
        _GOALS[instance.goal],
    )
    rules = Rules(
        _ANY if instance.connections is None else instance.connections,
        _ANY if instance.aggregators is None else instance.aggregators,
        instance.merging,
    )
    return Case(instance, net, demand, rules)


def objective_of(instance: GraphInstance, solution: AggregationTrees) -> float | None:
    """Objective of an answer; None where it is not feasible."""
    found = evaluate(instance, solution)
    return float(found.objective) if found.feasible and found.objective is not None else None
