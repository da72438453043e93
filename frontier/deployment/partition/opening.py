"""The partition that an exact method begins with."""

from typing import Any

from ddlopt.models.deployment.partition.instance import Partition, PartitionInstance
from ddlopt.models.errors import NoSolutionError
from ddlopt.solvers.deployment.partition.latency_search import LatencySearch
from ddlopt.solvers.deployment.partition.linear import objective_of
from ddlopt.solvers.deployment.partition.search import PartitionSearch
from ddlopt.solvers.heuristic import Clock


def opening(
    instance: PartitionInstance, seed: int, clock: Clock, start: Any, search: LatencySearch | PartitionSearch
) -> tuple[Partition | None, float | None]:
    """The start, or else what a search finds, and its objective; None if there is none that fits."""
    found = start
    if not isinstance(found, Partition):
        try:
            found = search.answer(instance, seed, clock, None)[0]
        except NoSolutionError:
            return None, None
    assert isinstance(found, Partition)
    value_s = objective_of(instance, found)
    return (None, None) if value_s is None else (found, value_s)
