"""Whether the values of a solution file are a solution of the model that they are read for.

A file that was cut off, or written for another model of the same names, looks like any other: what it leaves out is
zero. It betrays itself by rows that do not hold, or by an objective that is not the one it says. The tolerances are
wide, as printed tables have six digits: the answer itself goes through ``evaluate``.
"""

import numpy as np

from ddlopt.models.tolerances import INTEGRALITY_TOL
from ddlopt.solvers.backends.matrix import LinearModel, Vector
from ddlopt.solvers.backends.solution_files import Answer

# As little as four digits of a side or an objective: some write figures with six.
_RELATIVE = 1e-4
# As the default tolerance of most solvers.
_ABSOLUTE = 1e-6
_HINT = "the file is cut off, or of another model"


def misfit(linear: LinearModel, values: Vector, answer: Answer | None = None) -> str | None:
    """What is wrong with the values, or with what is said of them, in one line; None if they are a solution."""
    return (
        _fraction(linear, values)
        or _outside(linear, values)
        or _broken_row(linear, values)
        or _claim(linear, values, answer)
    )


def _fraction(linear: LinearModel, values: Vector) -> str | None:
    bad = linear.integer & (np.abs(values - np.round(values)) > INTEGRALITY_TOL)
    if not bad.any():
        return None
    j = int(np.argmax(bad))
    name, more = linear.columns[j].name, f" (and {bad.sum() - 1} more)" if bad.sum() > 1 else ""
    return f"{name} = {values[j]:.6g} must be whole{more}; it was not solved to that"


def _outside(linear: LinearModel, values: Vector) -> str | None:
    place = _worst(values, linear.lower, linear.upper, _ABSOLUTE + _RELATIVE * np.abs(values))
    if place is None:
        return None
    sides = _sides(linear.lower[place], linear.upper[place])
    return f"{linear.columns[place].name} = {values[place]:.6g}, but must be {sides}; {_HINT}"


def _broken_row(linear: LinearModel, values: Vector) -> str | None:
    size = abs(linear.matrix)
    largest = np.zeros(len(linear.rows))
    filled = np.diff(linear.matrix.indptr) > 0
    if filled.any():
        largest[filled] = np.maximum.reduceat(size.data, linear.matrix.indptr[:-1][filled])
    sums = linear.matrix @ values
    place = _worst(sums, linear.row_lower, linear.row_upper, _ABSOLUTE * largest + _RELATIVE * (size @ np.abs(values)))
    if place is None:
        return None
    sides = _sides(linear.row_lower[place], linear.row_upper[place])
    return f"{linear.rows[place].name} is {sums[place]:.6g}, but must be {sides}; {_HINT}"


def _sides(low: float, high: float) -> str:
    low, high = low + 0.0, high + 0.0  # no minus zero
    if low == high:
        return f"{low:.6g}"
    if low == -np.inf:
        return f"at most {high:.6g}"
    return f"at least {low:.6g}" if high == np.inf else f"from {low:.6g} to {high:.6g}"


def _worst(values: Vector, lower: Vector, upper: Vector, slack: Vector) -> int | None:
    """Place of the value that is furthest beyond what is allowed; None if none is."""
    if not len(values):
        return None
    excess = np.maximum(lower - values, values - upper)
    # A side may be large where the values are not.
    sides = np.where(lower > values, np.abs(lower), np.where(values > upper, np.abs(upper), 0.0))
    over = excess - (slack + _RELATIVE * sides)
    place = int(np.argmax(over))
    return place if over[place] > 0 else None


def _claim(linear: LinearModel, values: Vector, answer: Answer | None) -> str | None:
    """A file in MPS has the objective of a maximisation with its sign changed."""
    if answer is None or answer.objective is None:
        return None
    objective = float(linear.cost @ values + linear.offset)
    size = float(np.abs(linear.cost) @ np.abs(values)) + abs(linear.offset)
    # The absolute part is for objectives of value 0.
    slack = 1e-8 + _ABSOLUTE * float(np.abs(linear.cost).max(initial=0.0)) + _RELATIVE * size
    claims = (answer.objective, -answer.objective) if linear.maximise else (answer.objective,)
    if min(abs(claim - objective) for claim in claims) <= slack:
        return None
    return f"says that its objective is {answer.objective:.6g}, but its values have {objective:.6g}; {_HINT}"
