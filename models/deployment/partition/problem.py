"""The problem ``deployment/partition``: what belongs to its room, as data."""

from ddlopt.models.deployment.partition.evaluate import evaluate_partition
from ddlopt.models.deployment.partition.instance import Partition, PartitionInstance
from ddlopt.models.problem import Problem, later

PROBLEM = Problem(
    path="deployment/partition",
    title="stages of a network on a pipeline of devices",
    counts="nodes",
    limited_by="memory of accelerators, bandwidth between them",
    instance=PartitionInstance,
    solution=Partition,
    evaluate=evaluate_partition,
    bound=later("ddlopt.models.deployment.partition.bounds:partition_bound"),
)
