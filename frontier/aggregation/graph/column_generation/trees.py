"""Column generation over the aggregation trees of jobs."""

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
import pyomo.environ as pyo

from ddlopt.frontier.aggregation.graph.column_generation.master import Floats, Ints, Master, Prices
from ddlopt.frontier.aggregation.graph.negotiation import GraphNegotiation
from ddlopt.frontier.aggregation.graph.pricing import MOST_PAIRS, Pricing, Tree, tree_of
from ddlopt.frontier.engines.columns import Priced, Smoothing
from ddlopt.models.aggregation.graph.bounds import graph_bound
from ddlopt.models.aggregation.graph.evaluate import evaluate_graph
from ddlopt.models.aggregation.graph.instance import AggregationTrees, GraphInstance
from ddlopt.models.aggregation.graph.network import job_network, time_unit_s
from ddlopt.models.errors import InfeasibleError, NoSolutionError
from ddlopt.models.linear import linear
from ddlopt.models.sizes import LARGEST_COUNT
from ddlopt.models.tolerances import BOUND_MARGIN, OBJECTIVE_TOL
from ddlopt.solvers.aggregation.graph.search import GraphSearch
from ddlopt.solvers.backends.highs import Highs
from ddlopt.solvers.certify import MethodOutput
from ddlopt.solvers.contracts import Limits
from ddlopt.solvers.heuristic import CertifiedMethod, Clock


@dataclass(frozen=True)
class Effort:
    """What a search spends, and why so much."""

    even: float = 1e-4
    """Part of the prices that all arcs have in equal shares, so that routes are short."""
    smoothing: float = 0.4
    """Part of the prices of the best bound in those asked for, beside the prices of the last linear program."""
    finish: float = 0.25
    """Part of the time that is left for the integer program over trees found."""
    rounds: int = 400
    """Of pricing at one target: the tail of column generation gains little in a round."""
    search_part: float = 0.2
    """Part of the time that is left for each search."""
    negotiation_part: float = 0.5
    """The same for each negotiation, which finds more where budgets are tight."""
    renegotiation_part: float = 0.4
    """The same for each with other numbers in the end."""
    tries: int = 3
    """Searches with other random numbers in the end: what three do not find, more seldom do."""


_EFFORT = Effort()

_SEARCH = (2000, 60, 1), (20_000, 60, 2)
"""How long the searches go on before and after; see :meth:`_Run.run_heuristics`."""


