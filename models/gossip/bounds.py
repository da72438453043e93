"""Bounds that need no solver."""

from ddlopt.models.by_problem import bounded
from ddlopt.models.gossip.family import GossipProblem


def bound(instance: GossipProblem) -> float | None:
    """A bound on the objective of every answer; None where there is none."""
    return bounded(instance)
