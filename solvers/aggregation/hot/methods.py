"""The methods for the problem ``hot``."""

from importlib import import_module

from ddlopt.models.aggregation.hot.instance import HotInstance
from ddlopt.solvers.contracts import Method
from ddlopt.solvers.makers import entries, heuristic

ROOM = "aggregation/hot"

_knapsack = heuristic(ROOM, "knapsack:HotKnapsack")


def _opened(solver: str) -> Method:
    """The integer program, after the answer that follows prices."""
    method: Method = import_module("ddlopt.solvers.aggregation.hot.exact").opened(solver)
    return method


def milp(instance: HotInstance, solver: str) -> Method:
    """The integer program."""
    return _opened(solver)


def best(instance: HotInstance, solver: str) -> Method:
    """The dynamic program for one switch, else the integer program."""
    return _knapsack(solver) if len(instance.switches) == 1 else _opened(solver)


ENTRIES = entries(
    ROOM,
    ("hot-knapsack", "exact", "one switch, by dynamic programming near the break of the greedy order", "knapsack:HotKnapsack"),
    ("hot-plain", "exact", "knapsacks as an integer program, nothing decided beforehand", "models:formulations.hot_parameters:HotParameters", {"reduced": False}),
    ("hot-prices", "heuristic", "ours, where parameters gain most at prices of registers", "greedy:HotPrices"),
    ("hot-density", "heuristic", "what saves most a register first", "greedy:HotDensity"),
    ("hot-frequency", "heuristic", "Libra's, what is touched most first", "greedy:HotFrequency"),
    ("hot-quota", "heuristic", "an equal part of each switch for every job", "greedy:HotQuota"),
    ("hot-sampled", "heuristic", "what saves most a register first, by a sample", "greedy:HotSampled"),
    ("hot-random", "heuristic", "parameters at random", "greedy:HotRandom"),
)  # fmt: skip
