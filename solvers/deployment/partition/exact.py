"""Exact methods for the problem ``partition`` that start from what a heuristic has found."""

from dataclasses import dataclass
from typing import Any, ClassVar

from ddlopt.models.deployment.partition.formulations.latency_partition import LatencyPartition
from ddlopt.models.deployment.partition.formulations.max_load_partition import MaxLoadPartition
from ddlopt.models.deployment.partition.formulations.tarnawski_latency import Tarnawski2020Latency
from ddlopt.models.deployment.partition.instance import refusal
from ddlopt.solvers.backends import backend
from ddlopt.solvers.contracts import Method
from ddlopt.solvers.deployment.partition.chains import FAMILY
from ddlopt.solvers.deployment.partition.device_sets.method import DeviceSets
from ddlopt.solvers.deployment.partition.dynamic_program import IdealProgram
from ddlopt.solvers.deployment.partition.latency_search import LatencySearch
from ddlopt.solvers.deployment.partition.latency_tree import LatencyTree
from ddlopt.solvers.deployment.partition.linear import Linear
from ddlopt.solvers.deployment.partition.search import PartitionSearch
from ddlopt.solvers.exact import Exact
from ddlopt.solvers.wrappers.by_instance import ByInstance
from ddlopt.solvers.wrappers.limited import Limited
from ddlopt.solvers.wrappers.warm_started import WarmStarted

_OPENING, _LONG_OPENING, _MANY_NODES = 400, 4000, 50
"""Kicks of the search before the model, which take half a second; five for many nodes, where the model is slow."""
FEW_IDEALS = 60_000
"""Of which the dynamic program takes a few seconds."""
_PRICED_BLOCKS = 100
"""Up to which branch and price prove more than the integer program: 96 layers in half its time, 128 operators not."""
_FEW_NODES = 16
"""Of which branch and bound proves nearly always what is best, in a second or less."""
_LOOKS = 4_000_000
"""Partial partitions that it may look at, which takes a few seconds."""
_MOST_PLAIN = 30
"""Nodes for which the published program may end."""


@dataclass(frozen=True)
class MaxLoad(ByInstance):
    """A heuristic, lines where the partition is to be contiguous, and the integer program with its limit.

    Parameters
    ----------
    solver : str
    """

    solver: str = "highs"

    name: ClassVar[str] = "max-load"
    family: ClassVar[str] = FAMILY

    def method(self, instance: Any) -> Method:
        """With the opening that covers the instance."""
        rounds = _LONG_OPENING if len(getattr(instance, "nodes", ())) > _MANY_NODES else _OPENING
        opening = Linear() if getattr(instance, "contiguous", False) else PartitionSearch(rounds=rounds)
        return WarmStarted(self.name, FAMILY, opening, lambda _: limited_max_load(self.solver))


def limited_max_load(solver: str = "highs") -> Limited:
    """:class:`~.MaxLoadPartition`, with the load of the start as its limit."""
    return Limited("max-load", FAMILY, MaxLoadPartition, solver)


def throughput(instance: Any, solver: str) -> Method:
    """The dynamic program where it is quick, branch and price for few nodes, else the integer program."""
    program, sets = IdealProgram(most_ideals=FEW_IDEALS), DeviceSets()
    if instance.contiguous and program.refuses(instance) is None:
        return program
    if len(instance.colours) <= _PRICED_BLOCKS and sets.refuses(instance) is None:
        # What it leaves open, the integer program has the rest of the time for.
        return WarmStarted("device-sets", FAMILY, sets, lambda _: limited_max_load(solver), share=lambda _: 1.0)
    return MaxLoad(solver)


@dataclass(frozen=True)
class Latency(ByInstance):
    """Branch and bound over all partitions where it may end soon, else a search; then the program that fits.

    That is the one over sets, with its limit, where an accelerator has one set and that is convex in any case, and the
    published one otherwise.

    Parameters
    ----------
    solver : str
    """

    solver: str = "highs"

    name: ClassVar[str] = "latency"
    family: ClassVar[str] = FAMILY

    def method(self, instance: Any) -> Method:
        """With the opening and the program that cover the instance."""
        sets: Method = Limited(self.name, FAMILY, LatencyPartition, self.solver)
        if refusal(instance, "latency") is not None:
            return sets
        alone = instance.subgraphs == 1 and len(instance.colours) == len(instance.nodes)
        covered = sets.refuses(instance) is None and (alone or len(instance.nodes) > _MOST_PLAIN)
        plain = Exact("latency-plain", FAMILY, Tarnawski2020Latency(), backend(self.solver))
        opening: Method = LatencySearch() if alone and len(instance.nodes) > _FEW_NODES else LatencyTree(_LOOKS)
        return WarmStarted(self.name, FAMILY, opening, lambda _: sets if covered else plain)
