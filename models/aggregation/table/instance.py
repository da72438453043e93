"""Lookup tables with which switches calculate on logarithms: where entries begin, and who has how much memory."""

from functools import cached_property
from typing import ClassVar, Literal, Self

import numpy as np
from pydantic import Field, model_validator

from ddlopt.models.aggregation.family import AggregationAnswer, AggregationProblem
from ddlopt.models.aggregation.table.values import Floats, best_values, float_values
from ddlopt.models.contracts import Part
from ddlopt.models.sizes import SMALLEST

Entries = Literal["ranges", "prefixes"]

MOST_OPERANDS = 2**22
"""Operands of a table beyond which an instance is taken for a mistake."""
# 2^1024 is no double any more.
_LARGEST_EXPONENT = 1000
# Products of three figures are numbers still (``models.sizes``).
_LARGEST_SAMPLE = 1e100
_FINEST_STEP = 2.0**-50
"""Of values, relative to the largest one: what floating-point numbers still tell apart."""


class LookupFunction(Part):
    r"""What one table holds: a function of an unsigned integer, the operand, in entries that each give one value.

    Operand z stands for :math:`u = z / 2^b` with b = ``fraction_bits``.

    Parameters
    ----------
    name : str
    function : {"log2", "log2-sum", "log2-difference", "exp2", "samples"}
        :math:`\log_2 u`, :math:`\log_2(1 + 2^{-u})`, :math:`\log_2(1 - 2^{-u})`, :math:`2^u`, or ``samples``.
        The logarithms that are singular at 0 begin at an operand ``low`` of at least 1.
    low, high : int
        The operands: all integers from ``low`` to ``high``.
    fraction_bits : int
        Bits after the point in the keys.
    samples : tuple of float
        With ``function`` "samples": the value at every operand.
    error : {"absolute", "relative"}
        Which of the two counts; relative errors are for values that are all above or all below 0.
    weight : float
        Of its error in the goal.
    entry_bytes : int
        Memory of an entry.
    entries : {"ranges", "prefixes"}
        An entry covers any range of operands, or those that begin with the same bits: an aligned block of
        :math:`2^k` of them, some of which may lie outside ``low`` to ``high``.
    step : float, optional
        Values of entries are multiples of it; any number without.
    """

    name: str
    function: Literal["log2", "log2-sum", "log2-difference", "exp2", "samples"]
    low: int = Field(default=0, ge=0)
    high: int = Field(ge=0)
    fraction_bits: int = Field(default=0, ge=0, le=60)
    samples: tuple[float, ...] = ()
    error: Literal["absolute", "relative"] = "absolute"
    weight: float = Field(default=1.0, gt=0)
    entry_bytes: int = Field(default=1, ge=1, le=2**30)
    entries: Entries = "ranges"
    step: float | None = Field(default=None, gt=0)

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.high < self.low:
            raise ValueError(f"table '{self.name}' goes from low {self.low} to high {self.high}; exchange them")
        if self.operands > MOST_OPERANDS:
            raise ValueError(
                f"table '{self.name}' has {self.operands} operands, from {self.low} to {self.high}; at most "
                f"{MOST_OPERANDS} are read: take fewer bits"
            )
        if self.function == "samples" and len(self.samples) != self.operands:
            raise ValueError(
                f"table '{self.name}' has {len(self.samples)} samples, but {self.operands} operands, from {self.low} "
                f"to {self.high}; give one for each"
            )
        if self.function != "samples" and self.samples:
            raise ValueError(f"table '{self.name}' has samples and function '{self.function}'; leave one of them out")
        if self.function in ("log2", "log2-difference") and self.low == 0:
            raise ValueError(f"table '{self.name}': low is 0, where {self.function} is infinite; begin at 1 or above")
        if self.function == "exp2" and self.high > _LARGEST_EXPONENT * 2**self.fraction_bits:
            raise ValueError(
                f"table '{self.name}': high is {self.high}, which stands for {self.high / 2**self.fraction_bits:g}; "
                f"exponents go up to {_LARGEST_EXPONENT}: raise fraction_bits or lower high"
            )
        values = self.values
        largest = float(np.abs(values).max())
        if self.function == "samples" and largest > _LARGEST_SAMPLE:
            raise ValueError(
                f"table '{self.name}' has a sample of size {largest:g}; at most {_LARGEST_SAMPLE:g}: use another unit"
            )
        if self.step is not None and self.step < _FINEST_STEP * largest:
            raise ValueError(
                f"table '{self.name}': step is {self.step:g}, and values go up to {largest:g}, which is more digits "
                "than floating-point numbers have; leave step out"
            )
        least = float(np.abs(values).min())
        if self.relative and 0 < least < SMALLEST:
            raise ValueError(
                f"table '{self.name}' has a value of size {least:g}; relative errors need {SMALLEST:g} or more: use "
                "absolute, or other operands"
            )
        if self.relative and not ((values > 0).all() or (values < 0).all()):
            zero, odd = (np.flatnonzero(each) for each in (values == 0, values * values[0] < 0))
            place = int(zero[0] if len(zero) else odd[0])
            raise ValueError(
                f"table '{self.name}' has the value {values[place]:g} at operand {self.low + place}, and "
                f"{values[0 if place else -1]:g} at {self.low if place else self.high}; relative errors need values of "
                "one sign, none of them 0: use absolute, or other operands"
            )
        return self

    @property
    def operands(self) -> int:
        """How many operands there are."""
        return self.high - self.low + 1

    @property
    def relative(self) -> bool:
        """Whether relative errors count."""
        return self.error == "relative"

    @cached_property
    def values(self) -> Floats:
        """The function at every operand, read-only, shape (operands,)."""
        if self.function == "samples":
            found = np.array(self.samples, dtype=np.float64)
        else:
            found = float_values(self.function, self.low, self.high, self.fraction_bits)
        found.setflags(write=False)
        return found


