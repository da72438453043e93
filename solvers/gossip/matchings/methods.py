"""The methods for the problem ``matchings``."""

from importlib import import_module

from ddlopt.models.gossip.matchings.instance import MatchingsInstance
from ddlopt.solvers import chain
from ddlopt.solvers.contracts import Method
from ddlopt.solvers.makers import entries

ROOM = "gossip/matchings"


def best(instance: MatchingsInstance, solver: str) -> Method:
    """What links of the chain say; else the exact probabilities where one of given matchings is active at a time."""
    return chain.exact(ROOM, instance, solver, _own)


def _own(instance: MatchingsInstance, _: str) -> Method:
    if instance.matchings:
        exact: Method = import_module("ddlopt.solvers.gossip.matchings.exact").SingleMatching()
        return exact
    search: Method = import_module("ddlopt.solvers.gossip.matchings.search").MatchingsSearch()
    return search


ENTRIES = entries(
    ROOM,
    ("single-matching", "exact", "one at a time: the best probabilities of few matchings", "exact:SingleMatching"),
    ("matcha", "heuristic", "MATCHA: few matchings, most connected, one weight or the best of each edge", "exact:Matcha"),
    ("matchings-search", "heuristic", "local search over matchings, probabilities and weights", "search:MatchingsSearch"),
    ("vanilla", "heuristic", "every matching in every round, the best weight for all", "rules:Vanilla"),
    ("equal-activation", "heuristic", "every matching equally often, the best weight for all", "rules:EqualActivation"),
)  # fmt: skip
