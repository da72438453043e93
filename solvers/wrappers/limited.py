"""Exact methods whose formulation may leave out what is no better than a solution that is known."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ddlopt.models.contracts import Formulation
from ddlopt.solvers.backends import backend
from ddlopt.solvers.backends.contracts import uses_of_backend
from ddlopt.solvers.certified import told_anew
from ddlopt.solvers.contracts import Limits, ProgressCallback, Result, compiled
from ddlopt.solvers.exact import Exact
from ddlopt.solvers.wrappers.known import known_objective


class FromStart(ABC):
    """A formulation that is made for a start, by the solver of that name."""

    if TYPE_CHECKING:  # of a class or of an object, as it suits

        @property
        def name(self) -> str:
            """As in the catalogue."""

        @property
        def family(self) -> str:
            """Of the instances that it answers."""

        @property
        def solver(self) -> str:
            """Behind the formulation."""

    @abstractmethod
    def made(self, instance: Any, start: Any = None, gap: float | None = None) -> Formulation:
        """The formulation for a start, and for the gap that is asked for."""

    def refuses(self, instance: Any) -> str | None:
        """What the formulation refuses."""
        return self.made(instance).refuses(instance)

    def kernels_for(self, instance: Any) -> tuple[str, ...]:
        """What the formulation calls."""
        return tuple(getattr(self.made(instance), "kernels", ()))

    def uses_for(self, instance: Any) -> frozenset[str] | None:
        """A start, and what the solver can be told."""
        return uses_of_backend(backend(self.solver))

    def formulation_for(self, instance: Any) -> Formulation | None:
        """The formulation, as it is without a start."""
        return self.made(instance)

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
        compile_s = compiled(self, instance)
        exact = Exact(self.name, self.family, self.made(instance, start, limits.gap), backend(self.solver))
        result = exact.solve(instance, limits, seed, progress, start)
        return told_anew(result, compile_s=compile_s + result.compile_s)


@dataclass(frozen=True)
class Limited(FromStart):
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

    def made(self, instance: Any, start: Any = None, gap: float | None = None) -> Formulation:
        """By the objective of the start."""
        return self.formulation(known_objective(instance, start))
