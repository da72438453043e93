"""A linear relaxation that is solved again and again with other bounds, and whose bounds are safe from rounding."""

import time
from collections.abc import Mapping
from math import inf
from typing import Any

import highspy
import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_array, vstack

from ddlopt.frontier.topology.formulations.min_volume import MinVolume
from ddlopt.models.errors import InfeasibleError, SolverError
from ddlopt.models.tolerances import SOLVER_TOL, ZERO_TOL
from ddlopt.models.topology import TopologyInstance
from ddlopt.models.topology.formulations.min_congestion import MinCongestion, unit_bytes
from ddlopt.models.topology.formulations.rows.link_cut import LinkCut
from ddlopt.solvers.backends.highs import pass_model
from ddlopt.solvers.backends.matrix import linear_model
from ddlopt.solvers.backends.silent_highs import SilentHighs
from ddlopt.solvers.exact import build_model

Vector = npt.NDArray[np.float64]
_EPS = float(np.finfo(float).eps)


class RootRelaxation:
    """The relaxation of :class:`MinVolume`, or of :class:`MinCongestion` (``flows``, or without host forwarding).

    ``options`` are HiGHS options, such as ``{"solver": "ipm", "run_crossover": "off"}`` where there are many servers.
    After ``deadline``, a reading of ``time.perf_counter()``, programs end where they are: their bounds hold, and are
    worth less.

    Attributes
    ----------
    unit : float
        Bytes of a unit of the model.
    congestion_bytes : float
        Optimum after the last :meth:`solve`.
    counts : (n, n) array
        Numbers of links by ordered pair in it.
    programs : int
        Linear programs solved.
    """

    def __init__(
        self,
        instance: TopologyInstance,
        flows: bool = False,
        options: Mapping[str, Any] | None = None,
        deadline: float = inf,
    ) -> None:
        flows = flows or not instance.host_forwarding
        formulation: Any = MinCongestion(numbering=False) if flows else MinVolume(numbering=False)
        model = build_model("topology", formulation, instance)
        block = model.component("topology")
        self.instance, self.unit, self.programs, self._deadline = instance, unit_bytes(instance), 0, deadline
        linear = linear_model(model)
        self._cost, self._offset = linear.cost.copy(), linear.offset
        self._matrix = csr_array(linear.matrix)
        self._row_lower, self._row_upper = linear.row_lower.copy(), linear.row_upper.copy()
        self._lower = linear.lower.copy()
        # Optimal routes load no link with more than all bytes, no server forwards more on its d links, and faint flows
        # count targets.
        all_bytes = float(instance.traffic_bytes.sum()) / self.unit
        most = max(all_bytes * instance.degree * (1 + SOLVER_TOL), float(instance.servers))
        self._upper = np.minimum(linear.upper, most)
        self._highs = SilentHighs()
        for name, value in (options or {}).items():
            self._must(self._highs.setOptionValue(name, value))
        pass_model(self._highs, linear)
        everything = np.arange(len(linear.columns), dtype=np.int32)
        self._must(
            self._highs.changeColsIntegrality(
                len(everything), everything, np.array([highspy.HighsVarType.kContinuous] * len(everything))
            )
        )
        self._must(self._highs.changeColsBounds(len(everything), everything, self._lower, self._upper))
        place = {id(variable): column for column, variable in enumerate(linear.columns)}
        self._congestion = place[id(block.congestion)]
        self._links = {
            (i, j): [
                place[id(block.link[(min(i, j), max(i, j), c) if instance.optics == "duplex" else (i, j, c)])]
                for c in block.COPIES
            ]
            for i, j in block.ARCS
        }
        self._cuts: list[LinkCut] = []
        self.congestion_bytes, self.counts = 0.0, np.zeros((instance.servers,) * 2)

    def solve(self) -> float:
        """Solve it; the safe bound in bytes.

        Raises
        ------
        InfeasibleError
            If HiGHS says that no links will do, as of three servers that want three links in two matchings.
        """
        bound = self._bound()
        end = self._highs.getModelStatus()
        if end == highspy.HighsModelStatus.kTimeLimit:
            return bound * self.unit
        if end in (highspy.HighsModelStatus.kInfeasible, highspy.HighsModelStatus.kUnboundedOrInfeasible):
            raise InfeasibleError(f"the root relaxation for '{self.instance.name}' has no solution")
        if end != highspy.HighsModelStatus.kOptimal:
            raise SolverError(f"the root relaxation for '{self.instance.name}' has no optimum")
        values = np.asarray(self._highs.getSolution().col_value)
        self.congestion_bytes = float(values[self._congestion]) * self.unit
        for arc, columns in self._links.items():
            self.counts[arc] = float(values[columns].sum())
        return bound * self.unit

    def bound_with(self, server: int, choice: tuple[int, ...], outwards: bool) -> float:
        """Bytes on the busiest link at least, in designs in which the links out of (into) a server are these."""
        fixed: dict[int, float] = {}
        for other in range(self.instance.servers):
            if other != server:
                columns = self._links[(server, other) if outwards else (other, server)]
                fixed |= {column: float(c < choice.count(other)) for c, column in enumerate(columns)}
        places = np.array(list(fixed), dtype=np.int32)
        values = np.array(list(fixed.values()))
        lower, upper = self._lower.copy(), self._upper.copy()
        lower[places] = upper[places] = values
        self._must(self._highs.changeColsBounds(len(places), places, values, values))
        bound = self._bound(lower=lower, upper=upper)
        self._must(self._highs.changeColsBounds(len(places), places, self._lower[places], self._upper[places]))
        return bound * self.unit

    def bound_within(self, lengths: npt.NDArray[np.int64], low: float, high: float, slope: float = 0.0) -> float:
        """Least of congestion - slope · y in bytes, in designs with y = Σ length · links between low and high."""
        row = np.zeros(len(self._cost))
        for i, j in np.argwhere(lengths).tolist():
            row[self._links[i, j]] += lengths[i, j]
        places = np.flatnonzero(row).astype(np.int32)
        last = self._matrix.shape[0]
        self._must(self._highs.addRow(low, high, len(places), places, row[places]))
        cost = self._cost - slope / self.unit * row
        self._must(self._highs.changeColsCost(len(places), places, cost[places]))
        bound = self._bound(cost=cost, more=(row, low, high))
        self._must(self._highs.changeColsCost(len(places), places, self._cost[places]))
        self._must(self._highs.deleteRows(1, np.array([last], dtype=np.int32)))
        return bound * self.unit

    def add(self, cuts: list[LinkCut]) -> None:
        """Add cuts as rows."""
        rows = []
        for cut in cuts:
            row, scale = np.zeros(len(self._cost)), self.unit if cut.bounds_congestion else 1.0
            if cut.bounds_congestion:
                row[self._congestion] = 1.0
            for arc, weight in cut.weights:
                row[self._links[arc]] -= weight / scale
            places = np.flatnonzero(row).astype(np.int32)
            least = cut.least / scale
            self._must(self._highs.addRow(least, highspy.kHighsInf, len(places), places, row[places]))
            rows.append(csr_array(row[None, :]))
            self._row_lower, self._row_upper = np.append(self._row_lower, least), np.append(self._row_upper, inf)
        if rows:
            self._matrix = csr_array(vstack([self._matrix, *rows]))
        self._cuts += cuts

    def tight_cuts(self) -> tuple[LinkCut, ...]:
        """The cuts that bind the present optimum."""
        duals = list(self._highs.getSolution().row_dual)
        if len(duals) < len(self._cuts):  # the last program was cut short
            return ()
        return tuple(
            cut
            for cut, dual in zip(self._cuts, duals[len(duals) - len(self._cuts) :], strict=True)
            if abs(dual) > ZERO_TOL
        )

    def _bound(
        self,
        cost: Vector | None = None,
        lower: Vector | None = None,
        upper: Vector | None = None,
        more: tuple[Vector, float, float] | None = None,
    ) -> float:
        """Solve, and bound the optimum from below by the dual values, whatever they are worth; in units."""
        if self._deadline < inf:
            left = max(0.0, self._deadline - time.perf_counter())
            self._must(self._highs.setOptionValue("time_limit", self._highs.getRunTime() + left))
        self._highs.run()
        self.programs += 1
        cost = self._cost if cost is None else cost
        lower = self._lower if lower is None else lower
        upper = self._upper if upper is None else upper
        matrix, sides = self._matrix, (self._row_lower, self._row_upper)
        if more is not None:
            matrix = csr_array(vstack([matrix, csr_array(more[0][None, :])]))
            sides = np.append(sides[0], more[1]), np.append(sides[1], more[2])
        duals = np.asarray(self._highs.getSolution().row_dual)
        if len(duals) != matrix.shape[0] or not np.isfinite(duals).all():
            duals = np.zeros(matrix.shape[0])
        return safe_bound(cost, self._offset, matrix, sides, (lower, upper), duals)

    def _must(self, status: Any) -> None:
        if status == highspy.HighsStatus.kError:
            raise SolverError(f"HiGHS refuses a change of the root relaxation for '{self.instance.name}'")


