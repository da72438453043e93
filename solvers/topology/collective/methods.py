"""The methods for the problem ``collective``."""

from ddlopt.models.topology.collective.instance import CollectiveInstance
from ddlopt.solvers import chain
from ddlopt.solvers.contracts import Method
from ddlopt.solvers.makers import entries, formulation, heuristic
from ddlopt.solvers.wrappers.warm_started import WarmStarted

ROOM = "topology/collective"

_MOST_PACKED = 256
"""Accelerators up to which trees are packed: twice as many take about sixteen times as long."""
_MOST_OF_ONE_ROOT = 1024
"""Likewise, for the few trees of a broadcast: a minute or two."""
_MOST_FLOWS = 24
"""Accelerators up to which the linear program of flows is solved, which has one of each link for every pair."""


def best(instance: CollectiveInstance, solver: str) -> Method:
    """What links of the chain say; else trees packed at the bound of a cut, before them shallow ones for latency."""
    return chain.exact(ROOM, instance, solver, lambda asked, behind: opened(asked, packed(asked, behind), behind))


def packed(instance: CollectiveInstance, solver: str, then: Method | None = None) -> Method:
    """Trees packed at the bound of a cut, and another method where they are not proven by it, or are too many.

    By default that is the linear program of flows; beyond what that is solved for, a ring (or shortest paths), beside
    which the bound of the cut is still exact.
    """
    pairs = instance.collective == "all-to-all"
    if then is None:
        flows, plain = (_paths, "ShortestPaths") if pairs else (_flows, "RingInOrder")
        small = instance.accelerators <= _MOST_FLOWS and not instance.step_s
        then = flows(solver) if small else heuristic(ROOM, f"baselines:{plain}")(solver)
    if pairs:
        return then
    if instance.accelerators <= (_MOST_OF_ONE_ROOT if instance.collective == "broadcast" else _MOST_PACKED):
        then = first(heuristic(ROOM, "forest:Forest")(solver), 0.7, then)
    return then


_flows = formulation(ROOM, "tree-flows", "formulations.tree_flows:TreeFlows")
_paths = formulation(ROOM, "all-to-all-flows", "formulations.all_to_all_flows:AllToAllFlows")


def opened(instance: CollectiveInstance, then: Method, solver: str) -> Method:
    """Shallow trees before a method, where the time of steps counts."""
    if not instance.step_s or instance.accelerators > _MOST_PACKED or instance.collective == "all-to-all":
        return then
    return first(heuristic(ROOM, "baselines:Shallow")(solver), 0.1, then)


def first(opening: Method, part: float, then: Method) -> Method:
    """A method before another one, with part of the time."""
    return WarmStarted("exact", "topology", opening, lambda _: then, lambda _: part)


ENTRIES = entries(
    ROOM,
    ("forest", "exact", "trees at the bound of the worst cut, packed by maximum flows, as fractions", "forest:Forest"),
    ("tree-flows", "exact", "the linear program of trees as flows to each accelerator, for all but all-to-all", "models:formulations.tree_flows:TreeFlows"),
    ("all-to-all-flows", "exact", "the linear program by sources, for all-to-all", "models:formulations.all_to_all_flows:AllToAllFlows"),
    ("blink", "heuristic", "Blink's trees out of one root, few and near the optimum, and back for sums", "forest:OneRoot"),
    ("ring-in-order", "heuristic", "one ring in the order of numbers", "baselines:RingInOrder"),
    ("shortest-paths", "heuristic", "all-to-all, every pair on one shortest path", "baselines:ShortestPaths"),
    ("shallow", "heuristic", "trees of shortest paths, of the fewest steps", "baselines:Shallow"),
    ("halving-doubling", "heuristic", "binomial trees of recursive halving and doubling", "baselines:HalvingDoubling"),
    ("double-binary-tree", "heuristic", "two binary trees with half of the bytes each", "baselines:DoubleBinaryTree"),
)  # fmt: skip
