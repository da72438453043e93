"""The methods for the problem ``tree``."""

from importlib import import_module

from ddlopt.models.aggregation.tree.instance import TreeInstance
from ddlopt.solvers.contracts import Method
from ddlopt.solvers.makers import entries, heuristic

ROOM = "aggregation/tree"


def strategy(instance: TreeInstance, name: str) -> Method:
    """One of the strategies none, level, top, max."""
    method: Method = import_module("ddlopt.solvers.aggregation.tree.strategies").Strategy(name)
    return method


def milp(instance: TreeInstance, solver: str) -> Method:
    """The integer program that fits; for congestion, after a heuristic whose answer limits it."""
    home = import_module("ddlopt.solvers.aggregation.tree.exact")
    method: Method = home.opened(instance, solver) if instance.goal == "congestion" else home.TreeIntegerProgram(solver)
    return method


def best(instance: TreeInstance, solver: str) -> Method:
    """What proves soonest: a method without a solver where one covers the instance, else a heuristic and the model."""
    home = "soar:Soar" if instance.goal == "utilization" else "congestion:TreeCongestion"
    method = heuristic(ROOM, home)(solver)
    if method.refuses(instance) is None:
        return method
    found: Method = import_module("ddlopt.solvers.aggregation.tree.exact").opened(instance, solver)
    return found


ENTRIES = entries(
    ROOM,
    ("soar", "exact", "utilization by dynamic programming", "soar:Soar"),
    ("tree-congestion", "exact", "congestion of one job, by the fewest switches under limits", "congestion:TreeCongestion"),
    ("tree", "exact", "integer program over the next aggregating switch above each", "models:formulations.tree_aggregation:TreeAggregation"),
    ("tree-plain", "exact", "messages on links, with big-M rows", "models:formulations.tree_message_flow:TreeMessageFlow"),
    ("tree-greedy", "heuristic", "the pair of job and switch that gains most, one after the other", "greedy:TreeGreedy"),
    ("tree-prices", "heuristic", "ours for several jobs, prices of memory and a dynamic program for each job", "prices:TreePrices"),
    ("tree-limits", "heuristic", "ours for congestion, links brought below a limit from the leaves up", "limits:TreeLimits"),
    ("tree-random", "heuristic", "switches at random", "strategies:Strategy", {"strategy": "random"}),
)  # fmt: skip
