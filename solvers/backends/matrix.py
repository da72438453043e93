"""A linear Pyomo model as arrays.

Pyomo's ``LinearStandardFormCompiler`` serves every expression through one general walker. The rows of most models are
sums of variables and of coefficient times variable, so those are read here directly, several times faster; whatever
else occurs goes through Pyomo's walker.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pyomo.environ as pyo
from pyomo.common.gc_manager import PauseGC
from pyomo.common.numeric_types import native_numeric_types
from pyomo.core.base.constraint import ConstraintData
from pyomo.core.base.expression import ExpressionData
from pyomo.core.base.var import ScalarVar, VarData
from pyomo.core.expr.numeric_expr import LinearExpression, MonomialTermExpression, SumExpression
from pyomo.core.expr.relational_expr import EqualityExpression, RangedExpression
from pyomo.core.expr.visitor import identify_variables
from pyomo.repn.linear import LinearRepnVisitor
from scipy import sparse

from ddlopt.models.errors import SolverError
from ddlopt.models.tolerances import FEASIBILITY_TOL

_VARIABLES = frozenset({VarData, ScalarVar})
_SUMS = frozenset({LinearExpression, SumExpression})
_HANDLED = frozenset(
    {
        pyo.Block,
        pyo.BuildAction,
        pyo.BuildCheck,
        pyo.Constraint,
        pyo.Expression,
        pyo.Objective,
        pyo.Param,
        pyo.RangeSet,
        pyo.Set,
        pyo.Suffix,
        pyo.Var,
    }
)

Vector = npt.NDArray[np.float64]


@dataclass(frozen=True)
class LinearModel:
    """Minimise or maximise ``cost @ x + offset`` with ``row_lower <= matrix @ x <= row_upper`` and bounds on x.

    ``columns[j]`` and ``rows[i]`` are the Pyomo data of column j and row i; ``matrix`` is a CSR array without
    duplicates. Every variable of the model's active blocks is a column; a fixed one has equal bounds and counts as
    continuous. ``model`` is the Pyomo model they belong to: data know their components weakly, and a model that is
    collected takes the names of its rows with it.
    """

    maximise: bool
    cost: Vector
    offset: float
    matrix: Any
    row_lower: Vector
    row_upper: Vector
    lower: Vector
    upper: Vector
    integer: npt.NDArray[np.bool_]
    columns: list[Any]
    rows: list[Any]
    model: pyo.ConcreteModel | None = None

    @property
    def figures(self) -> dict[str, float]:
        """Size of the model."""
        return {"rows": len(self.rows), "columns": len(self.columns), "nonzeros": self.matrix.nnz}


def load_values(linear: LinearModel, values: Vector) -> float:
    """Give the Pyomo variables their values, fixed ones excepted, and return the objective there."""
    for variable, value in zip(linear.columns, values.tolist(), strict=True):
        if not variable.fixed:
            variable.set_value(value, skip_validation=True)
    return float(linear.cost @ values + linear.offset)


def plain_model(linear: LinearModel, values: Vector | None = None) -> pyo.ConcreteModel | None:
    """The same model with one variable ``x[j]`` a column and one constraint ``row[i]`` a row, constants at the sides.

    The variables have ``values``, if there are any. None where a row without variables makes it infeasible.
    """
    matrix, none = linear.matrix, {-np.inf: None, np.inf: None}
    empty = np.diff(matrix.indptr) == 0
    if (empty & ((linear.row_lower > FEASIBILITY_TOL) | (linear.row_upper < -FEASIBILITY_TOL))).any():
        return None
    with PauseGC():
        plain = pyo.ConcreteModel()
        plain.x = pyo.Var(range(len(linear.columns)))
        for j, variable in enumerate(plain.x.values()):
            low, high = float(linear.lower[j]), float(linear.upper[j])
            variable.bounds = none.get(low, low), none.get(high, high)
            variable.domain = pyo.Integers if linear.integer[j] else pyo.Reals
            if values is not None:
                variable.set_value(float(values[j]), skip_validation=True)
        x, index, data = plain.x, matrix.indices.tolist(), matrix.data.tolist()
        plain.row = pyo.Constraint(pyo.Any)
        for i in np.flatnonzero(~empty).tolist():
            terms = range(matrix.indptr[i], matrix.indptr[i + 1])
            body = LinearExpression(
                linear_coefs=[data[k] for k in terms], linear_vars=[x[index[k]] for k in terms], constant=0
            )
            low, high = float(linear.row_lower[i]), float(linear.row_upper[i])
            plain.row[i] = (body, low) if low == high else (none.get(low, low), body, none.get(high, high))
        costly = np.flatnonzero(linear.cost).tolist()
        goal = LinearExpression(
            linear_coefs=linear.cost[costly].tolist(), linear_vars=[x[j] for j in costly], constant=linear.offset
        )
        plain.objective = pyo.Objective(expr=goal, sense=pyo.maximize if linear.maximise else pyo.minimize)
    return plain


def linear_model(model: pyo.ConcreteModel) -> LinearModel:
    """Arrays of the active part of ``model``; the order of rows and columns is that of declaration.

    Raises
    ------
    SolverError
        If something in the model is not linear, not finite, or no constraint, variable or objective at all.
    """
    foreign = {kind.__name__ for kind in model.collect_ctypes(active=True, descend_into=True) if kind not in _HANDLED}
    if foreign:
        kinds = ", ".join(sorted(foreign))
        raise SolverError(f"model '{model.name}' has active components that no linear solver takes: {kinds}")
    objectives = list(model.component_data_objects(pyo.Objective, active=True))
    if len(objectives) > 1:
        raise SolverError(f"model '{model.name}' has {len(objectives)} active objectives; deactivate all but one")
    with PauseGC():
        reader = _Reader(model)
        rows = list(reader.constraints(model))
        # The terms of the objective follow those of the rows.
        offset = reader.terms(objectives[0].expr, 1.0, objectives[0]) if objectives else 0.0
        maximise = bool(objectives) and objectives[0].sense == pyo.maximize
        return replace(_assemble(reader, rows, maximise, float(offset)), model=model)


class _Reader:
    """The terms of all rows so far, one after the other: column in ``index``, coefficient in ``data``."""

    def __init__(self, model: pyo.ConcreteModel) -> None:
        self.columns: list[Any] = []
        self.column_of: dict[int, int] = {}
        for component in model.component_objects(pyo.Var, active=True):
            self.register(component.values())
        self.index: list[int] = []
        self.data: list[float] = []
        self.ends: list[int] = [0]
        self.row_lower: list[float] = []
        self.row_upper: list[float] = []
        self._visitor = LinearRepnVisitor({})

    def register(self, variables: Any) -> None:
        """Give columns to the variables that have none."""
        for variable in variables:
            if self.column_of.setdefault(id(variable), len(self.columns)) == len(self.columns):
                self.columns.append(variable)

    def constraints(self, model: pyo.ConcreteModel) -> Iterator[ConstraintData]:
        """Read the active constraints; yields those that became a row."""
        infinity = float("inf")
        for constraint in model.component_data_objects(pyo.Constraint, active=True):
            relation = constraint.expr
            start = len(self.index)
            if relation is None:
                continue
            if relation.__class__ is RangedExpression:
                low, body, high = constraint.to_bounded_expression(evaluate_bounds=True)
                constant = self.terms(body, 1.0, constraint)
                lower = -infinity if low is None else low - constant
                upper = infinity if high is None else high - constant
            else:
                left, right = relation.args
                constant = self.terms(left, 1.0, constraint)
                if len(self.index) > start:
                    upper = -constant - self.terms(right, -1.0, constraint)
                    lower = upper if relation.__class__ is EqualityExpression else -infinity
                else:
                    lower = constant - self.terms(right, 1.0, constraint)
                    upper = lower if relation.__class__ is EqualityExpression else infinity
            self.ends.append(len(self.index))
            self.row_lower.append(lower)
            self.row_upper.append(upper)
            yield constraint

    def terms(self, expression: Any, factor: float, owner: Any) -> float:
        """Append the terms of ``factor * expression`` and return its constant."""
        kind = expression.__class__
        if kind in _SUMS:
            parts = expression.args
        elif kind in native_numeric_types:
            return factor * expression  # type: ignore[no-any-return]
        else:
            parts = (expression,)
        index, data, column_of = self.index, self.data, self.column_of
        constant = 0.0
        for part in parts:
            kind = part.__class__
            if kind is MonomialTermExpression:
                coefficient, variable = part.args
                if coefficient.__class__ not in native_numeric_types:
                    coefficient = pyo.value(coefficient)
                column = column_of.get(id(variable))
                if column is None:
                    constant += self._general(part, factor, owner)
                else:
                    index.append(column)
                    data.append(factor * coefficient)
            elif kind in _VARIABLES and id(part) in column_of:
                index.append(column_of[id(part)])
                data.append(factor)
            elif kind in native_numeric_types:
                constant += factor * part
            elif kind in _SUMS:
                constant += self.terms(part, factor, owner)
            elif isinstance(part, ExpressionData):
                constant += self.terms(part.expr, factor, owner)
            else:
                constant += self._general(part, factor, owner)
        return constant

    def _general(self, expression: Any, factor: float, owner: Any) -> float:
        """The same through Pyomo's walker, for products, quotients, parameters and variables from elsewhere."""
        self.register(identify_variables(expression, include_fixed=True))
        linear = self._visitor.walk_expression(expression)
        if linear.nonlinear is not None:
            raise SolverError(f"{owner.ctype.__name__.lower()} '{owner.name}' is not linear")
        for variable, coefficient in linear.linear.items():
            self.index.append(self.column_of[variable])
            self.data.append(factor * coefficient)
        return factor * linear.constant  # type: ignore[no-any-return]


