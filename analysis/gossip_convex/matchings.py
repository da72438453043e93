"""MATCHA by a generic solver of semidefinite programs."""

from dataclasses import dataclass
from typing import Any, ClassVar

from ddlopt.models.errors import NoSolutionError
from ddlopt.models.gossip.matchings.formulations.convex_matchings import (
    ConvexActivation,
    ConvexEdgeWeights,
    ConvexMixing,
)
from ddlopt.models.gossip.matchings.instance import MatchingPlan, MatchingsInstance
from ddlopt.models.gossip.spectral.laplacians import Floats
from ddlopt.solvers.backends.convex import Convex
from ddlopt.solvers.certify import MethodOutput
from ddlopt.solvers.contracts import Limits, Status
from ddlopt.solvers.gossip.matchings.exact import decomposed
from ddlopt.solvers.heuristic import CertifiedMethod, Clock


@dataclass(frozen=True)
class SemidefiniteMatcha(CertifiedMethod, uses=()):
    """The programs of :mod:`~.convex_matchings` through CVXPY, bounds recomputed.

    Parameters
    ----------
    per_edge : bool
        A weight for each edge; where a single matching is active, always.
    solver : {"clarabel", "scs"}
    """

    per_edge: bool = False
    solver: str = "clarabel"

    kernels: ClassVar[tuple[str, ...]] = ("ddlopt.solvers.gossip.spectral.kernels",)
    covers: ClassVar[type[Any]] = MatchingsInstance

    @property
    def name(self) -> str:
        """``matcha-semidefinite`` or ``matcha-edges-semidefinite``."""
        return "matcha-edges-semidefinite" if self.per_edge else "matcha-semidefinite"

    def find(self, instance: MatchingsInstance, limits: Limits, seed: int, clock: Clock, start: Any) -> MethodOutput:
        """The plan that the solver has in the end."""
        matchings, fewest = decomposed(instance, clock)
        details: dict[str, Any] = {"fewest_matchings": fewest}
        probabilities, connected, label = self._solved(ConvexActivation(matchings), instance, limits, clock)
        details["connectivity_bound"] = connected
        per_edge = self.per_edge or instance.activation == "single"
        kind = ConvexEdgeWeights if per_edge else ConvexMixing
        weights, bound, label = self._solved(kind(matchings, probabilities), instance, limits, clock)
        answer = MatchingPlan(
            instance=instance.name,
            matchings=matchings,
            probabilities=tuple(probabilities.tolist()),
            weights=tuple(weights.tolist()),
        )
        scope = "these matchings and probabilities" + ("" if per_edge else ", one weight")
        return MethodOutput(answer, details, scope=scope, scope_bound=bound, versions={"solver": label})

    def _solved(
        self, formulation: Any, instance: MatchingsInstance, limits: Limits, clock: Clock
    ) -> tuple[Floats, float | None, str]:
        problem = formulation.problem(instance)
        left = None if limits.time_s is None else max(1e-3, clock.left_s)
        with clock.lending_ctrl_c():
            outcome = Convex(self.solver).solve(problem, Limits(left, limits.gap, limits.threads))
        if outcome.status not in (Status.OPTIMAL, Status.FEASIBLE):
            raise NoSolutionError(outcome.message or f"{self.solver} found no answer")
        return formulation.read(problem, instance), formulation.bound(problem, instance), outcome.solver
