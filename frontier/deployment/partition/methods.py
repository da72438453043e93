"""Special exact methods for the problem ``partition``, and when ``exact`` asks them."""

from ddlopt.frontier.deployment.partition.device_sets.method import DeviceSets
from ddlopt.frontier.deployment.partition.latency_sets.method import LatencySets
from ddlopt.frontier.deployment.partition.latency_tree import LatencyTree
from ddlopt.models.deployment.partition.instance import PartitionInstance, refusal
from ddlopt.solvers.contracts import Method
from ddlopt.solvers.deployment.partition.chains import FAMILY
from ddlopt.solvers.deployment.partition.exact import Latency, is_alone, limited_max_load, program_of_ideals
from ddlopt.solvers.wrappers.warm_started import WarmStarted

_PRICED_BLOCKS = 100
"""Up to which branch and price prove more than the integer program: 96 layers in half its time, 128 operators not."""
_FEW_NODES = 16
"""Of which branch and bound proves nearly always what is best, in a second or less."""
_LOOKS = 4_000_000
"""Partial partitions that it may look at, which takes a few seconds."""
_MOST_SETS = 1_000_000
"""The same of branch and bound over sets, after least times of parts."""
_SETS = 0.7
"""Part of the time for these."""


def link(instance: PartitionInstance, solver: str) -> Method | None:
    """Branch and price for loads of few nodes; for latency branch and bound, over sets or where it may end."""
    if instance.goal == "latency":
        if refusal(instance, "latency") is not None:
            return None
        model, over_sets = Latency(solver).model, LatencySets(_MOST_SETS)
        if over_sets.refuses(instance) is None:
            return WarmStarted("latency", FAMILY, over_sets, model, lambda _: _SETS)
        if is_alone(instance) and len(instance.nodes) > _FEW_NODES:
            return None
        return WarmStarted("latency", FAMILY, LatencyTree(_LOOKS), model)
    sets = DeviceSets()
    if program_of_ideals(instance) or len(instance.colours) > _PRICED_BLOCKS or sets.refuses(instance) is not None:
        return None
    # What it leaves open, the integer program has the rest of the time for.
    return WarmStarted("device-sets", FAMILY, sets, lambda _: limited_max_load(solver), share=lambda _: 1.0)
