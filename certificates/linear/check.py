r"""The checker of trees: plain Python, whole numbers, no solver, nothing of the search.

**What is proven.** Of a mixed-integer program "minimise :math:`c x + c_0` with :math:`L \le A x \le U`,
:math:`l \le x \le u`, some :math:`x_j` whole", that no solution has an objective below B.

**Why.** Suppose that one had. Then :math:`c x + c_0 \le B`, which is a row like the others, and all rows together imply
bounds of columns that had none (:mod:`~ddlopt.certificates.linear.program`). The tree divides the solutions: at a
branching, either :math:`x_j \le v` or :math:`x_j \ge v + 1`, as :math:`x_j` is whole and v is. At a leaf stand
multipliers y of some rows, with 0 for the others. For any y whatever

.. math::
    c x = y A x + (c - y A)\, x \ge \sum_{y_i > 0} y_i L_i + \sum_{y_i < 0} y_i U_i + \sum_j \min\{d_j l_j, d_j u_j\}

with :math:`d = c - y A` and the bounds of the leaf (Neumaier, Shcherbina, 2004). If that with :math:`c_0` is at least
B, the leaf has no solution below B. If the same with 0 in place of c is positive, the leaf has no solution at all,
as :math:`0 \ge` a positive number. Multipliers that close no leaf may do so wherever a whole column is far enough from
the bound that it is counted at: such values of it are left out in what follows (reduced cost fixing). Where all columns
with a cost are whole ones, objectives are :math:`c_0` and whole multiples of the common divisor of the costs, and what
a leaf proves is rounded up to these.

All numbers are rational; multipliers are whole multiples of a power of two.

**Rounded coefficients.** A formulation calculates some of its coefficients in floating point, so that a true solution
may miss a row of the model by its last digits, and rows that contradict each other by as little would prove anything.
So every row that has a number which is not whole is taken with limits that are wider by 2⁻⁴⁰ of all that it adds up at
most, bounds of columns likewise, and what a leaf proves is less by the same part of all costs.
Columns that remain without bounds count for nothing in this.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from math import ceil, floor

from ddlopt.models.errors import RefutedError

Row = tuple[int | None, Sequence[tuple[int, int]], int | None]
"""Lower limit, columns with coefficients, upper limit; a limit is None where there is none."""


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
    rows : sequence of (low, columns and coefficients, high)
    lower, upper : sequence of int or None
        None where there is none.
    integer : tuple of bool
    offset : Fraction
    claim : Fraction
        B.
    step : Fraction or None
        Objectives less the offset are whole multiples of it; None where that is not known.
    cutoff : Fraction
        At least B: bounds that the model does not state may be those of solutions below it only.
    lost : Fraction
        What rounded costs may add up to.
    implied : mapping
        Of bounds that the model does not state, by side (0 from below) and column: the row, -1 for the claim, and which
        side of it (0 its lower limit). Each follows from that row and bounds that stand before it, or are the model's.
    """

    unit: int
    grid: int
    cost: Mapping[int, int]
    rows: Sequence[Row]
    lower: Sequence[int | None]
    upper: Sequence[int | None]
    integer: tuple[bool, ...]
    offset: Fraction
    claim: Fraction
    step: Fraction | None
    cutoff: Fraction
    lost: Fraction = Fraction(0)
    implied: Mapping[tuple[int, int], tuple[int, int]] = field(default_factory=dict)

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
        found, _ = self._combined(exponent, multipliers, lower, upper, infeasible)
        if found is None:
            return None
        proven = Fraction(found, (self.unit * self.grid) << exponent)
        return proven if infeasible else proven + self.offset - self.lost

    def _combined(
        self,
        exponent: int,
        multipliers: Mapping[int, int],
        lower: Mapping[int, int],
        upper: Mapping[int, int],
        infeasible: bool,
    ) -> tuple[int | None, dict[int, int]]:
        """The bound without offset, in multiples of ``1 / (2**exponent unit grid)``, and the reduced costs d."""
        reduced = {} if infeasible else {column: value << exponent for column, value in self.cost.items()}
        sides = 0
        for row, multiplier in multipliers.items():
            low, terms, high = self.rows[row]
            limit = low if multiplier > 0 else high
            if limit is None:
                if multiplier:
                    return None, reduced
                continue
            sides += multiplier * limit
            for column, coefficient in terms:
                reduced[column] = reduced.get(column, 0) - multiplier * coefficient
        columns = 0
        for column, value in reduced.items():
            if not value:
                continue
            bound = self._bound(column, 0 if value > 0 else 1, lower, upper)
            if bound is None:
                return None, reduced
            columns += value * bound
        return sides * self.grid + columns, reduced

    def _bound(self, column: int, side: int, lower: Mapping[int, int], upper: Mapping[int, int]) -> int | None:
        """Of a column from below (side 0) or above, at a case, in multiples of ``1 / grid``."""
        changed = (lower, upper)[side]
        return changed[column] * self.grid if column in changed else (self.lower, self.upper)[side][column]

    def fixed(
        self,
        exponent: int,
        multipliers: Mapping[int, int],
        lower: Mapping[int, int],
        upper: Mapping[int, int],
        infeasible: bool = False,
    ) -> list[tuple[int, int, int]]:
        """Bounds of whole columns beyond which the same multipliers close the case: reduced cost fixing.

        A column with a positive reduced cost that is t above its lower bound adds t times that cost to what is proven.

        Parameters
        ----------
        exponent, multipliers, lower, upper, infeasible
            As of :meth:`value`.

        Returns
        -------
        list of (side, column, limit)
            Side 0 is a bound from below. Only bounds that are tighter than those of the case; none where the
            multipliers prove nothing.
        """
        found, reduced = self._combined(exponent, multipliers, lower, upper, infeasible)
        if found is None:
            return []
        least, strictly = self._needed(infeasible)
        missing = least * ((self.unit * self.grid) << exponent) - found
        limits = []
        for column, value in reduced.items():
            if not value or not self.integer[column]:
                continue
            far = missing / (abs(value) * self.grid)
            # Below 1 where the multipliers close the case: bounds then leave nothing, as with a lower claim they must.
            steps = floor(far) + 1 if strictly else ceil(far)
            near = self._bound(column, 0 if value > 0 else 1, lower, upper)
            assert near is not None
            limit = near // self.grid + (steps - 1 if value > 0 else 1 - steps)
            before = self._bound(column, 1 if value > 0 else 0, lower, upper)
            if before is None or (limit * self.grid < before if value > 0 else limit * self.grid > before):
                limits.append((1 if value > 0 else 0, column, limit))
        return limits

    def _needed(self, infeasible: bool) -> tuple[Fraction, bool]:
        """What :meth:`_combined` has to reach to close a case, or (True) to exceed: the same as :meth:`suffices`."""
        if infeasible:
            return Fraction(0), True
        if self.step is None:
            return self.claim - self.offset + self.lost, False
        return (ceil((self.claim - self.offset) / self.step) - 1) * self.step + self.lost, True

    def suffices(self, value: Fraction | None, infeasible: bool = False) -> bool:
        """Whether what :meth:`value` found closes a leaf."""
        if value is None:
            return False
        if infeasible:
            return value > 0
        if value >= self.claim:
            return True
        return self.step is not None and self.offset + ceil((value - self.offset) / self.step) * self.step >= self.claim


