"""Prior probabilities of actions: alike, from the relaxation of a bound, or from a network that has been trained."""

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Literal, NamedTuple, get_args

import numpy as np
import numpy.typing as npt

from ddlopt.models.errors import InfeasibleError
from ddlopt.solvers.contracts import Limits, Status
from ddlopt.solvers.deployment.plan.actions import Action
from ddlopt.solvers.deployment.plan.prior.features import features
from ddlopt.solvers.deployment.plan.prior.graph import Inputs, StateGraph
from ddlopt.solvers.deployment.plan.prior.graph_network import log_probabilities
from ddlopt.solvers.deployment.plan.prior.network import Weights, probabilities, trained
from ddlopt.solvers.deployment.plan.rater import PlanRater
from ddlopt.solvers.heuristic import Clock

Floats = npt.NDArray[np.float64]

Ints = npt.NDArray[np.int64]

PriorName = Literal["uniform", "bound", "learned", "graph"]
PRIORS: tuple[PriorName, ...] = get_args(PriorName)

GRAPH_WEIGHTS = "graph_weights.npz"
_ALIKE = 0.25
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


class GraphPrior(Prior):
    """What a graph network says of states, which it sees with their simulated step."""

    def __init__(self, rater: PlanRater, weights: Weights) -> None:
        self.graph = StateGraph(rater)
        self._weights = {name: np.asarray(each, np.float32) for name, each in weights.items()}

    def tables(self, states: Sequence[State]) -> Floats:
        """One run of the network for all states."""
        inputs = self.graph.inputs([self.graph.see(*state) for state in states])
        single = Inputs(*(np.asarray(each, np.float32) for each in inputs))
        table = np.exp(log_probabilities(np, self._weights, single).astype(np.float64))
        probability: Floats = table / table.sum(axis=-1, keepdims=True)
        return probability


def prior_named(name: PriorName, rater: PlanRater, clock: Clock) -> Prior:
    """The prior of an instance."""
    match name:
        case "bound":
            return from_bound(rater, clock)
        case "learned":
            return learned(rater)
        case "graph":
            return GraphPrior(rater, trained(GRAPH_WEIGHTS))
    return uniform(rater)


def uniform(rater: PlanRater) -> TablePrior:
    """All actions alike."""
    return TablePrior(np.full((rater.instance.groups, len(rater.actions)), 1 / len(rater.actions)))


def learned(rater: PlanRater) -> TablePrior:
    """What a small graph network says, which was trained on other networks and devices (``prior_network``)."""
    return TablePrior(probabilities(trained(), features(rater.instance, rater.actions)))


def from_bound(rater: PlanRater, clock: Clock) -> TablePrior:
    """The relaxation of ``MakespanBound``: how far it chooses each action, mixed with all actions alike.

    It is the relaxation without what moves between groups, as with that it takes more than ten times as long at 40
    groups, and without decisions that the rater does not have. All actions are alike where it has no answer within a
    third of the time left. The actions that it chooses most are a poor plan by themselves.
    """
    chosen = _relaxed(rater, clock)
    if chosen is None:
        return uniform(rater)
    table = (1 - _ALIKE) * chosen / chosen.sum(axis=1, keepdims=True) + _ALIKE / len(rater.actions)
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
    left = _SHARE * clock.left_s
    limits = Limits(None if math.isinf(left) else max(left, 1e-3))
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
