"""Gradient compression: sufficient factors (TAG), timelines (Espresso), levels (L-GreCo), orders (ByteScheduler)."""

from ddlopt.models.compression.family import CompressionAnswer, CompressionProblem
from ddlopt.models.compression.forward.instance import ForwardInstance, ForwardPlan
from ddlopt.models.compression.levels.instance import (
    ExponentialCurve,
    GradedGradient,
    LevelInstance,
    LevelPlan,
    PointCurve,
)
from ddlopt.models.compression.sfb.instance import Operator, SfbInstance, SfbSelection, Tensor
from ddlopt.models.compression.timeline.instance import (
    Cluster,
    CompressionInstance,
    CompressionPlan,
    Gradient,
    Option,
    Stage,
)
from ddlopt.models.problem import Family, records

__all__ = [
    "FAMILY",
    "PROBLEMS",
    "Cluster",
    "CompressionAnswer",
    "CompressionInstance",
    "CompressionPlan",
    "CompressionProblem",
    "ExponentialCurve",
    "ForwardInstance",
    "ForwardPlan",
    "GradedGradient",
    "Gradient",
    "LevelInstance",
    "LevelPlan",
    "Operator",
    "Option",
    "PointCurve",
    "SfbInstance",
    "SfbSelection",
    "Stage",
    "Tensor",
    "bound",
    "evaluate",
]

PROBLEMS = records(
    "ddlopt.models.compression.sfb.problem",
    "ddlopt.models.compression.timeline.problem",
    "ddlopt.models.compression.levels.problem",
    "ddlopt.models.compression.forward.problem",
)
FAMILY = Family.of_several(
    "compression",
    "which gradients to compress, how, and which to send as sufficient factors",
    CompressionProblem,
    CompressionAnswer,
    PROBLEMS,
)
evaluate, bound = FAMILY.evaluate, FAMILY.bound
