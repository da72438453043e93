"""The problem ``compression/forward``: what belongs to its room, as data."""

from ddlopt.models.compression.forward.evaluate import evaluate_forward
from ddlopt.models.compression.forward.instance import ForwardInstance, ForwardPlan
from ddlopt.models.problem import Problem, later

PROBLEM = Problem(
    path="compression/forward",
    title="which gradients to compress, and in which order and parts to send them to the next forward pass",
    counts="gradients",
    limited_by="the accelerator and the wire, each one gradient at a time; what the next forward pass needs first",
    instance=ForwardInstance,
    solution=ForwardPlan,
    evaluate=evaluate_forward,
    bound=later("ddlopt.models.compression.forward.bounds:forward_bound"),
)
