"""The methods of the family, and which one is taken where none is named."""

from ddlopt.models.gossip import GossipProblem
from ddlopt.solvers.wrappers.by_problem import entries_of_rooms, exact_of

FAMILY = "gossip"

ENTRIES = (
    exact_of(FAMILY),
    *entries_of_rooms(FAMILY),
)


def default_method(instance: GossipProblem) -> str:
    """``exact``, at any size; a search for several matchings at a time where no package has an exact method for them."""
    return "exact" if exact_of(FAMILY).make("highs").refuses(instance) is None else "matchings-search"
