r"""Lower bounds for strategy selection: messages along edges, and prices of memory.

With prices :math:`\lambda_t \ge 0` of the rows of memory,

.. math:: \min_s \sum_i c_i(s_i) + \sum_{ij} C_{ij}(s_i, s_j) + \sum_t \lambda_t \Bigl(\sum_i u_{it}(s_i) - U_t\Bigr)

is no more than the optimum; and for any messages :math:`m_{e \to i}` it is no less than

.. math:: \sum_i \min_a \Bigl[c_i(a) + \sum_t \lambda_t u_{it}(a) + \sum_{e \ni i} m_{e \to i}(a)\Bigr]
   + \sum_{e = ij} \min_{a, b} \bigl[C_{ij}(a, b) - m_{e \to i}(a) - m_{e \to j}(b)\bigr] - \sum_t \lambda_t U_t .

The best messages and prices give the value of the linear relaxation over the local polytope. Messages are improved by
sequential passes over the nodes, which never lower the bound (Kolmogorov's TRW-S in the form of Kolmogorov's SRMP).
Prices follow the choice that messages suggest: if it exceeds limits, the price rises in the row where it does so the
most, by a part of the bound over the excess; if it does not, all prices fall. The part shrinks from round to round
unless the bound gains much, and is large again after restarts; where the bound is far below the best, prices go half
the way back to those of the best instead. What rounding may have added is subtracted from bounds; whole costs have
whole bounds.

References
----------
V. Kolmogorov, "Convergent tree-reweighted message passing for energy minimization", IEEE TPAMI 28(10), 2006; "A new
look at reweighted message passing", IEEE TPAMI 37(5), 2015. The rule for prices, a subgradient method on the
row that is worst, is ours.
"""

from dataclasses import dataclass
from math import ceil, fsum, inf

import numpy as np

from ddlopt.frontier.deployment.strategies.kernels.messages import (
    UNIT,
    Graph,
    Messages,
    decode,
    fringe_of,
    least_costs,
    least_entries,
    least_with,
    sweep,
)
from ddlopt.models.deployment.strategies.core import Core
from ddlopt.models.deployment.strategies.ragged import Floats, Ints, offsets

_WHOLE = 1e-6
"""A bound this little above a whole number is rounded down, relative to itself or absolutely: a matter of caution."""


@dataclass(frozen=True)
class Effort:
    """What a search spends, and why so much."""

    first_step: float = 0.1
    """Of the price of the most exceeded row, as a part of the bound."""
    least_step: float = 3e-4
    """The same at least: smaller steps gain no more than the gap that is asked for."""
    shrinks: tuple[float, ...] = (0.92, 0.97, 0.98)
    """What steps are multiplied by in every round, in turn from restart to restart."""
    success: float = 5e-3
    """Gain of the bound in a round, relative to it, after which the step does not shrink."""
    far: float = 0.1
    """A bound this far from the best one, relative to it, sends prices half the way back to the best ones."""
    least_excess: float = 0.1
    """What an excess counts at least, as a part of the limit: a tiny one would make a huge step."""


_EFFORT = Effort()


