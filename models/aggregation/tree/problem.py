"""The problem ``aggregation/tree``: what belongs to its room, as data."""

from ddlopt.models.aggregation.tree.evaluate import evaluate_tree
from ddlopt.models.aggregation.tree.instance import AggregatingSwitches, TreeInstance
from ddlopt.models.problem import Problem, later

PROBLEM = Problem(
    path="aggregation/tree",
    title="which switches of a tree aggregate",
    counts="switches",
    limited_by="how many switches may aggregate, for how many jobs",
    instance=TreeInstance,
    solution=AggregatingSwitches,
    evaluate=evaluate_tree,
    bound=later("ddlopt.models.aggregation.tree.bounds:tree_bound"),
)
