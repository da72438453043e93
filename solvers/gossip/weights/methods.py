"""The methods for the problem ``weights``."""

from collections.abc import Callable
from functools import partial
from importlib import import_module

from ddlopt.models.gossip.weights.instance import WeightsInstance
from ddlopt.solvers.contracts import Entry, Method
from ddlopt.solvers.makers import heuristic

FAMILY = "gossip"

_heuristic = partial(heuristic, FAMILY)


def best(instance: WeightsInstance, solver: str) -> Method:
    """The interior-point method for the goal of the instance."""
    return _fastest(instance.goal)(solver)


def _fastest(goal: str) -> Callable[[str], Method]:
    def make(_: str) -> Method:
        module = import_module("ddlopt.solvers.gossip.weights.exact")
        method: Method = module.FastestWeights(goal)
        return method

    return make


def _entry(name: str, kind: str, summary: str, make: Callable[[str], Method]) -> Entry:
    return Entry(name, FAMILY, kind, f"weights: {summary}", make)


ENTRIES: tuple[Entry, ...] = (
    _entry("fdla", "exact", "fastest distributed linear averaging", _fastest("averaging")),
    _entry("fmmc", "exact", "fastest mixing Markov chain: no negative weights", _fastest("chain")),
    _entry("fmmp", "exact", "fastest mixing Markov process under a budget", _fastest("process")),
    _entry("fastest-pairwise", "exact", "the best probabilities of randomized gossip", _fastest("pairwise")),
    _entry("semidefinite", "exact", "the same through CVXPY", _heuristic("weights.convex", "Semidefinite")),
    _entry(
        "metropolis",
        "heuristic",
        "Metropolis–Hastings: 1 over the larger degree",
        _heuristic("weights.rules", "Rule", rule="metropolis"),
    ),
    _entry(
        "max-degree",
        "heuristic",
        "1 over the largest degree",
        _heuristic("weights.rules", "Rule", rule="max-degree"),
    ),
    _entry(
        "best-constant",
        "heuristic",
        "the best weight that all edges can share",
        _heuristic("weights.rules", "Rule", rule="best-constant"),
    ),
    _entry(
        "uniform",
        "heuristic",
        "equal rates, or every neighbour as likely",
        _heuristic("weights.rules", "Uniform"),
    ),
)
