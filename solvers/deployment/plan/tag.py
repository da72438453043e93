"""TAG's search: a tree of partial deployments, explored by upper confidence bounds with prior probabilities."""

import math
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from ddlopt.models.deployment import Deployment, DeploymentInstance
from ddlopt.solvers.deployment.plan.prior.priors import PRIORS, Prior, PriorName, prior_named
from ddlopt.solvers.deployment.plan.rater import PlanRater, Rating
from ddlopt.solvers.heuristic import Answer, Clock, Heuristic
from ddlopt.solvers.names import spelled

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

_CHILDREN_AT_ONE = 10
"""Exploration weighs the root of the number of actions divided by this, as in TAG's released code."""


@dataclass
class _Node:
    """A partial deployment; arrays have an entry an action of the next group, and are empty where all are decided."""

    reward: float
    prior: Floats
    visits: Ints
    mean: Floats
    children: dict[int, "_Node"] = field(default_factory=dict)

    def choose(self, weight: float) -> int:
        """The child with the highest upper confidence bound."""
        scores = self.mean + weight * self.prior * math.sqrt(self.visits.sum() + 1) / (1 + self.visits)
        return int(np.argmax(scores))


class TreeSearch:
    """The tree of :class:`Tag`; everything that it rates is remembered by the rater.

    Parameters
    ----------
    rater : PlanRater
    prior : Prior
        Of the actions of each group.
    rng : numpy.random.Generator
        For the order of children of equal score.
    """

    def __init__(self, rater: PlanRater, prior: Prior, rng: np.random.Generator) -> None:
        self.rater, self.prior, self.rng = rater, prior, rng
        self.order = rater.by_work
        self.weight = math.sqrt(len(rater.actions) / _CHILDREN_AT_ONE)
        baseline = rater.baseline()
        self.baseline_s = rater.rate(baseline).time_s
        self.root = self._node(0, 0.0)

    def playout(self) -> None:
        """Go down the tree to a deployment that is new, or complete, and tell all nodes on the way what it is worth."""
        node, chosen, path = self.root, [], []
        while len(node.prior):
            action = node.choose(self.weight)
            path.append((node, action))
            chosen.append(action)
            new = action not in node.children
            if new:
                node.children[action] = self._node(len(chosen), self._reward(self.rater.rate(self._row(chosen))))
            node = node.children[action]
            if new:
                break
        for above, action in path:
            above.visits[action] += 1
            above.mean[action] += (node.reward - above.mean[action]) / above.visits[action]

    def _row(self, chosen: list[int]) -> Ints:
        """Groups that are not decided do as the first one."""
        row = self.rater.uniform(chosen[0])
        row[self.order[: len(chosen)]] = chosen
        return row

    def _reward(self, rating: Rating) -> float:
        """TAG's: -1 if memory does not suffice, else the speed-up less 1, of which above 1 the fourth root."""
        if not rating.fits:
            return -1.0
        gain = self.baseline_s / rating.time_s - 1
        return gain if gain <= 1 else gain**0.25

    def _node(self, depth: int, reward: float) -> _Node:
        if depth == len(self.order):
            return _Node(reward, np.empty(0), np.empty(0, dtype=np.int64), np.empty(0))
        prior = self.prior(int(self.order[depth]))
        # Noise that decides between equals alone.
        shuffled = prior * (1 + 1e-9 * self.rng.random(len(prior)))
        return _Node(reward, shuffled, np.zeros(len(prior), dtype=np.int64), np.zeros(len(prior)))


@dataclass(frozen=True)
class Tag(Heuristic, uses=("seed",)):
    """TAG's Monte Carlo tree search: the actions of group after group, the one with most work first.

    A node has decided on some groups; all others do as the first one, so that every node is a whole deployment and is
    worth what the simulator says of it. A playout descends by PUCT, adds one node and hands its reward up. With the
    uniform prior, and without what TAG's graph network has learned, this is TAG.

    Parameters
    ----------
    prior : {"uniform", "bound", "learned"}
        See :mod:`ddlopt.solvers.deployment.plan.prior.priors`.
    playouts : int
        As many as TAG's default; fewer where the time is up.
    by_speed : bool
        Whether the batch may also be split by speed, which TAG does not do.

    References
    ----------
    S. Zhang et al., "Expediting distributed DNN training with device topology-aware graph deployment" (TAG), IEEE TPDS
    34(4), 2023, and its released code, which was not copied.
    """

    prior: PriorName = "uniform"
    playouts: int = 800
    by_speed: bool = False

    kernels: ClassVar[tuple[str, ...]] = ("ddlopt.solvers.deployment.plan.simulator.run",)
    covers = DeploymentInstance

    def __post_init__(self) -> None:
        if self.prior not in PRIORS:
            raise ValueError(f"prior is {self.prior!r}; use one of: {', '.join(PRIORS)}")
        if self.playouts < 1:
            raise ValueError(f"playouts is {self.playouts}; it must be at least 1")

    @property
    def name(self) -> str:
        """``tag``, with the prior where it is not uniform."""
        return spelled("tag", self, "prior")

    def answer(self, instance: DeploymentInstance, seed: int, clock: Clock, start: Any) -> Answer[Deployment]:
        """The best deployment that a playout came to."""
        rater = PlanRater(instance, ("even", "speed") if self.by_speed else ("even",))
        search = TreeSearch(rater, prior_named(self.prior, rater, clock), np.random.default_rng(seed))
        played, known = 0, math.inf
        while played < self.playouts and not clock.expired:
            search.playout()
            played += 1
            if rater.best_rating.fits and rater.best_rating.time_s < known:
                known = rater.best_rating.time_s
                clock.report(known)
        return rater.deployment(), {"playouts": played, "rated": rater.rated, "baseline_s": search.baseline_s}
