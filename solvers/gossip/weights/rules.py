"""Weights that a node can choose from what it knows of its neighbours, and the best constant."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from ddlopt.models.contracts import Solution
from ddlopt.models.gossip.network import Network
from ddlopt.models.gossip.spectral.laplacians import Floats, laplacian
from ddlopt.models.gossip.weights.instance import GossipWeights, WeightsInstance
from ddlopt.solvers.heuristic import Answer, Clock, Heuristic


def max_degree(network: Network) -> Floats:
    r""":math:`w = 1 / d_{\max}`."""
    return np.full(len(network.edges), 1.0 / float(network.degrees.max()))


def metropolis(network: Network) -> Floats:
    r""":math:`w_{ij} = 1 / \max(d_i, d_j)` (Metropolis–Hastings)."""
    found: Floats = 1.0 / network.degrees[network.ends].max(axis=1)
    return found


def best_constant(network: Network) -> Floats:
    r""":math:`w = 2 / (\lambda_2 + \lambda_n)`, the best weight that all edges can share."""
    edges = len(network.edges)
    spectrum = np.linalg.eigvalsh(laplacian(network.nodes, network.ends, np.ones(edges)))
    return np.full(edges, 2.0 / float(spectrum[1] + spectrum[-1]))


_RULES: Mapping[str, Callable[[Network], Floats]] = {
    "max-degree": max_degree,
    "metropolis": metropolis,
    "best-constant": best_constant,
}


@dataclass(frozen=True)
class Rule(Heuristic, uses=()):
    """A rule for goals ``averaging`` and ``chain``.

    For a chain, the best constant is at most the largest that leaves every node something: 1 over the largest degree.

    Parameters
    ----------
    rule : {"max-degree", "metropolis", "best-constant"}

    References
    ----------
    L. Xiao, S. Boyd, "Fast linear iterations for distributed averaging", Systems & Control Letters 53 (2004).
    """

    rule: str

    covers: ClassVar[type[Any]] = WeightsInstance

    @property
    def name(self) -> str:
        """That of the rule."""
        return self.rule

    def refuses(self, instance: Any) -> str | None:
        """Other goals."""
        if instance.goal not in ("averaging", "chain"):
            return f"it is for goals 'averaging' and 'chain', and this instance has goal '{instance.goal}'"
        return None

    def answer(self, instance: WeightsInstance, seed: int, clock: Clock, start: Any) -> Answer[Solution]:
        """The weights by the rule."""
        weights = _RULES[self.rule](instance.network)
        if instance.goal == "chain":
            weights = np.minimum(weights, max_degree(instance.network).max() if self.rule == "best-constant" else 1.0)
        return GossipWeights(instance=instance.name, weights=tuple(weights.tolist())), {}


@dataclass(frozen=True)
class Uniform(Heuristic, uses=()):
    """The same for all: rates that share the budget (goal ``process``), every neighbour as likely (``pairwise``)."""

    name: ClassVar[str] = "uniform"
    covers: ClassVar[type[Any]] = WeightsInstance

    def refuses(self, instance: Any) -> str | None:
        """Other goals."""
        if instance.goal not in ("process", "pairwise"):
            return f"it is for goals 'process' and 'pairwise', and this instance has goal '{instance.goal}'"
        return None

    def answer(self, instance: WeightsInstance, seed: int, clock: Clock, start: Any) -> Answer[Solution]:
        """The weights."""
        network = instance.network
        if instance.goal == "pairwise":
            weights = 1.0 / network.degrees[network.ends].ravel()
        else:
            assert instance.budget is not None
            rate = instance.budget / sum(instance.costs or [1.0] * len(network.edges))
            weights = np.full(len(network.edges), np.nextafter(rate, 0.0))
        return GossipWeights(instance=instance.name, weights=tuple(weights.tolist())), {}
