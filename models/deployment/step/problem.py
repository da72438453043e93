"""The problem ``deployment/step``: what belongs to its room, as data."""

from ddlopt.models.deployment.step.evaluate import evaluate_step
from ddlopt.models.deployment.step.instance import StepInstance, StepPlan
from ddlopt.models.problem import Problem, later

PROBLEM = Problem(
    path="deployment/step",
    title="degrees, micro-batches and sharding of a large model's training step",
    counts="blocks",
    limited_by="memory of devices, how many there are, bandwidth of the network's tiers",
    instance=StepInstance,
    solution=StepPlan,
    evaluate=evaluate_step,
    bound=later("ddlopt.models.deployment.step.bounds:step_bound"),
)
