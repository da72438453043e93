"""The linear program over trees of jobs found so far, kept in HiGHS from round to round."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import highspy
import numpy as np
import numpy.typing as npt

from ddlopt.frontier.aggregation.graph.pricing import Tree
from ddlopt.models.aggregation.graph.instance import GraphInstance
from ddlopt.models.aggregation.graph.network import time_unit_s
from ddlopt.models.errors import SolverError
from ddlopt.solvers.backends.silent_highs import SilentHighs

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

_OPTIONS = {"threads": 1, "presolve": "off", "solver": "simplex"}
_PENALTY = 20.0
"""Of a job without a tree, or of a slot too many, in units of the time that one tree takes at most or so."""


class Prices(NamedTuple):
    """Of a second on each arc and in each switch's aggregators, of a slot in each, and of an aggregator."""

    arcs: Floats
    switches: Floats
    slots: Floats
    aggregator: float

    def mixed(self, other: "Prices", part: float) -> "Prices":
        """``part`` of these and the rest of the others."""
        pairs = [part * np.asarray(one) + (1 - part) * np.asarray(two) for one, two in zip(self, other, strict=True)]
        return Prices(pairs[0], pairs[1], pairs[2], float(pairs[3]))


@dataclass(frozen=True)
class Rows:
    """What trees share, in units of :func:`~ddlopt.models.aggregation.graph.network.time_unit_s`.

    Rows of the linear program are jobs, arcs, rates of switches, slots of switches, and the budget.
    """

    instance: GraphInstance

    @property
    def counts(self) -> tuple[int, int, int]:
        """Jobs, arcs, nodes."""
        return len(self.instance.jobs), len(self.instance.arcs), len(self.instance.nodes)

    def column(self, j: int, tree: Tree) -> tuple[npt.NDArray[np.int32], Floats, float]:
        """Rows and coefficients of a tree, and its utilization."""
        jobs, arcs, nodes = self.counts
        job, unit_s = self.instance.jobs[j], time_unit_s(self.instance)
        entries: dict[int, float] = {j: 1.0}
        utilization = 0.0
        for arc, number in tree.messages.items():
            place = self.instance.arc_of[arc]
            time = number * job.gradient_bytes / self.instance.links[place // 2].bandwidth_bytes_per_s / unit_s
            entries[jobs + place] = time
            utilization += time
        for v, number in tree.ended.items():
            rate = self.instance.nodes[v].aggregation_bytes_per_s
            if rate is not None:
                entries[jobs + arcs + v] = number * job.gradient_bytes / rate / unit_s
            entries[jobs + arcs + nodes + v] = float(job.slots)
        entries[jobs + arcs + 2 * nodes] = float(len(tree.ended))
        rows = np.array(sorted(entries), dtype=np.int32)
        return rows, np.array([entries[row] for row in rows.tolist()]), utilization

    @property
    def budget(self) -> float:
        """Most aggregators."""
        most = self.instance.aggregators
        return highspy.kHighsInf if most is None else float(most)


class Master:
    """The linear program; a column is a tree, and column 0 the congestion."""

    def __init__(self, instance: GraphInstance) -> None:
        self.rows = Rows(instance)
        self._instance = instance
        self.trees: list[tuple[int, Tree]] = []
        self._seen: set[tuple[int, tuple[tuple[int, ...], ...]]] = set()
        self._congestion = instance.goal == "congestion"
        self._highs = SilentHighs()
        for name, value in _OPTIONS.items():
            self._highs.setOptionValue(name, value)
        jobs, arcs, nodes = self.rows.counts
        nothing = np.zeros(0, dtype=np.int32), np.zeros(0)
        infinite = highspy.kHighsInf
        for _ in range(jobs):
            self._highs.addRow(1.0, 1.0, 0, *nothing)
        for _ in range(arcs + nodes):
            self._highs.addRow(-infinite, 0.0 if self._congestion else infinite, 0, *nothing)
        for node in instance.nodes:
            self._highs.addRow(-infinite, float(node.slots), 0, *nothing)
        self._highs.addRow(-infinite, self.rows.budget, 0, *nothing)
        timed = np.arange(jobs, jobs + arcs + nodes, dtype=np.int32)
        values = np.full(len(timed), -1.0 if self._congestion else 0.0)
        self._highs.addCol(float(self._congestion), 0.0, infinite, len(timed), timed, values)
        self._fixed = 1
        for row in range(jobs):
            self._add_slack(row, 1.0)
        for row in (*range(jobs + arcs + nodes, jobs + arcs + 2 * nodes), jobs + arcs + 2 * nodes):
            self._add_slack(row, -1.0)

    def _add_slack(self, row: int, sign: float) -> None:
        most = max(len(job.workers) for job in self._instance.jobs)
        price = _PENALTY * most * (1 if self._congestion else 6)
        self._highs.addCol(price, 0.0, highspy.kHighsInf, 1, np.array([row], dtype=np.int32), np.array([sign]))
        self._fixed += 1

    def add(self, j: int, tree: Tree) -> bool:
        """Add a tree of a job; whether it is new."""
        key = (j, tree.routes)
        if key in self._seen:
            return False
        self._seen.add(key)
        rows, values, utilization = self.rows.column(j, tree)
        cost = 0.0 if self._congestion else utilization
        self._highs.addCol(cost, 0.0, highspy.kHighsInf, len(rows), rows, values)
        self.trees.append((j, tree))
        return True

    def allow(self, within: Callable[[int, Tree], bool]) -> None:
        """Use only trees of which a function says that they may be."""
        for place, (j, tree) in enumerate(self.trees):
            most = highspy.kHighsInf if within(j, tree) else 0.0
            self._highs.changeColBounds(self._fixed + place, 0.0, most)

    def solve(self) -> tuple[float, Prices, Floats]:
        """Optimum, prices, and the part of each tree that is in it.

        Raises
        ------
        SolverError
            If HiGHS finds none.
        """
        self._highs.run()
        if self._highs.getModelStatus() != highspy.HighsModelStatus.kOptimal:
            name = self._highs.modelStatusToString(self._highs.getModelStatus())
            raise SolverError(f"the linear program over trees ended with '{name}'")
        solution = self._highs.getSolution()
        duals = -np.minimum(0.0, np.asarray(solution.row_dual))
        jobs, arcs, nodes = self.rows.counts
        slots = jobs + arcs + nodes
        prices = Prices(
            duals[jobs : jobs + arcs], duals[jobs + arcs : slots], duals[slots : slots + nodes], float(duals[-1])
        )
        value = float(self._highs.getInfo().objective_function_value)
        return value, prices, np.asarray(solution.col_value)[self._fixed :]

    def close(self) -> None:
        """Let go of what HiGHS keeps for this thread, so that others may set its number of threads."""
        self._highs.clear()
        highspy.Highs.resetGlobalScheduler(False)