class TableInstance(AggregationProblem):
    r"""How several functions are tabulated in the memory of a switch, with the least error.

    Switches cannot add floating-point numbers, but they look integers up and add these. So they add in the domain of
    logarithms: :math:`\log_2(x + y) = i + f(j - i)` with :math:`i = \log_2 x`, :math:`j = \log_2 y` and
    :math:`f(d) = \log_2(1 + 2^d)`, which takes a table of logarithms, one of f and one of powers.

    Table k has segments of consecutive operands, its entries, each with one value; its error :math:`e_k` is the largest
    error over all operands. With weights :math:`w_k`, entry sizes :math:`c_k` and :math:`n_k` entries,

    .. math:: \min \sum_k w_k e_k \quad\text{or}\quad \min \max_k w_k e_k
        \qquad\text{so that}\quad \sum_k c_k n_k \le B .

    For the three tables of a sum of positive numbers, whose logarithms and f have absolute errors
    :math:`\epsilon_L, \epsilon_F` and whose powers have the relative error :math:`\epsilon_E`, the relative error of
    the sum is at most :math:`2^{\epsilon_L + \epsilon_F} (1 + \epsilon_E) - 1`
    (:mod:`~ddlopt.analysis.lookup_sums`). Up to products of errors that is their sum with weights
    :math:`\ln 2, \ln 2, 1`.

    Parameters
    ----------
    tables : tuple of LookupFunction
        That share the memory.
    budget_bytes : int
        Memory for all entries.
    goal : {"sum", "max"}
        What of the weighted errors is minimised.

    References
    ----------
    Sums by tables of logarithms in switches: P. Cui, H. Pan, Z. Li, J. Wu, S. Zhang, X. Yang, H. Guan, G. Xie, "NetFC:
    Enabling accurate floating-point arithmetic on programmable switches", ICNP 2021,
    doi:10.1109/ICNP52444.2021.9651946. To choose the entries so is ours.
    """

    kind: ClassVar[str] = "lookup table instance"

    problem: Literal["table"] = "table"
    tables: tuple[LookupFunction, ...] = Field(min_length=1)
    budget_bytes: int = Field(ge=1, le=2**60)
    goal: Literal["sum", "max"] = "sum"

    @model_validator(mode="after")
    def _check(self) -> Self:
        first: dict[str, int] = {}
        for place, table in enumerate(self.tables):
            if first.setdefault(table.name, place) != place:
                raise ValueError(f"tables[{place}] is called '{table.name}', as is tables[{first[table.name]}]")
        least = sum(table.entry_bytes for table in self.tables)
        if self.budget_bytes < least:
            raise ValueError(
                f"budget_bytes is {self.budget_bytes}, but one entry in each table takes {least}; raise it"
            )
        return self

    @property
    def objective_unit(self) -> str:
        """None: errors are numbers."""
        return ""

    @property
    def size(self) -> int:
        """Number of operands of all tables."""
        return sum(table.operands for table in self.tables)

    def goal_of(self, weighted_errors: list[float]) -> float:
        """The objective, of one weighted error a table."""
        return float(sum(weighted_errors)) if self.goal == "sum" else max(weighted_errors)


class LookupTables(AggregationAnswer):
    """The entries of every table.

    Parameters
    ----------
    starts : tuple of tuple of int
        Of each table: the first operand of every entry, ascending; the first is ``low``.
    values : tuple of tuple of float, optional
        Of each table: what every entry gives. Empty: what makes its error least.
    """

    kind: ClassVar[str] = "set of lookup tables"

    problem: Literal["table"] = "table"
    starts: tuple[tuple[int, ...], ...]
    values: tuple[tuple[float, ...], ...] = ()


def outputs_of(instance: TableInstance, solution: LookupTables, place: int) -> Floats:
    """What the table at ``place`` answers to every operand; shape (operands,)."""
    table = instance.tables[place]
    starts = np.array(solution.starts[place]) - table.low
    if solution.values:
        values = np.array(solution.values[place], dtype=np.float64)
    else:
        least, most = (extreme.reduceat(table.values, starts) for extreme in (np.minimum, np.maximum))
        values, _ = best_values(least, most, table.relative, table.step)
    return np.repeat(values, np.diff(np.append(starts, table.operands)))
