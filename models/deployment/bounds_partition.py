"""A bound for the problem ``partition`` that needs no solver."""

from ddlopt.models.deployment.partition import PartitionInstance


def partition_bound(instance: PartitionInstance) -> float | None:
    """None so far."""
    return None
