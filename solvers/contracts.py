"""What every method takes and gives: limits, progress, results."""

import math
import platform
import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cache
from importlib.metadata import version
from numbers import Integral, Real
from typing import Any, Protocol, runtime_checkable

from ddlopt.models.catalogue import problem_of
from ddlopt.models.compilation import compile_kernels
from ddlopt.models.contracts import Evidence, Formulation, Sense, Solution
from ddlopt.models.errors import OptionError


class Status(StrEnum):
    """How a solve ended."""

    OPTIMAL = "optimal"
    """A solution whose gap to a bound for the *whole* problem is within the limit asked for."""
    FEASIBLE = "feasible"
    """A checked solution; what is known about its distance from the optimum is in ``bound`` and ``scope_bound``."""
    REFERENCE = "reference"
    """A figure for a different network (ideal switch, fat-tree): an objective to compare with, no solution to check."""
    INFEASIBLE = "infeasible"
    UNBOUNDED = "unbounded"
    NO_SOLUTION = "no_solution"
    """Stopped by a limit before any solution was found."""
    ERROR = "error"

    @property
    def answered(self) -> bool:
        """Whether there is an objective to speak of, or a proof that there is none."""
        return self in (Status.OPTIMAL, Status.FEASIBLE, Status.REFERENCE, Status.INFEASIBLE, Status.UNBOUNDED)

    @property
    def solved(self) -> bool:
        """Whether there is an objective to speak of; a command whose results all have one exits with 0."""
        return self in (Status.OPTIMAL, Status.FEASIBLE, Status.REFERENCE)


MOST_THREADS = 1024
"""More than machines have; solvers and operating systems take larger numbers badly."""


def _is_number(value: object) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool)


@dataclass(frozen=True)
class Limits:
    """When to stop: wall-clock seconds (None: never), relative gap, and the threads a solver may use."""

    time_s: float | None = None
    gap: float = 1e-4
    threads: int = 1

    def __post_init__(self) -> None:
        if self.time_s is not None and not (_is_number(self.time_s) and self.time_s > 0):
            raise OptionError(f"the time limit must be a positive number of seconds, got {self.time_s!r}")
        if not (_is_number(self.gap) and 0 <= self.gap < 1):
            raise OptionError(f"the gap must be at least 0 and less than 1, got {self.gap!r}")
        whole = isinstance(self.threads, Integral) and not isinstance(self.threads, bool)
        if not whole or not 1 <= self.threads <= MOST_THREADS:
            known = f"the number of threads must be a whole number of 1 to {MOST_THREADS}"
            raise OptionError(f"{known}, got {self.threads!r}")


@dataclass(frozen=True)
class TracePoint:
    """What a method says ``time_s`` seconds into a solve, in the instance's objective; None for what it does not say.

    Parameters
    ----------
    time_s : float
    incumbent, bound : float or None
        Claims of the method, as nobody has checked them at that time.
    settled : bool
        These are the figures of the result, behind its check.
    """

    time_s: float
    incumbent: float | None
    bound: float | None
    settled: bool = False


ProgressCallback = Callable[[TracePoint], None]


