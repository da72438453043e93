"""What formulations and methods share: options that are words, and which instances are covered."""

from collections.abc import Callable
from functools import wraps
from typing import Any, ClassVar

from ddlopt.models.catalogue import other_kind, outside_of_room
from ddlopt.models.contracts import Instance
from ddlopt.models.worded import Worded


def _if_covered(own: Callable[[Any, Any], str | None]) -> Callable[[Any, Any], str | None]:
    """A class's own ``refuses``, which is asked about instances of the class that it covers only."""

    @wraps(own)
    def refuses(self: "Covering", instance: Any) -> str | None:
        return Covering.refuses(self, instance) or own(self, instance)

    return refuses


class Covering(Worded):
    """Base of frozen dataclasses of options that cover the instances of a problem, or some of them.

    A ``refuses`` of a subclass need not ask whether the instance is of ``covers``: it is not called otherwise.
    """

    covers: ClassVar[type[Instance]] = Instance
    """Of a family with several problems, the instances of those that it answers; never those of a room within its own.
    """

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if "refuses" in vars(cls):
            cls.refuses = _if_covered(vars(cls)["refuses"])  # type: ignore[assignment, method-assign]

    def refuses(self, instance: Any) -> str | None:
        """Why the instance is not covered; None if it is."""
        return other_kind(instance, self.covers) or outside_of_room(self, instance)


class FormulationBase(Covering):
    """Base of formulations of this package; somebody else's needs no base, see the protocol in ``contracts``."""

    def scope(self, instance: Any) -> str | None:
        """All solutions."""
        return None
