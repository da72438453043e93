"""The linear program over the sets found so far."""

from typing import NamedTuple

import highspy
import numpy as np
import numpy.typing as npt

from ddlopt.models.errors import SolverError
from ddlopt.solvers.backends.silent_highs import SilentHighs

Floats = npt.NDArray[np.float64]
Column = tuple[bool, frozenset[int]]
"""Whether it is of a processor, and the blocks."""

_PENALTY = 5.0
"""Limits that a group costs at first which no set has."""
_HARDER = 4.0
"""Times that, where the relaxation still leaves groups without a set."""


class Optimum(NamedTuple):
    """Value in limits, prices of groups and of the two kinds of device, parts of columns, groups that no set has."""

    value: float
    prices: Floats
    parts: Floats
    missing: float


class Master:
    r"""Every group is in one set, with as many sets as there are devices; the loads on accelerators are least.

    .. math::
        \min \sum_S \text{load}_S z_S + P \sum_g s_g, \quad s_g + \sum_{S \ni g} z_S = 1, \quad
        \sum_{S \in A} z_S \le k, \quad \sum_{S \in C} z_S \le l
    """

    def __init__(self, groups: int, accelerators: int, processors: int) -> None:
        self._highs, self._groups, self._penalty = SilentHighs(), groups, _PENALTY
        for name, value in {"threads": 1, "presolve": "off", "solver": "simplex"}.items():
            self._highs.setOptionValue(name, value)
        nothing = np.zeros(0, dtype=np.int32), np.zeros(0)
        for _ in range(groups):
            self._highs.addRow(1.0, 1.0, 0, *nothing)
        for devices in (accelerators, processors):
            self._highs.addRow(-highspy.kHighsInf, float(devices), 0, *nothing)
        for group in range(groups):
            row = np.array([group], dtype=np.int32)
            self._highs.addCol(_PENALTY, 0.0, highspy.kHighsInf, 1, row, np.ones(1))
        self.columns: list[tuple[bool, tuple[int, ...]]] = []
        self._known: set[tuple[bool, tuple[int, ...]]] = set()

    def add(self, processor: bool, places: tuple[int, ...], load: float) -> bool:
        """Add a set by its places of groups, with its load on an accelerator in limits; whether it is new."""
        if not places or (processor, places) in self._known:
            return False
        self._known.add((processor, places))
        self.columns.append((processor, places))
        rows = np.array([*places, self._groups + processor], dtype=np.int32)
        self._highs.addCol(load, 0.0, highspy.kHighsInf, len(rows), rows, np.ones(len(rows)))
        return True

    def harden(self) -> None:
        """Let groups that no set has cost more."""
        self._penalty *= _HARDER
        for group in range(self._groups):
            self._highs.changeColCost(group, self._penalty)

    def solve(self) -> Optimum:
        """The optimum with the sets added so far.

        Raises
        ------
        SolverError
            If HiGHS finds none.
        """
        self._highs.run()
        if self._highs.getModelStatus() != highspy.HighsModelStatus.kOptimal:
            name = self._highs.modelStatusToString(self._highs.getModelStatus())
            raise SolverError(f"the linear program over sets of blocks ended with '{name}'")
        solution = self._highs.getSolution()
        prices, parts = np.asarray(solution.row_dual), np.asarray(solution.col_value)
        value = float(self._highs.getInfo().objective_function_value)
        return Optimum(value, prices, parts[self._groups :], float(parts[: self._groups].sum()))
