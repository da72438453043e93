"""The problem ``aggregation/graph``: what belongs to its room, as data."""

from ddlopt.models.aggregation.graph.evaluate import evaluate_graph
from ddlopt.models.aggregation.graph.instance import AggregationTrees, GraphInstance
from ddlopt.models.problem import Problem, later

PROBLEM = Problem(
    path="aggregation/graph",
    title="where jobs are aggregated, and by which routes",
    counts="nodes",
    limited_by="bandwidth of links, aggregators of switches",
    instance=GraphInstance,
    solution=AggregationTrees,
    evaluate=evaluate_graph,
    bound=later("ddlopt.models.aggregation.graph.bounds:graph_bound"),
)
