"""The problem ``compression/sfb``: what belongs to its room, as data."""

from ddlopt.models.compression.sfb.evaluate import evaluate_sfb
from ddlopt.models.compression.sfb.instance import SfbInstance, SfbSelection
from ddlopt.models.problem import Problem, later

PROBLEM = Problem(
    path="compression/sfb",
    title="which gradients are sent as sufficient factors",
    counts="operators",
    limited_by="bandwidth against computing again; budgets of memory and computation",
    instance=SfbInstance,
    solution=SfbSelection,
    evaluate=evaluate_sfb,
    bound=later("ddlopt.models.compression.sfb.bounds:sfb_bound"),
)
