"""The exact method that fits the problem."""

import dataclasses
from dataclasses import dataclass
from importlib import import_module
from typing import Any, ClassVar

from ddlopt.models.deployment import DeploymentProblem
from ddlopt.solvers.contracts import Limits, Method, ProgressCallback, Result

FAMILY = "deployment"


@dataclass(frozen=True)
class Best:
    """What proves soonest for the problem at hand: ``best`` of ``ddlopt.solvers.deployment.<problem>_methods``.

    Parameters
    ----------
    solver : str
        Behind the models.
    """

    solver: str = "highs"

    name: ClassVar[str] = "exact"
    family: ClassVar[str] = FAMILY

    def refuses(self, instance: DeploymentProblem) -> str | None:
        """What the method chosen refuses."""
        return self.method(instance).refuses(instance)

    def solve(
        self,
        instance: DeploymentProblem,
        limits: Limits,
        seed: int = 0,
        progress: ProgressCallback | None = None,
        start: Any = None,
    ) -> Result:
        """Answer ``instance``; see :class:`~ddlopt.solvers.contracts.Method`."""
        method = self.method(instance)
        result = method.solve(instance, limits, seed, progress, start)
        if result.method == self.name:
            return result
        message = f"by {result.method}: {result.message}".rstrip(": ")
        return dataclasses.replace(result, method=self.name, message=message)

    def method(self, instance: DeploymentProblem) -> Method:
        """The method that is asked for an instance."""
        problem: str = instance.problem  # type: ignore[attr-defined]
        methods = import_module(f"ddlopt.solvers.deployment.{problem}_methods")
        chosen: Method = methods.best(instance, self.solver)
        return chosen
