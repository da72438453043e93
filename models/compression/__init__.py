"""Gradient compression: sufficient factors (TAG), compressors on a timeline (Espresso), levels (L-GreCo)."""

from ddlopt.models.compression.evaluate import evaluate
from ddlopt.models.compression.family import CompressionAnswer, CompressionProblem
from ddlopt.models.compression.levels.instance import (
    ExponentialCurve,
    GradedGradient,
    LevelInstance,
    LevelPlan,
    PointCurve,
)
from ddlopt.models.compression.sfb.instance import Operator, SfbInstance, SfbSelection, Tensor
from ddlopt.models.compression.timeline.instance import Cluster, CompressionInstance, CompressionPlan, Gradient, Option

__all__ = [
    "Cluster",
    "CompressionAnswer",
    "CompressionInstance",
    "CompressionPlan",
    "CompressionProblem",
    "ExponentialCurve",
    "GradedGradient",
    "Gradient",
    "LevelInstance",
    "LevelPlan",
    "Operator",
    "Option",
    "PointCurve",
    "SfbInstance",
    "SfbSelection",
    "Tensor",
    "evaluate",
]
