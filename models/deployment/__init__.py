"""Where operators run: deployment (TAG), partition for throughput or latency, strategies within operators."""

from ddlopt.models.deployment.evaluate import evaluate
from ddlopt.models.deployment.family import DeploymentAnswer, DeploymentProblem
from ddlopt.models.deployment.partition.instance import Partition, PartitionInstance
from ddlopt.models.deployment.plan.instance import (
    TAG_ALL_REDUCE,
    CollectiveCost,
    DeploymentInstance,
    DeviceGroup,
    Operator,
    Tensor,
)
from ddlopt.models.deployment.plan.solution import Deployment, GroupPlan
from ddlopt.models.deployment.strategies.instance import StrategyAssignment, StrategyInstance

__all__ = [
    "TAG_ALL_REDUCE",
    "CollectiveCost",
    "Deployment",
    "DeploymentAnswer",
    "DeploymentInstance",
    "DeploymentProblem",
    "DeviceGroup",
    "GroupPlan",
    "Operator",
    "Partition",
    "PartitionInstance",
    "StrategyAssignment",
    "StrategyInstance",
    "Tensor",
    "evaluate",
]
