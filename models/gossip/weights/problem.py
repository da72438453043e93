"""The problem ``gossip/weights``: what belongs to its room, as data."""

from ddlopt.models.gossip.weights.evaluate import evaluate_weights
from ddlopt.models.gossip.weights.instance import GossipWeights, WeightsInstance
from ddlopt.models.problem import Problem, later

PROBLEM = Problem(
    path="gossip/weights",
    title="with which weights neighbours average",
    counts="nodes",
    limited_by="the edges there are, and a budget of rates where there is one",
    instance=WeightsInstance,
    solution=GossipWeights,
    evaluate=evaluate_weights,
    bound=later("ddlopt.models.gossip.weights.bounds:weights_bound"),
)
