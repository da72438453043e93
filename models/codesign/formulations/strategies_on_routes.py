"""Best strategies where links, rings and routes are given: what every byte reduced or moved puts on each link."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyomo.environ as pyo
from pyomo.core.expr.numeric_expr import LinearExpression

from ddlopt.models.codesign.demand import heaviest_rows
from ddlopt.models.codesign.formulations.rows.coupling import add_bytes
from ddlopt.models.codesign.formulations.rows.strategy_choice import add_strategies
from ddlopt.models.codesign.formulations.rows.strategy_program import StrategyProgram
from ddlopt.models.codesign.instance import CodesignInstance
from ddlopt.models.codesign.iteration_time import add_iteration_time, time_unit_s
from ddlopt.models.codesign.tables import tables_of
from ddlopt.models.tolerances import NEGLIGIBLE_COEFFICIENT


@dataclass(frozen=True, eq=False)
class StrategiesOnRoutes(StrategyProgram):
    r"""The strategies of least iteration time when everything is sent over links, rings and routes that are given.

    On given routes a byte reduced in each group of set q puts :math:`R_{aq}` bytes on each link of arc a, and a byte of
    pattern p :math:`M_{ap}`, so that the load of the busiest link is linear in the strategies:

    .. math::
        \min\ T \quad \text{s.t.}\quad & T \ge C + z \quad (\text{or } T \ge C,\ T \ge z) \\
        & z \ge \textstyle\sum_q R_{aq} r_q + \sum_p M_{ap} m_p \quad \text{for every arc } a,

    with compute time C, gradient bytes r and bytes of patterns m from
    :func:`~ddlopt.models.codesign.formulations.rows.strategy_choice.add_strategies`. Arcs that never carry more than
    another one have no row, so that a few hundred binary variables and as many rows remain for hundreds of servers.

    Parameters
    ----------
    arc_loads : (arcs, sets) array and (arcs, patterns) array
        R and M, in bytes per byte and per link; the factor 2(k-1)/k of a ring is in R. ``inf`` where it cannot be sent:
        then none of it is.

    Ports
    -----
    ``strategy[l, a]``, ``transition[e, a, b]``, ``compute``, ``reduced[q]``, ``moved[p]``
        As of :func:`~ddlopt.models.codesign.formulations.rows.strategy_choice.add_strategies`: strategies of layers and
        of the ends of edges, compute time, gradient bytes of group sets and bytes of patterns; all here in units of
        :func:`~ddlopt.models.codesign.iteration_time.time_unit_s`.
    ``reduced_bytes[q]``, ``moved_bytes[p]``
        The same as ``reduced[q]`` and ``moved[p]``, as variables.
    ``congestion``
        z over the bandwidth of a link.
    ``time``, ``objective``
        C + z or the larger of them, to be minimised.
    """

    arc_loads: tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]

    def refuses(self, instance: CodesignInstance) -> str | None:
        """Loads that are not of this instance's group sets and patterns."""
        sets, patterns = len(tables_of(instance).groups_of), len(tables_of(instance).patterns)
        reduced, moved = (np.asarray(loads).shape for loads in self.arc_loads)
        if len(reduced) != 2 or len(moved) != 2 or reduced[0] != moved[0]:
            return f"arc_loads have shapes {reduced} and {moved}; expected (arcs, {sets}) and (arcs, {patterns})"
        if (reduced[1], moved[1]) != (sets, patterns):
            return f"arc_loads are of {reduced[1]} group sets and {moved[1]} patterns, but it has {sets} and {patterns}"
        if any(np.isnan(loads).any() or (np.asarray(loads) < 0).any() for loads in self.arc_loads):
            return "arc_loads must be at least 0"
        return None

    def scope(self, instance: CodesignInstance) -> str | None:
        """Always the given routes."""
        return "given links, rings and routes"

    def build(self, block: pyo.Block, instance: CodesignInstance) -> None:
        """Fill ``block`` with strategies and the load of every arc that may be the busiest."""
        add_strategies(block, instance, time_unit_s(instance), collapse=True)
        add_bytes(block)
        block.congestion = pyo.Var(bounds=(0, None), doc="bytes on the busiest link")

        variables = [*block.reduced_bytes.values(), *block.moved_bytes.values()]
        loads = np.hstack([np.asarray(part, dtype=np.float64) for part in self.arc_loads])
        for column in np.flatnonzero(np.isinf(loads).any(axis=0)):
            variables[column].setub(0)
        loads[:, np.isinf(loads).any(axis=0)] = 0
        loads[loads < NEGLIGIBLE_COEFFICIENT] = 0
        rows = heaviest_rows(loads)
        block.BUSIEST = pyo.RangeSet(0, len(rows) - 1, doc="arcs that may be the busiest")

        @block.Constraint(block.BUSIEST, doc="no link carries more than the busiest")
        def links_are_within_the_busiest(b: Any, place: int) -> Any:
            row = rows[place]
            carried = np.flatnonzero(row).tolist()
            terms = LinearExpression(
                linear_coefs=[*row[carried].tolist(), -1.0],
                linear_vars=[*(variables[column] for column in carried), b.congestion],
            )
            return terms <= 0

        add_iteration_time(block, instance, block.congestion)
