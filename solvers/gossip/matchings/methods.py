"""The methods for the problem ``matchings``."""

from functools import partial
from importlib import import_module

from ddlopt.models.gossip.matchings.instance import MatchingsInstance
from ddlopt.solvers.contracts import Entry, Method
from ddlopt.solvers.makers import Maker, heuristic

FAMILY = "gossip"

_heuristic = partial(heuristic, FAMILY)


def best(instance: MatchingsInstance, solver: str) -> Method:
    """Where one of given matchings is active at a time, the exact probabilities; otherwise the search over all."""
    if instance.activation == "single" and instance.matchings:
        exact: Method = import_module("ddlopt.solvers.gossip.matchings.exact").SingleMatching()
        return exact
    search: Method = import_module("ddlopt.solvers.gossip.matchings.search").MatchingsSearch()
    return search


def _entry(name: str, kind: str, summary: str, make: Maker) -> Entry:
    return Entry(name, FAMILY, kind, f"matchings: {summary}", make)


ENTRIES: tuple[Entry, ...] = (
    _entry(
        "single-matching",
        "exact",
        "one at a time: the best probabilities of few matchings",
        _heuristic("matchings.exact", "SingleMatching"),
    ),
    _entry(
        "matcha",
        "heuristic",
        "MATCHA: few matchings, most connected, one weight",
        _heuristic("matchings.exact", "Matcha"),
    ),
    _entry(
        "matcha-edges",
        "heuristic",
        "MATCHA's probabilities, the best weight of each edge",
        _heuristic("matchings.exact", "Matcha", per_edge=True),
    ),
    _entry(
        "matcha-semidefinite",
        "heuristic",
        "MATCHA through CVXPY",
        _heuristic("matchings.convex", "SemidefiniteMatcha"),
    ),
    _entry(
        "matcha-edges-semidefinite",
        "heuristic",
        "matcha-edges through CVXPY",
        _heuristic("matchings.convex", "SemidefiniteMatcha", per_edge=True),
    ),
    _entry(
        "matchings-search",
        "heuristic",
        "local search over matchings, probabilities and weights",
        _heuristic("matchings.search", "MatchingsSearch"),
    ),
    _entry(
        "vanilla",
        "heuristic",
        "every matching in every round, the best weight for all",
        _heuristic("matchings.rules", "Vanilla"),
    ),
    _entry(
        "equal-activation",
        "heuristic",
        "every matching equally often, the best weight for all",
        _heuristic("matchings.rules", "EqualActivation"),
    ),
)
