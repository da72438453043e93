"""The methods of the family, and which one is taken where none is named."""

from ddlopt.models.gossip import GossipProblem
from ddlopt.solvers.by_problem import exact_of
from ddlopt.solvers.gossip.circulant import methods as circulant_methods
from ddlopt.solvers.gossip.exchange import methods as exchange_methods
from ddlopt.solvers.gossip.matchings import methods as matchings_methods
from ddlopt.solvers.gossip.period import methods as period_methods
from ddlopt.solvers.gossip.weights import methods as weights_methods

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
