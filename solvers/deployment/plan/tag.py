"""TAG's search: a tree of partial deployments, explored by upper confidence bounds with prior probabilities."""

import math
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from ddlopt.models.deployment import Deployment, DeploymentInstance
from ddlopt.models.tolerances import TINY
from ddlopt.solvers.deployment.plan.priors import OWN, Prior, State, kernels_of, known, prior_named
from ddlopt.solvers.deployment.plan.rater import PlanRater, Rating
from ddlopt.solvers.heuristic import Answer, Clock, Heuristic
from ddlopt.solvers.names import spelled

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

_ROOM = "ddlopt.solvers.deployment.plan"
Fill = Literal["first", "prior"]
_PLAYOUTS = 800
"""TAG's default."""
_CHILDREN_AT_ONE = 10
"""Exploration weighs the root of the number of actions divided by this, as in TAG's released code."""


@dataclass
class _Node:
    """A partial deployment; arrays have an entry an action of the next group, and are empty where all are decided.

    The prior is asked for where the search goes on from the node, which is rare; ``noise`` then decides between equals.
    ``likeliest`` are the actions of all groups that it prefers there.
    """

    reward: float
    noise: Floats
    visits: Ints
    mean: Floats
    prior: Floats | None = None
    likeliest: Ints | None = None
    children: dict[int, "_Node"] = field(default_factory=dict)

    def choose(self, weight: float) -> int:
        """The child with the highest upper confidence bound."""
        assert self.prior is not None
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
    fill : {"first", "prior"}
        What groups that are not decided do: as the first one, or what the prior prefers at the node above.
    """

    def __init__(self, rater: PlanRater, prior: Prior, rng: np.random.Generator, fill: Fill = "first") -> None:
        self.rater, self.prior, self.rng, self.fill = rater, prior, rng, fill
        self.order = rater.by_work
        self.weight = math.sqrt(len(rater.actions) / _CHILDREN_AT_ONE)
        baseline = rater.baseline()
        self.baseline_s = rater.rate(baseline).time_s
        self._baseline = baseline
        self.root = self._node(0, 0.0)
        self.above: list[int] = []

    def playout(self) -> None:
        """Go down the tree to a deployment that is new, or complete, and tell all nodes on the way what it is worth."""
        node, chosen, path = self.root, self.above.copy(), []
        while len(node.noise):
            if node.prior is None:
                self._ask(node, chosen)
            action = node.choose(self.weight)
            path.append((node, action))
            chosen.append(action)
            new = action not in node.children
            if new:
                row = self._row(chosen, node.likeliest if self.fill == "prior" else None)
                node.children[action] = self._node(len(chosen), self._reward(self.rater.rate(row)))
            node = node.children[action]
            if new:
                break
        for above, action in path:
            above.visits[action] += 1
            above.mean[action] += (node.reward - above.mean[action]) / above.visits[action]

    def go_down(self, action: int) -> None:
        """Make a child of the root the root."""
        self.root, self.above = self.root.children[action], [*self.above, action]

    def _ask(self, node: _Node, chosen: list[int]) -> None:
        """What the prior says at a node."""
        table = self.prior.tables([self.state(chosen)])[0]
        node.prior, node.likeliest = table[self.order[len(chosen)]] * node.noise, table.argmax(axis=1)

    def state(self, chosen: list[int]) -> State:
        """With the first groups in the order of work decided."""
        return State(self._row(chosen), self.order[: len(chosen)])

    def _row(self, chosen: list[int], others: Ints | None = None) -> Ints:
        """Groups that are not decided do as in ``others``, or as the first one; all as the baseline where none is."""
        if not chosen:
            return self._baseline
        row = self.rater.uniform(chosen[0]) if others is None else others.copy()
        row[self.order[: len(chosen)]] = chosen
        return row

    def _reward(self, rating: Rating) -> float:
        """TAG's: -1 if memory does not suffice, else the speed-up less 1, of which above 1 the fourth root."""
        if not rating.fits:
            return -1.0
        gain = max(self.baseline_s, TINY) / max(rating.time_s, TINY) - 1
        return gain if gain <= 1 else gain**0.25

    def _node(self, depth: int, reward: float) -> _Node:
        actions = len(self.rater.actions) if depth < len(self.order) else 0
        # Noise that decides between equals alone.
        noise = 1 + 1e-9 * self.rng.random(actions)
        return _Node(reward, noise, np.zeros(actions, dtype=np.int64), np.zeros(actions))


@dataclass(frozen=True)
class Tag(Heuristic, uses=("seed",)):
    """TAG's Monte Carlo tree search: the actions of group after group, the one with most work first.

    A node has decided on some groups; all others do as the first one, so that every node is a whole deployment and is
    worth what the simulator says of it. A playout descends by PUCT, adds one node and hands its reward up. With the
    uniform prior, and without what TAG's graph network has learned, this is TAG.

    Parameters
    ----------
    prior : str
        "uniform", or one that a package announces, such as those of ``ddlopt.analysis.lab``, "bound", "learned" and
        "graph": see :mod:`ddlopt.solvers.deployment.plan.priors`.
    playouts : int
        As many as TAG's default; fewer where the time is up.
    by_speed : bool
        Whether the batch may also be split by speed, which TAG does not do.
    fill : {"first", "prior"}
        What groups that are not decided do: as the first one, as in TAG, or what the prior prefers.

    References
    ----------
    S. Zhang et al., "Expediting distributed DNN training with device topology-aware graph deployment" (TAG), IEEE TPDS
    34(4), 2023, and its released code, which was not copied.
    """

    prior: str = "uniform"
    playouts: int = _PLAYOUTS
    by_speed: bool = False
    fill: Fill = "first"

    covers = DeploymentInstance

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.prior not in OWN and self.prior not in known():
            raise ValueError(
                f"prior is {self.prior!r}; use one of: {', '.join(known())}. Others are announced by packages; where "
                "ddlopt's own 'bound', 'learned' and 'graph' are missing, install ddlopt again"
            )
        if self.playouts < 1:
            raise ValueError(f"playouts is {self.playouts}; it must be at least 1")
        if self.fill != "first" and self.prior == "uniform":
            raise ValueError(f"fill={self.fill} takes a prior that prefers something, such as prior=graph")

    def kernels_for(self, instance: DeploymentInstance) -> tuple[str, ...]:
        """The simulator, and what the prior calls."""
        return (f"{_ROOM}.simulator.run", *kernels_of(self.prior))

    @property
    def name(self) -> str:
        """``tag``, with the prior and how it is used where these are not the defaults."""
        return spelled("tag", self, "prior", "fill")

    def answer(self, instance: DeploymentInstance, seed: int, clock: Clock, start: Any) -> Answer[Deployment]:
        """The best deployment that a playout came to."""
        rater = PlanRater(instance, ("even", "speed") if self.by_speed else ("even",))
        prior = prior_named(self.prior, rater, clock)
        search = TreeSearch(rater, prior, np.random.default_rng(seed), self.fill)
        played, known = 0, math.inf
        while played < self.playouts and not clock.expired:
            search.playout()
            played += 1
            if rater.best_rating.fits and rater.best_rating.time_s < known:
                known = rater.best_rating.time_s
                clock.report(known, solution=rater.deployment)
        return rater.deployment(), {
            "playouts": played,
            "rated": rater.rated,
            "baseline_s": search.baseline_s,
            **rater.menu,
        }