def graph_of(core: Core) -> Graph:
    """The core as kernels take it."""
    at, counts = offsets(core.degree), core.counts
    around = (np.argsort(core.edges.ravel(), kind="stable") // 2).astype(np.int64)
    return Graph(
        core.start,
        core.edges,
        core.table_start,
        core.table,
        at,
        around,
        offsets(counts[core.edges[:, 0]]),
        offsets(counts[core.edges[:, 1]]),
        fringe_of(core.size, core.edges, at, around),
    )


class Dual:
    """Messages and prices, and the best bound so far.

    Parameters
    ----------
    core : Core
    """

    def __init__(self, core: Core) -> None:
        self.core = core
        self.graph = graph_of(core)
        self.messages = Messages(np.zeros(self.graph.first_start[-1]), np.zeros(self.graph.second_start[-1]))
        self.prices: Floats = np.zeros(len(core.memory.limit))
        self.best = -inf
        """The best bound so far, certified; not rounded up."""
        self.best_prices = self.prices
        self._width = int(core.counts.max())
        memory = core.memory
        self._items = np.bincount(memory.node, minlength=core.size)
        self._step, self._restarts = _EFFORT.first_step, 0
        self._found = self._reached = -inf
        self.cost: Floats = core.cost

    def set_prices(self, prices: Floats) -> None:
        """Take prices, as multiples of so small a unit that sums of them are exact."""
        self.prices = grained(prices)
        self.cost = priced(self.core, self.prices)

    def sweep(self, times: int = 1) -> None:
        """Pass messages forth and back."""
        for _ in range(times):
            sweep(self.graph, self.cost, self.messages, True, self._width)
            sweep(self.graph, self.cost, self.messages, False, self._width)

    def bound(self) -> float:
        """The bound at the present messages and prices, certified; the best is noted."""
        least, joint, node_error, edge_error = self._least()
        paid = self.prices * self.core.memory.limit
        error = float(node_error.sum() + edge_error.sum()) + 2 * UNIT * float(paid.sum())
        found = float(fsum(least) + fsum(joint) - fsum(paid) - 2 * error)
        self._found = found
        if found > self.best:
            self.best, self.best_prices = found, self.prices
        return found

    def _least(self) -> tuple[Floats, Floats, Floats, Floats]:
        """Least costs of nodes (n,), least entries of edges (m,), and what rounding may change each of them by."""
        size, edges = self.core.size, len(self.core.edges)
        least, node_error, joint, edge_error = np.empty(size), np.empty(size), np.empty(edges), np.empty(edges)
        least_costs(self.graph, self.cost, self.messages, self._width, self._items, least, node_error)
        least_entries(self.graph, self.messages, joint, edge_error)
        return least, joint, node_error, edge_error

    @property
    def proven(self) -> float:
        """The best bound; whole where costs are."""
        return rounded_up(self.best) if self.core.whole else self.best

    def decoded(self) -> Ints:
        """(n,) places chosen node by node as the messages have it."""
        chosen = np.zeros(self.core.size, dtype=np.int64)
        decode(self.graph, self.cost, self.messages, self._width, chosen)
        return chosen

    def rises(self) -> tuple[float, Floats, Floats]:
        """The present bound, and by how much it is certain to rise with each strategy (k,) and with each pair."""
        excess, pairs = np.empty(len(self.core.cost)), np.empty(len(self.core.table))
        _, _, node_error, edge_error = self._least()
        least_with(self.graph, self.cost, self.messages, self._width, node_error, edge_error, excess, pairs)
        return self.bound(), excess, pairs

    @property
    def settled(self) -> bool:
        """Whether prices take the least steps."""
        return self._step <= _EFFORT.least_step

    def restart(self) -> None:
        """Go back to the best prices, and take large steps from there again."""
        self._step, self._restarts = _EFFORT.first_step / 2, self._restarts + 1
        self.set_prices(self.best_prices)

    def next_prices(self, excess: Floats) -> None:
        """Change prices by what the choice that is best at the present ones uses above the limits, (r,)."""
        if not len(excess):
            return
        worst = int(np.argmax(excess))
        if self._found < self.best - _EFFORT.far * abs(self.best):
            prices = (self.prices + self.best_prices) / 2
        elif excess[worst] > 0:
            prices = self.prices.copy()
            counted = max(float(excess[worst]), _EFFORT.least_excess * float(self.core.memory.limit[worst]))
            prices[worst] += self._step * max(abs(self.best), 1.0) / counted
        else:
            prices = self.prices * (1 - 2 * self._step)
        if self.best <= self._reached + _EFFORT.success * abs(self.best):
            self._step = max(_EFFORT.least_step, _EFFORT.shrinks[self._restarts % len(_EFFORT.shrinks)] * self._step)
        self._reached = self.best
        self.set_prices(prices)


def grained(prices: Floats) -> Floats:
    """Prices as multiples of so small a unit that sums of them are exact."""
    total = float(prices.sum())
    if not total > 0:
        return prices
    grain = 2.0 ** (np.floor(np.log2(total)) - 50)
    found: Floats = np.floor(prices / grain) * grain
    return found


def rounded_up(bound: float) -> float:
    """The least whole number that is not below the bound, with caution; for whole objectives."""
    return bound if not np.isfinite(bound) else float(ceil(bound - max(_WHOLE, _WHOLE**2 * abs(bound))))


def priced(core: Core, prices: Floats) -> Floats:
    """(k,) costs of strategies together with what their memory costs at (r,) prices of its rows."""
    memory = core.memory
    item = np.repeat(np.arange(len(memory.node)), np.diff(memory.start))
    place = core.start[memory.node[item]] + np.arange(len(item)) - memory.start[item]
    before = np.concatenate(([0.0], np.cumsum(prices)))
    price = before[memory.high] - before[memory.low]
    return core.cost + np.bincount(place, weights=price[item] * memory.use, minlength=len(core.cost))
