"""Sufficient factors under budgets: minimum cuts at prices of what is scarce, and the bound that they prove."""

from dataclasses import dataclass
from math import fsum, inf
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.optimize import linprog

from ddlopt.models.compression import CompressionProblem, SfbInstance, SfbSelection
from ddlopt.models.errors import SolverError
from ddlopt.models.tolerances import ROUNDING, let_pass, let_pass_at_least
from ddlopt.solvers.compression.sfb.costs import CostGraph, Costs, costs_of
from ddlopt.solvers.compression.sfb.moves import Moves, budgets_of
from ddlopt.solvers.heuristic import Answer, Clock, Heuristic

Floats = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]

_TIGHT = 1e-7
"""Relative distance from the best value within which a selection counts as optimal at the prices."""
_SUMS = 1e-15
"""More than what a bound can gain by the rounding of a few sums, relative to them."""


@dataclass(frozen=True)
class ParametricCut(Heuristic, uses=("start",)):
    r"""Minimum cuts at prices of the budgets, the bound that they prove, and what fits of their selections.

    With :math:`u^k_i` what duplicating operator i takes of budget :math:`U^k`, and prices :math:`\lambda \ge 0`,

    .. math:: L(\lambda) = \min_x F(x) + \sum_k \lambda_k \Bigl(\sum_i u^k_i x_i - U^k\Bigr)

    is a minimum cut with :math:`e_i + \sum_k \lambda_k u^k_i` in place of :math:`e_i`, and a lower bound on the cost of
    every selection that keeps the budgets, whatever the prices. The best prices are found by cutting planes: the master
    program has a row for every selection met, and its optimum lies where their values cross. Each step takes one
    minimum cut. As the cut's linear relaxation is integral, the bound is that of the linear relaxation of the whole
    program, where operators that fit no budget by themselves are not duplicated.

    Selections that are optimal at the best prices lie on both sides of the budgets, in general: those that are too
    large are cut down one operator after another, those that leave room are filled up.

    References
    ----------
    A. Geoffrion, "Lagrangean relaxation for integer programming", Mathematical Programming Study 2, 1974. Cutting down
    and filling up are ours.

    Notes
    -----
    Details: ``memory_price_s_per_byte`` and ``compute_price``, the best prices: what one byte or second more in a
    budget saves about; ``cuts``.
    """

    name = "parametric-cut"

    def refuses(self, instance: CompressionProblem) -> str | None:
        """Other problems of the family."""
        if isinstance(instance, SfbInstance):
            return None
        return "it selects operators to duplicate, for sufficient factor broadcasting"

    def answer(self, instance: SfbInstance, seed: int, clock: Clock, start: Any) -> Answer[SfbSelection]:
        """The best selection found; the bound goes to the clock."""
        search = _Prices(instance, clock)
        if start is not None:
            search.offer(np.isin(np.arange(instance.size), start.duplicated))
        search.run()
        budgets = {
            "memory_price_s_per_byte": instance.memory_budget_bytes,
            "compute_price": instance.compute_budget_s,
        }
        names = [name for name, budget in budgets.items() if budget is not None]
        chosen = tuple(np.flatnonzero(search.best).tolist())
        prices = dict(zip(names, search.prices.tolist(), strict=True))
        return SfbSelection(instance=instance.name, duplicated=chosen), {**prices, "cuts": float(search.cuts)}

    def certificate(self, instance: SfbInstance, solution: SfbSelection, clock: Clock) -> float | None:
        """The last bound reported; they only grow."""
        return clock.best_bound(instance.sense)


class _Line(NamedTuple):
    """A selection's cost and what it takes too much, in units: its value at any prices."""

    duplicated: Bools
    cost: float
    excess: Floats

    def at(self, prices: Floats) -> float:
        """Its value."""
        return self.cost + float(prices @ self.excess)


