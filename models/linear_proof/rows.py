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
    number = {id(variable): place for place, variable in enumerate(columns)}
    objectives = list(model.component_data_objects(pyo.Objective, active=True))
    if len(objectives) != 1:
        raise NotApplicableError(f"the model has {len(objectives)} objectives; one is needed")
    maximised = objectives[0].sense == pyo.maximize
    sign = Fraction(-1 if maximised else 1)
    cost, offset = _sum(objectives[0].expr, sign, number)
    rows = []
    for constraint in model.component_data_objects(pyo.Constraint, active=True):
        if constraint.expr is not None:
            rows += list(_row(constraint.expr, number))
    limits = [_limits(variable) for variable in columns]
    return ExactModel(
        maximised,
        cost,
        offset,
        tuple(rows),
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


def _limits(variable: Any) -> tuple[Limit, Limit]:
    if variable.fixed:
        if variable.value is None:
            raise NotApplicableError(f"variable '{variable.name}' is fixed without a value")
        return (_number(variable.value),) * 2
    low, high = variable.bounds
    return None if low is None else _number(low), None if high is None else _number(high)


def _row(relation: Any, number: dict[int, int]) -> Iterator[tuple[Limit, Terms, Limit]]:
    if isinstance(relation, RangedExpression):
        low, body, high = relation.args
        terms, constant = _sum(body, Fraction(1), number)
        yield _limit(low, number, constant, -1), terms, _limit(high, number, constant, 1)
        return
    if not isinstance(relation, EqualityExpression | InequalityExpression):
        raise NotApplicableError(f"a row is a {type(relation).__name__}")
    left, right = relation.args
    parts: dict[int, Fraction] = {}
    constant = _add(left, Fraction(1), number, parts) + _add(right, Fraction(-1), number, parts)
    yield (-constant if isinstance(relation, EqualityExpression) else None), _kept(parts), -constant


def _limit(value: Any, number: dict[int, int], constant: Fraction, side: int) -> Limit:
    if value is None or (type(value) in native_numeric_types and float(value) == side * float("inf")):
        return None
    terms, limit = _sum(value, Fraction(1), number)
    if terms:
        raise NotApplicableError("a limit of a row has variables")
    return limit - constant


def _sum(expression: Any, factor: Fraction, number: dict[int, int]) -> tuple[Terms, Fraction]:
    parts: dict[int, Fraction] = {}
    constant = _add(expression, factor, number, parts)
    return _kept(parts), constant


def _kept(parts: dict[int, Fraction]) -> Terms:
    return tuple(sorted((column, value) for column, value in parts.items() if value))


def _add(expression: Any, factor: Fraction, number: dict[int, int], parts: dict[int, Fraction]) -> Fraction:
    """Add the terms of ``factor * expression`` to ``parts``; the constant is returned."""
    constant, waiting = Fraction(0), [(expression, factor)]
    while waiting:
        part, times = waiting.pop()
        kind = type(part)
        if kind in native_numeric_types:
            constant += times * _number(part)
        elif id(part) in number:
            column = number[id(part)]
            parts[column] = parts.get(column, Fraction(0)) + times
        elif kind is MonomialTermExpression:
            coefficient, variable = part.args
            waiting.append((variable, times * _number(pyo.value(coefficient))))
        elif isinstance(part, SumExpression | LinearExpression):
            waiting += [(each, times) for each in part.args]
        elif kind is NegationExpression:
            waiting.append((part.args[0], -times))
        elif kind in (ProductExpression, DivisionExpression):
            one, other = part.args
            if kind is ProductExpression and _has_variables(other):
                one, other = other, one
            if _has_variables(other):
                raise NotApplicableError("a product of variables is not linear")
            scale = _number(pyo.value(other))
            waiting.append((one, times * scale if kind is ProductExpression else times / scale))
        elif hasattr(part, "is_expression_type") and part.is_named_expression_type():
            waiting.append((part.expr, times))
        elif not _has_variables(part):
            constant += times * _number(pyo.value(part))
        else:
            raise NotApplicableError(f"a term is a {kind.__name__}, which is not linear, or has a variable elsewhere")
    return constant


def _has_variables(part: Any) -> bool:
    return type(part) not in native_numeric_types and part.is_potentially_variable()


def _number(value: Any) -> Fraction:
    if not isfinite(value):
        raise NotApplicableError(f"the model has a coefficient {value}")
    return Fraction(int(value)) if isinstance(value, int) else Fraction(float(value))


def _text(terms: Terms) -> str:
    return " ".join(f"{column}:{value}" for column, value in terms)
