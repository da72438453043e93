"""Methods of other packages, behind the same check as our own."""

from dataclasses import dataclass, replace
from typing import Any

from ddlopt.models.contracts import Instance
from ddlopt.models.errors import SolverError
from ddlopt.solvers.contracts import Limits, Method, ProgressCallback, Result, Status, compiled, kernels_of
from ddlopt.solvers.finish import finish
from ddlopt.solvers.heuristic import Timed


def checked(method: Method) -> Method:
    """The method itself where its ``solve`` is one of ours, which check; else :class:`Foreign`."""
    kind = type(method)
    if kind.__module__.startswith("ddlopt."):
        return method
    from ddlopt.solvers.exact import Exact

    return method if getattr(kind, "solve", None) in (Timed.solve, Exact.solve) else Foreign(method)


@dataclass(frozen=True)
class Foreign:
    """A method whose own ``solve`` is not believed: what it answers is evaluated here.

    Parameters
    ----------
    method : Method
    """

    method: Method

    @property
    def name(self) -> str:
        """The method's."""
        return self.method.name

    @property
    def family(self) -> str:
        """The method's."""
        return self.method.family

    def refuses(self, instance: Any) -> str | None:
        """What the method refuses."""
        return self.method.refuses(instance)

    def kernels_for(self, instance: Any) -> tuple[str, ...]:
        """What the method says that it calls."""
        return kernels_of(self.method, instance)

    def solve(
        self,
        instance: Instance,
        limits: Limits,
        seed: int = 0,
        progress: ProgressCallback | None = None,
        start: Any = None,
    ) -> Result:
        """Answer ``instance``; see :class:`~ddlopt.solvers.contracts.Method`.

        Raises
        ------
        SolverError
            If the answer fails the check, is not worth what the method says, or is missing.
        """
        compile_s = compiled(self, instance)
        claim = self.method.solve(instance, limits, seed, progress, start)
        if claim.solution is None:
            if claim.status in (Status.OPTIMAL, Status.FEASIBLE):
                raise SolverError(f"{self.name} on '{instance.name}' claims to be {claim.status} without a solution")
            return replace(claim, compile_s=compile_s)
        result = finish(
            instance,
            claim.method,
            claim.solution,
            runtime_s=claim.runtime_s,
            limits=limits,
            seed=seed,
            claimed=claim.objective,
            bound=claim.bound,
            scope=claim.scope,
            scope_bound=claim.scope_bound,
            trace=claim.trace,
            details=claim.details,
            versions={name: value for name, value in claim.provenance.items() if name not in ("seed", "threads")},
            message=claim.message,
            interrupted=claim.interrupted,
        )
        return replace(result, compile_s=compile_s)
