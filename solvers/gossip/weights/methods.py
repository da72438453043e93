"""The methods for the problem ``weights``."""

from collections.abc import Callable
from importlib import import_module

from ddlopt.models.gossip.weights.instance import WeightsInstance
from ddlopt.solvers.contracts import Method
from ddlopt.solvers.makers import entries

ROOM = "gossip/weights"


def best(instance: WeightsInstance, solver: str) -> Method:
    """The interior-point method for the goal of the instance."""
    return _fastest(instance.goal)(solver)


def _fastest(goal: str) -> Callable[[str], Method]:
    def make(_: str) -> Method:
        module = import_module("ddlopt.solvers.gossip.weights.exact")
        method: Method = module.FastestWeights(goal)
        return method

    return make


ENTRIES = entries(
    ROOM,
    ("fdla", "exact", "fastest distributed linear averaging", _fastest("averaging")),
    ("fmmc", "exact", "fastest mixing Markov chain: no negative weights", _fastest("chain")),
    ("fmmp", "exact", "fastest mixing Markov process under a budget", _fastest("process")),
    ("fastest-pairwise", "exact", "the best probabilities of randomized gossip", _fastest("pairwise")),
    ("semidefinite", "exact", "the same through CVXPY", "convex:Semidefinite"),
    ("metropolis", "heuristic", "Metropolis–Hastings: 1 over the larger degree", "rules:Rule", {"rule": "metropolis"}),
    ("max-degree", "heuristic", "1 over the largest degree", "rules:Rule", {"rule": "max-degree"}),
    ("best-constant", "heuristic", "the best weight that all edges can share", "rules:Rule", {"rule": "best-constant"}),
    ("uniform", "heuristic", "equal rates, or every neighbour as likely", "rules:Uniform"),
)  # fmt: skip
