"""The methods of the family, and which one is taken where none is named."""

from ddlopt.models.gossip import GossipProblem
from ddlopt.solvers.by_problem import exact_of
from ddlopt.solvers.gossip import (
    circulant_methods,
    exchange_methods,
    matchings_methods,
    period_methods,
    weights_methods,
)

FAMILY = "gossip"

ENTRIES = (
    exact_of(FAMILY),
    *weights_methods.ENTRIES,
    *matchings_methods.ENTRIES,
    *period_methods.ENTRIES,
    *exchange_methods.ENTRIES,
    *circulant_methods.ENTRIES,
)


def default_method(instance: GossipProblem) -> str:
    """``exact``, at any size."""
    return "exact"
