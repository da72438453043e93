"""How good weights are on instances drawn as those to train on, but others: what decides which weights are kept."""

import math
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from ddlopt.analysis.lab.plan_prior.beam import beam
from ddlopt.analysis.lab.plan_prior.drawn import instances
from ddlopt.analysis.lab.plan_prior.expert import Counted, searched
from ddlopt.analysis.lab.plan_prior.network import Weights
from ddlopt.analysis.lab.plan_prior.priors import GraphPrior
from ddlopt.models.deployment import DeploymentInstance
from ddlopt.solvers.deployment.plan.rater import PlanRater
from ddlopt.solvers.deployment.plan.tag import TreeSearch

SEED = 1_000_000
"""Of the instances; not to train with."""
_WIDTH = 8
"""Of the beam: the default of ``tag``."""


class Drawn(NamedTuple):
    """An instance, the splits that plans may have, and seconds of the plan of the search that is imitated."""

    instance: DeploymentInstance
    by_speed: bool
    found_s: float

    def rater(self) -> PlanRater:
        """That has rated nothing."""
        return _rater(self.instance, self.by_speed)


class Behind(NamedTuple):
    """By how much steps are longer than with the search's plan; the logarithm."""

    argmax: float
    beam: float
    filled: float


def validation(count: int, plans: int) -> Iterator[Drawn]:
    """``count`` instances on which the search finds a plan that fits in memory, in ``plans`` simulations."""
    for number, instance in enumerate(instances(count, SEED)):
        rater = _rater(instance, number % 2 == 1)
        if searched(rater, plans, 0) is not None:
            yield Drawn(instance, number % 2 == 1, rater.best_rating.time_s)


def behind(drawn: Drawn, weights: Weights, playouts: int) -> Behind:
    """Of the plans that a network says, with its likeliest actions, a beam, and playouts that begin at its plan."""
    said = []
    for width in (1, _WIDTH):
        rater = drawn.rater()
        beam(rater, GraphPrior(rater, weights), width, Counted(rater, math.inf))
        said.append(_log_ratio(rater, drawn))
    rater = drawn.rater()
    search = TreeSearch(rater, GraphPrior(rater, weights), np.random.default_rng(0), "prior")
    for _ in range(playouts):
        search.playout()
    return Behind(said[0], said[1], _log_ratio(rater, drawn))


def _rater(instance: DeploymentInstance, by_speed: bool) -> PlanRater:
    return PlanRater(instance, ("even", "speed") if by_speed else ("even",))


def _log_ratio(rater: PlanRater, drawn: Drawn) -> float:
    """Of the best plan met that fits; of data parallelism, which fits nearly always, where none does."""
    time_s = rater.best_rating.time_s if rater.best_rating.fits else rater.rate(rater.baseline()).time_s
    return math.log(time_s / drawn.found_s)