def check_tree(program: Program, nodes: Sequence[Sequence[object]]) -> Iterator[None]:
    """Go through a tree, node by node, in the order in which it is written; it yields after each.

    Cutting planes are rows of the program here (:mod:`~ddlopt.certificates.linear.cuts`).

    A node is ``["branch", column, v]``, followed by the tree for at most v and by that for at least v + 1;
    ``["dual", exponent, rows, multipliers]`` or ``["farkas", exponent, rows, multipliers]``, a leaf; or
    ``["fix", exponent, rows, multipliers]``, followed by the tree for what :meth:`Program.fixed` leaves.

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
        elif node[0] == "fix":
            exponent, multipliers = _multipliers(program, place, node)
            for side, column, limit in program.fixed(exponent, multipliers, *limits):
                changed.append((side, column, limits[side].get(column)))
                limits[side][column] = limit
            waiting.append((len(changed), None))
        else:
            _check_leaf(program, place, node, *limits)
        yield
    if waiting:
        raise RefutedError(f"the tree has {len(nodes)} nodes, and {len(waiting)} cases are open")


def _check_leaf(
    program: Program, place: int, node: Sequence[object], lower: dict[int, int], upper: dict[int, int]
) -> None:
    exponent, multipliers = _multipliers(program, place, node)
    infeasible = node[0] == "farkas"
    found = program.value(exponent, multipliers, lower, upper, infeasible)
    if not program.suffices(found, infeasible):
        says = "nothing" if found is None else f"{float(found):.12g}"
        needed = "more than 0" if infeasible else f"{float(program.claim):.12g}"
        raise RefutedError(f"node {place} proves {says} where {needed} is needed")


def _multipliers(program: Program, place: int, node: Sequence[object]) -> tuple[int, dict[int, int]]:
    _, exponent, rows, multipliers = node
    assert isinstance(exponent, int)
    assert isinstance(rows, list)
    assert isinstance(multipliers, list)
    if rows and rows[-1] >= len(program.rows):
        raise RefutedError(f"node {place} names row {rows[-1]}, but there are {len(program.rows)}")
    return exponent, dict(zip(rows, multipliers, strict=True))