def safe_bound(
    cost: Vector,
    offset: float,
    matrix: Any,
    sides: tuple[Vector, Vector],
    box: tuple[Vector, Vector],
    duals: Vector,
) -> float:
    """Lower bound on ``cost @ x + offset`` over ``sides[0] <= matrix @ x <= sides[1]`` and x in the finite ``box``.

    Any ``duals`` y give one: y @ side + min over the box of (cost - y @ matrix) @ x. What rounding may add to it is
    bounded by the sum of all magnitudes times their number and the unit roundoff, and taken off.

    References
    ----------
    A. Neumaier, O. Shcherbina, "Safe bounds in linear and mixed-integer linear programming", Math. Program. 99, 2004.
    """
    side = np.where(duals > 0, sides[0], sides[1])
    duals = np.where(np.isfinite(side), duals, 0.0)
    side = np.where(duals != 0, side, 0.0)
    reduced = cost - matrix.T @ duals
    ends = np.where(reduced > 0, box[0], box[1])
    value = float(duals @ side + reduced @ ends) + offset
    magnitude = np.abs(cost) + abs(matrix).T @ np.abs(duals)
    total = float(np.abs(duals) @ np.abs(side) + magnitude @ np.maximum(np.abs(box[0]), np.abs(box[1]))) + abs(offset)
    return value - 2 * float(sum(matrix.shape)) * _EPS * total
