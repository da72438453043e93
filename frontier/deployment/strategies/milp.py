"""The integer program of a core, handed to HiGHS as arrays."""

from dataclasses import dataclass, replace

import numpy as np

from ddlopt.frontier.deployment.strategies.dual import Dual
from ddlopt.frontier.deployment.strategies.kernels.messages import UNIT
from ddlopt.frontier.deployment.strategies.tree_dual import TreeDual
from ddlopt.models.deployment.strategies.core import Core, restricted
from ddlopt.models.deployment.strategies.formulations.strategy_selection import arrays_of
from ddlopt.models.deployment.strategies.ragged import EXACT, Ints
from ddlopt.solvers.backends.contracts import Outcome
from ddlopt.solvers.backends.highs import Highs
from ddlopt.solvers.backends.matrix import LinearModel
from ddlopt.solvers.contracts import Limits, ProgressCallback


@dataclass(slots=True)
class Column:
    """A variable that has no model: what :class:`~ddlopt.solvers.backends.matrix.LinearModel` asks of one."""

    name: str = "a variable"
    value: float | None = None
    fixed: bool = False

    def set_value(self, value: float, skip_validation: bool = False) -> None:
        """Give it a value."""
        self.value = value


def linear_model_of(core: Core, unit: float, start: Ints | None = None) -> LinearModel:
    """The program of a core; with a ``start``, (n,) places, the columns have its values."""
    arrays = arrays_of(core, unit)
    width = len(arrays.cost)
    columns = [Column() for _ in range(width)]
    if start is not None:
        values = np.zeros(width)
        values[core.start[:-1] + start] = 1.0
        u, v = core.edges[:, 0], core.edges[:, 1]
        taken = core.table_start[:-1] + start[u] * core.counts[v] + start[v]
        values[arrays.strategies :][np.searchsorted(arrays.pairs, taken)] = 1.0
        for column, value in zip(columns, values.tolist(), strict=True):
            column.value = value
    matrix = arrays.matrix
    matrix.indices, matrix.indptr = matrix.indices.astype(np.int32), matrix.indptr.astype(np.int32)
    integer = np.zeros(width, dtype=np.bool_)
    integer[: arrays.strategies] = True
    return LinearModel(
        False,
        arrays.cost,
        0.0,
        matrix,
        arrays.row_lower,
        arrays.row_upper,
        np.zeros(width),
        np.ones(width),
        integer,
        columns,
        [Column("a row")] * matrix.shape[0],
    )


def solve_core(
    core: Core, highs: Highs, limits: Limits, seed: int, start: Ints | None, progress: ProgressCallback | None = None
) -> tuple[Outcome, Ints | None]:
    """Solve the program of a core; returns the outcome, in costs in units of ``unit_of(core)``, and (n,) places."""
    linear = linear_model_of(core, unit_of(core), start)
    outcome = highs.solve_linear(linear, limits, seed, progress, warm=start is not None)
    if outcome.objective is None:
        return outcome, None
    values = np.array([column.value for column in linear.columns[: len(core.cost)]])
    owner = np.repeat(np.arange(core.size), core.counts)
    # The largest of each node; all are whole up to the solver's tolerance.
    order = np.lexsort((values, owner))
    return outcome, order[core.start[1:] - 1] - core.start[:-1]


def unit_of(core: Core) -> float:
    """A cost that the typical one is some of."""
    finite = core.table[np.isfinite(core.table)]
    largest = max(float(core.cost.max(initial=0.0)), float(finite.max(initial=0.0)))
    return max(1.0, largest / 1e6) if core.whole else (largest or 1.0) / 1e3


def narrowed(dual: Dual | TreeDual, cost: float) -> Core:
    """Without strategies and pairs with which every choice is certain not to be better than one of that ``cost``.

    Raises
    ------
    InfeasibleError
        If no choice is better.
    """
    core = dual.core
    bound, excess, pairs = dual.rises()
    # Where costs are whole, sums up to this one are exact, and a better choice costs at least 1 less.
    exact = core.whole and cost < EXACT
    allowed = cost - 1 if exact else cost * (1 + UNIT * (core.size + len(core.edges) + 8))
    room = np.nextafter(allowed - bound, np.inf)
    return restricted(replace(core, table=np.where(pairs > room, np.inf, core.table)), excess <= room)
