"""The plan of the makespan bound, and the bound."""

import dataclasses
import math
from dataclasses import dataclass, field
from typing import Any, ClassVar

from ddlopt.models.contracts import Formulation
from ddlopt.models.deployment.plan.evaluate import evaluate_plan
from ddlopt.models.deployment.plan.formulations.makespan_bound import MakespanBound
from ddlopt.models.deployment.plan.instance import DeploymentInstance
from ddlopt.models.deployment.plan.solution import Deployment
from ddlopt.models.errors import InfeasibleError, NoSolutionError
from ddlopt.solvers.backends.contracts import Backend
from ddlopt.solvers.backends.highs import Highs
from ddlopt.solvers.building import built
from ddlopt.solvers.certify import MethodOutput
from ddlopt.solvers.contracts import Limits, Status, TracePoint
from ddlopt.solvers.deployment.plan.rater import PlanRater
from ddlopt.solvers.exact import build_model
from ddlopt.solvers.heuristic import CertifiedMethod, Clock

_TIME_UP = "time limit passed while the model was built"
_OUTER_GAP = 0.8
"""Part of the gap asked for that the model may leave: its objective is below the time of its plan."""


@dataclass(frozen=True)
class CertifiedPlan(CertifiedMethod, uses=("threads", "seed", "start")):
    """Solves :class:`~.MakespanBound`; the best of its plan and of simple ones.

    Simple are the start and the plans with one action for all groups. The model has necessary conditions on memory
    only, so that its plan may be one that does not fit.

    Parameters
    ----------
    formulation : MakespanBound
        Or one that has more rows.
    backend : Backend
    """

    formulation: MakespanBound = field(default_factory=MakespanBound)
    backend: Backend = field(default_factory=Highs)

    kernels: ClassVar[tuple[str, ...]] = ("ddlopt.solvers.deployment.plan.simulator.run",)

    @property
    def name(self) -> str:
        """As in the catalogue."""
        return self.formulation.method

    def refuses(self, instance: Any) -> str | None:
        """As the formulation."""
        return self.formulation.refuses(instance)

    def formulation_for(self, instance: Any) -> Formulation | None:
        """The formulation."""
        return self.formulation

    def solver_for(self, instance: Any) -> str | None:
        """The one behind the formulation."""
        return self.backend.name

    def find(self, instance: DeploymentInstance, limits: Limits, seed: int, clock: Clock, start: Any) -> MethodOutput:
        """The better plan, and the bound."""
        best, time_s = self._simple(instance, start, clock)
        try:
            model = built(clock.left_s, lambda: build_model(self.family, self.formulation, instance))
        except InfeasibleError as proof:
            # The combinatorial bound says so again where there is no answer.
            raise NoSolutionError(str(proof)) from None
        if best is not None:
            clock.report(time_s, solution=best)
        if model is None:
            if best is None:
                raise NoSolutionError(f"{_TIME_UP}; no simple plan fits in memory")
            return MethodOutput(best, {"bound_s": None}, message=_TIME_UP)
        block = model.component(self.family)
        if best is not None:
            self.formulation.start(block, instance, best)
        left = None if limits.time_s is None else max(1e-3, clock.left_s)
        remaining = dataclasses.replace(limits, time_s=left, gap=limits.gap * _OUTER_GAP)

        def watch(point: TracePoint) -> None:
            if point.bound is not None:
                bound = self.formulation.objective_value(instance, point.bound)
                clock.report(None if best is None else time_s, bound)

        with clock.lending_ctrl_c():
            outcome = self.backend.solve(model, remaining, seed, watch, warm=best is not None)
        clock.interrupted = clock.interrupted or outcome.interrupted
        details: dict[str, float | None] = {"milp_nodes": outcome.figures.get("nodes", 0), "bound_s": None}
        if outcome.status is Status.INFEASIBLE and best is None:
            raise NoSolutionError("resident bytes do not fit on the devices, however they are placed")
        bound = None if outcome.bound is None else self.formulation.objective_value(instance, outcome.bound)
        details["bound_s"] = bound
        if outcome.objective is not None:
            plan = self.formulation.read(block, instance)
            own_s = _time_s(instance, plan)
            details["plan_of_the_bound_s"] = own_s if math.isfinite(own_s) else None
            if own_s < time_s:
                best, time_s = plan, own_s
        if best is None:
            raise NoSolutionError("the plan of the bound needs more memory than there is, and so do simple plans")
        return MethodOutput(
            best, details, bound, versions={"solver": outcome.solver or self.backend.name}, message=outcome.message
        )

    def _simple(
        self, instance: DeploymentInstance, start: Deployment | None, clock: Clock
    ) -> tuple[Deployment | None, float]:
        """The best of the start and of plans with one action for all groups, with its time; infinite if none fits."""
        rater = PlanRater(instance)
        _, rating = rater.best_uniform(clock)
        best, time_s = (rater.deployment(), rating.time_s) if rating.fits else (None, math.inf)
        if start is not None and _time_s(instance, start) < time_s:
            best, time_s = start, _time_s(instance, start)
        return best, time_s


def _time_s(instance: DeploymentInstance, plan: Deployment) -> float:
    """Infinite where the plan does not fit."""
    evaluation = evaluate_plan(instance, plan)
    return float(evaluation.objective) if evaluation.feasible and evaluation.objective is not None else math.inf
