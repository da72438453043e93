"""Markov chain Monte Carlo over actions of groups, as FlexFlow searches strategies."""

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from ddlopt.models.deployment import Deployment, DeploymentInstance
from ddlopt.models.tolerances import TINY
from ddlopt.solvers.deployment.plan.rater import PlanRater
from ddlopt.solvers.heuristic import Answer, Clock, Heuristic


@dataclass(frozen=True)
class PlanMcmc(Heuristic, uses=("seed",)):
    """Draw a group and an action; take it if the step is shorter, or else with probability exp(-beta · loss).

    The loss is relative to the time of data parallelism, from which it starts. What does not fit in memory is not
    taken.

    Parameters
    ----------
    steps : int
        Fewer where the time is up.
    beta : float

    References
    ----------
    Z. Jia, M. Zaharia, A. Aiken, "Beyond data and model parallelism for deep neural networks" (FlexFlow), MLSys 2019;
    beta and the number of steps are ours.
    """

    steps: int = 20_000
    beta: float = 100.0

    name: ClassVar[str] = "mcmc"
    kernels: ClassVar[tuple[str, ...]] = ("ddlopt.solvers.deployment.plan.simulator.run",)
    covers = DeploymentInstance

    def answer(self, instance: DeploymentInstance, seed: int, clock: Clock, start: Any) -> Answer[Deployment]:
        """The best plan on the way."""
        rng, rater = np.random.default_rng(seed), PlanRater(instance)
        row = rater.baseline()
        rating = first = rater.rate(row)
        taken = steps = 0
        while steps < self.steps and not clock.expired:
            steps += 1
            group, action = int(rng.integers(instance.groups)), int(rng.integers(len(rater.actions)))
            before, row[group] = int(row[group]), action
            offer = rater.rate(row)
            loss = (offer.time_s - rating.time_s) / max(first.time_s, TINY)  # a step may take no time
            better = offer <= rating
            if better or (offer.fits and rating.fits and rng.random() < math.exp(-self.beta * max(loss, 0.0))):
                if offer < rating and offer is rater.best_rating and offer.fits:
                    clock.report(offer.time_s, solution=rater.deployment)
                rating, taken = offer, taken + 1
            else:
                row[group] = before
        return rater.deployment(), {"rated": rater.rated, "taken": taken, "steps": steps, **rater.menu}
