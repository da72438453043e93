"""Column generation: the restricted master program that HiGHS keeps, and prices that are smoothed between rounds.

A round solves the program over the columns so far, asks somebody (the *oracle*) for columns that its prices like, and
adds these. At any prices an oracle that answers exactly also has a Lagrangian bound on the program over all columns,
whether or not the rounds have come to an end.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import highspy
import numpy as np
import numpy.typing as npt

from ddlopt.models.errors import SolverError
from ddlopt.solvers.backends.highs import pass_model
from ddlopt.solvers.backends.matrix import LinearModel
from ddlopt.solvers.backends.silent_highs import SilentHighs

Floats = npt.NDArray[np.float64]
Places = Sequence[int] | npt.NDArray[np.integer]

INF = float(highspy.kHighsInf)
SIMPLEX: Mapping[str, Any] = {"threads": 1, "presolve": "off", "solver": "simplex"}
"""Options with which a program goes on from its last basis."""


class Optimum(NamedTuple):
    """Of a restricted master program.

    Parameters
    ----------
    value : float
    duals : (rows,) array
        What the value rises by when a row's sides do: at least 0 of rows at their lower side, at most 0 at their upper.
    values : (columns,) array
    """

    value: float
    duals: Floats
    values: Floats


class RestrictedMaster:
    """A linear program to be minimised that gets rows and columns as they are found.

    Rows and columns are numbered as they come, from 0. HiGHS keeps program and basis.

    Parameters
    ----------
    name : str
        What it is a program over, for errors: ``trees``.
    options : mapping
        Of HiGHS.
    model : LinearModel, optional
        Rows and columns to begin with.
    """

    def __init__(self, name: str, options: Mapping[str, Any] = SIMPLEX, model: LinearModel | None = None) -> None:
        self._name = name
        self.highs = SilentHighs()
        for option, value in options.items():
            self._must(self.highs.setOptionValue(option, value), f"set {option}")
        if model is not None:
            pass_model(self.highs, model)

    @property
    def rows(self) -> int:
        """How many there are."""
        return int(self.highs.getNumRow())

    @property
    def columns(self) -> int:
        """How many there are."""
        return int(self.highs.getNumCol())

    def add_rows(self, count: int, lower: float, upper: float) -> int:
        """Add ``count`` rows without entries; the number of the first."""
        first = self.rows
        for _ in range(count):
            self.add_row(lower, upper)
        return first

    def add_row(self, lower: float, upper: float, columns: Places = (), values: Sequence[float] | Floats = ()) -> int:
        """Add a row with entries in columns that there are; its number."""
        index, entries = _entries(columns, values)
        self._must(self.highs.addRow(lower, upper, len(index), index, entries), "add a row")
        return self.rows - 1

    def add(
        self,
        cost: float,
        rows: Places = (),
        values: Sequence[float] | Floats = (),
        upper: float = INF,
    ) -> int:
        """Add a column from 0 to ``upper`` with entries in rows that there are; its number."""
        index, entries = _entries(rows, values)
        self._must(self.highs.addCol(cost, 0.0, upper, len(index), index, entries), "add a column")
        return self.columns - 1

    def set_cost(self, column: int, cost: float) -> None:
        """Change the cost of a column."""
        self._must(self.highs.changeColCost(column, cost), "change a cost")

    def set_bounds(self, column: int, lower: float, upper: float) -> None:
        """Change the bounds of a column."""
        self._must(self.highs.changeColBounds(column, lower, upper), "change bounds")

    def keep(self, rows: int, columns: int) -> None:
        """Take out all but the first rows and columns."""
        for delete, first, end in (
            (self.highs.deleteCols, columns, self.columns),
            (self.highs.deleteRows, rows, self.rows),
        ):
            if end > first:
                self._must(delete(end - first, np.arange(first, end, dtype=np.int32)), "take rows or columns out")

    def solve(self) -> Optimum:
        """The optimum over the columns so far.

        Raises
        ------
        SolverError
            If HiGHS finds none.
        """
        self.highs.run()
        status = self.highs.getModelStatus()
        if status != highspy.HighsModelStatus.kOptimal:
            name = self.highs.modelStatusToString(status)
            raise SolverError(f"the linear program over {self._name} ended with '{name}'")
        solution = self.highs.getSolution()
        value = float(self.highs.getInfo().objective_function_value)
        return Optimum(value, np.asarray(solution.row_dual), np.asarray(solution.col_value))

    def close(self) -> None:
        """Give HiGHS' memory back, and let others in this thread set its number of threads."""
        self.highs.clear()
        highspy.Highs.resetGlobalScheduler(False)

    def _must(self, status: highspy.HighsStatus, what: str) -> None:
        if status == highspy.HighsStatus.kError:
            raise SolverError(f"HiGHS did not {what} in the linear program over {self._name}")


def _entries(places: Places, values: Sequence[float] | Floats) -> tuple[npt.NDArray[np.int32], Floats]:
    return np.asarray(places, dtype=np.int32), np.asarray(values, dtype=np.float64)


class Priced(NamedTuple):
    """What an oracle says at some prices: a lower bound on the program over all columns, and how many it added."""

    bound: float
    new: int


class Smoothing:
    """Prices that are asked about lie between those of the program and those of the best bound so far.

    Prices of a program over few columns jump from round to round. Between them and the best ones, columns are better
    and rounds are fewer. Where no column is worth its cost at prices between, those of the program themselves are asked
    about: only if these have none either is the program solved.

    Parameters
    ----------
    part : float
        Of the best prices in those that are asked about, from 0 to below 1.

    Attributes
    ----------
    bound : float
        The best so far, of a minimum.
    prices : array or None
        Where it was found: whoever asks the oracle at these has the bound again.

    References
    ----------
    P. Wentges, "Weighted Dantzig-Wolfe decomposition for linear mixed-integer programming", International Transactions
    in Operational Research 4, 1997. A. Pessoa et al., "Automation and combination of linear-programming based
    stabilization techniques in column generation", INFORMS Journal on Computing 30, 2018.
    """

    def __init__(self, part: float, prices: Floats | None = None) -> None:
        self.part, self.prices = part, prices
        self.bound = -np.inf

    def note(self, bound: float, prices: Floats) -> bool:
        """Take a bound at some prices for the best, if it is; whether it is."""
        better = bound > self.bound
        if better:
            self.bound, self.prices = bound, prices
        return better

    def ask(self, prices: Floats, oracle: Callable[[Floats], Priced]) -> int:
        """Ask an oracle near the program's prices; how many columns it added, 0 only if there are none at these."""
        between = [] if self.prices is None or not self.part else [self.part * self.prices + (1 - self.part) * prices]
        for asked in (*between, prices):
            found = oracle(asked)
            self.note(found.bound, asked)
            if found.new:
                return found.new
        return 0
