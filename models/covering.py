"""What formulations and methods share: options that are words, and which instances are covered."""

from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import Any, ClassVar

from ddlopt.models.catalogue import other_kind, outside_of_room
from ddlopt.models.contracts import Instance
from ddlopt.models.errors import NotApplicableError
from ddlopt.models.worded import Worded


def _if_covered(own: Callable[[Any, Any], str | None]) -> Callable[[Any, Any], str | None]:
    """A class's own ``refuses``, which is asked about instances of the class that it covers only."""

    @wraps(own)
    def refuses(self: "Covering", instance: Any) -> str | None:
        return Covering.refuses(self, instance) or own(self, instance)

    return refuses


def _of_its_own(own: Callable[..., None]) -> Callable[..., None]:
    """A class's own ``build``, which a host may call with the instance of another formulation, or with its name."""

    @wraps(own)
    def build(self: "Covering", block: Any, instance: Any, *others: Any, **named: Any) -> None:
        if isinstance(instance, str | Path):
            raise NotApplicableError(f"{type(self).__name__} is built of an instance: ddlopt.load({str(instance)!r})")
        reason = Covering.refuses(self, instance) if isinstance(instance, Instance) else None
        if reason is not None:
            raise NotApplicableError(f"{type(self).__name__} does not cover '{instance.name}': {reason}")
        own(self, block, instance, *others, **named)

    return build


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
    """Base of formulations of this package; somebody else's needs no base, see the protocol in ``contracts``.

    ``build`` raises :class:`~ddlopt.models.errors.NotApplicableError` for an instance of another problem, or a name.
    """

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if "build" in vars(cls):
            cls.build = _of_its_own(vars(cls)["build"])  # type: ignore[attr-defined]

    def scope(self, instance: Any) -> str | None:
        """All solutions."""
        return None
