"""Branch and bound on prices of budgets, for sufficient factors; the mathematics stands with ``ParametricCut``."""

from collections import deque
from dataclasses import dataclass
from heapq import heappop, heappush
from itertools import count
from math import fsum, inf
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.optimize import linprog

from ddlopt.models.tolerances import FEASIBILITY_TOL, ROUNDING
from ddlopt.solvers.compression.sfb.budget_kernel import Kernel
from ddlopt.solvers.compression.sfb.moves import Moves
from ddlopt.solvers.compression.sfb.nested_cuts import Costs
from ddlopt.solvers.heuristic import Clock

Floats = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class Effort:
    """What a search spends, and why so much."""

    overhead: int = 1_000
    """A minimum cut takes as long as if there were this many operators more."""
    most_met: int = 100
    """Selections that are remembered: a new part begins with those of them that are its own."""
    tight: float = 1e-7
    """Relative distance from the best value within which a selection counts as optimal at the prices."""


_EFFORT = Effort()

_ROUNDING = 1e-15
"""More than what a bound can gain by the rounding of a few sums, relative to them."""


class Part(NamedTuple):
    """A part of all selections: some operators are duplicated for sure, others certainly not."""

    forced: Bools
    forbidden: Bools

    def has(self, duplicated: Bools) -> bool:
        """Whether a selection is one of the part."""
        return not ((self.forced & ~duplicated) | (self.forbidden & duplicated)).any()


class Relaxed(NamedTuple):
    """What prices prove about a part, and the operator to decide on; None if there is nothing to decide."""

    bound: float
    branch: int | None
    prices: Floats


class Line(NamedTuple):
    """A selection's cost and what it takes too much, in units: its value at any prices."""

    duplicated: Bools
    cost: float
    excess: Floats

    def at(self, prices: Floats) -> float:
        """Its value."""
        return self.cost + float(prices @ self.excess)