class _Prices:
    """The best prices and the best selection so far.

    Inside, costs are measured in all all-reduces together, and what operators take in the budgets.
    """

    def __init__(self, instance: SfbInstance, clock: Clock) -> None:
        self._graph, self._costs, self._clock = CostGraph(instance), costs_of(instance), clock
        self._use, budgets = budgets_of(instance)
        # Whatever counts as keeping a budget is above the bounds; what is found keeps it in any order of addition.
        self._limits, self._within = let_pass(budgets), let_pass_at_least(budgets)
        self._too_large: Bools = np.logical_or.reduce(self._use > self._limits[:, None], axis=0)
        self._cost_unit = float(self._costs.sync.sum()) or 1.0
        self._use_unit = np.where(budgets > 0, budgets, 1.0)
        self.cuts, self._bound = 0, -inf
        self.prices: Floats = np.zeros(len(budgets))
        """(k,) of the budgets."""
        self.best: Bools = np.zeros(instance.size, dtype=np.bool_)
        """(n,) which operators are duplicated."""
        self._best_cost = inf
        self.offer(self.best)

    def offer(self, duplicated: Bools) -> None:
        """Cut a selection down to the budgets, fill what room it leaves, and keep it if it is the best."""
        moves = Moves(self._graph, self._costs, duplicated, self._use, self._within)
        moves.drop()
        moves.fill()
        found = moves.duplicated
        used = [fsum(each[found]) for each in self._use]
        cost = self._graph.cost(self._costs, found)
        if cost < self._best_cost and (used <= self._within).all():
            self.best, self._best_cost = found, cost
            self._clock.report(cost, max(0.0, self._bound))

    def run(self) -> None:
        """Cutting planes until the best prices are found or the time is up."""
        free = self._cut(np.zeros(len(self.prices)), self._too_large)
        if (free.excess <= 0).all():
            self.offer(free.duplicated)
            return
        # What takes nothing of any budget keeps them.
        taking: Bools = np.logical_or.reduce(self._use > 0, axis=0)
        lines = [free, self._cut(np.zeros(len(self.prices)), taking, proves=False)]
        while True:
            top, prices = _best_prices(lines)
            line = self._cut(prices, self._too_large)
            known = any((line.duplicated == each.duplicated).all() for each in lines)
            if known or line.at(prices) > top - ROUNDING * abs(top) or self._clock.expired:
                break
            lines.append(line)
        self.prices = prices * self._cost_unit / self._use_unit
        for each in lines:
            if each.at(prices) <= top + _TIGHT * max(1.0, abs(top)):
                self.offer(each.duplicated)

    def _cut(self, prices: Floats, forbidden: Bools, proves: bool = True) -> _Line:
        """The cheapest selection at prices without some operators; it may prove a bound."""
        self.cuts += 1
        real = prices * self._cost_unit / self._use_unit
        extra = np.where(forbidden, inf, self._costs.extra + real @ self._use)
        cut = self._graph.cheapest(Costs(extra, self._costs.sync, self._costs.broadcast))
        paid = float(real @ self._limits)
        bound = cut.bound_s - paid - _SUMS * (cut.bound_s + paid)
        if proves and bound > self._bound:
            self._bound = bound
            self._clock.report(self._best_cost, max(0.0, bound))
        excess = (self._use @ cut.duplicated - self._limits) / self._use_unit
        return _Line(cut.duplicated, self._graph.cost(self._costs, cut.duplicated) / self._cost_unit, excess)


def _best_prices(lines: list[_Line]) -> tuple[float, Floats]:
    """The prices at which the least value of the lines is largest, and that value; one line at least keeps budgets."""
    cost, excess = np.array([each.cost for each in lines]), np.array([each.excess for each in lines])
    budgets = excess.shape[1]
    answer = linprog(
        np.append(np.zeros(budgets), -1.0),
        A_ub=np.column_stack((-excess, np.ones(len(lines)))),
        b_ub=cost,
        bounds=[*[(0, None)] * budgets, (None, None)],
        method="highs",
    )
    if answer.x is None:
        raise SolverError(f"prices of {budgets} budgets: {answer.message}")
    return -float(answer.fun), np.maximum(0.0, answer.x[:-1])
