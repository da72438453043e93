r"""The checker of trees: plain Python, whole numbers, no solver, nothing of the search.

**What is proven.** Of a mixed-integer program "minimise :math:`c x + c_0` with :math:`L \le A x \le U`,
:math:`l \le x \le u`, some :math:`x_j` whole", that no solution has an objective below B.

**Why.** Suppose that one had. Then :math:`c x + c_0 \le B`, which is a row like the others, and all rows together imply
bounds of columns that had none (:func:`_completed`). The tree divides the solutions: at a branching, either
:math:`x_j \le v` or :math:`x_j \ge v + 1`, as :math:`x_j` is whole and v is. At a leaf stand multipliers y of some
rows, with 0 for the others. For any y whatever

.. math::
    c x = y A x + (c - y A)\, x \ge \sum_{y_i > 0} y_i L_i + \sum_{y_i < 0} y_i U_i + \sum_j \min\{d_j l_j, d_j u_j\}

with :math:`d = c - y A` and the bounds of the leaf (Neumaier, Shcherbina, 2004). If that with :math:`c_0` is at least
B, the leaf has no solution below B. If the same with 0 in place of c is positive, the leaf has no solution at all,
as :math:`0 \ge` a positive number. Where all columns with a cost are whole ones, objectives are
:math:`c_0` and whole multiples of the common divisor of the costs, and what a leaf proves is rounded up to these.

All numbers are rational; multipliers are whole multiples of a power of two.

**Rounded coefficients.** A formulation calculates some of its coefficients in floating point, so that a true solution
may miss a row of the model by its last digits, and rows that contradict each other by as little would prove anything.
So every row that has a number which is not whole is taken with limits that are wider by 2⁻⁴⁰ of all that it adds up at
most (:func:`_loosened`), bounds of columns likewise, and what a leaf proves is less by the same part of all costs.
Columns that remain without bounds count for nothing in this.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from math import ceil, floor, gcd, lcm

from ddlopt.models.errors import NotApplicableError, RefutedError
from ddlopt.models.linear_proof.rows import ExactModel, Limit

_ROUNDS = 20
"""Of looking for bounds of columns that have none."""
_ROUNDED_BITS = 40
"""Some thousand times the rounding of one operation."""
_MOST_BITS = 16_384
"""Of the common denominator of a model."""


@dataclass(frozen=True)
class Program:
    """A model in whole numbers, for a bound that is to be proven.

    Parameters
    ----------
    unit : int
        Costs, coefficients and limits of rows are multiples of ``1 / unit``.
    grid : int
        Bounds of columns are multiples of ``1 / grid``.
    cost : dict of int to int
    rows : tuple of (low, columns and coefficients, high)
    lower, upper : tuple of int or None
        None where there is none.
    integer : tuple of bool
    offset : Fraction
    claim : Fraction
        B.
    step : Fraction or None
        Objectives less the offset are whole multiples of it; None where that is not known.
    lost : Fraction
        What rounded costs may add up to.
    """

    unit: int
    grid: int
    cost: Mapping[int, int]
    rows: tuple[tuple[int | None, tuple[tuple[int, int], ...], int | None], ...]
    lower: tuple[int | None, ...]
    upper: tuple[int | None, ...]
    integer: tuple[bool, ...]
    offset: Fraction
    claim: Fraction
    step: Fraction | None
    lost: Fraction = Fraction(0)

    def value(
        self,
        exponent: int,
        multipliers: Mapping[int, int],
        lower: Mapping[int, int],
        upper: Mapping[int, int],
        infeasible: bool = False,
    ) -> Fraction | None:
        """What multipliers prove: a lower bound of the objective at a leaf, or above 0 that it has no solution.

        Parameters
        ----------
        exponent : int
            Multiplier i is ``multipliers[i] / 2**exponent``.
        lower, upper : mapping of int to int
            Bounds of whole columns at the leaf, where they differ from those at the root.
        infeasible : bool
            Whether costs count as 0.

        Returns
        -------
        Fraction or None
            None if a row or column has not the limit that is needed: nothing is proven then.
        """
        power = 1 << exponent
        reduced = {} if infeasible else {column: value * power for column, value in self.cost.items()}
        sides = 0
        for row, multiplier in multipliers.items():
            low, terms, high = self.rows[row]
            limit = low if multiplier > 0 else high
            if limit is None:
                if multiplier:
                    return None
                continue
            sides += multiplier * limit
            for column, coefficient in terms:
                reduced[column] = reduced.get(column, 0) - multiplier * coefficient
        columns = 0
        for column, value in reduced.items():
            if not value:
                continue
            changed = lower if value > 0 else upper
            if column in changed:
                bound: int | None = changed[column] * self.grid
            else:
                bound = self.lower[column] if value > 0 else self.upper[column]
            if bound is None:
                return None
            columns += value * bound
        found = Fraction(sides * self.grid + columns, power * self.unit * self.grid)
        return found if infeasible else found + self.offset - self.lost

    def suffices(self, value: Fraction | None, infeasible: bool = False) -> bool:
        """Whether what :meth:`value` found closes a leaf."""
        if value is None:
            return False
        if infeasible:
            return value > 0
        if value >= self.claim:
            return True
        return self.step is not None and self.offset + ceil((value - self.offset) / self.step) * self.step >= self.claim


def program_of(model: ExactModel, claim: Fraction) -> Program:
    """The model in whole numbers, with the bounds that columns have in solutions below ``claim``.

    Raises
    ------
    NotApplicableError
        If numbers are so far apart that whole ones would be too long.
    """
    model, lower, upper, lost = _loosened(model, claim)
    figures = [value for _, value in model.cost]
    for low, terms, high in model.rows:
        figures += [value for _, value in terms]
        figures += [limit for limit in (low, high) if limit is not None]
    unit = _denominator(figures)
    grid = _denominator([limit for limit in (*lower, *upper) if limit is not None])

    def whole(value: Limit, scale: int) -> int | None:
        return None if value is None else int(value * scale)

    rows = tuple(
        (whole(low, unit), tuple((column, int(value * unit)) for column, value in terms), whole(high, unit))
        for low, terms, high in model.rows
    )
    return Program(
        unit,
        grid,
        {column: int(value * unit) for column, value in model.cost},
        rows,
        tuple(whole(limit, grid) for limit in lower),
        tuple(whole(limit, grid) for limit in upper),
        model.integer,
        model.offset,
        claim,
        step_of(model),
        lost,
    )


def _denominator(values: Sequence[Fraction]) -> int:
    found = lcm(*{value.denominator for value in values})
    if found.bit_length() > _MOST_BITS:
        raise NotApplicableError("the model's figures are too far apart to be checked in whole numbers")
    return found


def _loosened(model: ExactModel, claim: Fraction) -> tuple[ExactModel, list[Limit], list[Limit], Fraction]:
    """The model with room for what rounding has done to its figures; bounds of columns, and what costs may lose."""
    none = Fraction(0)
    limits = zip(*_completed(model, claim, none), strict=True)
    largest = [max(abs(low or none), abs(high or none)) for low, high in limits]
    lost = _room(model.cost, (model.offset,), largest)
    rows = []
    for low, terms, high in model.rows:
        room = _room(terms, (low, high), largest)
        rows.append((None if low is None else low - room, terms, None if high is None else high + room))
    lower = tuple(None if low is None else low - _room((), (low,), largest) for low in model.lower)
    upper = tuple(None if high is None else high + _room((), (high,), largest) for high in model.upper)
    loose = replace(model, rows=tuple(rows), lower=lower, upper=upper)
    return loose, *_completed(loose, claim, lost), lost


def _room(terms: Sequence[tuple[int, Fraction]], limits: Sequence[Limit], largest: Sequence[Fraction]) -> Fraction:
    """2⁻⁴⁰ of all that a row adds up at most, or a little more; 0 where all its numbers are whole."""
    known = [limit for limit in limits if limit is not None]
    if all(value.denominator == 1 for value in (*known, *(value for _, value in terms))):
        return Fraction(0)
    size = sum((abs(value) * largest[column] for column, value in terms), Fraction(0))
    size += max((abs(limit) for limit in known), default=Fraction(0))
    return Fraction(ceil(size * 2**60), 2 ** (60 + _ROUNDED_BITS))


def step_of(model: ExactModel) -> Fraction | None:
    """The common divisor of costs, where all columns that have one are whole: objectives are on its grid."""
    costs = [value for _, value in model.cost]
    if not costs or not all(model.integer[column] for column, _ in model.cost):
        return None
    bottom = _denominator(costs)
    return Fraction(gcd(*(int(value * bottom) for value in costs)), bottom)


def _completed(model: ExactModel, claim: Fraction, lost: Fraction) -> tuple[list[Limit], list[Limit]]:
    """Bounds of columns; where there are none, those that the rows and an objective up to ``claim`` imply."""
    lower, upper = list(model.lower), list(model.upper)
    for column, whole in enumerate(model.integer):
        low, high = lower[column], upper[column]
        if whole and low is not None:
            lower[column] = Fraction(ceil(low))
        if whole and high is not None:
            upper[column] = Fraction(floor(high))
    rows = [(None, model.cost, claim - model.offset + lost), *model.rows]
    for _ in range(_ROUNDS):
        changes = [_imply(row, lower, upper, model.integer) for row in rows]
        if not any(changes):
            break
    return lower, upper


def _imply(
    row: tuple[Limit, Sequence[tuple[int, Fraction]], Limit],
    lower: list[Limit],
    upper: list[Limit],
    integer: Sequence[bool],
) -> bool:
    """Fill in the bounds that a row gives to columns without one; whether there was one to fill in."""
    low, terms, high = row
    if all(lower[column] is not None and upper[column] is not None for column, _ in terms):
        return False
    changed = False
    # As "sum at most limit", once for either side.
    for limit, sign in ((high, 1), (None if low is None else -low, -1)):
        if limit is None:
            continue
        least, endless = Fraction(0), list[int]()
        for column, value in terms:
            bound = lower[column] if sign * value > 0 else upper[column]
            if bound is None:
                endless.append(column)
            else:
                least += sign * value * bound
        for column, value in terms if len(endless) <= 1 else ():
            times = sign * value
            if endless and column != endless[0]:
                continue
            bounds, others = (upper, lower) if times > 0 else (lower, upper)
            if bounds[column] is not None:
                continue
            own = others[column]
            rest = least if own is None else least - times * own
            found = (limit - rest) / times
            if integer[column]:
                found = Fraction(floor(found) if times > 0 else ceil(found))
            bounds[column] = _rounded(found, times > 0)
            changed = True
            if own is None:
                break  # what is endless has its other side now; the least sum is still endless
    return changed


def _rounded(value: Fraction, up: bool) -> Fraction:
    """A near number with a short denominator, on the safe side."""
    scaled = value * 2**20
    return Fraction(ceil(scaled) if up else floor(scaled), 2**20)


def check_tree(program: Program, nodes: Sequence[Sequence[object]]) -> Iterator[None]:
    """Go through a tree, node by node, in the order in which it is written; it yields after each.

    A node is ``["branch", column, v]``, followed by the tree for at most v and by that for at least v + 1; or
    ``["dual", exponent, rows, multipliers]`` or ``["farkas", exponent, rows, multipliers]``, a leaf.

    Raises
    ------
    RefutedError
        If a leaf is not closed, or the tree is not complete; the message names the node.
    """
    limits: tuple[dict[int, int], dict[int, int]] = {}, {}
    # What was there before each change, so that memory grows with the depth and not with its square.
    changed: list[tuple[int, int, int | None]] = []
    # How many changes a case has, and the one that is its own: side (0 from below), column, limit.
    waiting: list[tuple[int, tuple[int, int, int] | None]] = [(0, None)]
    for place, node in enumerate(nodes):
        if not waiting:
            raise RefutedError(f"node {place} belongs to no tree; the tree ends before it")
        depth, own = waiting.pop()
        while len(changed) > depth:
            side, column, before = changed.pop()
            if before is None:
                del limits[side][column]
            else:
                limits[side][column] = before
        if own is not None:
            side, column, limit = own
            before = limits[side].get(column)
            changed.append((side, column, before))
            tightest = max if side == 0 else min
            limits[side][column] = limit if before is None else tightest(before, limit)
        if node[0] == "branch":
            _, branched, split = node
            assert isinstance(branched, int)
            assert isinstance(split, int)
            if not branched < len(program.integer) or not program.integer[branched]:
                raise RefutedError(f"node {place} branches on column {branched}, which is not in whole numbers")
            waiting.append((len(changed), (0, branched, split + 1)))
            waiting.append((len(changed), (1, branched, split)))
        else:
            _check_leaf(program, place, node, *limits)
        yield
    if waiting:
        raise RefutedError(f"the tree has {len(nodes)} nodes, and {len(waiting)} cases are open")


def _check_leaf(
    program: Program, place: int, node: Sequence[object], lower: dict[int, int], upper: dict[int, int]
) -> None:
    kind, exponent, rows, multipliers = node
    assert isinstance(exponent, int)
    assert isinstance(rows, list)
    assert isinstance(multipliers, list)
    if rows and rows[-1] >= len(program.rows):
        raise RefutedError(f"node {place} names row {rows[-1]}, but there are {len(program.rows)}")
    infeasible = kind == "farkas"
    found = program.value(exponent, dict(zip(rows, multipliers, strict=True)), lower, upper, infeasible)
    if not program.suffices(found, infeasible):
        says = "nothing" if found is None else f"{float(found):.12g}"
        needed = "more than 0" if infeasible else f"{float(program.claim):.12g}"
        raise RefutedError(f"node {place} proves {says} where {needed} is needed")
