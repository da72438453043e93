"""The problem ``topology``: what belongs to its room, as data."""

from ddlopt.models.problem import Problem, later
from ddlopt.models.topology.evaluate import evaluate
from ddlopt.models.topology.instance import TopologyInstance
from ddlopt.models.topology.solution import TopologyDesign

PROBLEM = Problem(
    path="topology",
    title="links, rings and routes of one training job",
    counts="servers",
    limited_by="ports of servers, bandwidth of links",
    columns={"n": "servers", "d": "degree"},
    instance=TopologyInstance,
    solution=TopologyDesign,
    evaluate=evaluate,
    bound=later("ddlopt.models.topology.bounds:lower_bound"),
)