@dataclass(frozen=True)
class GraphTrees(CertifiedMethod, uses=("threads", "seed", "start")):
    r"""Trees of jobs are generated, then chosen from.

    Let every job j take one tree p, with :math:`m_{pa}` messages on arc a, :math:`n_{pv}` that end in switch v and
    :math:`b_{pv} = 1` if that aggregates. In the linear relaxation

    .. math::
        \min\ T: \quad \textstyle\sum_p x_{jp} = 1, \qquad
        \sum_{jp} g_j m_{pa} x_{jp} / c_a \le T, \qquad \sum_{jp} g_j n_{pv} x_{jp} / r_v \le T, \qquad
        \sum_{jp} s_j b_{pv} x_{jp} \le S_v, \qquad \sum_{jpv} b_{pv} x_{jp} \le B

    (or :math:`\min \sum_{jpa} g_j m_{pa} x_{jp} / c_a`, without T) a tree joins if it is cheap at the prices of these
    rows, :class:`~ddlopt.frontier.aggregation.graph.pricing.Pricing`. At any prices :math:`\pi \ge 0`
    of times with sum one, :math:`\sigma` of slots and :math:`\mu` of aggregators the least costs of all jobs, less
    :math:`\sum_v \sigma_v S_v + \mu B`, are a lower bound (Lagrange), whether or not the linear program is solved.

    *Better than a target* (ours). A tree with messages on one link that alone take as long as a target is in no better
    solution; so trees have fewer that arrive at the server or end behind one link, and the smaller one of
    the bound on these and the target is a bound. Targets are the times of whole messages to one server; the largest
    that holds is found by bisection. Where all gradients have one size, times are whole numbers of messages over some
    bandwidth, and the bound goes up to the next.

    The best of the trees found is an integer program; our searches, which start from it, end the work.

    References
    ----------
    G. Dantzig, P. Wolfe, "Decomposition principle for linear programs", Operations Research 8, 1960. S. Dreyfus,
    R. Wagner, "The Steiner problem in graphs", Networks 1, 1971. P. Wentges, "Weighted Dantzig-Wolfe decomposition for
    linear mixed-integer programming", International Transactions in Operational Research 4, 1997, for prices between.

    Parameters
    ----------
    search : bool
        Whether our search and the negotiation look for solutions, too.
    """

    search: bool = True

    name: ClassVar[str] = "graph-trees"
    covers: ClassVar[type[GraphInstance]] = GraphInstance
    kernels: ClassVar[tuple[str, ...]] = (
        "ddlopt.solvers.aggregation.graph.kernels.messages",
        "ddlopt.solvers.aggregation.graph.kernels.forest",
        "ddlopt.solvers.aggregation.graph.kernels.search",
        "ddlopt.frontier.aggregation.graph.kernels.tree",
        "ddlopt.frontier.aggregation.graph.kernels.capacity",
    )

    def refuses(self, instance: Any) -> str | None:
        """Rates, merging, switches that do not forward, and jobs with too many different places."""
        if instance.goal == "rates" or instance.merging:
            return "it is for utilization and congestion without merging"
        for place, node in enumerate(instance.nodes):
            if node.slots and not node.forwards:
                return f"nodes[{place}] ('{node.name}') has slots and does not forward"
        for j, job in enumerate(instance.jobs):
            pairs = Pricing(instance, job_network(instance, job)).pairs
            if pairs > MOST_PAIRS:
                return f"jobs[{j}] ('{job.name}') would need {pairs} sums, as its workers are in many places"
        return None

    def find(self, instance: GraphInstance, limits: Limits, seed: int, clock: Clock, start: Any) -> MethodOutput:
        """The best trees, and the bound."""
        run = _Run(instance, clock, limits, seed)
        try:
            run.low_s = graph_bound(instance)
        except InfeasibleError as proof:
            raise NoSolutionError(str(proof)) from None
        if isinstance(start, AggregationTrees):
            run.offer(start)
        if self.search:
            run.run_heuristics(limits, _SEARCH[0])
        try:
            while run.shrunk:
                run.bracket()
                if not run.done:
                    run.choose()
                if self.search and not run.done:
                    run.run_heuristics(limits, _SEARCH[1])
                    run.renegotiate(limits)
        finally:
            run.master.close()
        if run.best is None:
            raise NoSolutionError("no trees were found that keep all limits")
        details = {"trees": float(len(run.master.trees)), "rounds": float(run.rounds)}
        return MethodOutput(run.best, details, bound=run.low_s)


