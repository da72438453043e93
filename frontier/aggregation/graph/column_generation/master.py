"""The linear program over trees of jobs found so far, kept in HiGHS from round to round."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from ddlopt.frontier.aggregation.graph.pricing import Tree
from ddlopt.frontier.engines.columns import INF, RestrictedMaster
from ddlopt.models.aggregation.graph.instance import GraphInstance
from ddlopt.models.aggregation.graph.network import time_unit_s

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

_PENALTY = 20.0
"""Of a job without a tree, or of a slot too many, in units of the time that one tree takes at most or so."""


class Prices(NamedTuple):
    """Of a second on each arc and in each switch's aggregators, of a slot in each, and of an aggregator."""

    arcs: Floats
    switches: Floats
    slots: Floats
    aggregator: float

    @classmethod
    def of(cls, flat: Floats, arcs: int) -> "Prices":
        """Of one array, as :attr:`flat` makes it."""
        first, second, third = np.split(flat[:-1], [arcs, (arcs + len(flat) - 1) // 2])
        return cls(first, second, third, float(flat[-1]))

    @property
    def flat(self) -> Floats:
        """All in one array."""
        return np.concatenate((self.arcs, self.switches, self.slots, [self.aggregator]))


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
        return INF if most is None else float(most)


class Master:
    """The linear program; a column is a tree, and column 0 the congestion."""

    def __init__(self, instance: GraphInstance) -> None:
        self.rows = Rows(instance)
        self._instance = instance
        self.trees: list[tuple[int, Tree]] = []
        self._seen: set[tuple[int, tuple[tuple[int, ...], ...]]] = set()
        self._congestion = instance.goal == "congestion"
        self._program = RestrictedMaster("trees")
        jobs, arcs, nodes = self.rows.counts
        self._program.add_rows(jobs, 1.0, 1.0)
        self._program.add_rows(arcs + nodes, -INF, 0.0 if self._congestion else INF)
        for node in instance.nodes:
            self._program.add_row(-INF, float(node.slots))
        budget = self._program.add_row(-INF, self.rows.budget)
        timed = range(jobs, jobs + arcs + nodes)
        self._program.add(float(self._congestion), timed, [-1.0 if self._congestion else 0.0] * len(timed))
        most = max(len(job.workers) for job in instance.jobs)
        price = _PENALTY * most * (1 if self._congestion else 6)
        for row in range(jobs):
            self._program.add(price, [row], [1.0])
        for row in range(jobs + arcs + nodes, budget + 1):
            self._program.add(price, [row], [-1.0])
        self._fixed = self._program.columns

    def add(self, j: int, tree: Tree) -> bool:
        """Add a tree of a job; whether it is new."""
        key = (j, tree.routes)
        if key in self._seen:
            return False
        self._seen.add(key)
        rows, values, utilization = self.rows.column(j, tree)
        self._program.add(0.0 if self._congestion else utilization, rows, values)
        self.trees.append((j, tree))
        return True

    def allow(self, within: Callable[[int, Tree], bool]) -> None:
        """Use only trees of which a function says that they may be."""
        for place, (j, tree) in enumerate(self.trees):
            self._program.set_bounds(self._fixed + place, 0.0, INF if within(j, tree) else 0.0)

    def solve(self) -> tuple[float, Prices]:
        """Optimum and prices.

        Raises
        ------
        SolverError
            If HiGHS finds none.
        """
        optimum = self._program.solve()
        jobs, arcs, _ = self.rows.counts
        return optimum.value, Prices.of(-np.minimum(0.0, optimum.duals[jobs:]), arcs)

    def close(self) -> None:
        """See :meth:`~ddlopt.frontier.engines.columns.RestrictedMaster.close`."""
        self._program.close()
