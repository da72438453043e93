"""Exchange with all neighbours, or with everybody, by weights."""

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ddlopt.analysis.gossip_training.exchange import Exchange, Floats, Place, Policy, Sent
from ddlopt.models.contracts import Solution
from ddlopt.models.errors import NoSolutionError
from ddlopt.models.gossip.family import GossipProblem
from ddlopt.models.gossip.matchings.instance import MatchingPlan, MatchingsInstance
from ddlopt.models.gossip.network import Network
from ddlopt.models.gossip.spectral.laplacians import laplacian
from ddlopt.models.gossip.weights.instance import GossipWeights, WeightsInstance
from ddlopt.models.tolerances import FEASIBILITY_TOL
from ddlopt.solvers.catalogue import method
from ddlopt.solvers.contracts import Limits

PLANS = ("matcha", "matcha-edges", "vanilla", "equal-activation")
_METHODS = {
    "fdla": "fastest-weights:goal=averaging",
    "fmmc": "fastest-weights:goal=chain",
    "matcha-edges": "matcha:per_edge=true",
}
"""Words of plans and rules that are no names of methods."""
_ANSWERS: dict[str, Solution] = {}
RULES = ("equal", "metropolis", "max-degree", "best-constant", "fdla", "fmmc")


def weights_of(network: Network, rule: str) -> Floats:
    """(m,) weights of edges by a rule: ``equal`` is 1 / (1 + max(d_i, d_j)), others are methods of ``weights``."""
    if rule == "equal":
        found: Floats = 1.0 / (1.0 + network.degrees[network.ends].max(axis=1))
        return found
    solution = _solved(WeightsInstance(name="training", network=network, goal="averaging"), rule)
    assert isinstance(solution, GossipWeights)
    return np.array(solution.weights)


def _plan(network: Network, budget: float, name: str) -> MatchingPlan:
    whole = budget * int(network.degrees.max())
    solution = _solved(MatchingsInstance(name="training", network=network, budget=whole), name)
    assert isinstance(solution, MatchingPlan)
    return solution


def _solved(instance: GossipProblem, name: str) -> Solution:
    """What a method of the family answers; kept, as runs with other seeds ask again."""
    key = f"{name} {instance.digest}"
    if key not in _ANSWERS:
        result = method(_METHODS.get(name, name), "gossip").solve(instance, Limits())
        if result.solution is None:
            raise NoSolutionError(f"{name} has no answer: {result.message}")
        _ANSWERS[key] = result.solution
    return _ANSWERS[key]


def mixing_matrix(network: Network, rule: str) -> Floats:
    """(n, n) I − L(w)."""
    return np.eye(network.nodes) - laplacian(network.nodes, network.ends, weights_of(network, rule))


@dataclass(frozen=True)
class Mixing(Policy):
    """D-PSGD: every worker sends its model to all neighbours, and all take weighted means.

    Parameters
    ----------
    weights : str
        A rule of ``RULES``.
    every : int
        Steps between two exchanges.

    References
    ----------
    X. Lian et al., "Can decentralized algorithms outperform centralized algorithms? A case study for decentralized
    parallel stochastic gradient descent", NeurIPS 2017.
    """

    weights: str = "equal"
    every: int = 1

    name: ClassVar[str] = "dpsgd"

    def __post_init__(self) -> None:
        self._one_of("weights", RULES)
        self._at_least("every", 1)

    def begin(self, place: Place) -> Exchange:
        """X ← W X."""
        matrix, degrees = mixing_matrix(place.network, self.weights), place.network.degrees.astype(float)

        def exchange(models: Floats, step: int, rate: float) -> Sent:
            if (step + 1) % self.every:
                return place.nothing()
            models[:] = matrix @ models
            return place.to_neighbours(degrees, degrees)

        return exchange


