"""Back ends: whatever solves a Pyomo model."""

from ddlopt.solvers.backends.contracts import Backend, Outcome
from ddlopt.solvers.backends.highs import Highs

__all__ = ["Backend", "Highs", "Outcome"]
