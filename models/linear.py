"""Linear rows that read like their formula and are built as fast as lists.

Pyomo's own arithmetic makes an object for every operation; models with hundreds of thousands of terms are built with
these sums instead::

    rows = Rows()
    for v in nodes:
        rows["flow_is_conserved"][v] = total(x[arc] for arc in out[v]) - total(x[arc] for arc in into[v]) == supply[v]
        rows["switch_is_open"][v] = total(x[arc] for arc in out[v]) <= capacity[v] * term(is_open[v])
    rows.add_to(block, flow_is_conserved="what comes in goes out", switch_is_open="only open switches forward")
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

import pyomo.environ as pyo
from pyomo.core.expr.numeric_expr import LinearExpression
from pyomo.repn import generate_standard_repn

from ddlopt.models.errors import InfeasibleError, RangeError
from ddlopt.models.tolerances import FEASIBILITY_TOL, NEGLIGIBLE_COEFFICIENT
from ddlopt.models.units import LARGEST_COEFFICIENT, unit_of

_LEAST_SCALE = 2.0**-30
"""Of a row, as a part of what the others count in: what is smaller is nothing beside them."""


class Sum:
    """A sum of variables with coefficients and a constant; operators make new sums, comparisons make rows."""

    __slots__ = ("coefficients", "constant", "variables")
    __hash__ = None  # type: ignore[assignment]

    def __init__(self, coefficients: list[float], variables: list[Any], constant: float = 0.0) -> None:
        self.coefficients, self.variables, self.constant = coefficients, variables, constant

    def __add__(self, other: "Sum | float") -> "Sum":
        """The sum of both; the terms of the other follow."""
        if isinstance(other, Sum):
            return Sum(
                self.coefficients + other.coefficients,
                self.variables + other.variables,
                self.constant + other.constant,
            )
        return Sum(self.coefficients, self.variables, self.constant + other)

    __radd__ = __add__

    def __neg__(self) -> "Sum":
        """All signs changed."""
        return Sum([-each for each in self.coefficients], self.variables, -self.constant)

    def __sub__(self, other: "Sum | float") -> "Sum":
        """The difference."""
        return self + -other

    def __rsub__(self, other: float) -> "Sum":
        """A number less this."""
        return -self + other

    def __mul__(self, factor: float) -> "Sum":
        """Times a number."""
        return Sum([factor * each for each in self.coefficients], self.variables, factor * self.constant)

    __rmul__ = __mul__

    def __le__(self, other: "Sum | float") -> "Row":
        """At most the other side."""
        left, right = _sides(self, other)
        return Row(None, left, right)

    def __ge__(self, other: "Sum | float") -> "Row":
        """At least the other side."""
        left, right = _sides(self, other)
        return Row(right, left, None)

    def __eq__(self, other: "Sum | float") -> "Row":  # type: ignore[override]
        """Equal to the other side."""
        left, right = _sides(self, other)
        return Row(right, left, right)

    @property
    def expression(self) -> LinearExpression:
        """For Pyomo: of an objective or a named expression."""
        return LinearExpression(constant=self.constant, linear_coefs=self.coefficients, linear_vars=self.variables)


class Row(NamedTuple):
    """A lower limit or None, a sum without constant, an upper limit or None."""

    low: float | None
    sum: Sum
    high: float | None


def _sides(left: Sum, right: Sum | float) -> tuple[Sum, float]:
    """Variables on the left, without a constant, and the constant on the right."""
    if isinstance(right, Sum):
        left = left - right
        right = 0.0
    return Sum(left.coefficients, left.variables), right - left.constant


def total(variables: Iterable[Any]) -> Sum:
    """The sum of variables."""
    variables = list(variables)
    return Sum([1.0] * len(variables), variables)


def term(variable: Any) -> Sum:
    """A variable by itself."""
    return Sum([1.0], [variable])


def weighted(pairs: Iterable[tuple[float, Any]]) -> Sum:
    """The sum of variables times coefficients, which come first."""
    pairs = list(pairs)
    return Sum([value for value, _ in pairs], [variable for _, variable in pairs])


def notable(sum_: Sum) -> Sum:
    """A sum without terms so small that solvers drop them; for those of about 1."""
    pairs = zip(sum_.coefficients, sum_.variables, strict=True)
    return weighted(pair for pair in pairs if abs(pair[0]) > NEGLIGIBLE_COEFFICIENT) + sum_.constant


def joined(sums: Iterable[Sum]) -> Sum:
    """The sum of many sums."""
    coefficients, variables, constant = [], [], 0.0
    for each in sums:
        coefficients += each.coefficients
        variables += each.variables
        constant += each.constant
    return Sum(coefficients, variables, constant)


def linear(terms: Iterable[tuple[float, Any]], constant: float = 0.0) -> LinearExpression:
    """For Pyomo: the sum of variables times coefficients, which come first, and a constant."""
    pairs = list(terms)
    return LinearExpression(
        constant=constant, linear_coefs=[value for value, _ in pairs], linear_vars=[variable for _, variable in pairs]
    )


def covers(variable: Any, busy: Sum) -> Row:
    """A variable that is at least a sum of parts none of which is negative: terms with one coefficient, the constant.

    The row counts in a unit of its own, a power of two: those of links that are much faster than others have
    coefficients that solvers would drop. Parts that are negligible beside the largest of the row are left out, which
    makes the row weaker.
    """
    largest = max([busy.constant, *busy.coefficients], default=0.0)
    scale = max(unit_of(largest, parts=1), _LEAST_SCALE) if largest < 1 else 1.0
    kept = [(c / scale, x) for c, x in zip(busy.coefficients, busy.variables, strict=True)]
    kept = [(c, x) for c, x in kept if abs(c) > NEGLIGIBLE_COEFFICIENT]
    return (1 / scale) * term(variable) >= weighted(kept) + busy.constant / scale


def significant(terms: Iterable[tuple[float, Any]], constant: float = 0.0) -> LinearExpression:
    """The same without coefficients so small that solvers drop them; for terms of about 1, or 1000."""
    return linear([(value, variable) for value, variable in terms if abs(value) > NEGLIGIBLE_COEFFICIENT], constant)


class Family(dict[Any, Row]):
    """Rows that say the same, by index."""

    def __setitem__(self, index: Any, row: Row) -> None:
        """Add a row; there is one for an index."""
        if index in self:
            raise KeyError(f"there is a row {index} already")
        super().__setitem__(index, row)


class Rows(dict[str, Family]):
    """Rows by what they say; each family becomes a constraint of a block, with the same indices.

    A row that has no others beside it has index None.
    """

    def __missing__(self, name: str) -> Family:
        """Begin a family."""
        self[name] = Family()
        return self[name]

    def add_to(self, block: pyo.Block, **docs: str) -> None:
        """Give ``block`` a constraint for each name of ``docs``, with what they say of it; it may have no rows.

        Raises
        ------
        InfeasibleError
            If a row without variables does not hold.
        KeyError
            If ``docs`` leave rows out.
        """
        if self.keys() - docs.keys():
            raise KeyError(f"nothing is said of the rows {sorted(self.keys() - docs.keys())}")
        for name, doc in docs.items():
            kept = {}
            for index, row in self.get(name, {}).items():
                if row.sum.variables:
                    kept[index] = row
                elif (row.low or 0.0) > FEASIBILITY_TOL or (row.high is not None and row.high < -FEASIBILITY_TOL):
                    raise InfeasibleError(f"{doc}: row {index} has no variables and does not hold")
            block.add_component(name, _constraint(kept, doc))


def _constraint(rows: Mapping[Any, Row], doc: str) -> pyo.Constraint:
    if list(rows) == [None]:
        low, sum_, high = rows[None]
        return pyo.Constraint(expr=(low, sum_.expression, high), doc=doc)

    def rule(_: Any, *index: Any) -> Any:
        low, sum_, high = rows[index if len(index) != 1 else index[0]]
        return low, sum_.expression, high

    return pyo.Constraint(list(rows), rule=rule, doc=doc)


def check_range(block: pyo.Block, name: str, largest: float = LARGEST_COEFFICIENT) -> None:
    """Refuse rows of a built ``block`` with a coefficient that no tolerance of a solver allows for.

    Raises
    ------
    RangeError
        If one exceeds ``largest``, with the row and the variable.
    """
    for row in block.component_data_objects(pyo.Constraint, active=True):
        for part in _linear_parts(row):
            values = part.linear_coefs
            if values and max(max(values), -min(values)) > largest:
                place = max(range(len(values)), key=lambda k: abs(values[k]))
                raise RangeError(
                    f"'{name}': row '{row.name}' has coefficient {float(values[place]):.3g} at "
                    f"'{part.linear_vars[place].name}', in units of which the objective is a few thousand, more than "
                    f"{largest:g}: figures of the instance are too far apart for this formulation; use "
                    "another method, or leave out what is never chosen"
                )


def _linear_parts(row: Any) -> Iterator[Any]:
    """Its body as linear expressions: what most rows are made of, or the standard form of others."""
    if row.expr is None:
        return
    whole = True
    for part in row.expr.args:
        if part.__class__ is LinearExpression:
            yield part
        elif part is not None and not isinstance(part, int | float):
            whole = False
    if not whole:
        yield generate_standard_repn(row.body, compute_values=True, quadratic=False)
