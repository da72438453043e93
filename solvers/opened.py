"""A heuristic first, then the exact model that fits, which starts from what the heuristic found."""

import dataclasses
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ddlopt.models.errors import InfeasibleError, NotApplicableError
from ddlopt.solvers.contracts import Limits, Method, ProgressCallback, Result, Status, TracePoint, relative_gap

OPENING_SHARE = 0.3
"""Part of a time limit that the heuristic may use."""


@dataclass(frozen=True)
class Opened:
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
    """

    name: str
    family: str
    opening: Method
    model: Callable[[Any], Method]

    def refuses(self, instance: Any) -> str | None:
        """Why neither covers the instance; None if one does."""
        refusal = self.model(instance).refuses(instance)
        return None if self.opening.refuses(instance) is None else refusal

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
        try:
            share = None if limits.time_s is None else OPENING_SHARE * limits.time_s
            first = self.opening.solve(instance, dataclasses.replace(limits, time_s=share), seed, progress, start)
        except (NotApplicableError, InfeasibleError):
            return dataclasses.replace(model.solve(instance, limits, seed, progress, start), method=self.name)
        opened_s = time.perf_counter() - began
        if (
            first.status is Status.OPTIMAL
            or first.message.endswith("interrupted")
            or model.refuses(instance) is not None
        ):
            message = f"by {first.method}: {first.message}".rstrip(": ")
            return dataclasses.replace(first, method=self.name, message=message)
        left = None if limits.time_s is None else max(1e-3, limits.time_s - opened_s)

        def watch(point: TracePoint) -> None:
            if progress is not None:
                progress(_best_of(first, dataclasses.replace(point, time_s=opened_s + point.time_s)))

        remaining = dataclasses.replace(limits, time_s=left)
        second = model.solve(instance, remaining, seed, watch, first.solution)
        return self._better(first, second, limits, opened_s)

    def _better(self, first: Result, second: Result, limits: Limits, opened_s: float) -> Result:
        """The better solution; what was proved within a scope goes with the solution that lies in it."""
        if first.objective is None:
            chosen = second
        elif second.objective is None or second.objective >= first.objective:
            # A solution of another scope proves nothing about this one.
            chosen = dataclasses.replace(first, scope=None, scope_bound=None)
        else:
            chosen = second
        bound = max((b for b in (first.bound, second.bound) if b is not None), default=None)
        if bound is not None and chosen.objective is not None:
            bound = min(bound, chosen.objective)
        gap = relative_gap(chosen.objective, bound)
        late = tuple(
            _best_of(first, dataclasses.replace(point, time_s=opened_s + point.time_s)) for point in second.trace
        )
        message = f"{first.method}, then {second.method}"
        return dataclasses.replace(
            chosen,
            method=self.name,
            bound=bound,
            status=Status.OPTIMAL if gap is not None and gap <= limits.gap else chosen.status,
            runtime_s=opened_s + second.runtime_s,
            trace=(*first.trace, *late),
            details={**second.details, **first.details, **chosen.details},
            message=f"{message}: {second.message}" if second.message else message,
        )


def _best_of(first: Result, point: TracePoint) -> TracePoint:
    """A point of the second solve with what the first one already knew."""
    incumbents = [x for x in (first.objective, point.incumbent) if x is not None]
    bounds = [x for x in (first.bound, point.bound) if x is not None]
    return TracePoint(point.time_s, min(incumbents, default=None), max(bounds, default=None))
