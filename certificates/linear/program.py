"""A model in whole numbers, with room for rounded figures and bounds for columns that have none; see ``check``.

Only rows that are asked for are converted: a proof names few of those of a large model.
"""

from collections.abc import Sequence
from fractions import Fraction
from math import ceil, gcd, lcm
from typing import Any

from ddlopt.certificates.linear.check import Program, Row
from ddlopt.certificates.linear.rows import ExactModel, Limit, Terms
from ddlopt.models.errors import NotApplicableError

_ROUNDS = 20
"""Of looking for bounds of columns that have none, in the order of rows, and as many in the opposite order."""
_ROUNDED_BITS = 40
"""Room for rounding is this power of 1/2: some thousand times the rounding of one operation."""
_SIZE_BITS = 60
"""Binary digits after the point to which what a row adds up is rounded up, so that room has short numbers."""
_BOUND_BITS = 20
"""The same for bounds that rows imply."""
_MOST_BITS = 16_384
"""Of the common denominator of a model."""

Bounds = list[int | None]


def program_of(model: ExactModel, claim: Fraction, fine: bool = False, cutoff: Fraction | None = None) -> Program:
    """The model in whole numbers, with the bounds that columns have in solutions below ``claim``.

    Parameters
    ----------
    fine : bool
        Whether the unit is to be small even if all figures are whole: for rows of cuts, which are not.
    cutoff : Fraction, optional
        Bounds are those of solutions below it, which is at least the claim: what cuts are depends on bounds, and has to
        stay as it is where a search has proven less than it wanted.

    Raises
    ------
    NotApplicableError
        If numbers are so far apart that whole ones would be too long.
    """
    cutoff = claim if cutoff is None else max(claim, cutoff)
    bottoms = {model.offset.denominator, *(value.denominator for _, value in model.cost)}
    for low, terms, high in model.rows:
        bottoms.update([value.denominator for _, value in terms])
        bottoms.update([limit.denominator for limit in (low, high) if limit is not None])
    unit = _common(bottoms if bottoms <= {1} and not fine else {*bottoms, 1 << (_SIZE_BITS + _ROUNDED_BITS)})
    stated = {limit.denominator for limit in (*model.lower, *model.upper) if limit is not None}
    least = 1 << (_BOUND_BITS if stated <= {1} else _SIZE_BITS + _ROUNDED_BITS)
    rows = _Rows(model, unit, _common({*stated, least}))
    lower, upper, _ = rows.completed(cutoff, Fraction(0), [0] * len(model.lower), [0] * len(model.upper))
    rows.largest = [max(abs(low or 0), abs(high or 0)) for low, high in zip(lower, upper, strict=True)]
    lost = Fraction(rows.room(rows.cost, (model.offset,), _is_whole((model.offset,), model.cost)), unit)
    down, up = ([rows.room_of_bound(limit) for limit in limits] for limits in (model.lower, model.upper))
    lower, upper, implied = rows.completed(cutoff, lost, down, up)
    cost = dict(rows.cost)
    return Program(
        unit, rows.grid, cost, rows, lower, upper, model.integer, model.offset, claim, step_of(model), cutoff, lost,
        implied,
    )  # fmt: skip


def claim_limit(claim: Fraction, offset: Fraction, lost: Fraction, unit: int) -> int:
    """What costs add up to at most in solutions up to the claim, in multiples of ``1 / unit``, rounded up."""
    return ceil((claim - offset + lost) * unit)


def step_of(model: ExactModel) -> Fraction | None:
    """The common divisor of costs, where all columns that have one are whole: objectives are on its grid."""
    costs = [value for _, value in model.cost]
    if not costs or not all(model.integer[column] for column, _ in model.cost):
        return None
    bottom = _common({value.denominator for value in costs})
    return Fraction(gcd(*(int(value * bottom) for value in costs)), bottom)


def _common(denominators: set[int]) -> int:
    found = lcm(*denominators)
    if found.bit_length() > _MOST_BITS:
        raise NotApplicableError("the model's figures are too far apart to be checked in whole numbers")
    return found


def _is_whole(limits: Sequence[Limit], terms: Terms) -> bool:
    known = (limit for limit in limits if limit is not None)
    return all(value.denominator == 1 for value in (*known, *(value for _, value in terms)))


