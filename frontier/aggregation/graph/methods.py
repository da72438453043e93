"""Special methods for the problem ``graph``, and when ``exact`` asks them."""

from ddlopt.frontier.aggregation.graph.column_generation.trees import GraphTrees
from ddlopt.frontier.aggregation.graph.negotiation import GraphNegotiation
from ddlopt.models.aggregation.graph.instance import GraphInstance
from ddlopt.solvers.aggregation.graph.methods import FAMILY, after, search
from ddlopt.solvers.contracts import Method
from ddlopt.solvers.wrappers.warm_started import WarmStarted


def link(instance: GraphInstance, solver: str) -> Method | None:
    """Column generation over trees where it covers the instance, or a negotiation after the search; then the program.

    The integer program is asked if it is small.
    """
    trees, negotiation = GraphTrees(), GraphNegotiation()
    if trees.refuses(instance) is None:
        return after(trees, instance, solver)
    if negotiation.refuses(instance) is None:
        found = WarmStarted("exact", FAMILY, search(instance, solver), lambda _: negotiation)
        return after(found, instance, solver)
    return None
