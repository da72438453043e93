"""A prior of ``tag`` from the relaxation of a bound; it is announced in ``ddlopt.analysis.lab.steps``."""

import numpy as np
import numpy.typing as npt
import pyomo.environ as pyo

from ddlopt.models.deployment.plan.figures import PlanFigures
from ddlopt.models.deployment.plan.formulations.makespan_bound import MakespanBound
from ddlopt.models.errors import InfeasibleError
from ddlopt.solvers.backends.highs import Highs
from ddlopt.solvers.contracts import Limits, Status
from ddlopt.solvers.deployment.plan.actions import Action
from ddlopt.solvers.deployment.plan.priors import TablePrior, uniform
from ddlopt.solvers.deployment.plan.rater import PlanRater
from ddlopt.solvers.exact import build_model
from ddlopt.solvers.heuristic import Clock

Floats = npt.NDArray[np.float64]

_EVEN = 0.25
"""Part of the probability that all actions have in the same way, so that none is ruled out."""
_SHARE = 1 / 3
"""Of the time left, for the relaxation."""


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
