"""The chain behind ``exact``: a problem's own method, and before it the links that packages announce.

A package announces links under the entry point ``ddlopt.exact``, each for one problem. They are asked in the order of
their priority: a link answers by itself, or it goes first and hands what it has found on to the rest. Steps, which a
search of ours takes beside its own, are announced there, too.
"""

import sys
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

from ddlopt.models import plugins
from ddlopt.models.catalogue import problem as problem_named
from ddlopt.models.errors import plain
from ddlopt.solvers import standard_output
from ddlopt.solvers.contracts import Method
from ddlopt.solvers.external import ExternalMethod, checked
from ddlopt.solvers.wrappers.warm_started import WarmStarted

GROUP = "ddlopt.exact"


@dataclass(frozen=True)
class Link:
    """A method for some instances of one problem.

    Parameters
    ----------
    problem : str
        Its path, ``"aggregation/tree"``.
    make : callable
        ``make(instance, solver)`` gives the method, with the solver of that name behind it where it takes one; None
        where it is not the one for the instance.
    priority : int
        The link with the largest is asked first. Links of ddlopt have 0.
    share : float, optional
        Part of the time limit that it may use before the rest of the chain goes on from its solution, or without one
        where the method of another package fails; without a share, the rest is left out.
    kernels : tuple of str
        Modules of ours with kernels that its methods call, for methods which ask the chain on the way.
    """

    problem: str
    make: Callable[[Any, str], Method | None]
    priority: int = 0
    share: float | None = None
    kernels: tuple[str, ...] = ()


def _always(_: Any) -> bool:
    return True


@dataclass(frozen=True)
class Step:
    """What a search of ours does beside its own steps of a kind.

    Parameters
    ----------
    method : str
        The search, ``"topology/link-exchange"``.
    kind : str
        Which of its steps: the search says with what these are called, and what they give.
    make : callable
    kernels : tuple of str
        Modules of ours with kernels that it calls, which are compiled before the search's clock.
    covers : callable
        Whether it does anything for an instance; the search asks where it costs nothing.
    """

    method: str
    kind: str
    make: Callable[..., Any]
    kernels: tuple[str, ...] = ()
    covers: Callable[[Any], bool] = _always


def exact(problem: str, instance: Any, solver: str, own: Callable[[Any, str], Method]) -> Method:
    """The method behind ``exact`` for an instance: what the links say, and ``own(instance, solver)`` at the end."""
    made = [(link, _made(link, ours, instance, solver)) for link, ours in _links(problem)]
    return _joined([(link, method) for link, method in made if method is not None], instance, solver, own)


def _joined(made: list[tuple[Link, Method]], instance: Any, solver: str, own: Callable[[Any, str], Method]) -> Method:
    if not made:
        return own(instance, solver)
    (link, method), *rest = made
    share = link.share
    if share is None:
        return method
    return WarmStarted(
        "exact",
        instance.family,
        method,
        lambda asked: _joined(rest, asked, solver, own),
        lambda _: share,
        may_fail=isinstance(method, ExternalMethod),  # a broken package must not take the others with it
    )


def links(problem: str) -> tuple[Link, ...]:
    """The links of a problem, in the order in which they are asked."""
    return tuple(link for link, _ in _links(problem))


def kernels(problem: str) -> tuple[str, ...]:
    """What the links of a problem call."""
    return tuple(name for link in links(problem) for name in link.kernels)


def steps(method: str, kind: str | None = None) -> tuple[Step, ...]:
    """The steps of a search, those of ddlopt's frontier first: of a kind, or all."""
    told = (each for each, _ in _announced(tuple(sys.path), plugins.hidden()) if isinstance(each, Step))
    return tuple(step for step in told if step.method == method and kind in (None, step.kind))


def kernels_of_steps(method: str, instance: Any = None) -> tuple[str, ...]:
    """What the steps of a search call on an instance; without one, on any."""
    mine = (step for step in steps(method) if instance is None or step.covers(instance))
    return tuple(name for step in mine for name in step.kernels)


def _links(problem: str) -> list[tuple[Link, bool]]:
    """The links, with whether they are ddlopt's own."""
    told = _announced(tuple(sys.path), plugins.hidden())
    mine = [(each, ours) for each, ours in told if isinstance(each, Link) and each.problem == problem]
    return sorted(mine, key=lambda each: -each[0].priority)


def _made(link: Link, ours: bool, instance: Any, solver: str) -> Method | None:
    """The method of a link, checked as every method is; None where there is none, or making it fails."""
    if ours:
        return link.make(instance, solver)
    try:
        with standard_output.kept_clear():
            method = link.make(instance, solver)
            return None if method is None else checked(method)
    except (Exception, SystemExit, GeneratorExit) as problem:  # a broken package must not take the others with it
        _warn(link.make.__module__, problem)
        return None


@cache
def _announced(_: tuple[str, ...], hidden: bool) -> tuple[tuple[Link | Step, bool], ...]:
    """All that is announced, and whether it is ours, looked for once on a search path."""
    found: list[tuple[Link | Step, bool]] = []
    for point in plugins.announced(GROUP):
        try:
            told = point.load()
            told = (told,) if isinstance(told, Link | Step) else tuple(told)
            odd = next((each for each in told if not isinstance(each, Link | Step)), None)
            if odd is not None:
                raise TypeError(f"expected links, got {type(odd).__name__}")
            ours = plugins.is_frontier(point)
            for each in told:
                if isinstance(each, Link) and not ours:
                    problem_named(each.problem)
            found += [(each, ours) for each in told]
        except (Exception, SystemExit, GeneratorExit) as problem:
            if plugins.is_frontier(point):
                raise
            _warn(point.value, problem)
    return tuple(found)


def _warn(who: str, problem: BaseException) -> None:
    warnings.warn(plain(f"the link '{who}' of another package cannot be used: {problem}"), stacklevel=4)
