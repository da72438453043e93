r"""Lower bounds for strategy selection: messages along edges, and prices of memory.

With prices :math:`\lambda_t \ge 0` of the rows of memory,

.. math:: \min_s \sum_i c_i(s_i) + \sum_{ij} C_{ij}(s_i, s_j) + \sum_t \lambda_t \Bigl(\sum_i u_{it}(s_i) - U_t\Bigr)

is no more than the optimum; and for any messages :math:`m_{e \to i}` it is no less than

.. math:: \sum_i \min_a \Bigl[c_i(a) + \sum_t \lambda_t u_{it}(a) + \sum_{e \ni i} m_{e \to i}(a)\Bigr]
   + \sum_{e = ij} \min_{a, b} \bigl[C_{ij}(a, b) - m_{e \to i}(a) - m_{e \to j}(b)\bigr] - \sum_t \lambda_t U_t .

The best messages and prices give the value of the linear relaxation over the local polytope. Messages are improved by
sequential passes over the nodes, which never lower the bound (Kolmogorov's TRW-S in the form of Kolmogorov's SRMP).
Prices are found by a level method: every choice that was met, allowed by memory or not, is a linear function of the
prices that the bound cannot exceed, and the next prices are those closest to the best so far at which all these
functions leave room for a part of what is missing. Only rows in which some choice exceeds its limit the most have a
price. What rounding may have added is subtracted; whole costs have whole bounds.

References
----------
V. Kolmogorov, "Convergent tree-reweighted message passing for energy minimization", IEEE TPAMI 28(10), 2006; "A new
look at reweighted message passing", IEEE TPAMI 37(5), 2015. C. Lemaréchal, A. Nemirovskii, Y. Nesterov, "New variants
of bundle methods", Mathematical Programming 69, 1995. Their combination here is ours.
"""

from math import ceil, fsum, inf

import numpy as np
from scipy.optimize import linprog

