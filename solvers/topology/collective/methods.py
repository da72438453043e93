"""The methods for the problem ``collective``."""

from ddlopt.models.topology.collective.instance import CollectiveInstance
from ddlopt.solvers import chain
from ddlopt.solvers.contracts import Method
from ddlopt.solvers.makers import entries, heuristic
from ddlopt.solvers.wrappers.warm_started import WarmStarted

ROOM = "topology/collective"

_MOST_PACKED = 256
"""Accelerators up to which trees are packed: twice as many take about sixteen times as long."""
_MOST_OF_ONE_ROOT = 1024
"""Likewise, for the few trees of a broadcast: a minute or two."""
_MOST_COLUMNS = 512
"""Accelerators up to which columns are generated: a round looks for a tree of each in a dense matrix."""


def best(instance: CollectiveInstance, solver: str) -> Method:
    """What links of the chain say; else trees packed at the bound of a cut, before them shallow ones for latency."""
    return chain.exact(ROOM, instance, solver, lambda asked, behind: opened(asked, packed(asked, behind), behind))


def packed(instance: CollectiveInstance, solver: str) -> Method:
    """Trees packed at the bound of a cut, and column generation where they are not proven by it, or are too many.

    Beyond what columns are generated for, a ring, beside which the bound of the cut is still exact.
    """
    if instance.collective == "all-to-all":
        return heuristic(ROOM, "columns:TreeColumns")(solver)
    found = heuristic(
        ROOM, "baselines:RingInOrder" if instance.accelerators > _MOST_COLUMNS else "columns:TreeColumns"
    )(solver)
    if instance.accelerators <= (_MOST_OF_ONE_ROOT if instance.collective == "broadcast" else _MOST_PACKED):
        found = first(heuristic(ROOM, "forest:Forest")(solver), 0.7, found)
    return found


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
    ("tree-columns", "exact", "the linear program over trees or paths by column generation, as fractions", "columns:TreeColumns"),
    ("tree-flows", "exact", "the linear program of trees as flows to each accelerator, for all but all-to-all", "models:formulations.tree_flows:TreeFlows"),
    ("all-to-all-flows", "exact", "the linear program by sources, for all-to-all", "models:formulations.all_to_all_flows:AllToAllFlows"),
    ("blink", "heuristic", "Blink's trees out of one root, few and near the optimum, and back for sums", "forest:OneRoot"),
    ("ring-in-order", "heuristic", "one ring in the order of numbers", "baselines:RingInOrder"),
    ("shallow", "heuristic", "trees of shortest paths, of the fewest steps", "baselines:Shallow"),
    ("halving-doubling", "heuristic", "binomial trees of recursive halving and doubling", "baselines:HalvingDoubling"),
    ("double-binary-tree", "heuristic", "two binary trees with half of the bytes each", "baselines:DoubleBinaryTree"),
)  # fmt: skip
