"""Methods of families with several problems: each problem has its own."""

from dataclasses import dataclass
from typing import Any, ClassVar

from ddlopt.models.catalogue import family as family_of
from ddlopt.models.catalogue import problem_of
from ddlopt.models.errors import NotApplicableError, a_or_an
from ddlopt.solvers.contracts import Entry, Method
from ddlopt.solvers.wrappers.by_instance import ByInstance


@dataclass(frozen=True)
class ByProblem(ByInstance):
    """The method that a function of the problem's ``methods`` makes: ``ddlopt.solvers.<path>.methods``.

    Parameters
    ----------
    name, family : str
    function : str
        Called with the instance and ``argument``; a problem whose methods have none of that name is refused.
    argument : str
        The solver behind models, or which of several methods is wanted.
    """

    has_options: ClassVar[bool] = False
    """What its fields say is the family's."""

    name: str
    family: str
    function: str
    argument: str

    def refuses(self, instance: Any) -> str | None:
        """Problems without such a method, and what that method refuses."""
        if hasattr(self._methods(instance), self.function):
            return super().refuses(instance)
        return f"there is none for {a_or_an(instance.kind)}"

    def method(self, instance: Any) -> Method:
        """The method that is asked for an instance."""
        if not hasattr(self._methods(instance), self.function):
            raise NotApplicableError(f"{self.name} does not cover '{instance.name}': {self.refuses(instance)}")
        made: Method = getattr(self._methods(instance), self.function)(instance, self.argument)
        return made

    def _methods(self, instance: Any) -> Any:
        return problem_of(instance).module("solvers", "methods")


def entries_of_rooms(family: str) -> tuple[Entry, ...]:
    """The ``ENTRIES`` of the problems of a family, in the order in which problems are listed."""
    rooms = (problem.module("solvers", "methods") for problem in family_of(family).problems)
    return tuple(entry for room in rooms for entry in getattr(room, "ENTRIES", ()))


def exact_of(family: str) -> Entry:
    """The method ``exact`` of a family: what ``best(instance, solver)`` of the problem's methods makes."""
    summary = "the exact method that fits the problem"
    return Entry("exact", family, "exact", summary, lambda solver: ByProblem("exact", family, "best", solver))
