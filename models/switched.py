"""A linear model inside a larger one that is there only where a variable of the larger one is 1."""

from typing import Any

import pyomo.environ as pyo
from pyomo.repn import generate_standard_repn

from ddlopt.models.linear import Sum, term


def switch(block: pyo.Block, on: Any) -> Sum:
    r"""Make a built model one that is there where ``on`` is 1, and nothing where it is 0; its objective.

    With :math:`z` for ``on``, a row :math:`a \le A x \le b` becomes :math:`a z \le A x \le b z`, a bound :math:`l \le x
    \le u` becomes :math:`l z \le x \le u z`, and the objective :math:`c x + e` becomes :math:`c x + e z`. Where z is 1
    this is the model as it was. Where z is 0, every variable that is bounded is 0, and the others are in its recession
    cone, along which an objective that has a bound cannot improve: 0 is feasible and best. No big-M is needed, also
    where the model by itself has no solution: then z is 0.

    Rows keep their names; those that are added are ``from_below``, ``at_least`` and ``at_most``.
    """
    rows = list(block.component_data_objects(pyo.Constraint, active=True))
    variables = list(block.component_data_objects(pyo.Var))
    block.from_below, block.at_least, block.at_most = (pyo.Constraint(pyo.Any) for _ in range(3))
    for row in rows:
        body, (low, high) = _sum(row.body), (pyo.value(row.lower), pyo.value(row.upper))
        linear = Sum(body.coefficients, body.variables)
        if high is not None:
            above = (linear + (body.constant - high) * term(on)).expression
            row.set_value((0.0 if low == high else None, above, 0.0))
        if low is not None and low != high:
            below = (linear + (body.constant - low) * term(on)).expression
            if high is None:
                row.set_value((0.0, below, None))
            else:
                block.from_below[_name(row, block)] = (0.0, below, None)
    for each in variables:
        _switch_bounds(block, each, on)
    objective = _sum(block.objective)
    return Sum(objective.coefficients, objective.variables) + objective.constant * term(on)


def _name(part: Any, block: pyo.Block) -> str:
    """Of a row or variable, the same wherever the block stands."""
    return str(part.getname(fully_qualified=True, relative_to=block))


def _sum(expression: Any) -> Sum:
    found = generate_standard_repn(expression)
    if not found.is_linear():
        raise TypeError(f"'{expression}' is not linear")
    return Sum([float(each) for each in found.linear_coefs], list(found.linear_vars), float(found.constant))


def _switch_bounds(block: pyo.Block, variable: Any, on: Any) -> None:
    """A fixed variable is one whose bounds are the same; 0 is within the bounds of all that remain."""
    low, high = variable.bounds
    if variable.fixed:
        low = high = pyo.value(variable)
        variable.unfix()
    if low is not None and high is not None and low == high == 0:
        variable.setlb(0)
        variable.setub(0)
        return
    if low:
        block.at_least[_name(variable, block)] = (0.0, (term(variable) - low * term(on)).expression, None)
        variable.setlb(min(low, 0))
    if high:
        block.at_most[_name(variable, block)] = (None, (term(variable) - high * term(on)).expression, 0.0)
        variable.setub(max(high, 0))
