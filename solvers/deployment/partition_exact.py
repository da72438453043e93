"""Exact methods for the problem ``partition`` that start from what a heuristic has found."""

from dataclasses import dataclass
from typing import Any, ClassVar

from ddlopt.models.deployment.latency_partition import LatencyPartition
from ddlopt.models.deployment.max_load import MaxLoadPartition
from ddlopt.models.deployment.partition import Partition
from ddlopt.solvers.backends import backend
from ddlopt.solvers.contracts import Limits, Method, ProgressCallback, Result
from ddlopt.solvers.deployment.latency_search import LatencySearch
from ddlopt.solvers.deployment.partition_chains import FAMILY
from ddlopt.solvers.deployment.partition_dynamic import IdealProgram
from ddlopt.solvers.deployment.partition_linear import Linear, objective_of
from ddlopt.solvers.deployment.partition_search import PartitionSearch
from ddlopt.solvers.exact import Exact
from ddlopt.solvers.opened import Opened

_OPENING = 40
"""Kicks of the search before the model, which takes a second or less then."""
FEW_IDEALS = 60_000
"""Of which the dynamic program takes a few seconds."""


@dataclass(frozen=True)
class LimitedMaxLoad:
    """:class:`~ddlopt.models.deployment.max_load.MaxLoadPartition`, with the load of the start as its limit.

    Parameters
    ----------
    solver : str
    """

    solver: str = "highs"

    name: ClassVar[str] = "max-load"
    family: ClassVar[str] = FAMILY

    def refuses(self, instance: Any) -> str | None:
        """Other problems, latency."""
        return MaxLoadPartition().refuses(instance)

    def solve(
        self,
        instance: Any,
        limits: Limits,
        seed: int = 0,
        progress: ProgressCallback | None = None,
        start: Any = None,
    ) -> Result:
        """Answer ``instance``; see :class:`~ddlopt.solvers.contracts.Method`."""
        limit_s = objective_of(instance, start) if isinstance(start, Partition) else None
        method = Exact(self.name, FAMILY, MaxLoadPartition(limit_s), backend(self.solver))
        return method.solve(instance, limits, seed, progress, start)


def max_load(solver: str, name: str = "max-load") -> Method:
    """A heuristic, and the integer program with its limit."""

    def model(_: Any) -> Method:
        return LimitedMaxLoad(solver)

    return _Opened(name, FAMILY, PartitionSearch(rounds=_OPENING), model)


@dataclass(frozen=True)
class _Opened(Opened):
    """Contiguous instances are opened by lines."""

    def solve(
        self,
        instance: Any,
        limits: Limits,
        seed: int = 0,
        progress: ProgressCallback | None = None,
        start: Any = None,
    ) -> Result:
        """Answer ``instance``; see :class:`~ddlopt.solvers.contracts.Method`."""
        opening = Linear() if getattr(instance, "contiguous", False) else self.opening
        return Opened(self.name, self.family, opening, self.model).solve(instance, limits, seed, progress, start)


def throughput(instance: Any, solver: str) -> Method:
    """The dynamic program where it covers the instance and is quick, else the integer program."""
    program = IdealProgram(most_ideals=FEW_IDEALS)
    if instance.contiguous and program.refuses(instance) is None:
        return program
    return max_load(solver)


@dataclass(frozen=True)
class LimitedLatency:
    """:class:`~ddlopt.models.deployment.latency_partition.LatencyPartition`, limited by the start.

    Parameters
    ----------
    solver : str
    """

    solver: str = "highs"

    name: ClassVar[str] = "latency"
    family: ClassVar[str] = FAMILY

    def refuses(self, instance: Any) -> str | None:
        """Other problems, throughput, too many sets."""
        return LatencyPartition().refuses(instance)

    def solve(
        self,
        instance: Any,
        limits: Limits,
        seed: int = 0,
        progress: ProgressCallback | None = None,
        start: Any = None,
    ) -> Result:
        """Answer ``instance``; see :class:`~ddlopt.solvers.contracts.Method`."""
        limit_s = objective_of(instance, start) if isinstance(start, Partition) else None
        method = Exact(self.name, FAMILY, LatencyPartition(limit_s), backend(self.solver))
        return method.solve(instance, limits, seed, progress, start)


def latency(solver: str) -> Method:
    """A search, and the program over sets with its limit."""

    def model(_: Any) -> Method:
        return LimitedLatency(solver)

    return Opened("latency", FAMILY, LatencySearch(), model)