def _assemble(reader: _Reader, rows: list[Any], maximise: bool, offset: float) -> LinearModel:
    columns = reader.columns
    shape = len(rows), len(columns)
    index = np.array(reader.index, dtype=np.int32)
    data = np.array(reader.data, dtype=np.float64)
    end = reader.ends[-1]
    matrix = sparse.csr_array((data[:end], index[:end], np.array(reader.ends, dtype=np.int32)), shape=shape)
    matrix.sum_duplicates()
    cost = np.bincount(index[end:], weights=data[end:], minlength=shape[1]).astype(np.float64)
    row_lower, row_upper = np.array(reader.row_lower), np.array(reader.row_upper)
    _refuse_nan(matrix, cost, offset, row_lower, row_upper, rows)
    used = np.zeros(shape[1], dtype=bool)
    used[index] = True
    lower, upper, integer = _bounds(columns, used)
    return LinearModel(maximise, cost, offset, matrix, row_lower, row_upper, lower, upper, integer, columns, rows)


def _bounds(columns: list[Any], used: npt.NDArray[np.bool_]) -> tuple[Vector, Vector, npt.NDArray[np.bool_]]:
    infinity = float("inf")
    lower, upper = np.full(len(columns), -infinity), np.full(len(columns), infinity)
    integer = np.zeros(len(columns), dtype=bool)
    for j, variable in enumerate(columns):
        if variable.fixed:
            value = variable.value
            if value is None and used[j]:
                raise SolverError(f"variable '{variable.name}' is fixed but has no value")
            lower[j] = upper[j] = 0.0 if value is None else value
            continue
        low, high = variable.bounds
        if low is not None:
            lower[j] = low
        if high is not None:
            upper[j] = high
        integer[j] = not variable.is_continuous()
    return lower, upper, integer


def _refuse_nan(
    matrix: Any, cost: Vector, offset: float, row_lower: Vector, row_upper: Vector, rows: list[Any]
) -> None:
    if not (np.isfinite(cost).all() and np.isfinite(offset)):
        raise SolverError("the objective has a coefficient that is not finite")
    bad = ~np.isfinite(matrix.data)
    if bad.any():
        row = int(np.searchsorted(matrix.indptr, int(np.argmax(bad)), side="right")) - 1
        raise SolverError(f"constraint '{rows[row].name}' has a coefficient that is not finite")
    wrong = np.isnan(row_lower) | np.isnan(row_upper) | (row_lower == np.inf) | (row_upper == -np.inf)
    if wrong.any():
        raise SolverError(f"constraint '{rows[int(np.argmax(wrong))].name}' has a right-hand side that is not a number")
