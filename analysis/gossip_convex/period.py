"""The best period by a generic solver, as a geometric program."""

from dataclasses import dataclass
from typing import Any, ClassVar

from ddlopt.models.errors import NoSolutionError
from ddlopt.models.gossip.period.formulations.geometric_period import GeometricPeriod
from ddlopt.models.gossip.period.instance import PeriodInstance
from ddlopt.solvers.backends.convex import Convex
from ddlopt.solvers.certify import MethodOutput
from ddlopt.solvers.contracts import Limits, Status
from ddlopt.solvers.gossip.period.rounds import Mixing
from ddlopt.solvers.heuristic import CertifiedMethod, Clock


@dataclass(frozen=True)
class GeometricProgram(CertifiedMethod, uses=()):
    """:class:`~.GeometricPeriod` through CVXPY, the step size improved after it.

    Parameters
    ----------
    solver : {"clarabel", "scs"}
    """

    solver: str = "clarabel"

    name: ClassVar[str] = "geometric-program"
    kernels: ClassVar[tuple[str, ...]] = ("ddlopt.solvers.gossip.spectral.kernels",)
    covers: ClassVar[type[Any]] = PeriodInstance

    def refuses(self, instance: Any) -> str | None:
        """Other problems, and rounds with different times."""
        return super().refuses(instance) or GeometricPeriod().refuses(instance)

    def find(self, instance: PeriodInstance, limits: Limits, seed: int, clock: Clock, start: Any) -> MethodOutput:
        """The plan that the solver has in the end; it proves nothing."""
        formulation = GeometricPeriod()
        if instance.rounds is not None:
            longest, mixing = instance.rounds.times_s[0], Mixing(instance.rounds)
            # Finer than the convex solver that goes on with it.
            mixing.settle(longest, 1e-9)
            formulation = GeometricPeriod(tuple(mixing.reached(longest)[1].tolist()))
        problem = formulation.problem(instance)
        left = None if limits.time_s is None else max(1e-3, clock.left_s)
        with clock.lending_ctrl_c():
            outcome = Convex(self.solver).solve(problem, Limits(left, limits.gap, limits.threads))
        if outcome.status not in (Status.OPTIMAL, Status.FEASIBLE):
            raise NoSolutionError(outcome.message or f"{self.solver} found no period")
        plan = formulation.read(problem, instance)
        promised = {} if outcome.value is None else {"promised_s": outcome.value}
        return MethodOutput(
            plan, {**outcome.figures, **promised}, versions={"solver": outcome.solver}, message=outcome.message
        )
