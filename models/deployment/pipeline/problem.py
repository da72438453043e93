"""The problem ``deployment/pipeline``: what belongs to its room, as data."""

from ddlopt.models.deployment.pipeline.evaluate import evaluate_pipeline
from ddlopt.models.deployment.pipeline.instance import PipelineInstance, PipelinePlan
from ddlopt.models.problem import Problem, later

PROBLEM = Problem(
    path="deployment/pipeline",
    title="stages, degrees and options of a large model's training",
    counts="layers",
    limited_by="memory of devices, how many there are, bandwidth between them",
    instance=PipelineInstance,
    solution=PipelinePlan,
    evaluate=evaluate_pipeline,
    bound=later("ddlopt.models.deployment.pipeline.bounds:pipeline_bound"),
)
