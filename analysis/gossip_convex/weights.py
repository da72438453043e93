"""The best weights by a generic solver of semidefinite programs."""

from dataclasses import dataclass
from typing import Any, ClassVar

from ddlopt.models.errors import NoSolutionError
from ddlopt.models.gossip.weights.formulations.convex_weights import ConvexWeights
from ddlopt.models.gossip.weights.instance import WeightsInstance
from ddlopt.solvers.backends.convex import Convex
from ddlopt.solvers.certify import MethodOutput
from ddlopt.solvers.contracts import Limits, Status
from ddlopt.solvers.heuristic import CertifiedMethod, Clock


@dataclass(frozen=True)
class Semidefinite(CertifiedMethod, uses=()):
    """:class:`~.ConvexWeights` through CVXPY, its bound recomputed.

    Parameters
    ----------
    solver : {"clarabel", "scs"}
    most_nodes : int
        Larger networks are refused: the equations of a step grow with the fourth power, and with 100 nodes a step takes
        seven seconds and 3 GB.
    """

    solver: str = "clarabel"
    most_nodes: int = 75

    name: ClassVar[str] = "semidefinite"
    covers: ClassVar[type[Any]] = WeightsInstance

    def refuses(self, instance: Any) -> str | None:
        """Other problems, and networks so large that one step of the solver takes longer than anybody waits."""
        reason = super().refuses(instance)
        if reason is None and instance.network.nodes > self.most_nodes:
            size = f"it has {instance.network.nodes} nodes"
            return f"{size}, and beyond {self.most_nodes} a step of the solver takes seconds and gigabytes; use exact"
        return reason

    def find(self, instance: WeightsInstance, limits: Limits, seed: int, clock: Clock, start: Any) -> MethodOutput:
        """The weights that the solver has in the end."""
        formulation = ConvexWeights()
        problem = formulation.problem(instance)
        left = None if limits.time_s is None else max(1e-3, clock.left_s)
        with clock.lending_ctrl_c():
            outcome = Convex(self.solver).solve(problem, Limits(left, limits.gap, limits.threads))
        if outcome.status not in (Status.OPTIMAL, Status.FEASIBLE):
            raise NoSolutionError(outcome.message or f"{self.solver} found no weights")
        found = formulation.read(problem, instance)
        return MethodOutput(
            found,
            dict(outcome.figures),
            formulation.bound(problem, instance),
            versions={"solver": outcome.solver},
            message=outcome.message,
        )
