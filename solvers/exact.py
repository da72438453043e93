"""The exact method: a formulation, a back end, and the check of what comes out."""

import dataclasses
import math
import time
from dataclasses import dataclass, field
from typing import Any, ClassVar, NamedTuple, Protocol

import pyomo.environ as pyo
from pyomo.common.gc_manager import PauseGC

from ddlopt.models.catalogue import family as family_of
from ddlopt.models.catalogue import outside_of_room
from ddlopt.models.contracts import Evidence, Formulation, Instance, Sense
from ddlopt.models.errors import InfeasibleError, NotApplicableError, SolverError
from ddlopt.models.linear import check_range
from ddlopt.solvers.backends.contracts import Backend, Outcome, uses_of_backend
from ddlopt.solvers.backends.highs import Highs
from ddlopt.solvers.building import TimeUpError, building
from ddlopt.solvers.certified import told_anew, withdrawn
from ddlopt.solvers.certify import Gate, MethodOutput, leaf_of
from ddlopt.solvers.contracts import (
    Limits,
    ProgressCallback,
    Result,
    Status,
    TracePoint,
    better,
    compiled,
)

_OUTER_GAP = 0.8
"""Part of the gap asked for that a model may leave whose objective is an outer approximation: that takes some too."""


class Program(Protocol):
    """What a model is built from: of a :class:`~ddlopt.models.contracts.Formulation` what a bound needs."""

    sense: ClassVar[Sense]

    def build(self, block: pyo.Block, instance: Any) -> None:
        """Fill ``block`` with the model of ``instance``."""


def build_model(family: str, formulation: Program, instance: Any) -> pyo.ConcreteModel:
    """A model that holds ``formulation`` in a block named as the family, and minimises or maximises its objective.

    Raises
    ------
    RangeError
        If figures of the instance are too far apart for the formulation.
    """
    model = pyo.ConcreteModel(name=instance.name)
    # A large model is a million small objects that all stay: collecting garbage between them only costs time.
    with PauseGC():
        model.add_component(family, pyo.Block())
        block = model.component(family)
        formulation.build(block, instance)
        check_range(block, instance.name)
        model.objective = pyo.Objective(expr=block.objective, sense=getattr(pyo, formulation.sense))
    return model


@dataclass(frozen=True)
class Exact:
    """Solves a formulation to proven optimality, or as far as the limits allow.

    Parameters
    ----------
    name : str
        Name of the method, as in the catalogue.
    family : str
    formulation : Formulation
    backend : Backend
    """

    options_in: ClassVar[str] = "formulation"

    name: str
    family: str
    formulation: Formulation
    backend: Backend = field(default_factory=Highs)

    def refuses(self, instance: Any) -> str | None:
        """Why the formulation does not cover the instance; None if it does."""
        return outside_of_room(self.formulation, instance) or self.formulation.refuses(instance)

    def kernels_for(self, instance: Any) -> tuple[str, ...]:
        """What the formulation calls."""
        return tuple(getattr(self.formulation, "kernels", ()))

    def uses_for(self, instance: Any) -> frozenset[str] | None:
        """A start, and what the solver can be told."""
        return uses_of_backend(self.backend)

    def formulation_for(self, instance: Any) -> Formulation | None:
        """The formulation."""
        return self.formulation

    def solver_for(self, instance: Any) -> str | None:
        """The one behind the formulation."""
        return self.backend.name

    def solve(
        self,
        instance: Any,
        limits: Limits,
        seed: int = 0,
        progress: ProgressCallback | None = None,
        start: Any = None,
    ) -> Result:
        """Build, solve, read and check; the time limit counts the building.

        A ``start`` is the first incumbent; where the solver ends without a better solution, it is the answer.

        Raises
        ------
        NotApplicableError
            If the formulation does not cover the instance.
        SolverError
            If the solver's answer does not stand up to the check.
        """
        reason = self.refuses(instance)
        if reason is not None:
            raise NotApplicableError(f"{self.name} does not cover '{instance.name}': {reason}")
        compile_s = compiled(self, instance)
        result = self._solve(instance, limits, seed, progress, start)
        return told_anew(result, compile_s=compile_s)

    def _solve(self, instance: Any, limits: Limits, seed: int, progress: ProgressCallback | None, start: Any) -> Result:
        began = time.perf_counter()
        if start is not None:
            start.belongs_to(instance)
        gate = Gate(instance, self.name, limits, seed, leaf=leaf_of(self.name, self.formulation))
        block, outcome = None, None
        try:
            # First, as what has no solution may have figures that no model takes.
            family_of(self.family).bound(instance)
            with building(limits.time_s):
                model = build_model(self.family, self.formulation, instance)
                block = model.component(self.family)
                if start is not None:
                    self.formulation.start(block, instance, start)
        except InfeasibleError as proof:  # for a formulation with a scope that is no more than what a solver would say
            outcome = Outcome(Status.INFEASIBLE, message=str(proof))
        except TimeUpError:
            block = None
        building_s = time.perf_counter() - began
        run = _Run(self, gate, building_s)
        left = None if limits.time_s is None else limits.time_s - building_s
        if outcome is None and (block is None or (left is not None and left <= 0)):
            outcome = Outcome(Status.NO_SOLUTION, message="time limit passed while the model was built")
        elif outcome is None:
            watcher = None if progress is None else lambda point: progress(run.point(point))
            gap = limits.gap * _OUTER_GAP if run.outer else limits.gap
            remaining = dataclasses.replace(limits, time_s=left, gap=gap)
            outcome = self.backend.solve(model, remaining, seed, watcher, warm=start is not None)
        solution = None if outcome.objective is None else self.formulation.read(block, instance)
        return run.result(outcome, solution, start, time.perf_counter() - began)


