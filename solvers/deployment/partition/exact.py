"""Exact methods for the problem ``partition`` that start from what a heuristic has found."""

from dataclasses import dataclass
from typing import Any, ClassVar

from ddlopt.models.deployment.partition.formulations.latency_partition import LatencyPartition
from ddlopt.models.deployment.partition.formulations.max_load_partition import MaxLoadPartition
from ddlopt.models.deployment.partition.formulations.tarnawski_latency import Tarnawski2020Latency
from ddlopt.models.deployment.partition.instance import refusal
from ddlopt.solvers import chain
from ddlopt.solvers.backends import backend
from ddlopt.solvers.contracts import Method
from ddlopt.solvers.deployment.partition.chains import FAMILY
from ddlopt.solvers.deployment.partition.dynamic_program import IdealProgram
from ddlopt.solvers.deployment.partition.latency_search import LatencySearch
from ddlopt.solvers.deployment.partition.linear import Linear
from ddlopt.solvers.deployment.partition.search import PartitionSearch
from ddlopt.solvers.exact import Exact
from ddlopt.solvers.wrappers.by_instance import ByInstance
from ddlopt.solvers.wrappers.limited import Limited
from ddlopt.solvers.wrappers.warm_started import WarmStarted

ROOM = "deployment/partition"
_OPENING, _LONG_OPENING, _MANY_NODES = 400, 4000, 50
"""Kicks of the search before the model, which take half a second; five for many nodes, where the model is slow."""
FEW_IDEALS = 60_000
"""Of which the dynamic program takes a few seconds."""
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
    """The dynamic program where it is quick, then what links of the chain say, else the integer program."""
    if program_of_ideals(instance):
        return IdealProgram(most_ideals=FEW_IDEALS)
    return chain.exact(ROOM, instance, solver, lambda _, behind: MaxLoad(behind))


def program_of_ideals(instance: Any) -> bool:
    """Whether the dynamic program is quick."""
    return instance.contiguous and IdealProgram(most_ideals=FEW_IDEALS).refuses(instance) is None


@dataclass(frozen=True)
class Latency(ByInstance):
    """A search, or what links of the chain say; then the program that fits.

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
        """What links of the chain say, or a search and the program that covers the instance."""
        if refusal(instance, "latency") is not None:
            return self._sets
        return chain.exact(ROOM, instance, self.solver, self._own)

    def _own(self, _: Any, __: str) -> Method:
        return WarmStarted(self.name, FAMILY, LatencySearch(), self.model)

    def model(self, instance: Any) -> Method:
        """The program over sets, or the published one."""
        covered = is_alone(instance) or len(instance.nodes) > _MOST_PLAIN
        if covered and self._sets.refuses(instance) is None:
            return self._sets
        return Exact("latency-plain", FAMILY, Tarnawski2020Latency(), backend(self.solver))

    @property
    def _sets(self) -> Method:
        return Limited(self.name, FAMILY, LatencyPartition, self.solver)


def is_alone(instance: Any) -> bool:
    """Whether an accelerator has one set, and each node may be anywhere."""
    alone: bool = instance.subgraphs == 1 and len(instance.colours) == len(instance.nodes)
    return alone