class _Run:
    """A solve: best trees and bound so far."""

    def __init__(self, instance: GraphInstance, clock: Clock, limits: Limits, seed: int) -> None:
        self._instance, self._clock, self._limits, self._seed = instance, clock, limits, seed
        self._networks = [job_network(instance, job) for job in instance.jobs]
        self._pricings = [Pricing(instance, network) for network in self._networks]
        self._unit_s = time_unit_s(instance)
        self._congestion = instance.goal == "congestion"
        self.master = Master(instance)
        self.best: AggregationTrees | None = None
        self.high_s, self.low_s = math.inf, 0.0
        self.rounds = 0
        self.shrunk = True
        """Whether there is something new to generate trees for."""
        self._target_s = math.inf
        self._most: list[int] = []
        self._residuals: list[Ints | None] = []
        self._times = self._arc_times()

    def _arc_times(self) -> tuple[Floats, Floats]:
        """Of one byte on each arc, and in the aggregators of each switch, in units of the instance."""
        links, nodes = self._instance.links, self._instance.nodes
        arcs = np.repeat([1 / link.bandwidth_bytes_per_s for link in links], 2) / self._unit_s
        rates = [node.aggregation_bytes_per_s for node in nodes]
        return arcs, np.array([0.0 if rate is None else 1 / rate for rate in rates]) / self._unit_s

    @property
    def done(self) -> bool:
        """Whether the gap asked for is reached, or the time is up."""
        return self.low_s >= self.high_s * (1 - self._limits.gap * 0.9) or self._clock.expired

    def offer(self, answer: AggregationTrees) -> None:
        """Note an answer, if it is better than the best."""
        found = evaluate_graph(self._instance, answer)
        if not found.feasible or found.objective is None:
            return
        for j, routes in enumerate(answer.trees):
            self.master.add(j, tree_of(routes, self._instance.jobs[j].server))
        if float(found.objective) < self.high_s:
            self.best, self.high_s, self.shrunk = answer, float(found.objective), True
            self._report()

    def run_heuristics(self, limits: Limits, effort: tuple[int, int, int]) -> None:
        """Let the searches go on from the best; ``effort``: rounds of one, sweeps and rounds of the other."""
        rounds, sweeps, again = effort
        self._try(GraphSearch(rounds), limits, _EFFORT.search_part, self._seed)
        self._try(GraphNegotiation(sweeps, again, self.low_s), limits, _EFFORT.negotiation_part, self._seed)

    def renegotiate(self, limits: Limits) -> None:
        """Negotiate with other random numbers, as long as nothing better is found."""
        for number in range(1, _EFFORT.tries + 1):
            if self._congestion and not self.shrunk:
                method = GraphNegotiation(known_s=self.low_s)
                self._try(method, limits, _EFFORT.renegotiation_part, self._seed + number)

    def _try(self, method: CertifiedMethod, limits: Limits, part: float, seed: int) -> None:
        if self.done or method.refuses(self._instance) is not None:
            return
        share = None if limits.time_s is None else max(0.05, part * self._clock.left_s)
        found = method.solve(self._instance, replace(limits, time_s=share), seed, start=self.best)
        if isinstance(found.solution, AggregationTrees):
            self.offer(found.solution)

    def _report(self) -> None:
        self._clock.report(self.high_s if self.best else None, self.low_s)

    def bracket(self) -> None:
        """Raise the bound to the largest time of messages to one server that must be taken, or beyond it."""
        self.shrunk = False
        if not self._congestion:
            self.generate(math.inf)
            return
        times = sorted(time for time in self._server_times() if self.low_s < time < self.high_s)
        times.append(self.high_s)
        low, high = -1, len(times)
        while high - low > 1 and not self.done and not self._late:
            # The best known first: what is generated for it is what a better one may be made of.
            middle = high - 1 if high == len(times) else (low + high) // 2
            self.generate(times[middle])
            low, high = (middle, high) if self.low_s >= times[middle] * (1 - OBJECTIVE_TOL) else (low, middle)

    def _server_times(self) -> set[float]:
        found = set()
        for job in self._instance.jobs:
            width = self._width(job.server)
            found |= {number * job.gradient_bytes / width for number in range(1, len(job.workers) + 1)}
        return found

    def _width(self, node: int) -> float:
        return sum(link.bandwidth_bytes_per_s for link in self._instance.links if node in link.ends)

    def generate(self, target_s: float) -> None:
        """Generate trees until the linear program of what is better than a target is solved, or bounded by it."""
        rounds = 0
        self._target_s = target_s
        self._most = [self._arriving(j, target_s) for j in range(len(self._instance.jobs))]
        self._residuals = [self._residual(j) for j in range(len(self._instance.jobs))]
        self.master.allow(self._within)
        smoothing = Smoothing(_EFFORT.smoothing)

        def oracle(flat: Floats) -> Priced:
            priced = self._price(Prices.of(flat, len(self._instance.arcs)))
            if priced.bound > smoothing.bound:
                self._raise(min(priced.bound, target_s / self._unit_s))
            return priced

        while (
            not self.done and rounds < _EFFORT.rounds and not self._late and smoothing.bound * self._unit_s < target_s
        ):
            value, prices = self.master.solve()
            fresh = smoothing.ask(self._normal(prices).flat, oracle)
            rounds += 1
            if not fresh or value - smoothing.bound <= OBJECTIVE_TOL * abs(value):
                break
        self.rounds += rounds

    @property
    def _late(self) -> bool:
        return self._limits.time_s is not None and self._clock.left_s < _EFFORT.finish * self._limits.time_s

    def _arriving(self, j: int, target_s: float) -> int:
        """Messages of a job that may arrive at its server, in an answer better than the target."""
        instance, job = self._instance, self._instance.jobs[j]
        most = len(job.workers) if instance.connections is None else min(len(job.workers), instance.connections)
        if math.isinf(target_s):
            return most
        return min(most, math.ceil(target_s * self._width(job.server) / job.gradient_bytes * (1 - BOUND_MARGIN)) - 1)

    def _residual(self, j: int) -> Ints | None:
        """Messages of a job that each arc may have, in an answer better than the target; None if that is no limit."""
        if not self._congestion or math.isinf(self._target_s):
            return None
        alone = self._target_s / (self._instance.jobs[j].gradient_bytes * self._times[0] * self._unit_s)
        return (np.ceil(np.minimum(alone, LARGEST_COUNT) * (1 - BOUND_MARGIN)) - 1).astype(np.int64)

    def _within(self, j: int, tree: Tree) -> bool:
        """Whether no more messages arrive, and end behind each arc into a switch, than may."""
        server, residual = self._instance.jobs[j].server, self._residuals[j]
        if tree.arriving(server) > self._most[j]:
            return False
        last = Counter((route[-2], route[-1]) for route in tree.routes if route[-1] != server)
        fixed = set(self._networks[j].sent)
        return residual is None or all(
            n <= residual[self._instance.arc_of[arc]] for arc, n in last.items() if arc not in fixed
        )

    def _normal(self, prices: Prices) -> Prices:
        """Prices of times with sum one; all arcs have some."""
        if not self._congestion:
            return Prices(np.ones_like(prices.arcs), np.zeros_like(prices.switches), prices.slots, prices.aggregator)
        total = float(prices.arcs.sum() + prices.switches.sum())
        factor = (1 - _EFFORT.even) / total if total > 0 else 0.0
        arcs = factor * prices.arcs + (_EFFORT.even if total > 0 else 1.0) / len(prices.arcs)
        return Prices(arcs, factor * prices.switches, prices.slots, prices.aggregator)

    def _price(self, prices: Prices) -> Priced:
        """The bound at the prices, in units of the instance, and how many new trees joined."""
        instance = self._instance
        slots = np.array([node.slots for node in instance.nodes])
        budget = 0.0 if instance.aggregators is None else prices.aggregator * instance.aggregators
        paid = float(prices.slots @ slots) + budget
        total, fresh = [-paid], 0
        for j, (pricing, job) in enumerate(zip(self._pricings, instance.jobs, strict=True)):
            cost = job.gradient_bytes * prices.arcs * self._times[0]
            ending = job.gradient_bytes * prices.switches * self._times[1]
            opening = job.slots * prices.slots + prices.aggregator
            residual = self._residuals[j]
            least, tree = pricing.cheapest(cost, opening, ending, self._most[j], residual)
            total.append(least + sum(float(cost[instance.arc_of[arc]]) for arc in pricing.network.sent))
            if tree is not None:
                fresh += self.master.add(j, tree)
                if residual is not None and self._peak_s(j, tree) >= self._target_s:
                    fresh += self.master.add(j, pricing.spread(tree, cost, residual))
        bound = math.fsum(total) if all(map(math.isfinite, total)) else math.inf
        margin = BOUND_MARGIN * (paid + math.fsum(map(abs, total[1:]))) if math.isfinite(bound) else 0.0
        return Priced(bound - margin, fresh)

    def _raise(self, bound: float) -> None:
        """Note a bound in units of the instance."""
        low_s = bound * self._unit_s
        sizes = {job.gradient_bytes for job in self._instance.jobs}
        if self._congestion and len(sizes) == 1 and math.isfinite(low_s):
            low_s = self._lifted(low_s, next(iter(sizes)))
        if low_s > self.low_s:
            self.low_s = low_s
            self._report()

    def _lifted(self, low_s: float, gradient_bytes: float) -> float:
        """The least time of whole messages on a link or in a switch that is no less."""
        speeds = {link.bandwidth_bytes_per_s for link in self._instance.links}
        speeds |= {n.aggregation_bytes_per_s for n in self._instance.nodes if n.aggregation_bytes_per_s is not None}
        # Wider than the margin of the bound, which may have fallen just below a time that it proves.
        times = [math.ceil(low_s * speed / gradient_bytes * (1 - 1e-7)) * gradient_bytes / speed for speed in speeds]
        return max(low_s, min(times) * (1 - BOUND_MARGIN))

    def _peak_s(self, j: int, tree: Tree) -> float:
        """The longest time that messages of one tree take."""
        rows, values, _ = self.master.rows.column(j, tree)
        jobs, arcs, nodes = self.master.rows.counts
        timed = (rows >= jobs) & (rows < jobs + arcs + nodes)
        return float(values[timed].max()) * self._unit_s

    def choose(self) -> None:
        """The best of the trees found, by an integer program."""
        model, chosen = self._choice()
        warm = self.best is not None
        left = None if self._limits.time_s is None else max(0.1, 0.8 * self._clock.left_s)
        with self._clock.lending_ctrl_c():
            outcome = Highs().solve(model, replace(self._limits, time_s=left), self._seed, warm=warm)
        if outcome.objective is None:
            return
        trees: list[Tree | None] = [None] * len(self._instance.jobs)
        for place, (j, tree) in enumerate(self.master.trees):
            if chosen[place].value is not None and chosen[place].value > 0.5:
                trees[j] = tree
        if all(trees):
            self.offer(self._answer(trees))

    def _answer(self, trees: Sequence[Tree | None]) -> AggregationTrees:
        routes = tuple(tree.routes for tree in trees if tree is not None)
        return AggregationTrees(instance=self._instance.name, trees=routes)

    def _choice(self) -> tuple[pyo.ConcreteModel, pyo.Var]:
        model = pyo.ConcreteModel()
        trees = self.master.trees
        model.chosen = pyo.Var(range(len(trees)), domain=pyo.Binary)
        model.congestion = pyo.Var(domain=pyo.NonNegativeReals)
        jobs, arcs, nodes = self.master.rows.counts
        rows: dict[int, list[tuple[float, Any]]] = {row: [] for row in range(jobs)}
        cost = [(1.0, model.congestion)]
        now = {} if self.best is None else {(j, routes) for j, routes in enumerate(self.best.trees)}
        for place, (j, tree) in enumerate(trees):
            numbers, values, utilization = self.master.rows.column(j, tree)
            for row, value in zip(numbers.tolist(), values.tolist(), strict=True):
                rows.setdefault(row, []).append((value, model.chosen[place]))
            if not self._congestion:
                cost.append((utilization, model.chosen[place]))
            model.chosen[place].set_value(int((j, tree.routes) in now))
        if not self._congestion:
            model.congestion.fix(0.0)

        limits = [1.0] * jobs + [0.0] * (arcs + nodes) + [float(node.slots) for node in self._instance.nodes]
        limits.append(self.master.rows.budget)
        kept = sorted(row for row in rows if self._congestion or not jobs <= row < jobs + arcs + nodes)

        def shared(m: Any, row: int) -> Any:
            if row < jobs:
                return 1, linear(rows[row]), 1
            timed = row < jobs + arcs + nodes
            terms = [*rows[row], (-1.0, m.congestion)] if timed else rows[row]
            return (None, linear(terms), limits[row]) if math.isfinite(limits[row]) else pyo.Constraint.Skip

        model.shared = pyo.Constraint(kept, rule=shared)
        model.objective = pyo.Objective(expr=linear(cost))
        return model, model.chosen
