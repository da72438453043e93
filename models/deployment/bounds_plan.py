"""A bound for the problem ``plan`` that needs no solver."""

from ddlopt.models.deployment.instance import DeploymentInstance


def plan_bound(instance: DeploymentInstance) -> float | None:
    """None so far."""
    return None
