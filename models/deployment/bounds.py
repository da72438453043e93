"""Bounds that need no solver."""

from ddlopt.models.by_problem import bounded
from ddlopt.models.deployment.family import DeploymentProblem


def bound(instance: DeploymentProblem) -> float | None:
    """A lower bound on the objective of every answer; None where there is none."""
    return bounded(instance)
