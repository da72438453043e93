"""The problem ``gossip/matchings``: what belongs to its room, as data."""

from ddlopt.models.gossip.matchings.evaluate import evaluate_matchings
from ddlopt.models.gossip.matchings.instance import MatchingPlan, MatchingsInstance
from ddlopt.models.problem import Problem, later

PROBLEM = Problem(
    path="gossip/matchings",
    title="which matchings average, and how often",
    counts="nodes",
    limited_by="a budget of matchings a round",
    instance=MatchingsInstance,
    solution=MatchingPlan,
    evaluate=evaluate_matchings,
    bound=later("ddlopt.models.gossip.matchings.bounds:matchings_bound"),
)
