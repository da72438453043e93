"""Special exact methods for the problem ``partition``, and when ``exact`` asks them."""

from dataclasses import dataclass
from functools import partial

from ddlopt.frontier.deployment.partition.device_sets.method import DeviceSets
from ddlopt.frontier.deployment.partition.formulations.latency_partition import LatencyPartition
from ddlopt.frontier.deployment.partition.latency_sets.method import LatencySets
from ddlopt.frontier.deployment.partition.latency_tree import LatencyTree
from ddlopt.models.deployment.partition.instance import PartitionInstance, refusal
from ddlopt.solvers.contracts import Method
from ddlopt.solvers.deployment.partition.chains import FAMILY
from ddlopt.solvers.deployment.partition.exact import limited_max_load, plain_latency, program_of_ideals
from ddlopt.solvers.deployment.partition.latency_search import LatencySearch
from ddlopt.solvers.wrappers.limited import Limited
from ddlopt.solvers.wrappers.warm_started import WarmStarted


@dataclass(frozen=True)
class Effort:
    """What a search spends, and why so much."""

    priced_blocks: int = 100
    """Up to which branch and price prove more than the integer program: 96 layers in half its time, not 128."""
    few_nodes: int = 16
    """Of which branch and bound proves nearly always what is best, in a second or less."""
    most_plain: int = 30
    """Nodes for which the published program may end."""
    looks: int = 4_000_000
    """Partial partitions that it may look at, which takes a few seconds."""
    most_sets: int = 1_000_000
    """The same of branch and bound over sets, after least times of parts."""
    sets: float = 0.7
    """Part of the time for these; what they leave open goes to the program over sets."""


_EFFORT = Effort()


def link(instance: PartitionInstance, solver: str) -> Method | None:
    """Branch and price for loads of few nodes; for latency branch and bound, over sets or where it may end."""
    if instance.goal == "latency":
        if refusal(instance, "latency") is not None:
            return None
        model, over_sets = partial(_latency, solver), LatencySets(_EFFORT.most_sets)
        if over_sets.refuses(instance) is None:
            return WarmStarted("latency", FAMILY, over_sets, model, lambda _: _EFFORT.sets)
        many = _is_alone(instance) and len(instance.nodes) > _EFFORT.few_nodes
        return WarmStarted("latency", FAMILY, LatencySearch() if many else LatencyTree(_EFFORT.looks), model)
    sets = DeviceSets()
    if (
        program_of_ideals(instance)
        or len(instance.colours) > _EFFORT.priced_blocks
        or sets.refuses(instance) is not None
    ):
        return None
    # What it leaves open, the integer program has the rest of the time for.
    return WarmStarted("device-sets", FAMILY, sets, lambda _: limited_max_load(solver), share=lambda _: 1.0)


def _latency(solver: str, instance: PartitionInstance) -> Method:
    """The program over sets where an accelerator has one, and that is convex in any case; else the published one."""
    by_sets = Limited("latency", FAMILY, LatencyPartition, solver)
    covered = _is_alone(instance) or len(instance.nodes) > _EFFORT.most_plain
    return by_sets if covered and by_sets.refuses(instance) is None else plain_latency(solver)


def _is_alone(instance: PartitionInstance) -> bool:
    """Whether an accelerator has one set, and each node may be anywhere."""
    return instance.subgraphs == 1 and len(instance.colours) == len(instance.nodes)