class _Rows(Sequence[Row]):
    """Rows of a model in multiples of ``1 / unit``, with room for rounding, converted when they are asked for.

    Bounds of columns, and ``largest``, what a column is at most, are in multiples of ``1 / grid``.
    """

    def __init__(self, model: ExactModel, unit: int, grid: int) -> None:
        self.model, self.unit, self.grid = model, unit, grid
        self.cost = self._terms(model.cost)
        self.largest: list[int] | None = None
        self._known: dict[int, Sequence[tuple[int, int]]] = {}
        self._rooms: dict[int, int] = {}

    def __len__(self) -> int:
        """Rows of the model."""
        return len(self.model.rows)

    def __getitem__(self, row: Any) -> Any:
        """Lower limit, columns with coefficients, upper limit."""
        low, terms, high = self.model.rows[row]
        room = 0
        if self.largest is not None:
            if row not in self._rooms:
                self._rooms[row] = self.room(self.terms(row), (low, high), _is_whole((low, high), terms))
            room = self._rooms[row]
        first = None if low is None else low.numerator * (self.unit // low.denominator) - room
        last = None if high is None else high.numerator * (self.unit // high.denominator) + room
        return first, self.terms(row), last

    def terms(self, row: int) -> Sequence[tuple[int, int]]:
        """Columns with coefficients."""
        if row not in self._known:
            self._known[row] = self._terms(self.model.rows[row][1])
        return self._known[row]

    def _terms(self, terms: Terms) -> Sequence[tuple[int, int]]:
        return [(column, value.numerator * (self.unit // value.denominator)) for column, value in terms]

    def room(self, terms: Sequence[tuple[int, int]], limits: Sequence[Limit], whole: bool) -> int:
        """2⁻⁴⁰ of all that a row adds up at most, or a little more; 0 where all its numbers are ``whole``."""
        if whole:
            return 0
        assert self.largest is not None
        size = sum(abs(value) * self.largest[column] for column, value in terms)
        most = max((abs(limit) for limit in limits if limit is not None), default=Fraction(0))
        scale = self.unit * self.grid
        top = size * most.denominator + most.numerator * scale
        bottom = scale * most.denominator
        return -(-(top << _SIZE_BITS) // bottom) * (self.unit >> (_SIZE_BITS + _ROUNDED_BITS))

    def room_of_bound(self, limit: Limit) -> int:
        """The same of a bound of a column."""
        if limit is None or limit.denominator == 1:
            return 0
        size = -(-(abs(limit.numerator) << _SIZE_BITS) // limit.denominator)
        return size * (self.grid >> (_SIZE_BITS + _ROUNDED_BITS))

    def completed(
        self, claim: Fraction, lost: Fraction, down: Sequence[int], up: Sequence[int]
    ) -> tuple[Bounds, Bounds, dict[tuple[int, int], tuple[int, int]]]:
        """Bounds of columns, wider by ``down`` and ``up``; else those that rows and the claim imply, and how."""
        model, grid = self.model, self.grid
        lower: Bounds = [None if low is None else low.numerator * (grid // low.denominator) for low in model.lower]
        upper: Bounds = [None if top is None else top.numerator * (grid // top.denominator) for top in model.upper]
        lower = [None if low is None else low - room for low, room in zip(lower, down, strict=True)]
        upper = [None if high is None else high + room for high, room in zip(upper, up, strict=True)]
        for column, whole in enumerate(model.integer):
            low, high = lower[column], upper[column]
            if whole and low is not None:
                lower[column] = -(-low // grid) * grid
            if whole and high is not None:
                upper[column] = high // grid * grid
        implied: dict[tuple[int, int], tuple[int, int]] = {}
        if None not in lower and None not in upper:
            return lower, upper, implied
        first: Row = (None, self.cost, claim_limit(claim, model.offset, lost, self.unit))
        left = [-1, *range(len(model.rows))]
        for number in range(2 * _ROUNDS):
            before = len(implied)
            if number == _ROUNDS:  # a chain of rows that runs against their order gives one bound a round until then
                left.reverse()
            left = [row for row in left if self._imply(row, first, lower, upper, implied)]
            if len(implied) == before:
                break
        return lower, upper, implied

    def _imply(
        self, row: int, first: Row, lower: Bounds, upper: Bounds, implied: dict[tuple[int, int], tuple[int, int]]
    ) -> bool:
        """Fill in the bounds that a row gives to columns without one; whether it may give some later."""
        terms = first[1] if row < 0 else self.terms(row)
        if all(lower[column] is not None and upper[column] is not None for column, _ in terms):
            return False
        limits = first if row < 0 else self.model.rows[row]
        # As "sum at most limit", once for either side.
        for side, sign in ((1, 1), (0, -1)):
            if (limits[2] if side else limits[0]) is None:
                continue
            near, far = (lower, upper) if sign > 0 else (upper, lower)
            endless = -1
            for column, value in terms:
                if (near if value > 0 else far)[column] is None:
                    if endless >= 0:
                        break
                    endless = column
            else:
                wanted = [
                    (column, value)
                    for column, value in terms
                    if endless in (-1, column) and (far if value > 0 else near)[column] is None
                ]
                if wanted:
                    low, _, high = first if row < 0 else self[row]
                    limit = high if side else low
                    assert limit is not None
                    least = [v * b for c, v in terms if (b := (near if v > 0 else far)[c]) is not None]
                    self._fill(wanted, sign, sign * (limit * self.grid - sum(least)), lower, upper)
                    implied.update(((int(sign * value > 0), column), (row, side)) for column, value in wanted)
        return True

    def _fill(self, wanted: Sequence[tuple[int, int]], sign: int, spare: int, lower: Bounds, upper: Bounds) -> None:
        """Bounds that are left by ``spare``, of a row in multiples of ``1 / (unit grid)``, on the safe side."""
        for column, value in wanted:
            times = sign * value
            bounds, others = (upper, lower) if times > 0 else (lower, upper)
            top = spare + times * (others[column] or 0)
            if times < 0:
                top, times = -top, -times
            bottom = times * self.grid
            if self.model.integer[column]:  # towards the others: the column is whole
                bounds[column] = (top // bottom if bounds is upper else -(-top // bottom)) * self.grid
            else:
                top <<= _BOUND_BITS
                found = -(-top // bottom) if bounds is upper else top // bottom
                bounds[column] = found * (self.grid >> _BOUND_BITS)
