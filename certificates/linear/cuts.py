r"""Cutting planes, each with its derivation: the checker calculates them anew, in whole numbers.

Multipliers y of rows, of the model or of cuts before, add up to

.. math:: \sum_j (y A)_j\, x_j + \sum_i |y_i|\, r_i \ge \beta

where β adds up the limits that are taken: of a row usually the one that makes this an inequality without :math:`r_i`;
of an *opposite* row the other one, with :math:`r_i \ge 0` for how far the row is from it. A column counts from its
lower bound, :math:`x_j = l_j + s_j`, or from the one *above*, :math:`x_j = u_j - s_j`: this is
:math:`\sum_j \alpha_j s_j + \sum_i |y_i|\, r_i \ge \beta'`, with :math:`s, r \ge 0`, and :math:`s_j` whole where
:math:`x_j` is, as bounds of whole columns are. With f, the fractional part of β', above 0:

* **Chvátal–Gomory** (``cg``): where no continuous column has :math:`\alpha_j > 0` and no row is opposite,
  :math:`\sum_j \lceil \alpha_j \rceil s_j \ge \lceil \beta' \rceil` over the whole columns. The left side is no smaller
  than before, and whole.
* **Mixed-integer rounding** (``mir``; G. Nemhauser, L. Wolsey, 1990), with :math:`f_j` the fractional part of α:

  .. math::
     \sum_{j\ \text{whole}} (f \lfloor \alpha_j \rfloor + \min\{f_j, f\})\, s_j
     + \sum_{j\ \text{continuous}} \max\{\alpha_j, 0\}\, s_j + \sum_i |y_i|\, r_i \ge f \lceil \beta' \rceil.

  Let π add up :math:`\lfloor \alpha_j \rfloor s_j` where :math:`f_j \le f`, and :math:`\lceil \alpha_j \rceil s_j`
  elsewhere. It is whole. If it is :math:`\lceil \beta' \rceil` or more, f times that and what is at least 0 beside
  it give the cut; if it is :math:`\lfloor \beta' \rfloor` or less, the sum of rows less :math:`1 - f` times that does.

Last, numbers are made as long as the program's unit: coefficients of s and r are rounded up and the right side down,
which s and r allow, as they are at least 0.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from ddlopt.certificates.linear.check import Program, Row
from ddlopt.models.errors import RefutedError

Cut = Sequence[Any]
"""Kind, divisor, rows, multipliers (in multiples of 1 / divisor), opposite rows, columns that count from above."""


class Strengthened(Sequence[Row]):
    """Rows of a model, and cuts behind them."""

    def __init__(self, rows: Sequence[Row]) -> None:
        self._rows, self.cuts = rows, list[Row]()

    def __len__(self) -> int:
        """Rows and cuts so far."""
        return len(self._rows) + len(self.cuts)

    def __getitem__(self, row: Any) -> Any:
        """Lower limit, columns with coefficients, upper limit."""
        return self._rows[row] if row < len(self._rows) else self.cuts[row - len(self._rows)]


@dataclass(frozen=True)
class Sum:
    """What rows add up to, in columns that count from a bound.

    Parameters
    ----------
    parts : dict of int to int
        α of a column, in multiples of ``1 / bottom``.
    right : int
        β', in multiples of ``1 / (bottom grid)``.
    bottom : int
    above : frozenset of int
        Columns that count from above.
    opposite : list of (row, multiplier, limit)
        Rows of which the other limit is taken.
    usual : list of (row, multiplier, side)
        The others, with the side of which the limit is taken (0 the lower one).
    """

    parts: dict[int, int]
    right: int
    bottom: int
    above: frozenset[int]
    opposite: list[tuple[int, int, int]]
    usual: list[tuple[int, int, int]]


def with_cuts(program: Program, cuts: Sequence[Cut]) -> Program:
    """The program with the rows of all cuts."""
    program = replace(program, rows=Strengthened(program.rows))
    for _ in derive(program, cuts):
        pass
    return program


def derive(program: Program, cuts: Sequence[Cut]) -> Iterator[None]:
    """Calculate cuts and put them behind the rows (:class:`Strengthened`) of a program, one after the other.

    Raises
    ------
    RefutedError
        If one cannot be derived from what stands before it; the message has its number.
    """
    assert isinstance(program.rows, Strengthened)
    for place, cut in enumerate(cuts):
        try:
            program.rows.cuts.append(row_of(program, cut[0], sum_of(program, cut)))
        except RefutedError as problem:
            raise RefutedError(f"cut {place} {problem}") from None
        yield


def sum_of(program: Program, cut: Cut) -> Sum:
    """Add up the rows of a cut.

    Raises
    ------
    RefutedError
        If it names a row that is not there, or a limit or bound is missing.
    """
    _, divisor, rows, multipliers, opposite, above = cut
    others, from_above = frozenset(opposite), frozenset(above)
    parts: dict[int, int] = {}
    right, apart, usual = 0, [], []
    for row, multiplier in zip(rows, multipliers, strict=True):
        if row >= len(program.rows):
            raise RefutedError(f"names row {row}, but there are {len(program.rows)} before it")
        low, terms, high = program.rows[row]
        side = int((multiplier < 0) != (row in others))
        limit = high if side else low
        if limit is None:
            raise RefutedError(f"takes a limit of row {row} that it has not")
        (apart.append((row, multiplier, limit)) if row in others else usual.append((row, multiplier, side)))
        right += multiplier * limit
        for column, value in terms:
            parts[column] = parts.get(column, 0) + multiplier * value
    parts = {column: value for column, value in parts.items() if value}
    right *= program.grid
    for column, value in parts.items():
        bound = (program.upper if column in from_above else program.lower)[column]
        if bound is None:
            raise RefutedError(f"takes a bound of column {column} that it has not")
        right -= value * bound
        if column in from_above:
            parts[column] = -value
    return Sum(parts, right, divisor * program.unit, from_above, apart, usual)


@dataclass(frozen=True)
class Rounded:
    """A cut in s and r, before its numbers are made as long as the unit.

    Parameters
    ----------
    parts : dict of int to int
        Coefficients of s, ``scale`` times those of the formula.
    right : int
        The right side, likewise.
    times : int
        What r counts for each unit of its row's multiplier.
    whole, remainder : int
        β' rounded down, and what is over in multiples of ``1 / (bottom grid)``.
    scale : int
    shift : int
        Binary digits by which numbers are made longer.
    """

    parts: dict[int, int]
    right: int
    times: int
    whole: int
    remainder: int
    scale: int
    shift: int

    def long(self, value: int) -> int:
        """A coefficient of s or r in the row's numbers, rounded up."""
        return value << self.shift if self.shift >= 0 else -(-value >> -self.shift)


