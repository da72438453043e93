"""Back ends: whatever solves a Pyomo model."""

from collections.abc import Mapping
from typing import Any

from ddlopt.solvers.backends.contracts import Backend, Outcome
from ddlopt.solvers.backends.highs import Highs
from ddlopt.solvers.backends.pyomo_any import DRIVERS, PyomoSolver

__all__ = ["BACKEND_NAMES", "Backend", "Highs", "Outcome", "PyomoSolver", "backend"]

BACKEND_NAMES = tuple(sorted({"highs", *DRIVERS}))
"""Solvers that take limits, whether installed or not."""


def backend(name: str, options: Mapping[str, Any] | None = None) -> Backend:
    """The back end of that name: ``highs`` is our own, any other is driven by Pyomo.

    Raises
    ------
    UnknownNameError
        If there is no such solver or, for HiGHS, no such option.
    SolverMissingError
        If the solver is not installed.
    """
    return Highs(options or {}) if name == "highs" else PyomoSolver(name, options or {})