@dataclass(frozen=True)
class _Run:
    """One solve: how its outcome, which speaks of the model, reads as a result, which speaks of the instance."""

    method: Exact
    gate: Gate
    building_s: float

    @property
    def outer(self) -> bool:
        """Whether the model's objective is only an estimate of the instance's."""
        return bool(getattr(self.method.formulation, "outer", False))

    @property
    def relaxed(self) -> bool:
        """Whether the solution of the model may be none of the instance."""
        return bool(getattr(self.method.formulation, "relaxed", False))

    def value(self, value: float | None) -> float | None:
        """The instance's objective that a figure of the model stands for; None if it says nothing."""
        if value is None:
            return None
        try:
            mapped = float(self.method.formulation.objective_value(self.instance, value))
        except ZeroDivisionError:
            return None
        return mapped if math.isfinite(mapped) else None

    def point(self, point: TracePoint) -> TracePoint:
        """A point of the solver's trace in the instance's time and objective; a bound of a scope is none of it."""
        bound = point.bound if self.method.formulation.scope(self.instance) is None else None
        return TracePoint(self.building_s + point.time_s, self.value(point.incumbent), self.value(bound))

    @property
    def instance(self) -> Instance:
        """What is solved."""
        return self.gate.instance

    def result(self, outcome: Outcome, solution: Any, start: Any, runtime_s: float) -> Result:
        """The checked result."""
        method = self.method
        scope = method.formulation.scope(self.instance)
        bound = self.value(outcome.bound)
        claimed, message = self.value(outcome.objective), outcome.message
        if solution is not None and self.relaxed and self._checked(solution) is None:
            solution, message = None, "the solution of the model breaks a rule that the model knows too little of"
            if start is None:
                message = f"{message}; start_from (--start-from) names a method for one that is kept"
        if self.outer or solution is None:
            claimed = None
        elif claimed is not None:
            # An incumbent that is not the last one, or good enough for the gap asked for, may leave slack: its
            # variables say less than the solution is.
            objective = self._checked(solution)
            if objective is not None and better(objective, claimed, self.instance.sense):
                within_gap = abs(objective - claimed) <= self.gate.limits.gap * abs(claimed)
                # A solver's absolute tolerance may be more than the gap of an objective that is small in its units.
                left_open = bound is not None and not better(objective, bound, self.instance.sense)
                if within_gap or left_open or outcome.status is not Status.OPTIMAL:
                    claimed = objective
        if start is not None and scope is None and self._is_better(start, solution, claimed):
            solution, claimed, message = start, None, f"kept the start; {message}".rstrip("; ")
        status, infeasible = outcome.status, None
        if solution is None and status is Status.INFEASIBLE:
            if scope is None:
                infeasible = Evidence.SOLVER
            else:
                message = f"there is no solution among those searched ({scope})"
        output = MethodOutput(
            solution,
            {"building_s": self.building_s, **outcome.figures},
            bound if scope is None else None,
            scope,
            None if scope is None else bound,
            {"solver": outcome.solver or method.backend.name, "solver_options": dict(method.backend.options)},
            message,
        )
        gate = dataclasses.replace(
            self.gate,
            runtime_s=runtime_s,
            trace=tuple(self.point(point) for point in outcome.trace),
            interrupted=outcome.interrupted,
        )
        if infeasible is not None:
            return gate.without_solution(dataclasses.replace(output, bound=None), infeasible)
        result = gate.certify(output, claimed)
        if solution is None and status in (Status.UNBOUNDED, Status.ERROR):
            return withdrawn(result, status)
        return result

    def _is_better(self, start: Any, solution: Any, claimed: float | None) -> bool:
        objective = self._checked(start)
        if objective is None or solution is None:
            return objective is not None
        other = self._checked(solution) if self.outer else claimed
        return other is not None and better(objective, other, self.instance.sense)

    def _checked(self, solution: Any) -> float | None:
        """The objective of a feasible solution."""
        evaluation = family_of(self.method.family).evaluate(self.instance, solution)
        return float(evaluation.objective) if evaluation.feasible and evaluation.objective is not None else None


class Relaxation(NamedTuple):
    """Optimum of an LP relaxation: as the instance's objective, and as the model's own."""

    objective: float
    model_objective: float


def lp_relaxation(formulation: Formulation, instance: Any, backend: Backend | None = None) -> Relaxation:
    """Optimum of the formulation with its integer variables relaxed.

    Raises
    ------
    SolverError
        If the relaxation has no optimum.
    """
    model = build_model(instance.family, formulation, instance)
    pyo.TransformationFactory("core.relax_integer_vars").apply_to(model)
    outcome = (backend or Highs()).solve(model, Limits())
    if outcome.status is not Status.OPTIMAL or outcome.objective is None:
        raise SolverError(f"the LP relaxation for '{instance.name}' is {outcome.status}: {outcome.message}")
    return Relaxation(formulation.objective_value(instance, outcome.objective), outcome.objective)
