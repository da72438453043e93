"""The methods of the family, and which one is taken where none is named."""

from ddlopt.models.gossip import GossipProblem
from ddlopt.solvers.wrappers.by_problem import entries_of_rooms, exact_of

FAMILY = "gossip"

ENTRIES = (
    exact_of(FAMILY),
    *entries_of_rooms(FAMILY),
)


def default_method(instance: GossipProblem) -> str:
    """``exact``, at any size."""
    return "exact"
