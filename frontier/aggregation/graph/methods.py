"""A special exact method for the problem ``graph``, and when ``exact`` asks it."""

from ddlopt.frontier.aggregation.graph.column_generation.trees import GraphTrees
from ddlopt.models.aggregation.graph.instance import GraphInstance
from ddlopt.solvers.aggregation.graph.methods import after
from ddlopt.solvers.contracts import Method


def link(instance: GraphInstance, solver: str) -> Method | None:
    """Column generation over trees where it covers the instance; then the integer program if it is small."""
    trees = GraphTrees()
    return after(trees, instance, solver) if trees.refuses(instance) is None else None