def rounded(program: Program, kind: str, added: Sum) -> Rounded:
    """Round what rows add up to.

    Raises
    ------
    RefutedError
        If nothing is rounded, or what is to be rounded is not whole.
    """
    scale, times, parts = added.bottom * program.grid, 0, {}
    whole, remainder = divmod(added.right, scale)
    if not remainder:
        raise RefutedError("rounds nothing: the right side is whole")
    if kind == "cg":
        if added.opposite or any(value > 0 and not program.integer[column] for column, value in added.parts.items()):
            raise RefutedError("rounds what is not whole")
        parts = {column: -(-value // added.bottom) for column, value in added.parts.items() if program.integer[column]}
        right, scale = whole + 1, 1
    else:
        times, right = program.grid, remainder * (whole + 1)
        for column, value in added.parts.items():
            if program.integer[column]:
                quotient, rest = divmod(value, added.bottom)
                parts[column] = remainder * quotient + min(rest * program.grid, remainder)
            else:
                parts[column] = max(value, 0) * program.grid
    longest = max((abs(value) for value in parts.values()), default=0)
    for row, multiplier, _ in added.opposite:
        largest = max((abs(value) for _, value in program.rows[row][1]), default=0)
        longest = max(longest, times * abs(multiplier) * largest)
    shift = program.unit.bit_length() - longest.bit_length()
    return Rounded(parts, right, times, whole, remainder, scale, shift)


def row_of(program: Program, kind: str, added: Sum) -> Row:
    """The row of a cut, in multiples of ``1 / unit``: x in place of s and r.

    Raises
    ------
    RefutedError
        As :func:`rounded`.
    """
    cut = rounded(program, kind, added)
    terms: dict[int, int] = {}
    # Bounds of continuous columns have a grid; the right side is in multiples of 1 / grid until the end.
    low = (cut.right << cut.shift if cut.shift >= 0 else cut.right >> -cut.shift) * program.grid
    for column, value in cut.parts.items():
        kept, from_above = cut.long(value), column in added.above
        bound = (program.upper if from_above else program.lower)[column]
        assert bound is not None
        terms[column] = -kept if from_above else kept
        low += terms[column] * bound
    for row, multiplier, limit in added.opposite:
        # r is the limit less the row where the multiplier is positive, and the row less the limit where it is not.
        kept = cut.long(cut.times * abs(multiplier)) * (-1 if multiplier > 0 else 1)
        low += kept * limit * program.grid
        for column, value in program.rows[row][1]:
            terms[column] = terms.get(column, 0) + kept * value
    return low // program.grid, [(column, value) for column, value in sorted(terms.items()) if value], None
