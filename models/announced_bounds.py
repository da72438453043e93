"""Bounds that packages announce under the entry point ``ddlopt.bounds``, beside the one of a problem's own room."""

import sys
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from math import isfinite
from pathlib import Path
from typing import Any

from ddlopt.models import plugins
from ddlopt.models.errors import plain

_ROOMS = Path(__file__).parent
"""A problem's path is its folder here; the catalogue of problems knows this module and not the other way round."""
GROUP = "ddlopt.bounds"


@dataclass(frozen=True)
class Bound:
    """A bound on the objective of every solution of the instances of one problem, found without a solver.

    Parameters
    ----------
    problem : str
        Its path, ``"aggregation/tree"``.
    name : str
        For people.
    value : callable
        ``value(instance)``: from below where the objective is minimised, else from above; None where it says nothing.
    kernels : tuple of str or callable
        Modules of ours with kernels that it calls, which are compiled before the clock of a method; or
        ``kernels(instance)``, which gives them.
    """

    problem: str
    name: str
    value: Callable[[Any], float | None]
    kernels: tuple[str, ...] | Callable[[Any], tuple[str, ...]] = ()

    def kernels_for(self, instance: Any) -> tuple[str, ...]:
        """What it calls on an instance."""
        return self.kernels(instance) if callable(self.kernels) else self.kernels


def kernels(instance: Any, problem: str) -> tuple[str, ...]:
    """What the bounds of ddlopt's frontier call on an instance of a problem."""
    mine = (bound for bound, ours in _announced(*_now()) if ours and bound.problem == problem)
    return tuple(name for bound in mine for name in bound.kernels_for(instance))


def tightest(instance: Any, problem: str, own: float | None) -> float | None:
    """The tightest of the problem's own bound and those of ddlopt's frontier."""
    known = [own, *(bound.value(instance) for bound, ours in _announced(*_now()) if ours and bound.problem == problem)]
    values = [each for each in known if each is not None]
    return (max if instance.sense == "minimize" else min)(values, default=None)


def claimed(instance: Any, problem: str) -> float | None:
    """The tightest bound that other packages claim; nobody has checked it, and it is shown only."""
    values = []
    for bound, ours in _announced(*_now()):
        if ours or bound.problem != problem:
            continue
        try:
            value = bound.value(instance)
            if value is not None and isfinite(value):
                values.append(float(value))
        except (Exception, SystemExit, GeneratorExit) as fault:  # a broken package must not take the others with it
            _warn(bound.name, fault)
    return (max if instance.sense == "minimize" else min)(values, default=None)


def _now() -> tuple[tuple[str, ...], bool]:
    return tuple(sys.path), plugins.hidden()


@cache
def _announced(_: tuple[str, ...], hidden: bool) -> tuple[tuple[Bound, bool], ...]:
    """All bounds, and whether they are ours, looked for once on a search path; an entry point names one or several."""
    found: list[tuple[Bound, bool]] = []
    for point in plugins.announced(GROUP):
        try:
            told = point.load()
            told = (told,) if isinstance(told, Bound) else tuple(told)
            odd = next((each for each in told if not isinstance(each, Bound)), None)
            if odd is not None:
                raise TypeError(f"expected bounds, got {type(odd).__name__}")
            ours = plugins.is_frontier(point)
            unknown = (
                [] if ours else [each.problem for each in told if not (_ROOMS / each.problem / "instance.py").is_file()]
            )
            if unknown:
                raise ValueError(f"there is no problem '{unknown[0]}'; `ddlopt list` names them")
            found += [(each, ours) for each in told]
        except (Exception, SystemExit, GeneratorExit) as fault:
            if plugins.is_frontier(point):
                raise
            _warn(point.value, fault)
    return tuple(found)


def _warn(who: str, fault: BaseException) -> None:
    warnings.warn(plain(f"the bound '{who}' of another package cannot be used: {fault}"), stacklevel=4)
