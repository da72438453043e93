"""Bounds that need no solver."""

from ddlopt.models.aggregation.family import AggregationProblem
from ddlopt.models.by_problem import bounded


def bound(instance: AggregationProblem) -> float | None:
    """A bound on the objective of every answer; None where there is none."""
    return bounded(instance)
