"""What the network is to say: what is good beside a plan of local search, or what a tree search visits."""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from ddlopt.analysis.lab.plan_prior.expert import completed, searched
from ddlopt.analysis.lab.plan_prior.graph import Inputs, Seen, StateGraph
from ddlopt.analysis.lab.plan_prior.network import Weights
from ddlopt.analysis.lab.plan_prior.priors import GraphPrior
from ddlopt.models.deployment import DeploymentInstance
from ddlopt.solvers.deployment.plan.priors import Prior, State, uniform
from ddlopt.solvers.deployment.plan.rater import PlanRater
from ddlopt.solvers.deployment.plan.tag import TreeSearch

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

_SURE = 0.5
"""Part of the probability that the action of the plan has by itself: of many that are nearly as good one by one, one is
to be chosen, and the same for neighbours."""
_WORSE = 0.005
"""Of the rest, an action that makes the step longer by this part of it is e times less likely."""
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
    plan : (groups,) array
        The best plan known of the instance.
    """

    inputs: Inputs
    target: npt.NDArray[np.float32]
    weight: npt.NDArray[np.float32]
    plan: Ints


def made(graph: StateGraph, states: list[Seen], target: list[Floats], weight: list[Floats], plan: Ints) -> Examples:
    """In single precision; one target may be that of all states."""
    # In one order in memory, as sums are rounded in another way in others.
    inputs = Inputs(*(np.ascontiguousarray(each, np.float32) for each in graph.inputs(states)))
    told = np.array(target, np.float32)
    return Examples(inputs, np.broadcast_to(told, (len(states), *told.shape[1:])), np.array(weight, np.float32), plan)


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
    target = _beside(rater, best, rater.best_rating.time_s, order)
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
            row = _row(rater, order, depth, turned)
        found.append(graph.see(row, decided))
        weights.append(_next_and_others(order, depth))
    return made(graph, found, [target], weights, best)


def on_own_way(
    instance: DeploymentInstance, by_speed: bool, weights: Weights, plan: Ints, plans: int, states: int, seed: int
) -> Examples | None:
    """Partial plans that a network itself comes to, and what is good beside the best way on from there.

    What it learns from good plans alone it never learns about its own mistakes. From each state local search completes
    the network's plan, and the best one known with the same groups decided as the network has them, by some simulations
    more. None where no completion fits.
    """
    rater = PlanRater(instance, ("even", "speed") if by_speed else ("even",))
    prior, graph, order = GraphPrior(rater, weights), StateGraph(rater), rater.by_work
    chosen, depths = rater.baseline(), {len(order) * number // states for number in range(states)}
    found: list[Seen] = []
    targets: list[Floats] = []
    parts: list[Floats] = []
    for depth, group in enumerate(order):
        row = _row(rater, order, depth, chosen) if depth else rater.baseline()
        table = prior.tables([State(row, order[:depth])])[0]
        if depth in depths:
            likely, known = table.argmax(axis=1), plan.copy()
            likely[order[:depth]] = known[order[:depth]] = chosen[order[:depth]]
            offers = [completed(rater, each, order[:depth], plans // 2, seed) for each in (likely, known)]
            best, rating = min(offers, key=lambda pair: pair[1])
            if rating.fits:
                found.append(graph.see(row, order[:depth]))
                targets.append(_beside(rater, best, rating.time_s, order[depth:]))
                parts.append(_next_and_others(order, depth))
        chosen[group] = table[group].argmax()
    return made(graph, found, targets, parts, plan) if found else None


def _row(rater: PlanRater, order: Ints, depth: int, plan: Ints) -> Ints:
    """The first groups in the order of work do as in a plan, and all others as the first."""
    row = rater.uniform(int(plan[order[0]]))
    row[order[:depth]] = plan[order[:depth]]
    return row


def _next_and_others(order: Ints, depth: int) -> Floats:
    """How much groups count in a state."""
    weight = np.zeros(len(order))
    weight[order[depth:]] = 0.5 / (len(order) - depth)
    weight[order[depth]] += 0.5
    return weight


def _beside(rater: PlanRater, plan: Ints, time_s: float, groups: Ints) -> Floats:
    """(groups, actions): how good each action is beside a plan that fits; of the other groups the plan's own."""
    count = len(rater.actions)
    own = np.zeros((len(plan), count))
    own[np.arange(len(plan)), plan] = 1
    likely = own.copy()
    for group in groups:
        for action in range(count):
            row = plan.copy()
            row[group] = action
            rating = rater.rate(row, above_s=2 * time_s)
            likely[group, action] = np.exp(-max(rating.time_s / time_s - 1, 0.0) / _WORSE) if rating.fits else 0.0
    target: Floats = _SURE * own + (1 - _SURE) * likely / likely.sum(axis=1, keepdims=True)
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
    assert rater.best is not None  # Of what has been rated there is a best, whether or not it fits.
    return made(graph, found, targets, weights, rater.best)
