"""What formulations and methods share: options that are words, and which instances are covered."""

from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import Any, ClassVar

from ddlopt.models.catalogue import other_kind, outside_of_room
from ddlopt.models.contracts import Instance
from ddlopt.models.errors import NotApplicableError, SolverError
from ddlopt.models.worded import Worded

_NO_SOLUTIONS = (type(None), str, Path, dict, Instance)
"""What a host may have in hand in place of a solution; some formulations start from the decisions alone, too."""


def _if_covered(own: Callable[[Any, Any], str | None]) -> Callable[[Any, Any], str | None]:
    """A class's own ``refuses``, which is asked about instances of the class that it covers only."""

    @wraps(own)
    def refuses(self: "Covering", instance: Any) -> str | None:
        return Covering.refuses(self, instance) or own(self, instance)

    return refuses


def _if_it_fits(own: Callable[..., Any]) -> Callable[..., Any]:
    """A class's own ``build``, ``start`` or ``read``, which a host may call with what is meant for others."""

    @wraps(own)
    def called(self: "Covering", block: Any, instance: Any, *others: Any, **named: Any) -> Any:
        reason = _unfit_block(block, own.__name__) or _unfit_instance(self, instance)
        if reason is None and own.__name__ == "start" and others and isinstance(others[0], _NO_SOLUTIONS):
            reason = f"starts from a solution, not from {_kind(others[0])}"
        if reason is not None:
            raise NotApplicableError(f"{type(self).__name__} {reason}")
        if own.__name__ == "read" and not _has_values(block):
            raise SolverError(f"{type(self).__name__} cannot read: the block has no values; solve it first")
        return own(self, block, instance, *others, **named)

    return called


def _unfit_block(block: Any, call: str) -> str | None:
    if not callable(getattr(block, "component", None)):
        return f"is built into a Pyomo block, such as pyo.ConcreteModel(), not into {_kind(block)}"
    if call == "build":
        told = "is built into a block without an objective; pyo.Block(concrete=True) is one of its own"
        return None if block.component("objective") is None else told
    return f"cannot {call}: it has not been built into this block" if block.component("objective") is None else None


def _has_values(block: Any) -> bool:
    """Whether a variable that is free has a value, or none is free: what is fixed has one before anybody solves."""
    from pyomo.environ import Var

    is_valued = (variable.value is not None for variable in block.component_data_objects(Var) if not variable.fixed)
    return next(is_valued, True) or any(is_valued)


def _unfit_instance(formulation: "Covering", instance: Any) -> str | None:
    if isinstance(instance, str | Path):
        return f"is built of an instance: ddlopt.load({str(instance)!r})"
    if not isinstance(instance, Instance):
        return f"is built of an instance, not of {_kind(instance)}"
    reason = Covering.refuses(formulation, instance)
    return None if reason is None else f"does not cover '{instance.name}': {reason}"


def _kind(given: Any) -> str:
    return "nothing" if given is None else f"a {type(given).__name__}"


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

    ``build``, ``start`` and ``read`` raise :class:`~ddlopt.models.errors.NotApplicableError` for an instance of another
    problem, for a name, and for a block that they do not fit. For a block that nobody has solved ``read`` raises
    :class:`~ddlopt.models.errors.SolverError`.
    """

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        for name in {"build", "start", "read"} & vars(cls).keys():
            setattr(cls, name, _if_it_fits(vars(cls)[name]))

    def scope(self, instance: Any) -> str | None:
        """All solutions."""
        return None