@dataclass(frozen=True)
class Matcha(Policy):
    r"""MATCHA: random matchings of the graph, :math:`X \leftarrow (I - \sum_j B_j L_j(w)) X`.

    Parameters
    ----------
    budget : float
        Matchings that are active in a step, expected, over the largest degree.
    plan : str
        A method of the problem ``matchings`` that chooses matchings, their probabilities and weights.

    References
    ----------
    J. Wang, A. K. Sahu, Z. Yang, G. Joshi, S. Kar, "MATCHA: Speeding up decentralized SGD via matching decomposition
    sampling", Indian Control Conference 2019.
    """

    budget: float = 0.5
    plan: str = "matcha"

    name: ClassVar[str] = "matcha"

    def __post_init__(self) -> None:
        self._within("budget", 0.0, 2.0)
        self._one_of("plan", PLANS)

    def begin(self, place: Place) -> Exchange:
        """Of each matching its Laplacian, and who sends to whom."""
        network = place.network
        plan = _plan(network, self.budget, self.plan)
        matchings = [np.array(own, dtype=np.int64) for own in plan.matchings]
        weights, probabilities = np.array(plan.weights), np.array(plan.probabilities)
        laplacians = np.array([laplacian(network.nodes, network.ends[own], weights[own]) for own in matchings])
        pairs = np.zeros((len(matchings), network.nodes, network.nodes))
        for links, own in zip(pairs, matchings, strict=True):
            a, b = network.ends[own].T
            links[a, b] = links[b, a] = 1.0

        def exchange(models: Floats, step: int, rate: float) -> Sent:
            active = place.rng.random(len(probabilities)) < probabilities
            if not active.any():
                return place.nothing()
            models -= laplacians[active].sum(axis=0) @ models
            links = pairs[active].sum(axis=0)
            messages = links.sum(axis=1)
            return Sent(messages, messages, links)

        return exchange


def uniform(network: Network, traffic: float) -> Matcha | None:
    """MATCHA without its choice: all matchings equally often, so that a worker sends so much in a step, expected.

    None where all of them in every step send less. The budget has three digits, rounded down.
    """
    count = len(_plan(network, 0.5, "equal-activation").matchings)
    chance = traffic * network.nodes / (2 * len(network.edges))
    budget = chance * count / int(network.degrees.max())
    digits = 2 - math.floor(math.log10(budget))
    # A part in a billion, so that what is a round number stays one.
    budget = math.floor(budget * 10.0**digits * (1 + 1e-9)) / 10.0**digits
    return Matcha(budget, "equal-activation") if chance <= 1 + FEASIBILITY_TOL else None


@dataclass(frozen=True)
class AllReduce(Policy):
    """All models are replaced by their mean, by a ring all-reduce; less often than every step it is local SGD.

    Parameters
    ----------
    every : int
    """

    every: int = 1

    name: ClassVar[str] = "all-reduce"

    def __post_init__(self) -> None:
        self._at_least("every", 1)

    def begin(self, place: Place) -> Exchange:
        """A worker sends 2 (n − 1) messages of an n-th of a model each."""
        n = place.workers
        messages, sent = np.full(n, 2.0 * (n - 1)), np.full(n, 2.0 * (n - 1) / n)

        def exchange(models: Floats, step: int, rate: float) -> Sent:
            if (step + 1) % self.every:
                return place.nothing()
            models[:] = models.mean(axis=0)
            return Sent(messages, sent, np.zeros((n, n)), together=True)

        return exchange


@dataclass(frozen=True)
class Elastic(Policy):
    r"""EASGD: workers and a centre pull each other, :math:`x_i \mathrel{-}= \alpha (x_i - \tilde x)`.

    The centre moves by the sum. What it sends back counts as sent by the worker; its own link is no bottleneck here.

    Parameters
    ----------
    every : int
    pull : float
        β = n α.

    References
    ----------
    S. Zhang, A. Choromanska, Y. LeCun, "Deep learning with elastic averaging SGD", NeurIPS 2015.
    """

    every: int = 10
    pull: float = 0.9

    name: ClassVar[str] = "easgd"

    def __post_init__(self) -> None:
        self._at_least("every", 1)
        self._within("pull", 0.0, 1.0)

    def begin(self, place: Place) -> Exchange:
        """The centre begins where the workers do on average."""
        centre, both = place.first.mean(axis=0), np.full(place.workers, 2.0)
        links = np.diag(both)

        def exchange(models: Floats, step: int, rate: float) -> Sent:
            if (step + 1) % self.every:
                return place.nothing()
            moved = self.pull / place.workers * (models - centre)
            models -= moved
            centre[:] += moved.sum(axis=0)
            return Sent(both, both, links)

        return exchange
