"""The problem ``topology/collective``: what belongs to its room, as data."""

from ddlopt.models.problem import Problem, later
from ddlopt.models.topology.collective.evaluate import evaluate_collective
from ddlopt.models.topology.collective.instance import CollectiveInstance, CollectivePlan

PROBLEM = Problem(
    path="topology/collective",
    title="trees, rings or flows of one collective on given links",
    counts="accelerators",
    limited_by="bandwidth of links",
    columns={"problem": "problem", "n": "accelerators"},
    instance=CollectiveInstance,
    solution=CollectivePlan,
    evaluate=evaluate_collective,
    bound=later("ddlopt.models.topology.collective.bounds:collective_bound"),
    told_exactly=("bandwidth_bytes_per_s",),
)
