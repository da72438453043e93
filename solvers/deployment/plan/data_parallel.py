"""Data parallelism on all devices, evenly or by speed."""

from dataclasses import dataclass
from typing import Any, ClassVar

from ddlopt.models.deployment import Deployment, DeploymentInstance
from ddlopt.models.deployment.plan.solution import Split
from ddlopt.models.errors import NoSolutionError
from ddlopt.solvers.deployment.plan.rater import PlanRater
from ddlopt.solvers.heuristic import Answer, Clock, Heuristic
from ddlopt.solvers.names import spelled


@dataclass(frozen=True)
class DataParallel(Heuristic, uses=()):
    """Every device has a replica of everything, and gradients are all-reduced (what TAG calls DP-NCCL, DP-NCCL-P).

    Parameters
    ----------
    split : {"even", "speed"}
    """

    split: Split = "even"

    kernels: ClassVar[tuple[str, ...]] = ("ddlopt.solvers.deployment.plan.simulator.run",)
    covers = DeploymentInstance

    @property
    def name(self) -> str:
        """``data-parallel``, with its split."""
        return spelled("data-parallel", self, "split")

    def answer(self, instance: DeploymentInstance, seed: int, clock: Clock, start: Any) -> Answer[Deployment]:
        """The one plan there is."""
        rater = PlanRater(instance)
        everywhere = rater.everywhere
        action = everywhere.get(("all_reduce", self.split), everywhere["all_reduce", "even"])
        rating = rater.rate(rater.uniform(action))
        if not rating.fits:
            raise NoSolutionError(f"a replica of everything takes {rating.excess_bytes:.4g} bytes more than there are")
        return rater.deployment(), {}
