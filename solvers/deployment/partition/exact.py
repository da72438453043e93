"""Exact methods for the problem ``partition`` that start from what a heuristic has found."""

from dataclasses import dataclass
from typing import Any, ClassVar

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


@dataclass(frozen=True)
class Effort:
    """What a search spends, and why so much."""

    opening: int = 400
    """Kicks of the search before the model, which take half a second."""
    long_opening: int = 4000
    """The same for many nodes, where the model is slow: five seconds."""
    many_nodes: int = 50
    """Which are many."""


_EFFORT = Effort()

FEW_IDEALS = 60_000
"""Of which the dynamic program takes a few seconds."""


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
        rounds = _EFFORT.long_opening if len(getattr(instance, "nodes", ())) > _EFFORT.many_nodes else _EFFORT.opening
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
    """What links of the chain say, or a search and the published program.

    Parameters
    ----------
    solver : str
    """

    solver: str = "highs"

    name: ClassVar[str] = "latency"
    family: ClassVar[str] = FAMILY

    def method(self, instance: Any) -> Method:
        """What links of the chain say, or a search and the program."""
        if refusal(instance, "latency") is not None:
            return plain_latency(self.solver)
        return chain.exact(ROOM, instance, self.solver, self._own)

    def _own(self, _: Any, __: str) -> Method:
        return WarmStarted(self.name, FAMILY, LatencySearch(), lambda _: plain_latency(self.solver))


def plain_latency(solver: str) -> Exact:
    """The published program."""
    return Exact("latency-plain", FAMILY, Tarnawski2020Latency(), backend(solver))
