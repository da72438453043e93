"""The links and routes of least congestion, with metric inequalities separated at the root."""

import dataclasses
import time
from dataclasses import dataclass, field
from typing import ClassVar

from ddlopt.frontier.topology.metric.separation import MetricSeparation
from ddlopt.models.contracts import Formulation
from ddlopt.models.errors import InfeasibleError, NotApplicableError
from ddlopt.models.topology import TopologyDesign, TopologyInstance, evaluate
from ddlopt.models.topology.formulations.min_congestion import MinCongestion
from ddlopt.solvers.backends.contracts import Backend, uses_of_backend
from ddlopt.solvers.backends.highs import Highs
from ddlopt.solvers.certified import told_anew
from ddlopt.solvers.contracts import Limits, ProgressCallback, Result, TracePoint, compiled
from ddlopt.solvers.exact import Exact


@dataclass(frozen=True)
class MetricCuts:
    """:class:`MinCongestion` with inequalities separated at its root.

    Parameters
    ----------
    separation : MetricSeparation
        Its ``achievable_bytes`` is replaced by that of the start, if there is one.
    share : float
        Part of a time limit that the separation may use.
    backend : Backend
    """

    separation: MetricSeparation = field(default_factory=MetricSeparation)
    share: float = 0.2
    backend: Backend = field(default_factory=Highs)

    name: ClassVar[str] = "metric-cuts"
    family: ClassVar[str] = "topology"

    def refuses(self, instance: TopologyInstance) -> str | None:
        """What :class:`MinCongestion` does not cover."""
        return Exact(self.name, self.family, MinCongestion()).refuses(instance)

    def uses_for(self, instance: TopologyInstance) -> frozenset[str] | None:
        """A start, and what the solver can be told."""
        return uses_of_backend(self.backend)

    def formulation_for(self, instance: TopologyInstance) -> Formulation | None:
        """The formulation, without the inequalities."""
        return MinCongestion()

    def solver_for(self, instance: TopologyInstance) -> str | None:
        """The one behind the formulation."""
        return self.backend.name

    def solve(
        self,
        instance: TopologyInstance,
        limits: Limits,
        seed: int = 0,
        progress: ProgressCallback | None = None,
        start: TopologyDesign | None = None,
    ) -> Result:
        """Answer ``instance``; see :class:`~ddlopt.solvers.contracts.Method`."""
        reason = self.refuses(instance)
        if reason is not None:
            raise NotApplicableError(f"{self.name} does not cover '{instance.name}': {reason}")
        compile_s = compiled(self, instance)
        began = time.perf_counter()
        achievable = _achieved_bytes(instance, start)
        separation = dataclasses.replace(self.separation, achievable_bytes=achievable)
        try:
            found = separation.run(instance, None if limits.time_s is None else self.share * limits.time_s)
        except InfeasibleError:  # the formulation tells of it, with the proof
            return Exact(self.name, self.family, MinCongestion(), self.backend).solve(instance, limits, seed)
        formulation = MinCongestion(cuts=found.cuts, proven_bytes=found.bound_bytes, achievable_bytes=achievable)
        used = time.perf_counter() - began
        left = None if limits.time_s is None else max(1e-3, limits.time_s - used)

        def later(point: TracePoint) -> TracePoint:
            return dataclasses.replace(point, time_s=used + point.time_s)

        watch = None if progress is None else lambda point: progress(later(point))
        result = Exact(self.name, self.family, formulation, self.backend).solve(
            instance, dataclasses.replace(limits, time_s=left), seed, watch, start
        )
        figures = {"separation_s": used, "cuts": len(found.cuts), "root_programs": found.programs}
        return told_anew(
            result,
            runtime_s=used + result.runtime_s,
            compile_s=compile_s + result.compile_s,
            trace=tuple(later(point) for point in result.trace),
            details={**result.details, **figures},
        )


def _achieved_bytes(instance: TopologyInstance, start: TopologyDesign | None) -> float | None:
    """What the busiest link of the start carries; None without a feasible one."""
    if start is None:
        return None
    checked = evaluate(instance, start)
    return float(checked.details["max_link_load_bytes"]) if checked.feasible else None
