"""A linear relaxation of the choice of trees: shares of arcs and of aggregators, and a bound."""

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.optimize import linprog
from scipy.sparse import csr_array

from ddlopt.models.aggregation.graph.bounds import may_pass
from ddlopt.models.aggregation.graph.instance import GraphInstance, GraphJob
from ddlopt.models.errors import SolverError
from ddlopt.models.tolerances import BOUND_MARGIN

Shares = dict[tuple[int, int], dict[int, float]]


@dataclass(frozen=True)
class Relaxed:
    """Optimum of the relaxation.

    Parameters
    ----------
    flow : mapping
        Of each job and each node where messages of its workers come from, shares of arcs by their number.
    aggregates : mapping
        Of each job and node, by how much it aggregates.
    bound : float or None
        On the objective of every answer; None where the goal is rates, for which this is a guide only.
    """

    flow: Shares
    aggregates: dict[tuple[int, int], float]
    bound: float | None


class Program:
    r"""Columns and rows, in units of the longest time of a message.

    .. math::

       \min\ t \text{ or } \sum_{ja} \tfrac{g_j}{c_a} x_{ja}: \quad
       & \textstyle\sum_{a \in out(v)} x_{ja} - \sum_{a \in in(v)} x_{ja} = [v \in W_j] - o_{jv},\
         o_{jv} \le (|W_j| - 1)\, y_{jv} \\
       & f_{jw} \text{ is a unit flow from } w \text{ to the server},\ f_{jwa} \le x_{ja} \\
       & \textstyle\sum_j s_j y_{jv} \le S_v,\ \sum_{jv} y_{jv} \le B,\ \sum_{a \in in(server)} x_{ja} \le C \\
       & \textstyle\sum_j g_j x_{ja} / c_a \le t,\ \sum_j g_j n_{jv} / r_v \le t

    with messages x, messages o that aggregation removes, aggregators y, and n = o + y messages that are added up at a
    switch (o at a worker). With merging, at most one message of a job leaves a node. Workers on the same switch with no
    other link have one flow.

    References
    ----------
    The integer program is that of the re-implementation owlright/graph-match, with flows of each worker for those of
    each job, which is the disaggregated form of its rows and tighter.
    """

    def __init__(self, instance: GraphInstance) -> None:
        self.instance = instance
        self._cost: list[float] = []
        self._upper: list[float] = []
        self._entries: tuple[list[int], list[int], list[float]] = ([], [], [])
        self._sense: list[bool] = []
        self._right: list[float] = []
        self._size = [1.0 if instance.goal == "rates" else job.gradient_bytes for job in instance.jobs]
        link_s = np.repeat([1 / link.bandwidth_bytes_per_s for link in instance.links], 2)
        self._link_s = link_s
        self.unit_s = float(max(self._size) * link_s.max())
        rates = [node.aggregation_bytes_per_s for node in instance.nodes if node.aggregation_bytes_per_s is not None]
        self._slowest = max([1.0, *(1 / (float(link_s.max()) * rate) for rate in rates)])
        self.flow: dict[tuple[int, int, int], int] = {}
        self.messages: dict[tuple[int, int], int] = {}
        self.removed: dict[tuple[int, int], int] = {}
        self.aggregates: dict[tuple[int, int], int] = {}
        self.longest = -1 if instance.goal == "utilization" else self._column(1.0, math.inf)
        for j, job in enumerate(instance.jobs):
            self._add_job(j, job)
        self._add_shared()

    @property
    def columns(self) -> int:
        """How many there are."""
        return len(self._cost)

    def solve(self, time_s: float) -> Relaxed:
        """Solve it.

        Raises
        ------
        SolverError
            If HiGHS finds no optimum in the time.
        """
        right, equal = np.array(self._right), np.array(self._sense)
        rows, columns, values = self._entries
        matrix = csr_array((values, (rows, columns)), shape=(len(right), len(self._cost)))
        options = {} if time_s == math.inf else {"time_limit": max(0.1, time_s)}
        upper = np.array(self._upper)
        found = linprog(
            self._cost,
            matrix[~equal],
            right[~equal],
            matrix[equal],
            right[equal],
            np.column_stack([np.zeros(len(upper)), upper]),
            "highs",
            options=options,
        )
        if found.status != 0:
            raise SolverError(f"the relaxation of '{self.instance.name}' was not solved: {found.message}")
        if self.longest >= 0:
            # No answer that is worth looking at takes longer, as all messages together take less.
            upper[self.longest] = 2 * sum(len(job.workers) for job in self.instance.jobs) * self._slowest
        # Multipliers of the right sign, with what they leave of each column at its better bound, bound any answer.
        price = np.minimum(found.ineqlin.marginals, 0.0), found.eqlin.marginals
        left = np.array(self._cost) - matrix[~equal].T @ price[0] - matrix[equal].T @ price[1]
        lost = np.minimum(left * upper, 0.0).sum()
        bound = float(right[~equal] @ price[0] + right[equal] @ price[1] + lost) * self.unit_s
        known = self.instance.goal != "rates"
        return Relaxed(
            self._flows(found.x),
            {key: float(found.x[column]) for key, column in self.aggregates.items()},
            max(0.0, bound * (1 - BOUND_MARGIN)) if known else None,
        )

    def _flows(self, values: npt.NDArray[np.float64]) -> Shares:
        flows: Shares = {}
        for (j, start, arc), column in self.flow.items():
            # Where an interior point method ends, zeros are smaller.
            if values[column] > 1e-7:
                flows.setdefault((j, start), {})[arc] = float(values[column])
        return flows

    def _column(self, cost: float, upper: float) -> int:
        self._cost.append(cost)
        self._upper.append(upper)
        return len(self._cost) - 1

    def _row(self, terms: list[tuple[int, float]], right: float, equal: bool = False) -> None:
        rows, columns, values = self._entries
        for column, value in terms:
            rows.append(len(self._right))
            columns.append(column)
            values.append(value)
        self._right.append(right)
        self._sense.append(equal)

    def _time(self, j: int, arc: int) -> float:
        return float(self._size[j] * self._link_s[arc]) / self.unit_s

    def _add_job(self, j: int, job: GraphJob) -> None:
        instance, count = self.instance, len(job.workers)
        arcs = [number for number, _ in may_pass(instance, job)]
        leaving: dict[int, list[int]] = {v: [] for v in range(len(instance.nodes))}
        entering: dict[int, list[int]] = {v: [] for v in leaving}
        for arc in arcs:
            tail, head = instance.arcs[arc]
            leaving[tail].append(arc)
            entering[head].append(arc)
            cost = self._time(j, arc) if instance.goal == "utilization" else 0.0
            self.messages[j, arc] = self._column(cost, count)
        for v, node in enumerate(instance.nodes):
            if v == job.server:
                continue
            terms = [(self.messages[j, arc], 1.0) for arc in leaving[v]]
            if instance.merging and terms:
                self._row(terms, 1.0)
            terms += [(self.messages[j, arc], -1.0) for arc in entering[v]]
            if count > 1 and node.slots >= job.slots and instance.aggregators != 0:
                self.removed[j, v] = self._column(0.0, count - 1)
                self.aggregates[j, v] = self._column(0.0, 1.0)
                self._row([(self.removed[j, v], 1.0), (self.aggregates[j, v], 1.0 - count)], 0.0)
                terms.append((self.removed[j, v], 1.0))
            if terms:
                self._row(terms, float(v in job.workers), equal=True)
        if instance.connections is not None:
            self._row([(self.messages[j, arc], 1.0) for arc in entering[job.server]], instance.connections)
        for start in starts(instance, job):
            self._add_flow(j, job, start, leaving, entering)

    def _add_flow(
        self, j: int, job: GraphJob, start: int, leaving: dict[int, list[int]], entering: dict[int, list[int]]
    ) -> None:
        for arcs in leaving.values():
            for arc in arcs:
                self.flow[j, start, arc] = self._column(0.0, 1.0)
                self._row([(self.flow[j, start, arc], 1.0), (self.messages[j, arc], -1.0)], 0.0)
        for v in leaving:
            terms = [(self.flow[j, start, arc], 1.0) for arc in leaving[v]]
            terms += [(self.flow[j, start, arc], -1.0) for arc in entering[v]]
            if v != job.server and terms:
                self._row(terms, float(v == start), equal=True)

    def _add_shared(self) -> None:
        instance = self.instance
        on_arc: dict[int, list[tuple[int, float]]] = {}
        for (j, arc), column in self.messages.items():
            on_arc.setdefault(arc, []).append((column, self._time(j, arc)))
        at_node: dict[int, list[tuple[int, float]]] = {}
        added: dict[int, list[tuple[int, float]]] = {}
        for (j, v), column in self.aggregates.items():
            at_node.setdefault(v, []).append((column, float(instance.jobs[j].slots)))
            rate = instance.nodes[v].aggregation_bytes_per_s
            if rate is not None:
                time = self._size[j] / rate / self.unit_s
                added.setdefault(v, []).append((self.removed[j, v], time))
                if v not in instance.jobs[j].workers:
                    added[v].append((column, time))
        for v, terms in at_node.items():
            self._row(terms, float(instance.nodes[v].slots))
        if instance.aggregators is not None:
            self._row([(column, 1.0) for column in self.aggregates.values()], instance.aggregators)
        if self.longest >= 0:
            for terms in (*on_arc.values(), *added.values()):
                self._row([*terms, (self.longest, -1.0)], 0.0)


def starts(instance: GraphInstance, job: GraphJob) -> dict[int, list[int]]:
    """Workers by the node where their messages may part: the switch behind the only link, or their own."""
    links: dict[int, list[int]] = {worker: [] for worker in job.workers}
    for tail, head in instance.arcs:
        if tail in links:
            links[tail].append(head)
    found: dict[int, list[int]] = {}
    for worker, heads in links.items():
        plain = len(heads) == 1 and not instance.nodes[worker].forwards and instance.nodes[worker].slots < job.slots
        found.setdefault(heads[0] if plain else worker, []).append(worker)
    found.pop(job.server, None)
    return found


def columns_of(instance: GraphInstance) -> int:
    """About how many columns the program has."""
    return sum((1 + len(starts(instance, job))) * len(instance.arcs) for job in instance.jobs)
