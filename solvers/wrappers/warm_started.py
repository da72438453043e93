"""A heuristic first, then the exact model that fits, which starts from what the heuristic found."""

import dataclasses
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ddlopt.models.contracts import Formulation, Sense
from ddlopt.models.errors import (
    ContradictionError,
    InfeasibleError,
    NotApplicableError,
    SolutionError,
    SolverError,
    SolverMissingError,
)
from ddlopt.solvers.certified import joined, told_anew
from ddlopt.solvers.contracts import (
    Limits,
    Method,
    ProgressCallback,
    Result,
    Status,
    TracePoint,
    best_bound,
    best_objective,
    better,
    formulation_of,
    kernels_of,
    solver_of,
    uses_of,
)

OPENING_SHARE = 0.3
"""Part of a time limit that the heuristic may use, where nothing else is known."""


@dataclass(frozen=True)
class WarmStarted:
    """The better of two solutions under the better of two bounds.

    Parameters
    ----------
    name : str
        Name of the method, as in the catalogue.
    family : str
    opening : Method
        The heuristic; where it meets its bound, or does not cover the instance, the other is not or alone asked.
    model : callable
        The exact method for an instance.
    share : callable
        Part of a time limit that the heuristic may use, for an instance that the exact method covers.
    may_fail : bool
        Whether the exact method is asked all the same where the heuristic fails.
    """

    name: str
    family: str
    opening: Method
    model: Callable[[Any], Method]
    share: Callable[[Any], float] = lambda _: OPENING_SHARE
    may_fail: bool = False

    def refuses(self, instance: Any) -> str | None:
        """Why neither covers the instance; None if one does."""
        refusal = self.model(instance).refuses(instance)
        return None if self.opening.refuses(instance) is None else refusal

    def kernels_for(self, instance: Any) -> tuple[str, ...]:
        """What either calls."""
        return (*kernels_of(self.opening, instance), *kernels_of(self.model(instance), instance))

    def uses_for(self, instance: Any) -> frozenset[str] | None:
        """What either uses."""
        each = uses_of(self.opening, instance), uses_of(self.model(instance), instance)
        return None if None in each else frozenset().union(*(uses for uses in each if uses is not None))

    def formulation_for(self, instance: Any) -> Formulation | None:
        """That of the exact method."""
        return formulation_of(self.model(instance), instance)

    def solver_for(self, instance: Any) -> str | None:
        """That of the exact method, or of the other one."""
        return solver_of(self.model(instance), instance) or solver_of(self.opening, instance)

    def solve(
        self,
        instance: Any,
        limits: Limits,
        seed: int = 0,
        progress: ProgressCallback | None = None,
        start: Any = None,
    ) -> Result:
        """Answer ``instance``; see :class:`~ddlopt.solvers.contracts.Method`."""
        began = time.perf_counter()
        model = self.model(instance)
        alone = model.refuses(instance) is not None
        first: Result | None = None
        failed = ""
        try:
            part = 1.0 if alone else self.share(instance)
            share = None if limits.time_s is None else part * limits.time_s
            first = self.opening.solve(instance, dataclasses.replace(limits, time_s=share), seed, progress, start)
        except (NotApplicableError, InfeasibleError):
            pass
        except (SolverError, SolutionError) as problem:
            if alone or not self.may_fail:
                raise
            failed = f"{self.opening.name} failed: {problem}; then {model.name}: "
        if first is None:
            only = model.solve(instance, _left(limits, time.perf_counter() - began), seed, progress, start)
            return told_anew(only, method=self.name, message=f"{failed}{only.message}".rstrip(": "))
        opened_s = time.perf_counter() - began - first.compile_s  # each compiles what it calls before its own clock
        settled = first.status in (Status.OPTIMAL, Status.INFEASIBLE) or first.interrupted
        if settled or alone:
            message = f"by {first.method}: {first.message}".rstrip(": ")
            return told_anew(first, method=self.name, message=message)

        def watch(point: TracePoint) -> None:
            if progress is not None:
                later = dataclasses.replace(point, time_s=opened_s + point.time_s)
                progress(_best_of(first, later, instance.sense))

        try:
            second = model.solve(instance, _left(limits, opened_s), seed, watch, first.solution)
        except (SolverMissingError, ContradictionError):
            raise
        except SolverError as problem:
            if first.solution is None:
                raise
            # What has passed the check stands, whatever becomes of the other method.
            return told_anew(first, method=self.name, message=f"by {first.method}; {model.name} failed: {problem}")
        return self._better(first, second, instance.sense, limits, opened_s)

    def _better(self, first: Result, second: Result, sense: Sense, limits: Limits, opened_s: float) -> Result:
        """The better solution; what was proved within a scope goes with the solution that lies in it."""
        late = tuple(
            _best_of(first, dataclasses.replace(point, time_s=opened_s + point.time_s), sense) for point in second.trace
        )
        message = f"{first.method}, then {second.method}"
        of_first = first.objective is not None and (
            second.objective is None or not better(second.objective, first.objective, sense)
        )
        chosen = first if of_first else second
        return joined(
            first,
            second,
            limits.gap,
            method=self.name,
            runtime_s=opened_s + second.runtime_s,
            compile_s=first.compile_s + second.compile_s,
            trace=(*first.trace, *late),
            details={**second.details, **first.details, **chosen.details},
            provenance={**first.provenance, **second.provenance},
            message=f"{message}: {second.message}" if second.message else message,
            interrupted=second.interrupted,
        )


def _left(limits: Limits, spent_s: float) -> Limits:
    """What is left of the limits after a number of seconds."""
    return limits if limits.time_s is None else dataclasses.replace(limits, time_s=max(1e-3, limits.time_s - spent_s))


def _best_of(first: Result, point: TracePoint, sense: Sense) -> TracePoint:
    """A point of the second solve with what the first one already knew."""
    incumbent = best_objective((first.objective, point.incumbent), sense)
    return TracePoint(point.time_s, incumbent, best_bound((first.bound, point.bound), sense))
