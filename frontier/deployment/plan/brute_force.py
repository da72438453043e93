"""All plans of a small instance, one after the other."""

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from ddlopt.frontier.deployment.plan.choices import Choices, Ints, fewest
from ddlopt.models.deployment.plan.instance import DeploymentInstance
from ddlopt.models.errors import InfeasibleError, NoSolutionError
from ddlopt.solvers.certify import MethodOutput
from ddlopt.solvers.contracts import Limits
from ddlopt.solvers.deployment.plan.simulator.fast import Simulator
from ddlopt.solvers.heuristic import CertifiedMethod, Clock

# Plans that are simulated between looks at the clock.
_CHUNK = 4096


@dataclass(frozen=True)
class BruteForce(CertifiedMethod, uses=("threads",)):
    """The best of all plans, by the fast simulator.

    All deployments, with any device for each operator that has but one and any operators duplicated, where they are at
    most ``most``: then its time is a bound for the instance. Otherwise all rows of actions
    (:mod:`~ddlopt.solvers.deployment.plan.actions`), which split no group over devices in any other way than the rule
    has it, and duplicate nothing: that is its scope then (:class:`~ddlopt.frontier.deployment.plan.choices.Choices`).

    Parameters
    ----------
    most : int
        Plans beyond which it refuses.
    """

    most: int = 2_000_000

    covers: ClassVar[type[DeploymentInstance]] = DeploymentInstance

    proves_infeasible: ClassVar[bool] = True
    kernels: ClassVar[tuple[str, ...]] = ("ddlopt.solvers.deployment.plan.simulator.run",)

    @property
    def name(self) -> str:
        """As in the catalogue."""
        return "brute-force"

    def refuses(self, instance: DeploymentInstance) -> str | None:
        """Too many plans."""
        if fewest(instance, self.most) is None:
            count = len(Choices(instance, every=False).actions)
            return f"{count} actions of {instance.groups} groups make more than {self.most} plans"
        return None

    def find(self, instance: DeploymentInstance, limits: Limits, seed: int, clock: Clock, start: Any) -> MethodOutput:
        """The best plan, and its time as the bound of all that have been tried.

        Raises
        ------
        InfeasibleError
            If none of all deployments fits: each was looked at by itself, and none was left out.
        """
        choices = fewest(instance, self.most)
        assert choices is not None
        simulator = Simulator(instance, choices.actions, threads=limits.threads)
        counts = [len(own) for own in choices.of_groups]
        plans, done = math.prod(counts), 0
        best: tuple[Ints, Ints, Ints] | None = None
        time_s = math.inf
        while done < plans and not clock.expired:
            rows = choices.rows(_digits(np.arange(done, min(plans, done + _CHUNK)), counts))
            times, excess = simulator.run_all(*rows, above=time_s)
            times[excess > 0] = math.inf
            place = int(times.argmin())
            if times[place] < time_s:
                time_s, best = float(times[place]), (rows[0][place], rows[1][place], rows[2][place])
                clock.report(time_s)
            done += len(times)
        proven = done == plans
        if best is None:
            tried = "all" if proven else f"{done} of {plans}"
            message = f"{tried} plans that were tried need more memory than there is"
            if proven and choices.every:
                raise InfeasibleError(f"'{instance.name}': {message}")
            raise NoSolutionError(message if choices.every else f"{message} ({choices.scope})")
        bound = time_s if proven else None
        deployment = simulator.deployment(*best)
        return choices.output(deployment, {"plans": done}, bound)


def _digits(numbers: Ints, bases: list[int]) -> Ints:
    """(numbers, bases): the digits of numbers, the first of base ``bases[0]`` and so on."""
    units = np.cumprod([1, *bases[:-1]])
    digits: Ints = numbers[:, None] // units % np.array(bases)
    return digits