class BudgetSearch:
    """The best selection so far, and the search for a better one.

    Inside, costs are measured in all all-reduces together, and what operators take in the budgets.

    Parameters
    ----------
    kernel : Kernel
    clock : Clock
    work : int
        See :class:`~ddlopt.solvers.compression.sfb.parametric_cut.ParametricCut`.
    """

    def __init__(self, kernel: Kernel, clock: Clock, work: int) -> None:
        self._kernel, self._graph, self._clock = kernel, kernel.graph, clock
        self._costs, self._use, budgets = kernel.costs, kernel.use, kernel.budgets
        self._reading = self._graph.alone(self._costs) - self._costs.extra
        # Whatever counts as keeping a budget is above the bounds; what is found keeps it in any order of addition.
        self._limits, self._within = budgets * (1 + FEASIBILITY_TOL), budgets * (1 + FEASIBILITY_TOL / 2)
        self._cost_unit = float(self._costs.sync.sum()) or 1.0
        self._use_unit = np.where(budgets > 0, budgets, 1.0)
        self._weight = (self._use / self._use_unit[:, None]).sum(axis=0)
        self._most_cuts = work // (len(self._reading) + _EFFORT.overhead)
        self._cuts = 0
        self._waiting: list[tuple[float, int, Part, int]] = []
        self._done, self._order = inf, count()
        self._met: deque[Line] = deque(maxlen=_EFFORT.most_met)
        self._reported = inf, -inf
        self.best: Bools = np.zeros(len(self._reading), dtype=np.bool_)
        """(m,) of the kernel's operators."""
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

    def run(self) -> tuple[Relaxed, dict[str, float]]:
        """Search until the gap is closed, or work or time are used up; bounds go to the clock.

        Returns
        -------
        Relaxed
            Of the whole, in the instance's cost.
        dict
            Figures for the details of a result.
        """
        nothing = np.zeros_like(self.best)
        root = Part(nothing, ~self._graph.instance.eligible)
        relaxed = self._relax(root)
        assert relaxed is not None, "to duplicate nothing keeps all budgets"
        self._put(relaxed.bound, root, relaxed.branch)
        branches = 0
        while self._open():
            bound, _, part, branch = heappop(self._waiting)
            branches += 1
            for forced in (True, False):
                half = _half(part, branch, forced)
                below = self._relax(half)
                if below is not None:
                    self._put(max(bound, below.bound), half, below.branch)
        figures: dict[str, float] = {
            "cuts": self._cuts,
            "branches": branches,
            "undecided_operators": len(self.best) - 1,
        }
        return relaxed._replace(bound=self._total(relaxed.bound)), figures

    def _put(self, bound: float, part: Part, branch: int | None) -> None:
        """Keep a part for later, or only its bound if there is nothing better in it or nothing to decide."""
        if branch is None or bound >= self._best_cost:
            self._done = min(self._done, bound)
        else:
            heappush(self._waiting, (bound, next(self._order), part, branch))

    def _open(self) -> bool:
        """Report what is proven, and whether to go on."""
        proven = min(self._done, self._best_cost, *(bound for bound, *_ in self._waiting[:1]))
        if (self._best_cost, proven) != self._reported:
            self._reported = self._best_cost, proven
            self._clock.report(self._kernel.constant_s + self._best_cost, self._total(proven))
        closed = self._best_cost - proven <= self._clock.gap * (self._kernel.constant_s + self._best_cost)
        return bool(self._waiting) and not closed and self._cuts < self._most_cuts and not self._clock.expired

    def _total(self, bound: float) -> float:
        """A bound on the instance's cost."""
        constant = self._kernel.constant_s
        return constant + bound - _ROUNDING * (constant + abs(bound))

    def _relax(self, part: Part) -> Relaxed | None:
        """The best prices for a part, by cutting planes; None if nothing in it keeps the budgets."""
        room = self._limits - self._use @ part.forced
        if (room < 0).any():
            return None
        part = Part(part.forced, part.forbidden | (~part.forced & (self._use > room[:, None]).any(axis=0)))
        prices = np.zeros(len(room))
        lines = [each for each in self._met if part.has(each.duplicated)]
        bound = -inf
        if all((line.excess <= 0).all() for line in lines):
            bound, line = self._cut(part, prices)
            if (line.excess <= 0).all():
                self.offer(line.duplicated)
                return Relaxed(bound, None, prices)
            lines.append(line)
        if all((line.excess > 0).any() for line in lines):
            lines.append(self._cut(Part(part.forced, part.forbidden | (~part.forced & (self._weight > 0))), prices)[1])
        while True:
            top, prices = _best_prices(lines)
            value, line = self._cut(part, prices)
            bound = max(bound, value)
            known = any((line.duplicated == each.duplicated).all() for each in lines)
            if known or line.at(prices) > top - ROUNDING * abs(top) or self._clock.expired:
                break
            lines.append(line)
        tight = [each for each in lines if each.at(prices) <= top + _EFFORT.tight * max(1.0, abs(top))]
        for each in tight:
            self.offer(each.duplicated)
        self._met.extend(lines)
        masks = np.array([each.duplicated for each in tight])
        differ = masks.any(axis=0) & ~masks.all(axis=0) & ~part.forced
        weight = np.where(differ, self._weight, 0.0)
        branch = int(weight.argmax()) if weight.any() else None
        return Relaxed(bound, branch, prices * self._cost_unit / self._use_unit)

    def _cut(self, part: Part, prices: Floats) -> tuple[float, Line]:
        """The cheapest selection of a part at prices, and the bound in seconds that it proves."""
        self._cuts += 1
        forced, real = part.forced, prices * self._cost_unit / self._use_unit
        extra = self._costs.extra + real @ self._use
        certain = fsum(extra[forced])
        extra[forced], extra[part.forbidden] = 0.0, inf
        # Not to duplicate what is forced costs more than all that it reads.
        sync = np.where(forced, 2 * self._reading, self._costs.sync)
        cut = self._graph.cheapest(Costs(extra, sync, self._costs.broadcast))
        duplicated = cut.duplicated | forced
        paid = float(real @ self._limits)
        bound = certain + cut.bound_s - paid - _ROUNDING * (certain + cut.bound_s + paid)
        excess = (self._use @ duplicated - self._limits) / self._use_unit
        return bound, Line(duplicated, self._graph.cost(self._costs, duplicated) / self._cost_unit, excess)


def _half(part: Part, node: int, forced: bool) -> Part:
    """The part in which an operator is duplicated for sure, or certainly not."""
    there = np.arange(len(part.forced)) == node
    return Part(part.forced | there, part.forbidden) if forced else Part(part.forced, part.forbidden | there)


def _best_prices(lines: list[Line]) -> tuple[float, Floats]:
    """The prices at which the least value of the lines is largest, and that value.

    At least one of the lines must take too much and one must not.
    """
    cost, excess = np.array([each.cost for each in lines]), np.array([each.excess for each in lines])
    if excess.shape[1] == 1:
        over = excess[:, 0] > 0
        slopes = excess[over] - excess[~over].T
        prices = np.maximum(0.0, (cost[~over] - cost[over][:, None]) / slopes)
        values = cost[~over] + prices * excess[~over].T
        best = np.unravel_index(values.argmin(), values.shape)
        return float(values[best]), prices[best].reshape(1)
    budgets = excess.shape[1]
    answer = linprog(
        np.append(np.zeros(budgets), -1.0),
        A_ub=np.column_stack((-excess, np.ones(len(lines)))),
        b_ub=cost,
        bounds=[*[(0, None)] * budgets, (None, None)],
        method="highs",
    )
    return -float(answer.fun), np.maximum(0.0, answer.x[:-1])
