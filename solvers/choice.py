"""Which methods are meant, and that none of the options asked for is one that they have no use for."""

import reprlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from ddlopt.models.contracts import Instance
from ddlopt.models.errors import NotApplicableError, OptionError, SolverMissingError
from ddlopt.solvers import catalogue
from ddlopt.solvers.contracts import Limits, Method, Result, uses_of
from ddlopt.solvers.external import checked
from ddlopt.solvers.names import ALL, AUTO
from ddlopt.solvers.wrappers.guarded import Guarded, can_guard

_OPTIONS = {"threads": "more than one thread", "seed": "a seed", "start": "a start"}
_NAMED = 4
"""Methods that a refusal names, of those that would use the option: a line has room for about four."""


def method_for(method: str | Method | None, instance: Instance, solver: str | None, start: bool = False) -> Method:
    """The method itself; by default the family's choice, one that uses the solver and the start if there are any."""
    if method is None or method == AUTO:
        return catalogue.default(instance, solver, start)
    if isinstance(method, str):
        return catalogue.method(method, instance.family, solver or "highs")
    if isinstance(method, type):
        raise OptionError(f"{method.__name__} is a class, and a method is an object of one: {method.__name__}()")
    if type(method).__module__ == "builtins":
        raise OptionError(f"{reprlib.repr(method)} is no method: give the name of one, or an object that has solve")
    return checked(method)


def all_of(asked: str, family: str) -> list[str]:
    """Names of a family's methods that ``all-heuristics`` or ``all-exact`` stands for, whatever they cover."""
    return [entry.name for entry in catalogue.entries(family) if entry.kind == ALL[asked]]


def written_out(methods: Sequence[str | Method], instance: Instance) -> list[str | Method]:
    """The methods, where a name of :data:`ALL` becomes those that cover the instance and are not asked for besides."""
    named = {
        catalogue.default_method(instance) if asked == AUTO else asked for asked in methods if isinstance(asked, str)
    }
    found: list[str | Method] = []
    for asked in methods:
        if not isinstance(asked, str) or asked not in ALL:
            found.append(asked)
            continue
        for name in all_of(asked, instance.family):
            if name not in named and catalogue.method(name, instance.family).refuses(instance) is None:
                found.append(name)
    return found


def within(method: Method, limits: Limits, memory_bytes: int | None) -> Method:
    """The method with a guard that holds it to its limits on time and memory, if there are any."""
    if memory_bytes is None and (limits.time_s is None or not can_guard()):
        return method
    return Guarded(method, memory_bytes)


def require_use(pairs: Iterable[tuple[Instance, Method]], options: Iterable[str]) -> None:
    """Raise :class:`OptionError` for options (``threads``, ``seed``, ``start``) that none of the methods uses.

    A method that does not say what it uses may use anything.
    """
    asked = list(options)
    if not asked:
        return
    known = [(instance, method, uses_of(method, instance)) for instance, method in pairs]
    for option in asked:
        if not known or any(uses is None or option in uses for _, _, uses in known):
            continue
        instance = known[0][0]
        told = ", ".join(dict.fromkeys(method.name for _, method, _ in known))
        use = "has no use" if len(known) == 1 else "have no use"
        others = list(_that_use(option, instance))
        more = ", …" if len(others) > _NAMED else ""
        hint = f", or take a method that has: {', '.join(others[:_NAMED])}{more}" if others else ""
        raise OptionError(f"{told} on '{instance.name}' {use} for {_OPTIONS[option]}; leave {option} out{hint}")


def _that_use(option: str, instance: Instance) -> Iterable[str]:
    for entry in catalogue.entries(instance.family):
        method = entry.make("highs")
        if method.refuses(instance) is None and option in (uses_of(method, instance) or ()):
            yield entry.name


def require_solver_use(instance: Instance, solver: str, chosen: Iterable[tuple[str | Method | None, Method]]) -> None:
    """Raise :class:`OptionError` if none of the methods uses a solver.

    Parameters
    ----------
    chosen : iterable of tuple
        What was asked for, and the method that it stands for. Behind a method that somebody brought along there is
        whatever that person put there.
    """
    names = []
    for asked, made in chosen:
        if asked is None or (isinstance(asked, str) and (asked == AUTO or catalogue.uses_solver(made, instance))):
            return
        names.append(asked if isinstance(asked, str) else str(getattr(asked, "name", "")))
    raise OptionError(
        f"{', '.join(names)} on '{instance.name}' uses no solver that could be chosen; leave '{solver}' out"
    )


def opened_by(opening: Method, method: Method, instance: Instance) -> Method:
    """The method with another one before it."""
    from ddlopt.solvers.wrappers.warm_started import WarmStarted

    for each in (opening, method):
        reason = each.refuses(instance)
        if reason is not None:
            raise NotApplicableError(f"{each.name} does not cover '{instance.name}': {reason}")
    return WarmStarted(method.name, instance.family, opening, lambda _: method)


@dataclass(frozen=True)
class _Missing:
    """A formulation whose solver is not installed."""

    name: str
    family: str
    solver: str
    message: str

    def refuses(self, _: Any) -> str | None:
        return None

    def solver_for(self, _: Any) -> str | None:
        return self.solver

    def solve(self, *_: Any) -> Result:
        raise SolverMissingError(self.message)


def by_solver(method: str | Method, instance: Instance, solvers: Sequence[str | None]) -> list[Method]:
    """The method with each solver if it uses one, once otherwise."""
    if len(solvers) == 1:
        return [method_for(method, instance, solvers[0])]
    made: list[Method] = []
    for solver in solvers:
        try:
            made.append(method_for(method, instance, solver))
        except SolverMissingError as missing:  # the others may still answer
            made.append(_Missing(str(method), instance.family, str(solver), str(missing)))
    one_each = method == AUTO or (isinstance(method, str) and catalogue.uses_solver(made[0], instance))
    return made if one_each else made[:1]
