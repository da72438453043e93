"""A formulation inside a CVXPY model: its arrays as constraints, its ports as expressions."""

from typing import Any

import cvxpy as cp
import numpy as np
import pyomo.environ as pyo
from pyomo.repn import generate_standard_repn

from ddlopt.models.contracts import Formulation
from ddlopt.models.errors import OptionError
from ddlopt.solvers.backends.matrix import linear_model, load_values
from ddlopt.solvers.exact import build_model


class CvxpyBlock:
    """The mixed-integer linear program of a formulation, for a host model in CVXPY.

    Parameters
    ----------
    formulation : Formulation
    instance : Instance

    Attributes
    ----------
    constraints : list of cvxpy.Constraint
        All rows, bounds and integrality; to be added to the host's.
    objective : cvxpy.Expression
        That of the formulation, in its own sense and units.
    block : pyomo.Block
        The block that the arrays are of.
    """

    def __init__(self, formulation: Formulation, instance: Any) -> None:
        model = build_model(instance.family, formulation, instance)
        self._formulation, self._model = formulation, model
        self._linear = linear = linear_model(model)
        self._column_of = {id(column): place for place, column in enumerate(linear.columns)}
        self._x = cp.Variable(len(linear.columns), name=instance.name, bounds=[linear.lower, linear.upper])
        self.block = model.component(instance.family)
        self.objective = self._expression(self.block.objective)
        self.constraints = self._constraints()

    def port(self, name: str, *index: Any) -> Any:
        """An expression of the host's variables: a port, or with ``index`` a member of it.

        An indexed port without ``index`` is a vector, in the order of ``block.component(name)``.

        Raises
        ------
        OptionError
            If there is none of that name or index, or it is no variable and no linear expression.
        """
        component = self.block.component(name)
        kind = type(self._formulation).__name__
        if component is None or component.ctype not in (pyo.Var, pyo.Expression):
            raise OptionError(f"{kind} has no variable or expression '{name}' here; see its ports")
        if not index:
            members = list(component.values())
            found = [self._expression(member) for member in members]
            return cp.hstack(found) if component.is_indexed() else found[0]
        if index not in component and index[0] not in component:
            raise OptionError(f"'{name}' of {kind} has no index {', '.join(map(str, index))}")
        return self._expression(component[index])

    def read(self, instance: Any) -> Any:
        """The solution that the values describe, once the host is solved; see ``read`` of the formulation.

        Raises
        ------
        SolverError
            If there are no values, or they describe no solution.
        """
        if self._x.value is None:
            raise OptionError("the host has no values; solve it first")
        values = np.clip(self._x.value, self._linear.lower, self._linear.upper)
        load_values(self._linear, values)
        return self._formulation.read(self.block, instance)

    def _expression(self, expression: Any) -> Any:
        terms = generate_standard_repn(expression)
        if not terms.is_linear():
            raise OptionError(f"'{expression.name}' is not linear")
        columns = [self._column_of[id(variable)] for variable in terms.linear_vars]
        if not columns:
            return cp.Constant(float(terms.constant))
        return np.array(terms.linear_coefs, dtype=np.float64) @ self._x[columns] + float(terms.constant)

    def _constraints(self) -> list[Any]:
        linear, x = self._linear, self._x
        low, high = linear.row_lower, linear.row_upper
        equal = np.flatnonzero(low == high)
        below = np.flatnonzero((low != high) & np.isfinite(high))
        above = np.flatnonzero((low != high) & np.isfinite(low))
        found = [
            relation
            for rows, relation in (
                (equal, linear.matrix[equal] @ x == high[equal]),
                (below, linear.matrix[below] @ x <= high[below]),
                (above, linear.matrix[above] @ x >= low[above]),
            )
            if len(rows)
        ]
        whole = np.flatnonzero(linear.integer)
        if len(whole):
            found.append(x[whole] == cp.Variable(len(whole), integer=True))
        return found
