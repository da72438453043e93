"""The methods for the problem ``tree``."""

from collections.abc import Callable
from functools import partial
from importlib import import_module

from ddlopt.models.aggregation.tree.instance import TreeInstance
from ddlopt.solvers.contracts import Entry, Method
from ddlopt.solvers.makers import formulation, heuristic

FAMILY = "aggregation"

_formulation = partial(formulation, FAMILY)
_heuristic = partial(heuristic, FAMILY)


def _entry(name: str, kind: str, summary: str, make: Callable[[str], Method]) -> Entry:
    return Entry(name, FAMILY, kind, summary, make)


def strategy(instance: TreeInstance, name: str) -> Method:
    """One of the strategies none, level, top, max."""
    method: Method = import_module("ddlopt.solvers.aggregation.tree.strategies").Strategy(name)
    return method


def milp(instance: TreeInstance, solver: str) -> Method:
    """The integer program that fits; for congestion, limited by the greedy."""
    method: Method = import_module("ddlopt.solvers.aggregation.tree.exact").TreeIntegerProgram(solver)
    return method


def best(instance: TreeInstance, solver: str) -> Method:
    """What proves soonest: a method without a solver where one covers the instance, else a heuristic and the model."""
    module, kind = ("tree.soar", "Soar") if instance.goal == "utilization" else ("tree.congestion", "TreeCongestion")
    method = _heuristic(module, kind)(solver)
    if method.refuses(instance) is None:
        return method
    found: Method = import_module("ddlopt.solvers.aggregation.tree.exact").opened(instance, solver)
    return found


ENTRIES: tuple[Entry, ...] = (
    _entry("soar", "exact", "tree: utilization by dynamic programming", _heuristic("tree.soar", "Soar")),
    _entry(
        "tree-congestion",
        "exact",
        "tree: congestion of one job, by the fewest switches under limits",
        _heuristic("tree.congestion", "TreeCongestion"),
    ),
    _entry(
        "tree",
        "exact",
        "tree: integer program over the next aggregating switch above each",
        _formulation("tree", "tree.formulations.tree_aggregation", "TreeAggregation"),
    ),
    _entry(
        "tree-plain",
        "exact",
        "tree: messages on links, with big-M rows",
        _formulation("tree-plain", "tree.formulations.tree_message_flow", "PlainTreeAggregation"),
    ),
    _entry(
        "tree-greedy",
        "heuristic",
        "tree: the pair of job and switch that gains most, one after the other",
        _heuristic("tree.greedy", "TreeGreedy"),
    ),
    _entry(
        "tree-prices",
        "heuristic",
        "tree: ours for several jobs, prices of memory and a dynamic program for each job",
        _heuristic("tree.prices", "TreePrices"),
    ),
    _entry(
        "tree-limits",
        "heuristic",
        "tree: ours for congestion, links brought below a limit from the leaves up",
        _heuristic("tree.limits", "TreeLimits"),
    ),
    _entry(
        "tree-random",
        "heuristic",
        "tree: switches at random",
        _heuristic("tree.strategies", "Strategy", strategy="random"),
    ),
)
