"""The exact method that fits the problem."""

from dataclasses import dataclass
from importlib import import_module
from typing import ClassVar

from ddlopt.models.deployment import DeploymentProblem
from ddlopt.solvers.by_instance import ByInstance
from ddlopt.solvers.contracts import Method

FAMILY = "deployment"


@dataclass(frozen=True)
class Best(ByInstance):
    """What proves soonest for the problem at hand: ``best`` of ``ddlopt.solvers.deployment.<problem>_methods``.

    Parameters
    ----------
    solver : str
        Behind the models.
    """

    solver: str = "highs"

    name: ClassVar[str] = "exact"
    family: ClassVar[str] = FAMILY

    def method(self, instance: DeploymentProblem) -> Method:
        """The method that is asked for an instance."""
        problem: str = instance.problem  # type: ignore[attr-defined]
        methods = import_module(f"ddlopt.solvers.deployment.{problem}_methods")
        chosen: Method = methods.best(instance, self.solver)
        return chosen
