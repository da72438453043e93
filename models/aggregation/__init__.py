"""What switches aggregate, where in the network, with how much memory, and in which tables of numbers."""

from ddlopt.models.aggregation.evaluate import evaluate
from ddlopt.models.aggregation.graph import AggregationTrees, GraphInstance, GraphJob, GraphLink, GraphNode
from ddlopt.models.aggregation.problem import AggregationAnswer, AggregationProblem
from ddlopt.models.aggregation.registers import Placement, RegisterInstance
from ddlopt.models.aggregation.tree import AggregatingSwitches, TreeInstance, TreeJob

__all__ = [
    "AggregatingSwitches",
    "AggregationAnswer",
    "AggregationProblem",
    "AggregationTrees",
    "GraphInstance",
    "GraphJob",
    "GraphLink",
    "GraphNode",
    "Placement",
    "RegisterInstance",
    "TreeInstance",
    "TreeJob",
    "evaluate",
]
