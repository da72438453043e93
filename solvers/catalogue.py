"""All methods: what ``--method`` may name, and which method a family takes by itself.

A family's own list is ``ddlopt.solvers.<family>.methods``: its ``ENTRIES``, and ``default_method(instance)``.
"""

import contextlib
import sys
import warnings
from collections.abc import Callable
from functools import cache
from importlib import import_module
from typing import Any

from ddlopt.models import plugins
from ddlopt.models.catalogue import FAMILY_NAMES
from ddlopt.models.contracts import Formulation, Instance
from ddlopt.models.errors import NotApplicableError, OptionError, SolverMissingError, UnknownNameError, plain
from ddlopt.solvers import options, standard_output
from ddlopt.solvers.backends import backend
from ddlopt.solvers.contracts import Entry, Method, formulation_of, solver_of, uses_of
from ddlopt.solvers.external import checked
from ddlopt.solvers.makers import Maker
from ddlopt.solvers.names import can_be_asked, split


def _methods(family: str) -> Any:
    return import_module(f"ddlopt.solvers.{family}.methods")


def entries(family: str | None = None) -> tuple[Entry, ...]:
    """The methods of a family, or all; those of other packages last."""
    own = own_entries(family)
    taken = {(entry.family, entry.name) for entry in own}
    others = _announced(tuple(sys.path), plugins.hidden())[1]
    return (*own, *(entry for entry in others if family in (None, entry.family) and _is_new(entry, taken)))


def own_entries(family: str | None = None) -> tuple[Entry, ...]:
    """The methods of ddlopt itself, of a family or all; those of the frontier after the others of the family."""
    frontier = _announced(tuple(sys.path), plugins.hidden())[0]
    return tuple(
        entry
        for name in FAMILY_NAMES
        if family in (None, name)
        for entry in (*_methods(name).ENTRIES, *(each for each in frontier if each.family == name))
    )


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
def _announced(_: tuple[str, ...], hidden: bool) -> tuple[tuple[Entry, ...], tuple[Entry, ...]]:
    """Methods of the frontier and of other packages (``ddlopt.methods``), looked for once on a search path.

    Each names a class that gives a :class:`~ddlopt.solvers.contracts.Method` when called without arguments; that of
    the frontier is a tuple of :class:`~ddlopt.solvers.contracts.Entry`.
    """
    frontier: list[Entry] = []
    found = []
    for point in plugins.announced("ddlopt.methods"):
        if plugins.is_frontier(point):
            frontier += point.load()
            continue
        try:
            with standard_output.kept_clear():
                made = point.load()
                method = checked(made())
                _require_usual(method)
                summary = plain(str(made.__doc__ or "").strip().partition("\n")[0].rstrip("."))
            found.append(Entry(method.name, method.family, "heuristic", summary, _maker(made)))
        except (Exception, SystemExit, GeneratorExit) as problem:  # a broken package must not take the others with it
            told = plain(f"the method '{point.value}' of another package cannot be used: {problem}")
            warnings.warn(told, stacklevel=3)
    return tuple(frontier), tuple(found)


def _require_usual(method: Method) -> None:
    """Raise :class:`OptionError` for a family that does not exist, and a name by which nobody could ask."""
    if method.family not in FAMILY_NAMES:
        raise OptionError(f"its family is '{method.family}'; the families are: {', '.join(FAMILY_NAMES)}")
    if not can_be_asked(method.name):
        raise OptionError(f"its name is '{method.name}'; a name is one word, such as 'large-only', without , : = and /")


def method_names(family: str) -> tuple[str, ...]:
    """Names of the methods of a family."""
    return tuple(entry.name for entry in entries(family))


def method(name: str, family: str, solver: str = "highs") -> Method:
    """The method of that name, with ``solver`` behind it if it is exact.

    Parameters
    ----------
    name : str
        Of one of :func:`entries`, and after a colon options of its own: ``link-exchange:effort=0.1``.
    family : str
    solver : str

    Raises
    ------
    UnknownNameError
        If the family has no such method, or there is no such solver.
    OptionError
        If the method has no such option, or it is of another type or out of its range.
    SolverError
        If the solver is not installed.
    """
    bare, _ = split(name)
    for entry in entries(family):
        if entry.name == bare:
            return options.with_options(entry.make(solver), name)
    raise UnknownNameError(f"{family} has no method '{bare}'; it has: {', '.join(method_names(family))}")


