"""The list of a problem's methods, a line each; what is behind a line is imported when it is asked for."""

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any

from ddlopt.solvers.contracts import Entry, Method

Maker = Callable[[str], Method]
"""Gives a method, with the solver of that name behind it where it is an exact one."""

_STOREYS = ("models", "frontier")
"""What a line may begin with where it is a formulation's."""


def entries(path: str, *lines: tuple[Any, ...], storey: str = "solvers") -> tuple[Entry, ...]:
    """The methods of a problem.

    Parameters
    ----------
    path : str
        Of the problem: ``aggregation/tree``; of a family where its methods answer several problems.
    *lines : tuple
        Name; kind (``exact``, ``heuristic`` or ``reference``); what it does; and where it is: a function that takes the
        name of a solver, or ``module:Class`` below ``ddlopt.<storey>.<path>``, or ``models:module:Class`` (and likewise
        ``frontier:``) for a formulation below ``ddlopt.models.<path>``, which a solver is put behind. Then options of
        the class, if any.
    storey : {"solvers", "frontier"}
        Where the classes are that are not formulations.
    """
    family, _, problem = path.partition("/")
    return tuple(
        Entry(
            name,
            family,
            kind,
            f"{problem}: {summary}" if problem else summary,
            _maker(storey, path, name, home, *options),
        )
        for name, kind, summary, home, *options in lines
    )


def formulation(path: str, name: str, home: str, storey: str = "models", **options: Any) -> Maker:
    """An exact method: the formulation ``module:Class`` below ``ddlopt.<storey>.<path>``, and a solver."""

    def make(solver: str) -> Method:
        from ddlopt.solvers.backends import backend
        from ddlopt.solvers.exact import Exact

        return Exact(name, path.partition("/")[0], _class(storey, path, home)(**options), backend(solver))

    return make


def heuristic(path: str, home: str, storey: str = "solvers", **options: Any) -> Maker:
    """A method that needs no solver, or brings its own: ``module:Class`` below ``ddlopt.<storey>.<path>``."""

    def make(_: str) -> Method:
        method: Method = _class(storey, path, home)(**options)
        return method

    return make


def _maker(storey: str, path: str, name: str, home: str | Maker, options: Mapping[str, Any] | None = None) -> Maker:
    if not isinstance(home, str):
        return home
    given = options or {}
    first, _, rest = home.partition(":")
    if first in _STOREYS:
        return formulation(path, name, rest, first, **given)
    return heuristic(path, home, storey, **given)


def _class(storey: str, path: str, home: str) -> Callable[..., Any]:
    module, _, kind = home.rpartition(":")
    found: Callable[..., Any] = getattr(import_module(f"ddlopt.{storey}.{path.replace('/', '.')}.{module}"), kind)
    return found
