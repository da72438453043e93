"""Special methods for the problem ``graph``, and when ``exact`` asks them."""

from ddlopt.frontier.aggregation.graph.column_generation.trees import GraphTrees
from ddlopt.frontier.aggregation.graph.negotiation import GraphNegotiation
from ddlopt.models.aggregation.graph.instance import GraphInstance
from ddlopt.solvers.aggregation.graph.methods import FAMILY, ROOM, after, is_large, search
from ddlopt.solvers.contracts import Method
from ddlopt.solvers.makers import formulation
from ddlopt.solvers.wrappers.warm_started import WarmStarted


def link(instance: GraphInstance, solver: str) -> Method | None:
    """What covers the instance: column generation over trees, a negotiation after the search, or a program for rates.

    The integer program comes last if it is small. For rates without merging the search is long, as it is fast and the
    program tells more by its bound.
    """
    trees, negotiation = GraphTrees(), GraphNegotiation()
    if trees.refuses(instance) is None:
        return after(trees, instance, solver)
    if negotiation.refuses(instance) is None:
        found = WarmStarted("exact", FAMILY, search(instance, solver), lambda _: negotiation)
        return after(found, instance, solver)
    program = formulation(ROOM, "rate-messages", "formulations.rate_messages:RateMessages", "frontier")(solver)
    if program.refuses(instance) is None and not is_large(instance, copies=2):
        return WarmStarted("exact", FAMILY, search(instance, solver), lambda _: program)
    return None
