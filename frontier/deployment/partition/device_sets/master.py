"""The linear program over the sets found so far."""

from typing import NamedTuple

from ddlopt.frontier.engines.columns import INF, Floats, RestrictedMaster

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
        self._program, self._groups, self._penalty = RestrictedMaster("sets of blocks"), groups, _PENALTY
        self._program.add_rows(groups, 1.0, 1.0)
        for devices in (accelerators, processors):
            self._program.add_row(-INF, float(devices))
        for group in range(groups):
            self._program.add(_PENALTY, [group], [1.0])
        self.columns: list[tuple[bool, tuple[int, ...]]] = []
        self._known: set[tuple[bool, tuple[int, ...]]] = set()

    def add(self, processor: bool, places: tuple[int, ...], load: float) -> bool:
        """Add a set by its places of groups, with its load on an accelerator in limits; whether it is new."""
        if not places or (processor, places) in self._known:
            return False
        self._known.add((processor, places))
        self.columns.append((processor, places))
        rows = [*places, self._groups + processor]
        self._program.add(load, rows, [1.0] * len(rows))
        return True

    def harden(self) -> None:
        """Let groups that no set has cost more."""
        self._penalty *= _HARDER
        for group in range(self._groups):
            self._program.set_cost(group, self._penalty)

    def solve(self) -> Optimum:
        """The optimum with the sets added so far.

        Raises
        ------
        SolverError
            If HiGHS finds none.
        """
        value, prices, parts = self._program.solve()
        return Optimum(value, prices, parts[self._groups :], float(parts[: self._groups].sum()))
