"""Sufficient factors under budgets: minimum cuts at prices of what is scarce, their bound, and a search below it."""

from dataclasses import dataclass
from math import fsum
from typing import Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from ddlopt.models.compression import CompressionProblem, SfbInstance, SfbSelection
from ddlopt.solvers.compression.sfb.budget_kernel import kernel
from ddlopt.solvers.compression.sfb.budget_search import BudgetSearch
from ddlopt.solvers.compression.sfb.nested_cuts import CostGraph, Costs, breakpoints, costs_of
from ddlopt.solvers.heuristic import Answer, Clock, Heuristic

Bools = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class ParametricCut(Heuristic, uses=("start",)):
    r"""Minimum cuts at prices of the budgets, a bound that they prove, and a search for what fits best.

    With :math:`u^k_i` what duplicating operator i takes of budget :math:`U^k`, and prices :math:`\lambda \ge 0`,

    .. math:: L(\lambda) = \min_x F(x) + \sum_k \lambda_k \Bigl(\sum_i u^k_i x_i - U^k\Bigr)

    is a minimum cut with :math:`e_i + \sum_k \lambda_k u^k_i` in place of :math:`e_i`, and a lower bound on the cost of
    every selection that keeps the budgets, whatever the prices. With one budget the optimal selections are nested and
    shrink as its price grows (:func:`~ddlopt.solvers.compression.sfb.nested_cuts.breakpoints`): they are the corners of
    the lower convex hull of all selections' (use, cost), see :func:`frontier`. The problem itself is NP-hard (it
    contains the knapsack problem), and what lies between two corners need not be found by prices.

    0. Most operators are decided by two cuts, see :func:`~ddlopt.solvers.compression.sfb.budget_kernel.kernel`.
    1. The best prices, by cutting planes: the master program has a row for every selection met, and its optimum lies
       where their values cross. Each step takes one minimum cut. As the cut's linear relaxation is integral, the bound
       is that of the linear relaxation of the whole program.
    2. Selections that are too large are cut down one operator after another, those that leave room are filled up.
    3. While time and gap are left, branch and bound: the bound's selections on both sides of the budget differ in some
       operators, and the one of them that takes most is duplicated or not. An operator that no longer fits beside
       those that are duplicated for sure is not duplicated, which makes bounds sharper than those of the relaxation.

    The relaxation is the classical one (A. Geoffrion, "Lagrangean relaxation for integer programming", Mathematical
    Programming Study 2, 1974); the other steps are ours.

    Parameters
    ----------
    work : int
        Operators that all minimum cuts together may have, each cut counted as 1 000 more, after which step 3 ends.

    Notes
    -----
    Details: ``root_bound_s``, the best bound of prices alone; ``memory_price_s_per_byte`` and ``compute_price``, those
    prices: what one byte or second more in a budget saves about; ``undecided_operators``, ``cuts``, ``branches``.
    """

    work: int = 100_000

    name = "parametric-cut"

    def refuses(self, instance: CompressionProblem) -> str | None:
        """Other problems of the family."""
        if isinstance(instance, SfbInstance):
            return None
        return "it selects operators to duplicate, for sufficient factor broadcasting"

    def answer(self, instance: SfbInstance, seed: int, clock: Clock, start: Any) -> Answer[SfbSelection]:
        """The best selection found; its bounds go to the clock."""
        left = kernel(instance)
        search = BudgetSearch(left, clock, self.work)
        if start is not None:
            search.offer(left.restricted(start))
        root, figures = search.run()
        budgets = {
            "memory_price_s_per_byte": instance.memory_budget_bytes,
            "compute_price": instance.compute_budget_s,
        }
        names = [name for name, budget in budgets.items() if budget is not None]
        prices = dict(zip(names, root.prices.tolist(), strict=True))
        return left.completed(search.best), {"root_bound_s": root.bound, **prices, **figures}

    def certificate(self, instance: SfbInstance, solution: SfbSelection, clock: Clock) -> float | None:
        """The last bound reported; they only grow."""
        return clock.best_bound(instance.sense)


class Corner(NamedTuple):
    """A corner of the frontier between what is used of a resource and the cost.

    Parameters
    ----------
    used, cost_s : float
    price : float
        Seconds that one more of the resource saves, up to the next corner; 0 at the last.
    duplicated : tuple of int
    """

    used: float
    cost_s: float
    price: float
    duplicated: tuple[int, ...]


def frontier(instance: SfbInstance, resource: Literal["memory_bytes", "compute_s"]) -> tuple[Corner, ...]:
    """Lower convex hull of (used, cost) over all selections, by increasing use; budgets play no part.

    Two minimum cuts a corner. Below the hull there is no selection, and its line between two corners is the bound
    that :class:`ParametricCut` has there.
    """
    graph, costs = CostGraph(instance), costs_of(instance)
    free = np.zeros_like(costs.sync), np.zeros_like(costs.broadcast)
    memory = np.array([each.memory_bytes for each in instance.operators])
    use = Costs(memory if resource == "memory_bytes" else instance.extra_s, *free)
    first = graph.cheapest(costs).duplicated
    last = graph.cheapest(costs.plus(use.endless())).duplicated
    here = first.copy()
    corners = [_corner(graph, costs, use, here, 0.0)]
    for point in breakpoints(graph, use, costs, first, last):
        here[point.leaving] = False
        corners.append(_corner(graph, costs, use, here, point.parameter))
    return tuple(corners[::-1])


def _corner(graph: CostGraph, costs: Costs, use: Costs, duplicated: Bools, price: float) -> Corner:
    places = tuple(np.flatnonzero(duplicated).tolist())
    return Corner(fsum(use.extra[duplicated]), graph.cost(costs, duplicated), price, places)
