"""Methods that ask another method: the one that fits, for every instance."""

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any

from ddlopt.models.contracts import Formulation
from ddlopt.solvers.certified import told_anew
from ddlopt.solvers.contracts import (
    Limits,
    Method,
    ProgressCallback,
    Result,
    formulation_of,
    kernels_of,
    solver_of,
    uses_of,
)


class Asks(ABC):
    """Says of itself what the method says that it asks."""

    @abstractmethod
    def method(self, instance: Any) -> Method:
        """The method that is asked for an instance."""

    def refuses(self, instance: Any) -> str | None:
        """What the method refuses."""
        return self.method(instance).refuses(instance)

    def kernels_for(self, instance: Any) -> tuple[str, ...]:
        """What the method calls."""
        return kernels_of(self.method(instance), instance)

    def uses_for(self, instance: Any) -> frozenset[str] | None:
        """What the method uses."""
        return uses_of(self.method(instance), instance)

    def formulation_for(self, instance: Any) -> Formulation | None:
        """That of the method."""
        return formulation_of(self.method(instance), instance)

    def solver_for(self, instance: Any) -> str | None:
        """That of the method."""
        return solver_of(self.method(instance), instance)


class ByInstance(Asks):
    """Asks the method that fits, and gives its result under a name of its own."""

    if TYPE_CHECKING:  # of a class or of an object, as it suits

        @property
        def name(self) -> str:
            """As in the catalogue."""

        @property
        def family(self) -> str:
            """Of the instances that it answers."""

    def solve(
        self,
        instance: Any,
        limits: Limits,
        seed: int = 0,
        progress: ProgressCallback | None = None,
        start: Any = None,
    ) -> Result:
        """Answer ``instance``; see :class:`~ddlopt.solvers.contracts.Method`."""
        result = self.method(instance).solve(instance, limits, seed, progress, start)
        if result.method == self.name:
            return result
        message = f"by {result.method}: {result.message}".rstrip(": ")
        return told_anew(result, method=self.name, message=message)