@dataclass(frozen=True)
class Result:
    """The outcome of one method on one instance.

    Parameters
    ----------
    instance, instance_digest, family, method : str
    status : Status
    objective : float or None
        As recomputed by ``evaluate``, never as claimed by a solver.
    bound : float or None
        A bound that counts, valid for *every* solution of the instance: a lower bound where the objective is
        minimised, an upper bound where it is maximised; None where there is none.
    evidence : Evidence or None
        Why the bound is believed, or that there is no solution; never ``claimed``.
    solution : Solution or None
    checked : bool
        ``evaluate`` found the solution feasible and its objective equal to the claimed one.
    scope : str or None
        The class of solutions the method searched, where that is not all of them.
    scope_bound : float or None
        The same, valid within ``scope`` only.
    runtime_s : float
        Wall-clock seconds around the whole solve, model building included, the compiling of kernels not.
    compile_s : float
        Wall-clock seconds before that, in which kernels were compiled or loaded.
    trace : tuple of TracePoint
        What the method said on the way. It claims when it had what; no incumbent is better than the checked
        objective, no bound is beyond the one that counts.
    details : mapping
        Figures of the method and of ``evaluate`` (loads, bandwidth tax, nodes …).
    provenance : mapping
        Versions, seed, threads.
    message : str
        One line for people, e.g. why there is no solution.
    sense : {"minimize", "maximize"}
        Of the instance's objective.
    unit : str
        Of the objective and its bounds: ``"s"``, or ``""`` for a number without one.
    interrupted : bool
        Somebody pressed Ctrl-C, and this is what was known by then.
    found_by, proved_by : str or None
        The method that found the solution, and the one that proved the bound, where ``method`` asked others; None
        where there is no solution, or no bound.
    """

    instance: str
    instance_digest: str
    family: str
    method: str
    status: Status
    objective: float | None = None
    bound: float | None = None
    solution: Solution | None = None
    checked: bool = False
    scope: str | None = None
    scope_bound: float | None = None
    runtime_s: float = 0.0
    trace: tuple[TracePoint, ...] = ()
    details: Mapping[str, Any] = field(default_factory=dict)
    provenance: Mapping[str, Any] = field(default_factory=dict)
    message: str = ""
    sense: Sense = "minimize"
    unit: str = "s"
    interrupted: bool = False
    compile_s: float = 0.0
    evidence: Evidence | None = None
    found_by: str | None = None
    proved_by: str | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.status, Status):
            raise TypeError(f"the status of a result is one of {', '.join(Status)}, got {self.status!r}")
        for name in ("objective", "bound", "scope_bound", "runtime_s", "compile_s"):
            value = getattr(self, name)
            if value is not None and not math.isfinite(value):
                raise ValueError(f"{name} of a result must be finite, got {value}; where there is none, say None")
        if self.runtime_s < 0:
            raise ValueError(f"a solve cannot take {self.runtime_s} s")
        if self.evidence is Evidence.CLAIMED:
            raise ValueError("a claim is no evidence; put it among the details")

    @property
    def gap(self) -> float | None:
        """``relative_gap`` against the bound of the whole problem, or None."""
        return relative_gap(self.objective, self.bound, self.sense)

    @property
    def scope_gap(self) -> float | None:
        """The same within ``scope``, or None."""
        return relative_gap(self.objective, self.scope_bound, self.sense)

    def to_data(self, with_solution: bool = False) -> dict[str, Any]:
        """Plain data for JSON, with ``gap`` and ``scope_gap`` filled in."""
        data: dict[str, Any] = {
            "instance": self.instance,
            "instance_digest": self.instance_digest,
            "family": self.family,
            "method": self.method,
            "found_by": self.found_by,
            "proved_by": self.proved_by,
            "status": str(self.status),
            "sense": self.sense,
            "unit": self.unit,
            "objective": self.objective,
            "bound": self.bound,
            "evidence": None if self.evidence is None else str(self.evidence),
            "gap": self.gap,
            "checked": self.checked,
            "scope": self.scope,
            "scope_bound": self.scope_bound,
            "scope_gap": self.scope_gap,
            "runtime_s": self.runtime_s,
            "compile_s": self.compile_s,
            "message": self.message,
            "details": dict(self.details),
            "trace": [[point.time_s, point.incumbent, point.bound] for point in self.trace],
            "provenance": dict(self.provenance),
        }
        if with_solution:
            data["solution"] = None if self.solution is None else self.solution.model_dump(mode="json")
        return data


def relative_gap(objective: float | None, bound: float | None, sense: Sense = "minimize") -> float | None:
    """How far the bound is from the objective, relative to ``|objective|``, at least 0.

    That is ``(objective - bound) / |objective|`` where the objective is minimised, and
    ``(bound - objective) / |objective|`` where it is maximised. None if either is missing, or if the objective is 0 and
    the bound does not meet it.
    """
    if objective is None or bound is None:
        return None
    distance = objective - bound if sense == "minimize" else bound - objective
    if not math.isfinite(objective) or math.isnan(distance) or distance == -math.inf:
        raise ValueError(f"there is no gap between {objective} and {bound}")
    if objective == 0:
        return 0.0 if distance <= 0 else None
    return max(0.0, distance / abs(objective))


def better(one: float, other: float, sense: Sense) -> bool:
    """Whether the objective ``one`` is strictly better than the ``other``; NaN is refused, as it is neither."""
    if one != one or other != other:
        raise ValueError(f"{one} and {other} cannot be compared")
    return one < other if sense == "minimize" else one > other


