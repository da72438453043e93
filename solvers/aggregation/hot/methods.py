"""The methods for the problem ``hot``."""

from collections.abc import Callable
from functools import partial
from importlib import import_module

from ddlopt.models.aggregation.hot.instance import HotInstance
from ddlopt.solvers.contracts import Entry, Method
from ddlopt.solvers.makers import formulation, heuristic

FAMILY = "aggregation"

_heuristic = partial(heuristic, FAMILY, "hot.greedy")
_knapsack = heuristic(FAMILY, "hot.knapsack", "HotKnapsack")


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


def _entry(name: str, kind: str, summary: str, make: Callable[[str], Method]) -> Entry:
    return Entry(name, FAMILY, kind, f"hot: {summary}", make)


ENTRIES: tuple[Entry, ...] = (
    _entry("hot-knapsack", "exact", "one switch, by dynamic programming near the break of the greedy order", _knapsack),
    _entry("hot-parameters", "exact", "knapsacks as an integer program, after hot-prices", _opened),
    _entry(
        "hot-plain",
        "exact",
        "knapsacks as an integer program, nothing decided beforehand",
        formulation(FAMILY, "hot-plain", "hot.formulations.hot_parameters", "HotParameters", reduced=False),
    ),
    _entry(
        "hot-prices", "heuristic", "ours, where parameters gain most at prices of registers", _heuristic("HotPrices")
    ),
    _entry("hot-density", "heuristic", "what saves most a register first", _heuristic("HotDensity")),
    _entry("hot-frequency", "heuristic", "Libra's, what is touched most first", _heuristic("HotFrequency")),
    _entry("hot-quota", "heuristic", "an equal part of each switch for every job", _heuristic("HotQuota")),
    _entry("hot-sampled", "heuristic", "what saves most a register first, by a sample", _heuristic("HotSampled")),
    _entry("hot-random", "heuristic", "parameters at random", _heuristic("HotRandom")),
)
