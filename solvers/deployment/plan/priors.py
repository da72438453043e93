"""Prior probabilities of actions: all equal, from the relaxation of a bound, or announced by a package.

A package announces a prior as a ``Step`` of the method ``deployment/tag``, whose kind is its name: ``make(rater)``
gives it. ddlopt's own learned priors, ``learned`` and ``graph``, come from ``ddlopt.analysis.lab`` in this way.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from ddlopt.models.errors import InfeasibleError
from ddlopt.solvers import chain
from ddlopt.solvers.contracts import Limits, Status
from ddlopt.solvers.deployment.plan.actions import Action
from ddlopt.solvers.deployment.plan.rater import PlanRater
from ddlopt.solvers.heuristic import Clock

Floats = npt.NDArray[np.float64]

Ints = npt.NDArray[np.int64]

STEPS = "deployment/tag"
"""What a step is announced for that is a prior."""
OWN = ("uniform", "bound")
_EVEN = 0.25
"""Part of the probability that all actions have in the same way, so that none is ruled out."""
_SHARE = 1 / 3
"""Of the time left, for the relaxation."""


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
    if name == "bound":
        return from_bound(rater, clock)
    if name == "uniform":
        return uniform(rater)
    made: Prior = chain.steps(STEPS, name)[0].make(rater)
    return made


def uniform(rater: PlanRater) -> TablePrior:
    """All actions have the same probability."""
    return TablePrior(np.full((rater.instance.groups, len(rater.actions)), 1 / len(rater.actions)))


def from_bound(rater: PlanRater, clock: Clock) -> TablePrior:
    """The relaxation of ``MakespanBound``: how far it chooses each action, mixed with equal probabilities.

    It is the relaxation without what moves between groups, as with that it takes more than ten times as long at 40
    groups, and without decisions that the rater does not have. All actions are equal where it has no answer within a
    third of the time left. The actions that it chooses most are a poor plan by themselves.
    """
    chosen = _relaxed(rater, clock)
    if chosen is None:
        return uniform(rater)
    table = (1 - _EVEN) * chosen / chosen.sum(axis=1, keepdims=True) + _EVEN / len(rater.actions)
    return TablePrior(table)


def _relaxed(rater: PlanRater, clock: Clock) -> Floats | None:
    """(groups, actions): how far the relaxation chooses each action; None where it has no answer in time."""
    # Here, as Pyomo takes its time, and the other priors do without it.
    import pyomo.environ as pyo

    from ddlopt.models.deployment.plan.figures import PlanFigures
    from ddlopt.models.deployment.plan.formulations.makespan_bound import MakespanBound
    from ddlopt.solvers.backends.highs import Highs
    from ddlopt.solvers.exact import build_model

    if clock.expired:
        return None
    try:
        model = build_model("deployment", MakespanBound(pairs=False), rater.instance)
    except InfeasibleError:
        return None
    number = {action: place for place, action in enumerate(rater.actions)}
    figures, decided = PlanFigures(rater.instance), model.deployment.decided
    offered: list[int | None] = []
    for place, (layout, mode) in enumerate(figures.decisions):
        chosen, split, _ = figures.layouts[layout]
        offered.append(number.get(Action(chosen, mode, split or "even")))
        if offered[-1] is None:
            decided[:, place].fix(0)
    pyo.TransformationFactory("core.relax_integer_vars").apply_to(model)
    limits = Limits(clock.part(_SHARE))
    with clock.lending_ctrl_c():
        # Inside the optimal face rather than at a corner of it, which would leave out what is as good.
        outcome = Highs({"solver": "ipm", "run_crossover": "off"}).solve(model, limits)
    clock.interrupted = clock.interrupted or outcome.interrupted
    if outcome.status is not Status.OPTIMAL:
        return None
    table = np.zeros((rater.instance.groups, len(rater.actions)))
    for (group, place), variable in decided.items():
        action = offered[place]
        if action is not None:
            table[group, action] = min(max(variable.value, 0.0), 1.0)
    return table