def best_objective(values: Iterable[float | None], sense: Sense) -> float | None:
    """The best of the objectives that are known; None if none is."""
    known = [value for value in values if value is not None]
    if any(value != value for value in known):
        raise ValueError("NaN is no objective; where there is none, say None")
    return min(known, default=None) if sense == "minimize" else max(known, default=None)


def best_bound(values: Iterable[float | None], sense: Sense) -> float | None:
    """The tightest of the bounds that are known: the largest lower or the smallest upper one; None if none is."""
    return best_objective(values, "maximize" if sense == "minimize" else "minimize")


@runtime_checkable
class Method(Protocol):
    """Anything that answers an instance of one family: ``Exact(formulation, backend)`` or a heuristic."""

    @property
    def name(self) -> str:
        """Kebab-case name, as in the catalogue."""

    @property
    def family(self) -> str:
        """Family of the instances that it answers."""

    def refuses(self, instance: Any) -> str | None:
        """Why the method does not cover the instance; None if it does."""

    def solve(
        self,
        instance: Any,
        limits: Limits,
        seed: int = 0,
        progress: ProgressCallback | None = None,
        start: Any = None,
    ) -> Result:
        """Answer ``instance``; ``start`` is a solution to begin from, where the method can use one."""


def kernels_of(method: Any, instance: Any) -> tuple[str, ...]:
    """Modules whose kernels a method may call on an instance, those of ``evaluate`` and ``bound`` among them.

    A method says so by an attribute ``kernels``, or, where it depends on the instance, by ``kernels_for(instance)``.
    """
    own = method.kernels_for(instance) if hasattr(method, "kernels_for") else getattr(method, "kernels", ())
    return (*problem_of(instance).kernels_for(instance), *own)


OPTIONS = ("threads", "seed", "start")
"""What a method may have no use for; a limit on time and a gap mean something for every method."""


def uses_of(method: Any, instance: Any) -> frozenset[str] | None:
    """Which of :data:`OPTIONS` a method uses on an instance; None if it does not say.

    A method says so by an attribute ``uses``, or, where it depends on the instance, by ``uses_for(instance)``.
    """
    said: frozenset[str] | None
    said = method.uses_for(instance) if hasattr(method, "uses_for") else getattr(method, "uses", None)
    return said


def formulation_of(method: Any, instance: Any) -> Formulation | None:
    """The formulation that a method hands to a solver, if it is one or ends with one; None otherwise.

    A method says so by ``formulation_for(instance)``.
    """
    found: Formulation | None = method.formulation_for(instance) if hasattr(method, "formulation_for") else None
    return found


def solver_of(method: Any, instance: Any) -> str | None:
    """Name of the solver behind a method, where another one can be asked for; None otherwise.

    A method says so by ``solver_for(instance)``.
    """
    name: str | None = method.solver_for(instance) if hasattr(method, "solver_for") else None
    return name


def compiled(method: Any, instance: Any) -> float:
    """Seconds in which what a method may call on an instance was compiled or loaded; to be spent before its clock."""
    return compile_kernels(kernels_of(method, instance))


@dataclass(frozen=True)
class Entry:
    """One line of a family's list of methods, ``ENTRIES`` in ``ddlopt.solvers.<family>.methods``.

    Parameters
    ----------
    name : str
        Kebab-case name.
    family : str
    kind : str
        ``exact``, ``heuristic`` or ``reference``.
    summary : str
        One line for people.
    make : callable
        Gives the method, with the solver of that name behind it where it is an exact one.
    """

    name: str
    family: str
    kind: str
    summary: str
    make: Callable[[str], Method]


_RECORDED = ("ddlopt", "highspy", "pyomo", "numpy")


@cache
def _versions() -> dict[str, str]:
    """Of the packages that a result depends on, read from their files once."""
    return {name: version(name) for name in _RECORDED}


def provenance(seed: int, threads: int, **more: Any) -> dict[str, Any]:
    """Versions, seed and threads of a solve, for :attr:`Result.provenance`."""
    return {
        "python": platform.python_version(),
        "platform": sys.platform,
        **_versions(),
        "seed": seed,
        "threads": threads,
        **more,
    }
