"""Prior probabilities of actions: all equal, or announced by a package.

A package announces a prior as a ``Step`` of the method ``deployment/tag``, whose kind is its name: ``make(rater,
clock)`` gives it. ddlopt's own ones, ``bound``, ``learned`` and ``graph``, come from ``ddlopt.analysis.lab`` in this
way.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from ddlopt.solvers import chain
from ddlopt.solvers.deployment.plan.rater import PlanRater
from ddlopt.solvers.heuristic import Clock

Floats = npt.NDArray[np.float64]

Ints = npt.NDArray[np.int64]

STEPS = "deployment/tag"
"""What a step is announced for that is a prior."""
OWN = ("uniform",)


class State(NamedTuple):
    """A plan, (groups,) actions, of which those of the groups ``decided`` stand, and the others do as the first."""

    row: Ints
    decided: Ints


class Prior(ABC):
    """Probabilities of actions."""

    @abstractmethod
    def tables(self, states: Sequence[State]) -> Floats:
        """(states, groups, actions): of each group's actions."""


class TablePrior(Prior):
    """The same in all states: (groups, actions) probabilities."""

    def __init__(self, table: Floats) -> None:
        self.table = table

    def tables(self, states: Sequence[State]) -> Floats:
        """The table, once a state."""
        return np.broadcast_to(self.table, (len(states), *self.table.shape))


def known() -> tuple[str, ...]:
    """The names of all priors, the announced ones last."""
    return (*OWN, *(step.kind for step in chain.steps(STEPS)))


def kernels_of(name: str) -> tuple[str, ...]:
    """Modules with kernels that a prior calls."""
    return tuple(module for step in chain.steps(STEPS, name) for module in step.kernels)


def prior_named(name: str, rater: PlanRater, clock: Clock) -> Prior:
    """The prior of an instance, by a name that is :func:`known`."""
    if name == "uniform":
        return uniform(rater)
    made: Prior = chain.steps(STEPS, name)[0].make(rater, clock)
    return made


def uniform(rater: PlanRater) -> TablePrior:
    """All actions have the same probability."""
    return TablePrior(np.full((rater.instance.groups, len(rater.actions)), 1 / len(rater.actions)))
