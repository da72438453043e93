"""All plans of a small instance, one after the other."""

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from ddlopt.models.deployment.family import DeploymentProblem
from ddlopt.models.deployment.plan.instance import DeploymentInstance
from ddlopt.models.errors import NoSolutionError
from ddlopt.solvers.certify import MethodOutput
from ddlopt.solvers.contracts import Limits
from ddlopt.solvers.deployment.plan.actions import actions
from ddlopt.solvers.deployment.plan.simulator.fast import Simulator
from ddlopt.solvers.heuristic import CertifiedMethod, Clock

SCOPE = "model parallel by consecutive pieces, nothing duplicated"
_CHUNK = 4096


@dataclass(frozen=True)
class BruteForce(CertifiedMethod, uses=("threads",)):
    """The best of all rows of actions (:mod:`~ddlopt.solvers.deployment.plan.actions`), by the fast simulator.

    That is the optimum among plans that split no group over devices in any other way than the rule has it, and
    duplicate nothing.

    Parameters
    ----------
    most : int
        Plans beyond which it refuses.
    """

    most: int = 2_000_000

    family: ClassVar[str] = "deployment"
    kernels: ClassVar[tuple[str, ...]] = ("ddlopt.solvers.deployment.plan.simulator.run",)

    @property
    def name(self) -> str:
        """As in the catalogue."""
        return "brute-force"

    def refuses(self, instance: DeploymentProblem) -> str | None:
        """Other problems, and too many plans."""
        if not isinstance(instance, DeploymentInstance):
            return f"it enumerates deployments, and this is a {instance.kind}"
        choices = len(actions(instance))
        # In floats, because there may be very many.
        if instance.groups * math.log(choices) > math.log(self.most):
            return f"{choices} actions of {instance.groups} groups make more than {self.most} plans"
        return None

    def find(self, instance: DeploymentInstance, limits: Limits, seed: int, clock: Clock, start: Any) -> MethodOutput:
        """The best plan, and its time as the bound of the scope where all have been tried."""
        simulator = Simulator(instance, threads=limits.threads)
        choices = len(simulator.actions)
        plans, done = choices**instance.groups, 0
        best: npt.NDArray[np.int64] | None = None
        time_s = math.inf
        while done < plans and not clock.expired:
            rows = _rows(np.arange(done, min(plans, done + _CHUNK)), choices, instance.groups)
            times, excess = simulator.run_all(rows, above=time_s)
            times[excess > 0] = math.inf
            place = int(times.argmin())
            if times[place] < time_s:
                time_s, best = float(times[place]), rows[place]
                clock.report(time_s)
            done += len(rows)
        if best is None:
            tried = "all" if done == plans else f"{done} of {plans}"
            raise NoSolutionError(f"{tried} plans that were tried need more memory than there is ({SCOPE})")
        bound = time_s if done == plans else None
        return MethodOutput(simulator.deployment(best), {"plans": done}, scope=SCOPE, scope_bound=bound)


def _rows(numbers: npt.NDArray[np.int64], choices: int, groups: int) -> npt.NDArray[np.int64]:
    """(numbers, groups): the digits of numbers in base ``choices``."""
    return numbers[:, None] // choices ** np.arange(groups) % choices
