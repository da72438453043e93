"""All methods: what ``--method`` may name, and which method a family takes by itself.

A family's own list is ``ddlopt.solvers.<family>.methods``: its ``ENTRIES``, and ``default_method(instance)``.
"""

import sys
import warnings
from collections.abc import Callable
from functools import cache
from importlib import import_module
from importlib.metadata import entry_points
from typing import Any

from ddlopt.models.catalogue import FAMILY_NAMES
from ddlopt.models.contracts import Formulation, Instance
from ddlopt.models.errors import UnknownNameError
from ddlopt.solvers.contracts import Entry, Method
from ddlopt.solvers.foreign import checked
from ddlopt.solvers.makers import Maker


def _methods(family: str) -> Any:
    return import_module(f"ddlopt.solvers.{family}.methods")


def entries(family: str | None = None) -> tuple[Entry, ...]:
    """The methods of a family, or all; those of other packages last."""
    own = own_entries(family)
    taken = {(entry.family, entry.name) for entry in own}
    others = _plugins(tuple(sys.path))
    return (*own, *(entry for entry in others if family in (None, entry.family) and _is_new(entry, taken)))


def own_entries(family: str | None = None) -> tuple[Entry, ...]:
    """The methods of ddlopt itself, of a family or all."""
    return tuple(entry for name in FAMILY_NAMES if family in (None, name) for entry in _methods(name).ENTRIES)


def _is_new(entry: Entry, taken: set[tuple[str, str]]) -> bool:
    new = (entry.family, entry.name) not in taken
    if not new:
        warnings.warn(
            f"{entry.family} has a method '{entry.name}' already; that of another package is left out", stacklevel=2
        )
    return new


def _maker(made: Callable[[], Method]) -> Maker:
    return lambda _: checked(made())


@cache
def _plugins(_: tuple[str, ...]) -> tuple[Entry, ...]:
    """Methods that other packages announce under the entry point ``ddlopt.methods``, looked for once on a search path.

    Each names a class that gives a :class:`~ddlopt.solvers.contracts.Method` when called without arguments.
    """
    found = []
    for point in entry_points(group="ddlopt.methods"):
        try:
            made = point.load()
            method = made()
            summary = (made.__doc__ or "").strip().partition("\n")[0].rstrip(".")
            found.append(Entry(method.name, method.family, "heuristic", summary, _maker(made)))
        except Exception as problem:  # a broken package must not take the others with it
            warnings.warn(f"the method '{point.value}' of another package cannot be used: {problem}", stacklevel=3)
    return tuple(found)


def method_names(family: str) -> tuple[str, ...]:
    """Names of the methods of a family."""
    return tuple(entry.name for entry in entries(family))


def method(name: str, family: str, solver: str = "highs") -> Method:
    """The method of that name, with ``solver`` behind it if it is exact.

    Raises
    ------
    UnknownNameError
        If the family has no such method, or there is no such solver.
    SolverError
        If the solver is not installed.
    """
    for entry in entries(family):
        if entry.name == name:
            return entry.make(solver)
    raise UnknownNameError(f"{family} has no method '{name}'; it has: {', '.join(method_names(family))}")


def formulation_named(name: str, family: str) -> Formulation:
    """The formulation behind the exact method of that name.

    Raises
    ------
    UnknownNameError
        If the family has no such method, or it is no formulation.
    """
    from ddlopt.solvers.exact import Exact

    exact = {entry.name: entry for entry in entries(family) if entry.kind == "exact"}
    made = exact[name].make("highs") if name in exact else None
    if isinstance(made, Exact):
        return made.formulation
    known = (entry.name for entry in exact.values() if isinstance(entry.make("highs"), Exact))
    raise UnknownNameError(f"{family} has no formulation '{name}'; it has: {', '.join(known)}")


def default_method(instance: Instance) -> str:
    """The best exact method for the instance's size; a heuristic with a certified gap where none is within reach."""
    name: str = _methods(instance.family).default_method(instance)
    return name
