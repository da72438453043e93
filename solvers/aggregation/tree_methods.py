"""The methods for the problem ``tree``."""

from collections.abc import Callable
from functools import partial
from importlib import import_module

from ddlopt.models.aggregation.tree import TreeInstance
from ddlopt.solvers.contracts import Entry, Method
from ddlopt.solvers.makers import formulation, heuristic

FAMILY = "aggregation"

MOST_STATES = 100_000
"""Beyond, the integer program over states is too large, and the plain one is taken."""

_formulation = partial(formulation, FAMILY)
_heuristic = partial(heuristic, FAMILY)
_tree = _formulation("tree", "tree_placement", "TreeAggregation")
_plain = _formulation("tree-plain", "tree_plain", "PlainTreeAggregation")


def _entry(name: str, kind: str, summary: str, make: Callable[[str], Method]) -> Entry:
    return Entry(name, FAMILY, kind, summary, make)


def strategy(instance: TreeInstance, name: str) -> Method:
    """One of the strategies none, level, top, max."""
    method: Method = import_module("ddlopt.solvers.aggregation.tree_strategies").Strategy(name)
    return method


def milp(instance: TreeInstance, solver: str) -> Method:
    """The integer program over states where it is not too large, else the plain one."""
    states: int = import_module("ddlopt.models.aggregation.tree_placement").states_of(instance)
    return (_tree if states <= MOST_STATES else _plain)(solver)


def best(instance: TreeInstance, solver: str) -> Method:
    """What proves soonest: a method without a solver where one covers the instance, else a heuristic and the model."""
    module, kind = ("tree_soar", "Soar") if instance.goal == "utilization" else ("tree_congestion", "TreeCongestion")
    method: Method = _heuristic(module, kind)(solver)
    if method.refuses(instance) is None:
        return method
    opening = _heuristic(*_OPENINGS[instance.goal])(solver)
    found: Method = import_module("ddlopt.solvers.opened").Opened(
        "tree", FAMILY, opening, lambda each: milp(each, solver)
    )
    return found


_OPENINGS = {"utilization": ("tree_prices", "TreePrices"), "congestion": ("tree_greedy", "TreeGreedy")}

ENTRIES: tuple[Entry, ...] = (
    _entry("soar", "exact", "tree: utilization by dynamic programming", _heuristic("tree_soar", "Soar")),
    _entry(
        "tree-congestion",
        "exact",
        "tree: congestion of one job, by the fewest switches under limits",
        _heuristic("tree_congestion", "TreeCongestion"),
    ),
    _entry("tree", "exact", "tree: integer program over the next aggregating switch above each", _tree),
    _entry("tree-plain", "exact", "tree: messages on links, with big constants", _plain),
    _entry(
        "tree-greedy",
        "heuristic",
        "tree: the pair of job and switch that gains most, one after the other",
        _heuristic("tree_greedy", "TreeGreedy"),
    ),
    _entry(
        "tree-prices",
        "heuristic",
        "tree: ours for several jobs, prices of memory and a dynamic program for each job",
        _heuristic("tree_prices", "TreePrices"),
    ),
    _entry(
        "tree-random",
        "heuristic",
        "tree: switches at random",
        _heuristic("tree_strategies", "Strategy", strategy="random"),
    ),
)
