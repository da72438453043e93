"""One job's tree at given prices: by dynamic programming where that is fast, else worker by worker."""

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from ddlopt.frontier.aggregation.graph.pricing import Floats, Ints, Pricing, Tree, tree_of
from ddlopt.models.aggregation.graph.network import job_network
from ddlopt.solvers.aggregation.graph.arrays import Case
from ddlopt.solvers.aggregation.graph.kernels.messages import Prices, Rules, grow

MOST_PAIRS = 30_000
"""Of a state and a part of it, up to which the dynamic program takes some hundredths of a second."""
_ORDERS = 4
"""Orders of the workers that are tried."""


class Router(Protocol):
    """Sends one job."""

    def tree(self, cost: Floats, opening: Floats, ending: Floats, most: int, residual: Ints) -> Tree | None:
        """A cheap tree.

        Parameters
        ----------
        cost : (arcs,) array
        opening, ending : (nodes,) arrays
            Of a switch that aggregates, infinite where none can; and of a message that ends there.
        most : int
            Messages that may arrive at the server.
        residual : (arcs,) array
            Messages that an arc should have at most.
        """


def routers(case: Case, rng: np.random.Generator) -> tuple[Router, ...]:
    """Of all jobs."""
    found: list[Router] = []
    for j, job in enumerate(case.instance.jobs):
        pricing = Pricing(case.instance, job_network(case.instance, job))
        forwarding = all(node.forwards for node in case.instance.nodes if node.slots)
        fast = forwarding and pricing.pairs <= MOST_PAIRS
        found.append(SteinerDpRouter(pricing) if fast else GreedyTreeRouter(case, j, rng))
    return tuple(found)


@dataclass(frozen=True)
class SteinerDpRouter:
    """The dynamic program; messages beyond the residual capacity of a link are then sent another way."""

    pricing: Pricing

    def tree(self, cost: Floats, opening: Floats, ending: Floats, most: int, residual: Ints) -> Tree | None:
        """See :class:`Router`."""
        # An arc that is full takes one message, at its price.
        _, found = self.pricing.cheapest(cost, opening, ending, most, np.maximum(1, residual))
        return None if found is None else self.pricing.spread(found, cost, residual)


@dataclass(frozen=True)
class GreedyTreeRouter:
    """Worker by worker in some random orders, each by the cheapest way; the cheapest of these trees."""

    case: Case
    j: int
    rng: np.random.Generator

    def tree(self, cost: Floats, opening: Floats, ending: Floats, most: int, residual: Ints) -> Tree | None:
        """See :class:`Router`."""
        case, job = self.case, self.case.instance.jobs[self.j]
        rules = Rules(most, case.rules.aggregators, case.rules.merging)
        able = opening.copy()
        able[job.server] = np.inf
        prices, forest = Prices(cost, ending, able), case.forest()
        best: tuple[float, Tree] | None = None
        for _ in range(_ORDERS):
            order = self.rng.permutation(np.array(job.workers))
            left = min(case.rules.aggregators, len(able))
            if not grow(case.net, order, 0, job.server, prices, rules, left, forest.tree(self.j)):
                continue
            found = tree_of(case.routes(forest, self.j), job.server)
            price = self._price(found, cost, opening, ending, residual)
            if best is None or price < best[0]:
                best = price, found
        return None if best is None else best[1]

    def _price(self, tree: Tree, cost: Floats, opening: Floats, ending: Floats, residual: Ints) -> float:
        number = self.case.instance.arc_of
        arcs = sum(n * cost[number[arc]] * (2 if n > residual[number[arc]] else 1) for arc, n in tree.messages.items())
        return float(arcs + sum(opening[v] + n * ending[v] for v, n in tree.ended.items()))
