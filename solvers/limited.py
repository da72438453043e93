"""Exact methods whose formulation may leave out what is no better than a solution that is known."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ddlopt.models.catalogue import family as family_of
from ddlopt.models.contracts import Formulation
from ddlopt.models.errors import SolutionError
from ddlopt.solvers.backends import backend
from ddlopt.solvers.backends.contracts import uses_of_backend
from ddlopt.solvers.contracts import Limits, ProgressCallback, Result
from ddlopt.solvers.exact import Exact


def known_objective(instance: Any, start: Any) -> float | None:
    """The objective of a start, as the check of its family finds it; None without a feasible one."""
    if start is None:
        return None
    try:
        found = family_of(instance.family).evaluate(instance, start)
    except SolutionError:
        return None
    return float(found.objective) if found.feasible and found.objective is not None else None


@dataclass(frozen=True)
class Limited:
    """A formulation that is made from the objective of the start.

    Parameters
    ----------
    name, family : str
    formulation : callable
        Makes it, from the objective where one is known.
    solver : str
    """

    name: str
    family: str
    formulation: Callable[[float | None], Formulation]
    solver: str = "highs"

    def refuses(self, instance: Any) -> str | None:
        """What the formulation refuses."""
        return self.formulation(None).refuses(instance)

    def kernels_for(self, instance: Any) -> tuple[str, ...]:
        """What the formulation calls."""
        return tuple(getattr(self.formulation(None), "kernels", ()))

    def uses_for(self, instance: Any) -> frozenset[str] | None:
        """A start, and what the solver can be told."""
        return uses_of_backend(backend(self.solver))

    def formulation_for(self, instance: Any) -> Formulation | None:
        """The formulation, as it is without a start."""
        return self.formulation(None)

    def solver_for(self, instance: Any) -> str | None:
        """The one behind the formulation."""
        return self.solver

    def solve(
        self,
        instance: Any,
        limits: Limits,
        seed: int = 0,
        progress: ProgressCallback | None = None,
        start: Any = None,
    ) -> Result:
        """Answer ``instance``; see :class:`~ddlopt.solvers.contracts.Method`."""
        formulation = self.formulation(known_objective(instance, start))
        return Exact(self.name, self.family, formulation, backend(self.solver)).solve(
            instance, limits, seed, progress, start
        )
