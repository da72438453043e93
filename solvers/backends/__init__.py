"""Back ends: whatever solves a Pyomo model. Pyomo and the solvers are imported with the first back end."""

from collections.abc import Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ddlopt.solvers.backends.contracts import Backend, Outcome
    from ddlopt.solvers.backends.highs import Highs
    from ddlopt.solvers.backends.pyomo_any import PyomoSolver

__all__ = ["Backend", "Highs", "Outcome", "PyomoSolver", "backend"]

_HOMES = {"Backend": "contracts", "Outcome": "contracts", "Highs": "highs", "PyomoSolver": "pyomo_any"}


def backend(name: str, options: Mapping[str, Any] | None = None) -> "Backend":
    """The back end of that name: ``highs`` is our own, any other is driven by Pyomo.

    Raises
    ------
    UnknownNameError
        If there is no such solver or, for HiGHS, no such option.
    SolverMissingError
        If the solver is not installed.
    """
    from ddlopt.solvers.backends.highs import Highs
    from ddlopt.solvers.backends.pyomo_any import PyomoSolver

    return Highs(options or {}) if name == "highs" else PyomoSolver(name, options or {})


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'ddlopt.solvers.backends' has no attribute '{name}'")
    return getattr(import_module(f"ddlopt.solvers.backends.{_HOMES[name]}"), name)
