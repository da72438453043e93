"""All methods: what ``--method`` may name, and which method a family takes by itself.

A family's own list is ``ddlopt.solvers.<family>.methods``: its ``ENTRIES``, and ``default_method(instance)``.
"""

from importlib import import_module
from typing import Any

from ddlopt.models.catalogue import FAMILY_NAMES
from ddlopt.models.contracts import Instance
from ddlopt.models.errors import UnknownNameError
from ddlopt.solvers.contracts import Entry, Method


def _methods(family: str) -> Any:
    return import_module(f"ddlopt.solvers.{family}.methods")


def entries(family: str | None = None) -> tuple[Entry, ...]:
    """The methods of a family, or all."""
    return tuple(entry for name in FAMILY_NAMES if family in (None, name) for entry in _methods(name).ENTRIES)


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


def default_method(instance: Instance) -> str:
    """The best exact method for the instance's size; a heuristic with a certified gap where none is within reach."""
    name: str = _methods(instance.family).default_method(instance)
    return name
