"""Exact methods for the problem ``partition`` that start from what a heuristic has found."""

from dataclasses import dataclass
from typing import Any, ClassVar

from ddlopt.models.deployment.partition.formulations.latency_partition import LatencyPartition
from ddlopt.models.deployment.partition.formulations.max_load_partition import MaxLoadPartition
from ddlopt.solvers.by_instance import ByInstance
from ddlopt.solvers.contracts import Method
from ddlopt.solvers.deployment.partition.chains import FAMILY
from ddlopt.solvers.deployment.partition.dynamic_program import IdealProgram
from ddlopt.solvers.deployment.partition.latency_search import LatencySearch
from ddlopt.solvers.deployment.partition.linear import Linear
from ddlopt.solvers.deployment.partition.search import PartitionSearch
from ddlopt.solvers.limited import Limited
from ddlopt.solvers.warm_started import WarmStarted

_OPENING = 40
"""Kicks of the search before the model, which takes a second or less then."""
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
        opening = Linear() if getattr(instance, "contiguous", False) else PartitionSearch(rounds=_OPENING)
        return WarmStarted(self.name, FAMILY, opening, lambda _: limited_max_load(self.solver))


def limited_max_load(solver: str = "highs") -> Limited:
    """:class:`~.MaxLoadPartition`, with the load of the start as its limit."""
    return Limited("max-load", FAMILY, MaxLoadPartition, solver)


def throughput(instance: Any, solver: str) -> Method:
    """The dynamic program where it covers the instance and is quick, else the integer program."""
    program = IdealProgram(most_ideals=FEW_IDEALS)
    if instance.contiguous and program.refuses(instance) is None:
        return program
    return MaxLoad(solver)


def latency(solver: str) -> Method:
    """A search, and the program over sets with its limit."""
    return WarmStarted(
        "latency", FAMILY, LatencySearch(), lambda _: Limited("latency", FAMILY, LatencyPartition, solver)
    )
