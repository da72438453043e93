"""Where operators run: deployment (TAG), partition, strategies within operators, pipelines of large models, orders."""

from ddlopt.models.deployment.family import DeploymentAnswer, DeploymentProblem
from ddlopt.models.deployment.microbatches.instance import Chunk, ChunkEdge, MicroBatchInstance
from ddlopt.models.deployment.microbatches.solution import MicroBatchOrder
from ddlopt.models.deployment.partition.instance import Partition, PartitionInstance
from ddlopt.models.deployment.pipeline.instance import (
    LayerOption,
    Menu,
    PipelineEdge,
    PipelineInstance,
    PipelineLayer,
    PipelinePlan,
    PlanStage,
)
from ddlopt.models.deployment.plan.instance import (
    TAG_ALL_REDUCE,
    CollectiveCost,
    DeploymentInstance,
    DeviceGroup,
    Operator,
    Tensor,
)
from ddlopt.models.deployment.plan.solution import Deployment, GroupPlan
from ddlopt.models.deployment.step.instance import StepBlock, StepInstance, StepOption, StepPlan, Tier, Way
from ddlopt.models.deployment.strategies.instance import StrategyAssignment, StrategyInstance
from ddlopt.models.problem import Family, records

__all__ = [
    "FAMILY",
    "PROBLEMS",
    "TAG_ALL_REDUCE",
    "Chunk",
    "ChunkEdge",
    "CollectiveCost",
    "Deployment",
    "DeploymentAnswer",
    "DeploymentInstance",
    "DeploymentProblem",
    "DeviceGroup",
    "GroupPlan",
    "LayerOption",
    "Menu",
    "MicroBatchInstance",
    "MicroBatchOrder",
    "Operator",
    "Partition",
    "PartitionInstance",
    "PipelineEdge",
    "PipelineInstance",
    "PipelineLayer",
    "PipelinePlan",
    "PlanStage",
    "StepBlock",
    "StepInstance",
    "StepOption",
    "StepPlan",
    "StrategyAssignment",
    "StrategyInstance",
    "Tensor",
    "Tier",
    "Way",
    "bound",
    "evaluate",
]

PROBLEMS = records(
    "ddlopt.models.deployment.plan.problem",
    "ddlopt.models.deployment.partition.problem",
    "ddlopt.models.deployment.strategies.problem",
    "ddlopt.models.deployment.pipeline.problem",
    "ddlopt.models.deployment.microbatches.problem",
    "ddlopt.models.deployment.step.problem",
)
FAMILY = Family.of_several(
    "deployment",
    "where operators run: deployment on unlike devices, partition into stages, strategies within operators, "
    "pipelines of large models, orders of micro-batches",
    DeploymentProblem,
    DeploymentAnswer,
    PROBLEMS,
)
evaluate, bound = FAMILY.evaluate, FAMILY.bound
