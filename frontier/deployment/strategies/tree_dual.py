r"""The bound by prices of memory alone, with the graph solved exactly at each of them.

With prices :math:`\lambda_t \ge 0` of the rows of memory

.. math:: L(\lambda) = \min_s \sum_i c_i(s_i) + \sum_{ij} C_{ij}(s_i, s_j)
   + \sum_t \lambda_t \Bigl(\sum_i u_{it}(s_i) - U_t\Bigr)

is no more than the optimum. On graphs of small width a :class:`.JunctionTree` computes it, not only a relaxation as
messages along edges do, and min-marginals say how far it rises with each strategy and each pair. L is concave, and
every choice met bounds it from above by what is linear in the prices: *cutting planes*, whose highest point is where to
look next, every other time halfway back to the best prices.

References
----------
J. E. Kelley, "The cutting-plane method for solving convex programs", J. SIAM 8(4), 1960; W. Ben-Ameur, J. Neto,
"Acceleration of cutting-plane and column generation algorithms: applications to network design", Networks 49(1), 2007,
for points between.
"""

from collections.abc import Callable
from math import fsum, inf, isfinite

import numpy as np
from scipy.optimize import linprog

from ddlopt.frontier.deployment.strategies.dual import grained, priced, rounded_up
from ddlopt.frontier.deployment.strategies.junction_tree import JunctionTree
from ddlopt.frontier.deployment.strategies.kernels.messages import UNIT
from ddlopt.models.deployment.strategies.core import Core
from ddlopt.models.deployment.strategies.ragged import Floats, Ints

ROUNDS = 300
"""Of an ascent."""
_CLOSE = 1e-5
"""Of the planes' highest point and the best bound, relative to it, where the ascent ends."""
_BACK = 0.7
"""How far every other point is moved from the highest one to the best prices."""


class TreeDual:
    """Prices of memory and the bound that they give.

    Parameters
    ----------
    tree : JunctionTree
    """

    def __init__(self, tree: JunctionTree) -> None:
        self.tree, self.core = tree, tree.core
        self.best_prices: Floats = np.zeros(len(self.core.memory.limit))
        self.best = -inf
        """The best bound so far, certified; not rounded up."""

    @property
    def proven(self) -> float:
        """The best bound; whole where costs are."""
        return rounded_up(self.best) if self.core.whole else self.best

    def ascend(
        self,
        offer: Callable[[Ints], object],
        cost: Callable[[], float],
        stop: Callable[[], bool],
        rounds: int = ROUNDS,
    ) -> None:
        """Better prices by cutting planes.

        Parameters
        ----------
        offer : callable
            Is given every choice that is best at some prices, (n,) places.
        cost : callable
            Of the best choice so far; infinite where there is none. A bound as high ends the ascent.
        stop : callable
            Whether time is up.
        rounds : int
            After which the ascent ends in any case.
        """
        core = self.core
        costs, excesses = [], []
        prices = self.best_prices
        for step in range(rounds):
            value, chosen = self.tree.solve(priced(core, prices))
            self._note(value, prices)
            if not isfinite(value):
                return
            offer(chosen)
            if not len(prices):
                return
            costs.append(core.cost_of(chosen))
            excesses.append(core.excess_of(chosen))
            if stop() or self.proven >= cost():
                return
            highest, peak = _highest(core, np.array(costs), np.array(excesses), min(cost(), 2 * abs(self.best) + 1))
            if highest - self.best <= _CLOSE * abs(self.best):
                return
            prices = grained(peak if step % 2 else _BACK * self.best_prices + (1 - _BACK) * peak)

    def rises(self) -> tuple[float, Floats, Floats]:
        """The bound at the best prices, and by how much it is certain to rise with each strategy and each pair."""
        value, strategies, pairs = self.tree.marginals(priced(self.core, self.best_prices))
        self._note(value, self.best_prices)
        # Sums of numbers that are not negative: an entry is off by this part of itself and of the value.
        error = self._error(value)
        part = 1 - self._terms * UNIT
        bound = value - self._paid(self.best_prices) - error
        return bound, np.maximum(0.0, strategies * part - value - error), np.maximum(0.0, pairs * part - value - error)

    def _note(self, value: float, prices: Floats) -> None:
        found = value if value == inf else value - self._paid(prices) - self._error(value)
        if found > self.best:
            self.best, self.best_prices = found, prices

    def _paid(self, prices: Floats) -> float:
        return fsum(prices * self.core.memory.limit) * (1 + 2 * UNIT)

    @property
    def _terms(self) -> int:
        return 16 * (self.core.size + len(self.core.edges) + len(self.core.memory.node) + 8)

    def _error(self, value: float) -> float:
        """What rounding may change a least cost of that size by."""
        return self._terms * UNIT * abs(value)


def _highest(core: Core, costs: Floats, excesses: Floats, cap: float) -> tuple[float, Floats]:
    """Highest point below all planes, costs (k,) + excesses (k, r) times prices, and below a cap; and its prices.

    It is -∞ where HiGHS gives up, which ends the ascent.
    """
    unit = max(1.0, abs(cap))
    sizes = np.maximum(core.memory.limit, 1.0)
    rows = np.column_stack((np.ones(len(costs)), -excesses / sizes))
    objective = np.zeros(rows.shape[1])
    objective[0] = -1.0
    bounds = [(None, cap / unit), *[(0, None)] * len(sizes)]
    answer = linprog(objective, A_ub=rows, b_ub=costs / unit, bounds=bounds, method="highs")
    if answer.status != 0:
        return -inf, sizes
    peak: Floats = answer.x[1:] / sizes * unit
    return float(answer.x[0]) * unit, np.maximum(peak, 0.0)
