"""Tolerances, one for each purpose, with the reason for its value.

A value that has to differ stays where it is used, with its reason beside it. All are relative unless their text says
otherwise. They are ordered: what adding up in floating point can change (``ROUNDING``) is far below what a check lets
pass (``FEASIBILITY_TOL``), and that far below what solvers promise (``SOLVER_TOL``).
"""

TINY = 1e-300
"""Least divisor, absolute, in place of 0: a normal double (they end at 2.2e-308) whose inverse is finite."""

ROUNDING = 1e-12
"""Of sums of floats in whatever order: 4 500 terms of one sign, at 2.2e-16 each, are off by no more."""

FEASIBILITY_TOL = 1e-9
"""Excess over a limit that counts as rounding; a thousand times ``ROUNDING``, since inputs are rounded decimals too.

Of ``evaluate`` in floating point (exact arithmetic allows none), and therefore of every model and heuristic: what they
leave out for a limit must not be let pass by the check. Absolute where a limit has no natural size, as with shares.
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
