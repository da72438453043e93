"""The independent check of a partition."""

from ddlopt.models.contracts import Evaluation
from ddlopt.models.deployment.partition import Partition, PartitionInstance


def evaluate_partition(instance: PartitionInstance, solution: Partition, exact: bool = False) -> Evaluation:
    """Largest load or latency, and what the partition violates."""
    raise NotImplementedError