from ddlopt.models.deployment.strategy_core import Core
from ddlopt.models.deployment.strategy_data import Floats, Ints
from ddlopt.models.deployment.strategy_messages import (
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

_WHOLE = 1e-6
"""A bound this little above a whole number is rounded down, relative to itself or absolutely: a matter of caution."""
_LEVEL = 0.3
"""Part of what is missing that the next prices aim at."""
_LARGEST_GAIN = 0.1
"""The same as a part of the bound."""
_MUCH = 2e-3
"""A gain of messages, as a part of the bound, for which prices stay as they are."""
_MOST_STAYS = 4
_LEAST_STEP = 1e-3
_MOST_CUTS = 150


def graph_of(core: Core) -> Graph:
    """The core as kernels take it."""
    at, counts = _offsets(core.degree), core.counts
    around = (np.argsort(core.edges.ravel(), kind="stable") // 2).astype(np.int64)
    return Graph(
        core.start,
        core.edges,
        core.table_start,
        core.table,
        at,
        around,
        _offsets(counts[core.edges[:, 0]]),
        _offsets(counts[core.edges[:, 1]]),
        fringe_of(core.size, core.edges, at, around),
    )


class Dual:
    """Messages and prices, the best bound so far, and what choices that were met say about prices.

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
        self._item = np.repeat(np.arange(len(memory.node)), np.diff(memory.start))
        self._place = core.start[memory.node[self._item]] + np.arange(len(self._item)) - memory.start[self._item]
        self._priced_rows: list[int] = []
        self._cuts: list[tuple[float, Floats]] = []
        self._found = self._before = -inf
        self._best_messages = self.messages
        self._step, self._stayed = 1.0, 0
        self.cost: Floats = core.cost

    def set_prices(self, prices: Floats) -> None:
        """Take prices, as multiples of so small a unit that sums of them are exact."""
        total = float(prices.sum())
        if total > 0:
            grain = 2.0 ** (np.floor(np.log2(total)) - 50)
            prices = np.floor(prices / grain) * grain
        self.prices = prices
        self.cost = self.priced(prices)

    def priced(self, prices: Floats) -> Floats:
        """(k,) costs of strategies together with what their memory costs."""
        memory = self.core.memory
        before = np.concatenate(([0.0], np.cumsum(prices)))
        price = before[memory.high] - before[memory.low]
        paid = np.bincount(self._place, weights=price[self._item] * memory.use, minlength=len(self.core.cost))
        return self.core.cost + paid

    def sweep(self, times: int = 1) -> None:
        """Pass messages forth and back."""
        for _ in range(times):
            sweep(self.graph, self.cost, self.messages, True, self._width)
            sweep(self.graph, self.cost, self.messages, False, self._width)

    def bound(self) -> float:
        """The bound at the present messages and prices, certified; the best is noted."""
        core = self.core
        best, least, joint = np.empty(core.size, np.int64), np.empty(core.size), np.empty(len(core.edges))
        error = least_costs(self.graph, self.cost, self.messages, self._width, best, least)
        error += least_entries(self.graph, self.messages, joint)
        paid = self.prices * core.memory.limit
        error += 2 * UNIT * float(paid.sum()) + 4 * UNIT * len(self._item) * float(
            (self.cost - core.cost).max(initial=0.0)
        )
        found = fsum(least) + fsum(joint) - fsum(paid) - 2 * error
        self._before, self._found = self._found, found
        if found > self.best:
            self.best, self.best_prices = found, self.prices
            self._best_messages = Messages(self.messages.to_first.copy(), self.messages.to_second.copy())
        return found

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
        """The present bound, and by how much at least it rises with each strategy (k,) and with each pair."""
        excess, pairs = np.empty(len(self.core.cost)), np.empty(len(self.core.table))
        least_with(self.graph, self.cost, self.messages, self._width, excess, pairs)
        return self.bound(), excess, pairs

    def learn(self, cost: float, excess: Floats) -> None:
        """Note a choice: its cost, and what it uses above the limit in each row."""
        if not (np.isfinite(cost) and len(excess)):
            return
        worst = int(np.argmax(excess))
        if excess[worst] > 0 and worst not in self._priced_rows:
            self._priced_rows.append(worst)
        self._cuts.append((cost, excess))
        del self._cuts[:-_MOST_CUTS]

    def next_prices(self) -> None:
        """Go on at these prices while messages still gain much; otherwise take those of the level method."""
        rows = self._priced_rows
        if not rows or not self._cuts:
            return
        gain = (self._found - self._before) / max(abs(self.best), 1e-300)
        if self._found >= self.best:
            self._stayed = 0
            if gain > _MUCH and np.isfinite(gain):
                return
            self._step = min(1.0, 1.5 * self._step)
        else:
            self._stayed += 1
            if gain > _MUCH and self._stayed <= _MOST_STAYS and np.isfinite(gain):
                return
            self._stayed = 0
            self._step = max(_LEAST_STEP, 0.5 * self._step)
            self.messages.to_first[:] = self._best_messages.to_first
            self.messages.to_second[:] = self._best_messages.to_second
        self._take_level(rows)
        # What comes next is compared with nothing.
        self._found = -inf

    def _take_level(self, rows: list[int]) -> None:
        slopes = np.array([excess[rows] for _, excess in self._cuts])
        costs = np.array([cost for cost, _ in self._cuts])
        scale = max(1.0, float(np.abs(costs).max()))
        unit = max(float(np.abs(slopes).max()), 1e-300)
        slopes, costs = slopes / unit, costs / scale
        here, best = self.best_prices[rows] * unit / scale, self.best / scale
        top = linprog(
            np.append(np.zeros(len(rows)), -1.0),
            A_ub=np.column_stack((-slopes, np.ones(len(costs)))),
            b_ub=costs,
            bounds=[(0, None)] * len(rows) + [(None, 10.0)],
        )
        if top.x is None:
            self.set_prices(self.best_prices)
            return
        level = best + self._step * min(_LEVEL * max(0.0, -top.fun - best), _LARGEST_GAIN * abs(best))
        count = len(rows)
        near = linprog(
            np.ones(2 * count),
            A_ub=np.column_stack((-slopes, slopes)),
            b_ub=costs + slopes @ here - level,
            bounds=[(0, None)] * count + [(0, each) for each in here],
        )
        prices = np.zeros(len(self.prices))
        if near.x is None:
            prices[:] = self.best_prices
        else:
            prices[rows] = np.maximum(0.0, here + near.x[:count] - near.x[count:]) * scale / unit
        self.set_prices(prices)


def rounded_up(bound: float) -> float:
    """The least whole number that is not below the bound, with caution; for whole objectives."""
    return bound if not np.isfinite(bound) else float(ceil(bound - max(_WHOLE, _WHOLE**2 * abs(bound))))


def _offsets(sizes: Ints) -> Ints:
    offsets = np.zeros(len(sizes) + 1, dtype=np.int64)
    np.cumsum(sizes, out=offsets[1:])
    return offsets
