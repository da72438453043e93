"""The problem ``compression/timeline``: what belongs to its room, as data."""

from ddlopt.models.compression.timeline.evaluate import evaluate_timeline
from ddlopt.models.compression.timeline.instance import CompressionInstance, CompressionPlan
from ddlopt.models.problem import Problem, later

PROBLEM = Problem(
    path="compression/timeline",
    title="which gradients to compress, how, and when to send",
    counts="gradients",
    limited_by="the accelerator, the processor and the links, each one gradient at a time; a budget of error or time",
    instance=CompressionInstance,
    solution=CompressionPlan,
    evaluate=evaluate_timeline,
    bound=later("ddlopt.models.compression.timeline.bounds:timeline_bound"),
)
