"""Methods that are imported when they are asked for, so that to list a family's methods takes no time."""

from collections.abc import Callable
from importlib import import_module
from typing import Any

from ddlopt.solvers.contracts import Method

Maker = Callable[[str], Method]
"""Gives a method, with the solver of that name behind it where it is an exact one."""


def formulation(family: str, name: str, module: str, kind: str, **options: Any) -> Maker:
    """An exact method: a formulation of ``ddlopt.models.<family>`` and a solver."""

    def make(solver: str) -> Method:
        from ddlopt.solvers.backends import backend
        from ddlopt.solvers.exact import Exact

        made = getattr(import_module(f"ddlopt.models.{family}.{module}"), kind)(**options)
        return Exact(name, family, made, backend(solver))

    return make


def heuristic(family: str, module: str, kind: str, **options: Any) -> Maker:
    """A method of ``ddlopt.solvers.<family>`` that needs no solver, or brings its own."""

    def make(_: str) -> Method:
        method: Method = getattr(import_module(f"ddlopt.solvers.{family}.{module}"), kind)(**options)
        return method

    return make
