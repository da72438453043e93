"""What the network is to say: what is good beside a plan of local search, or what a tree search visits."""

import math
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from ddlopt.models.deployment import DeploymentInstance
from ddlopt.solvers.contracts import Limits
from ddlopt.solvers.deployment.plan.prior.graph import Inputs, Seen, StateGraph
from ddlopt.solvers.deployment.plan.prior.priors import Prior, uniform
from ddlopt.solvers.deployment.plan.rater import PlanRater
from ddlopt.solvers.deployment.plan.search import Walk
from ddlopt.solvers.deployment.plan.tag import TreeSearch
from ddlopt.solvers.heuristic import Clock

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

_WORSE = 0.01
"""An action that makes the step longer by this part of it is e times less likely."""
_CHANGED = 0.15
"""Part of the groups that are decided in another way than the plan, in states that have such."""
_FLOOR = 1e-10
"""Added to visits before they are made probabilities, as in TAG's released code."""


class Examples(NamedTuple):
    """States of one instance.

    Parameters
    ----------
    inputs : Inputs
        In single precision.
    target : (states, groups, actions) array
        Probabilities.
    weight : (states, groups) array
        How much each group counts; of each state 1 in all.
    """

    inputs: Inputs
    target: npt.NDArray[np.float32]
    weight: npt.NDArray[np.float32]


def made(graph: StateGraph, states: list[Seen], target: list[Floats], weight: list[Floats]) -> Examples:
    """In single precision."""
    inputs = Inputs(*(np.asarray(each, np.float32) for each in graph.inputs(states)))
    return Examples(inputs, np.array(target, np.float32), np.array(weight, np.float32))


def searched(rater: PlanRater, plans: int, seed: int) -> Ints | None:
    """A plan of local search after so many simulations; None where it finds none that fits."""
    walk = Walk(rater, Clock(Limits(), None), np.random.default_rng(seed))
    row, rating = rater.best_uniform()
    while rater.rated < plans:
        found, found_rating = walk.descend(row if rater.rated < 2 * len(rater.actions) else walk.kick(row), rating)
        if found_rating <= rating:
            row, rating = found, found_rating
    return rater.best if rater.best_rating.fits else None


def imitation(instance: DeploymentInstance, by_speed: bool, plans: int, states: int, seed: int) -> Examples | None:
    """Partial plans on the way to a good one, some with wrong turns, and what is good for each group beside that plan.

    An action is the likelier the shorter the step is with it, all other groups as in the plan. Half of what counts is
    the next group, in the order of work, and half all groups that are not decided.
    """
    rater = PlanRater(instance, ("even", "speed") if by_speed else ("even",))
    best = searched(rater, plans, seed)
    if best is None:
        return None
    graph, rng, order = StateGraph(rater), np.random.default_rng([seed, 1]), rater.by_work
    target = _beside(rater, best)
    found: list[Seen] = []
    weights: list[Floats] = []
    for number in range(states):
        depth = len(order) * number // states
        decided, row = order[:depth], rater.baseline()
        if depth:
            turned = best.copy()
            if number % 2:
                wrong = rng.random(len(order)) < _CHANGED
                turned[wrong] = rng.integers(len(rater.actions), size=int(wrong.sum()))
            row = rater.uniform(int(turned[order[0]]))
            row[decided] = turned[decided]
        found.append(graph.see(row, decided))
        open_groups = np.ones(len(order))
        open_groups[decided] = 0
        weight = 0.5 * open_groups / open_groups.sum()
        weight[order[depth]] += 0.5
        weights.append(weight)
    return made(graph, found, [target] * states, weights)


def _beside(rater: PlanRater, best: Ints) -> Floats:
    """(groups, actions): how good each action is beside a plan."""
    count, time_s = len(rater.actions), rater.best_rating.time_s
    worse = np.full((len(best), count), math.inf)
    for group in range(len(best)):
        for action in range(count):
            row = best.copy()
            row[group] = action
            rating = rater.rate(row, above_s=2 * time_s)
            if rating.fits:
                worse[group, action] = max(rating.time_s / time_s - 1, 0.0)
    likely = np.exp(-worse / _WORSE)
    target: Floats = likely / likely.sum(axis=1, keepdims=True)
    return target


def self_play(instance: DeploymentInstance, prior: Prior | None, limit: int, seed: int) -> Examples:
    """A game as TAG's released code plays it.

    For the first quarter of the groups in the order of work: playouts from the present root, 8 (groups left) 2^(device
    groups) but at most ``limit`` with those of before; what the root is to say is how often its actions were visited;
    the next root is drawn by these. ``prior`` uniform if not given.
    """
    rater, rng = PlanRater(instance, ("even",)), np.random.default_rng([seed, 2])
    search, graph = TreeSearch(rater, prior or uniform(rater), rng), StateGraph(rater)
    found: list[Seen] = []
    targets: list[Floats] = []
    weights: list[Floats] = []
    groups = instance.groups
    chosen: list[int] = []
    for depth in range(max(1, groups // 4)):
        wanted = min(8 * (groups - depth) * 2 ** len(instance.device_groups), limit)
        for _ in range(wanted - int(search.root.visits.sum())):
            search.playout()
        visits = search.root.visits + _FLOOR
        group = search.order[depth]
        target = np.full((groups, len(rater.actions)), 1 / len(rater.actions))
        target[group] = visits / visits.sum()
        targets.append(target)
        weights.append(np.eye(groups)[group])
        found.append(graph.see(*search.state(chosen)))
        action = int(rng.choice(len(visits), p=target[group]))
        search.go_down(action)
        chosen = [*chosen, action]
    return made(graph, found, targets, weights)
