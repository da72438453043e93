"""Tolerances, one for each purpose, with the reason for its value.

A value that has to differ stays where it is used, with its reason beside it. All are relative unless their text says
otherwise. They are ordered: what adding up in floating point can change (``ROUNDING``) is far below what a check lets
pass (``FEASIBILITY_TOL``), and that far below what solvers promise (``SOLVER_TOL``).
"""

from fractions import Fraction
from typing import TypeVar

import numpy as np
import numpy.typing as npt

_Limit = TypeVar("_Limit", float, Fraction, float | Fraction, npt.NDArray[np.float64])

TINY = 1e-300
"""Least divisor, absolute, in place of 0: a normal double (they end at 2.2e-308) whose inverse is finite."""

ROUNDING = 1e-12
"""Of sums of floats in whatever order: 4 500 terms of one sign, at 2.2e-16 each, are off by no more."""

FEASIBILITY_TOL = 1e-9
"""Excess over a limit that counts as rounding; a thousand times ``ROUNDING``, since inputs are rounded decimals too.

Of ``evaluate``, also in rational numbers: 0.1 and 0.2, read as the fractions that they are, are more than 0.3. (Gossip
has none there, as its answers can be scaled.) And therefore of every model and heuristic: what they leave out for a
limit must not be let pass by the check. Limits are raised by :func:`let_pass` and its neighbours, nowhere by hand.
Absolute where a limit has no natural size, as with shares.
"""

BOUND_MARGIN = 1e-9
"""By which a calculated bound is weakened: its sums run over all of an instance, through many steps of arithmetic."""

RANGE_MARGIN = 1e-5
"""By which a figure that is known to be achievable is raised where it limits a variable.

Ten times ``SOLVER_TOL``: a range as narrow as a tolerance is empty to presolve, and what is there is not found.
"""

IMPROVEMENT_TOL = 1e-9
"""By which a solution must be better to replace another; without it searches circle among equals."""

WHOLE_TOL = 1e-9
"""Absolute distance at which a quotient counts as the whole number beside it, before it is rounded up or down."""

ZERO_TOL = 1e-9
"""Absolute value at which the variable of a linear program counts as 0: HiGHS calculates to 1e-9 inside a basis."""

NEGLIGIBLE_COEFFICIENT = 2e-9
"""Absolute: such a coefficient is left out. HiGHS drops those up to 1e-9 by itself and warns; twice that is safe."""

SOLVER_TOL = 1e-6
"""To which solvers of mixed-integer programs hold rows and integrality by default (1e-7 for rows in some)."""

INTEGRALITY_TOL = 1e-4
"""Absolute distance from a whole number at which a solver's answer is still read as that number.

A hundred times ``SOLVER_TOL``: presolve, scaling and files of few digits may take that much, and ``evaluate`` checks
what is read anyway. It is far below 1/2, so that an answer of the relaxation is not taken for one of the model.
"""

OBJECTIVE_TOL = 1e-6
"""Difference at which two objectives count as equal, as solvers promise no more (``SOLVER_TOL``)."""


def let_pass(limit: _Limit) -> _Limit:
    """What a check lets pass of a limit.

    Parameters
    ----------
    limit : float, Fraction or array of float
        At least 0. All of it: what is left after others have taken theirs is not raised (:func:`left_let_pass`), as
        the check lets pass a part of the whole.

    Returns
    -------
    float, Fraction or array
        In the arithmetic of the limit; of a fraction without any rounding.

    See Also
    --------
    let_pass_at_most : For bounds, and for models that leave out what is above.
    let_pass_at_least : For searches, whose answers the check is to let pass.
    """
    return _raised(limit, FEASIBILITY_TOL)


def let_pass_at_most(limit: _Limit) -> _Limit:
    """No check lets pass more than this, in whatever order and arithmetic it adds up: twice the tolerance.

    For bounds, and for models that leave out what is above, where their sums are not those of the check. To give more
    is right there: what is given too much weakens a bound by a part of some 10⁻⁹. Raise a limit first, then take off.
    """
    return _raised(limit, 2 * FEASIBILITY_TOL)


def let_pass_at_least(limit: _Limit) -> _Limit:
    """Every check lets this pass, in whatever order it adds up: half the tolerance.

    For searches that add up in another order than the check. To give less is right there: what a search gives up is
    as good as nothing, and an answer that the check refuses is lost.
    """
    return _raised(limit, FEASIBILITY_TOL / 2)


def left_let_pass(left: _Limit, limit: _Limit) -> _Limit:
    """What is left of a limit, and half of the tolerance of the whole of it: every check lets pass that."""
    return left + (let_pass_at_least(limit) - limit)


def _raised(limit: _Limit, part: float) -> _Limit:
    return limit * (1 + Fraction(part)) if isinstance(limit, Fraction) else limit * (1 + part)
