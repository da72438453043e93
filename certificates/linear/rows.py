"""A linear Pyomo model in rational numbers: every floating-point number in it is the fraction that it is.

It shares nothing with the reader that solvers are fed by. What it adds up and multiplies is not rounded; a
coefficient that a formulation has calculated in floating point is taken as it stands there.
"""

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from math import isfinite
from typing import Any

import pyomo.environ as pyo
from pyomo.common.numeric_types import native_numeric_types
from pyomo.core.expr.numeric_expr import (
    DivisionExpression,
    LinearExpression,
    MonomialTermExpression,
    NegationExpression,
    ProductExpression,
    SumExpression,
)
from pyomo.core.expr.relational_expr import EqualityExpression, InequalityExpression, RangedExpression

from ddlopt.models.errors import NotApplicableError

Terms = tuple[tuple[int, Fraction], ...]
Limit = Fraction | None
_KINDS = {pyo.Block, pyo.Constraint, pyo.Expression, pyo.Objective, pyo.Param, pyo.RangeSet, pyo.Set, pyo.Suffix,
          pyo.Var, pyo.BuildAction, pyo.BuildCheck}  # fmt: skip


@dataclass(frozen=True)
class ExactModel:
    """Minimise ``cost x + offset`` with ``low <= row x <= high``, bounds on x, and some columns in whole numbers.

    What is maximised has its signs changed.

    Parameters
    ----------
    maximised : bool
    cost : tuple of (column, coefficient)
    offset : Fraction
    rows : tuple of (low, terms, high)
        A limit is None where there is none.
    lower, upper : tuple of Fraction or None
    integer : tuple of bool
    """

    maximised: bool
    cost: Terms
    offset: Fraction
    rows: tuple[tuple[Limit, Terms, Limit], ...]
    lower: tuple[Limit, ...]
    upper: tuple[Limit, ...]
    integer: tuple[bool, ...]

    @property
    def digest(self) -> str:
        """SHA-256 of all figures in the order of declaration."""
        text = hashlib.sha256(f"{self.maximised} {self.offset} {_text(self.cost)}\n".encode())
        for low, terms, high in self.rows:
            text.update(f"{low} {high} {_text(terms)}\n".encode())
        for column in zip(self.lower, self.upper, self.integer, strict=True):
            text.update(f"{column[0]} {column[1]} {column[2]}\n".encode())
        return text.hexdigest()


def exact_model(model: pyo.ConcreteModel) -> ExactModel:
    """The active part of a model, rows and columns in the order of declaration.

    Raises
    ------
    NotApplicableError
        If something in it is not linear or not finite.
    """
    kinds = set(model.collect_ctypes(active=True, descend_into=True)) - _KINDS
    if kinds:
        raise NotApplicableError(f"the model has components that are not linear: {min(k.__name__ for k in kinds)}")
    columns = _columns(model)
    reader = _Reader(columns)
    objectives = list(model.component_data_objects(pyo.Objective, active=True))
    if len(objectives) != 1:
        raise NotApplicableError(f"the model has {len(objectives)} objectives; one is needed")
    maximised = objectives[0].sense == pyo.maximize
    cost, offset = reader.sum(objectives[0].expr, -1 if maximised else 1)
    relations = (each.expr for each in model.component_data_objects(pyo.Constraint, active=True))
    rows = tuple([reader.row(relation) for relation in relations if relation is not None])
    limits = [reader.limits(variable) for variable in columns]
    return ExactModel(
        maximised,
        cost,
        offset,
        rows,
        tuple(low for low, _ in limits),
        tuple(high for _, high in limits),
        tuple(not variable.is_continuous() for variable in columns),
    )


def _columns(model: pyo.ConcreteModel) -> list[Any]:
    found: dict[int, Any] = {}
    for component in model.component_objects(pyo.Var, active=True):
        for variable in component.values():
            found.setdefault(id(variable), variable)
    return list(found.values())