def formulation_named(name: str, instance: Instance) -> Formulation:
    """The formulation behind a method on an instance; see :func:`method` for names.

    Raises
    ------
    UnknownNameError
        If the family has no such method; the message names those with a formulation of the instance.
    NotApplicableError
        If the method does not cover the instance, or is none that hands a formulation to a solver.
    """
    if split(name)[0] not in method_names(instance.family):
        others = ", ".join(formulation_names(instance)) or "none"
        raise UnknownNameError(f"'{instance.name}' has no formulation '{name}'; methods that are: {others}")
    made = method(name, instance.family)
    reason = made.refuses(instance)
    if reason is not None:
        raise NotApplicableError(f"{name} does not cover '{instance.name}': {reason}")
    formulation = formulation_of(made, instance)
    if formulation is None:
        others = ", ".join(formulation_names(instance)) or "none"
        raise NotApplicableError(f"{name} is no formulation of '{instance.name}'; methods that are: {others}")
    return formulation


def formulation_names(instance: Instance) -> tuple[str, ...]:
    """Names of the methods that hand a formulation of the instance to a solver."""
    made = [(entry.name, entry.make("highs")) for entry in entries(instance.family)]
    covering = [(name, method) for name, method in made if method.refuses(instance) is None]
    return tuple(name for name, method in covering if formulation_of(method, instance) is not None)


def default(instance: Instance, solver: str | None = None, start: bool = False) -> Method:
    """The best exact method for the instance's size; a heuristic with a certified gap where none is within reach.

    Where a solver is asked for, the first of the exact methods that use one and cover the instance, if that one does
    not; where there is a start, the same with methods of its kind that use one.

    Raises
    ------
    OptionError
        If a solver is asked for, and no method that uses one covers the instance.
    SolverError
        If it is not installed.
    """
    chosen = method(_methods(instance.family).default_method(instance), instance.family, solver or "highs")
    if solver is None:
        return _with_start(chosen, instance) if start else chosen
    if uses_solver(chosen, instance):
        return chosen
    for entry in entries(instance.family):
        if entry.kind == "exact":
            made = entry.make(solver)
            if uses_solver(made, instance) and made.refuses(instance) is None:
                return made
    raise OptionError(f"no method that uses a solver covers '{instance.name}'; leave '{solver}' out")


def default_method(instance: Instance, solver: str | None = None, start: bool = False) -> str:
    """The name of :func:`default`."""
    if solver is None and not start:
        name: str = _methods(instance.family).default_method(instance)
        return name
    return default(instance, solver, start).name


def _with_start(chosen: Method, instance: Instance) -> Method:
    """The method, or if it uses no start the first of its kind that does; else the method all the same."""
    uses = uses_of(chosen, instance)
    if uses is None or "start" in uses:
        return chosen
    listed = entries(instance.family)
    kind = next(entry.kind for entry in listed if entry.name == split(chosen.name)[0])
    made = (entry.make("highs") for entry in listed if entry.kind == kind)
    covering = (each for each in made if each.refuses(instance) is None)
    return next((each for each in covering if "start" in (uses_of(each, instance) or ())), chosen)


def certifying(instance: Instance) -> Method | None:
    """The exact method that searches and writes certificates of its own, if one covers the instance.

    It says so by having ``certified(instance, limits, seed, progress)``, which gives a result and a certificate.
    """
    made = (entry.make("highs") for entry in entries(instance.family) if entry.kind == "exact")
    return next((each for each in made if hasattr(each, "certified") and each.refuses(instance) is None), None)


def require_solver(name: str) -> None:
    """Raise :class:`UnknownNameError` if there is no solver of that name; whether it is installed is another matter."""
    with contextlib.suppress(SolverMissingError):
        backend(name)


def uses_solver(made: Method, instance: Instance) -> bool:
    """Whether a method has, for the instance, a solver behind it that can be chosen."""
    try:
        return solver_of(made, instance) is not None
    except NotApplicableError:
        return False