class _Reader:
    """Reads expressions of the variables in ``columns``; a number that occurs again is converted once."""

    def __init__(self, columns: list[Any]) -> None:
        self.place = {id(variable): place for place, variable in enumerate(columns)}
        self.known: dict[int, dict[Any, Fraction]] = {1: {}, -1: {}}

    def number(self, value: Any, sign: int = 1) -> Fraction:
        """The fraction that a finite number is, or minus it."""
        found = self.known[sign].get(value)
        if found is None:
            if not isfinite(value):
                raise NotApplicableError(f"the model has a coefficient {value}")
            plain = int(value) if isinstance(value, int) else float(value)
            found = Fraction(plain if sign > 0 else -plain)
            self.known[sign][value] = found
        return found

    def limits(self, variable: Any) -> tuple[Limit, Limit]:
        """Bounds of a column."""
        if variable.fixed:
            if variable.value is None:
                raise NotApplicableError(f"variable '{variable.name}' is fixed without a value")
            return (self.number(variable.value),) * 2
        low, high = variable.bounds
        return None if low is None else self.number(low), None if high is None else self.number(high)

    def row(self, relation: Any) -> tuple[Limit, Terms, Limit]:
        """Limits and terms of a constraint's expression."""
        if isinstance(relation, RangedExpression):
            low, body, high = relation.args
            terms, constant = self.sum(body)
            return self._limit(low, constant, -1), terms, self._limit(high, constant, 1)
        if not isinstance(relation, EqualityExpression | InequalityExpression):
            raise NotApplicableError(f"a row is a {type(relation).__name__}")
        left, right = relation.args
        parts: dict[int, Fraction] = {}
        first, second = self._add(left, -1, parts, -1), self._add(right, 1, parts, -1)
        limit = first + second if first and second else first or second
        return (limit if isinstance(relation, EqualityExpression) else None), _kept(parts), limit

    def _limit(self, value: Any, constant: Fraction, side: int) -> Limit:
        if value is None or (type(value) in native_numeric_types and float(value) == side * float("inf")):
            return None
        terms, limit = self.sum(value)
        if terms:
            raise NotApplicableError("a limit of a row has variables")
        return limit - constant if constant else limit

    def sum(self, expression: Any, sign: int = 1) -> tuple[Terms, Fraction]:
        """Terms and constant of an expression, or of minus it."""
        parts: dict[int, Fraction] = {}
        constant = self._add(expression, sign, parts)
        return _kept(parts), constant

    def _add(self, expression: Any, sign: int, parts: dict[int, Fraction], turned: int = 1) -> Fraction:
        """Add the terms of ``sign * turned`` times an expression to ``parts``; ``sign`` times its constant.

        Both are 1 or -1: constants change sign where they change sides.
        """
        if type(expression) in native_numeric_types:
            return self.number(expression, sign)
        constant, place = Fraction(0), self.place
        waiting: list[tuple[Any, int | Fraction]] = [(expression, sign * turned)]
        while waiting:
            part, times = waiting.pop()
            kind = type(part)
            if kind in native_numeric_types:
                constant += times * turned * self.number(part)
            elif id(part) in place:
                column = place[id(part)]
                parts[column] = parts.get(column, 0) + Fraction(times)
            elif kind is MonomialTermExpression:
                coefficient, variable = part.args
                waiting.append((variable, times * self.number(pyo.value(coefficient))))
            elif isinstance(part, SumExpression | LinearExpression):
                if times in (1, -1):
                    waiting += self._several(part.args, int(times), parts)
                else:
                    waiting += [(each, times) for each in part.args]
            elif kind is NegationExpression:
                waiting.append((part.args[0], -times))
            elif kind in (ProductExpression, DivisionExpression):
                one, other = part.args
                if kind is ProductExpression and _has_variables(other):
                    one, other = other, one
                if _has_variables(other):
                    raise NotApplicableError("a product of variables is not linear")
                scale = self.number(pyo.value(other))
                waiting.append((one, times * scale if kind is ProductExpression else times / scale))
            elif hasattr(part, "is_expression_type") and part.is_named_expression_type():
                waiting.append((part.expr, times))
            elif not _has_variables(part):
                constant += times * turned * self.number(pyo.value(part))
            else:
                known = "which is not linear, or has a variable elsewhere"
                raise NotApplicableError(f"a term is a {kind.__name__}, {known}")
        return constant

    def _several(self, several: Any, sign: int, parts: dict[int, Fraction]) -> Iterator[tuple[Any, int]]:
        """Add the terms of a sum that are numbers times variables, most of those there are; yield the others."""
        place, known = self.place, self.known[sign]
        for part in several:
            if type(part) is MonomialTermExpression:
                coefficient, variable = part.args
                column = place.get(id(variable))
                if column is not None and column not in parts and type(coefficient) in native_numeric_types:
                    parts[column] = known.get(coefficient) or self.number(coefficient, sign)
                    continue
            yield part, sign


def _kept(parts: dict[int, Fraction]) -> Terms:
    return tuple([(column, parts[column]) for column in sorted(parts) if parts[column].numerator])


def _has_variables(part: Any) -> bool:
    return type(part) not in native_numeric_types and part.is_potentially_variable()


def _text(terms: Terms) -> str:
    return " ".join(f"{column}:{value}" for column, value in terms)
