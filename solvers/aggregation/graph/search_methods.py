"""Heuristics for the problem ``graph``."""

from functools import partial
from importlib import import_module

from ddlopt.models.aggregation.graph.instance import GraphInstance
from ddlopt.solvers.contracts import Entry, Method
from ddlopt.solvers.makers import heuristic

FAMILY = "aggregation"

_heuristic = partial(heuristic, FAMILY)


def strategy(instance: GraphInstance, name: str) -> Method:
    """The simple rules ``none``, ``level``, ``top`` and ``max`` on shortest routes."""
    method: Method = import_module("ddlopt.solvers.aggregation.graph.strategies").ShortestRoutes(name)
    return method


ENTRIES: tuple[Entry, ...] = (
    Entry(
        "shortest-paths",
        FAMILY,
        "heuristic",
        "graph: a parameter server without aggregation, on the least loaded of shortest routes",
        _heuristic("graph.strategies", "ShortestRoutes", called="shortest-paths"),
    ),
    Entry(
        "first-switch",
        FAMILY,
        "heuristic",
        "graph: shortest routes; the first switch with a free slot aggregates",
        _heuristic("graph.strategies", "ShortestRoutes", rule="first-switch"),
    ),
    Entry(
        "takahashi-matsuyama",
        FAMILY,
        "heuristic",
        "graph: Steiner trees, the nearest worker first",
        _heuristic("graph.greedy", "TakahashiMatsuyama"),
    ),
    Entry(
        "water-filling",
        FAMILY,
        "heuristic",
        "graph: goal rates; the widest tree beside the others' max-min rates",
        _heuristic("graph.greedy", "WaterFilling"),
    ),
    Entry(
        "lp-rounding",
        FAMILY,
        "heuristic",
        "graph: random routes in the shares of a linear relaxation, whose bound it certifies",
        _heuristic("graph.rounding", "RelaxedRounding"),
    ),
    Entry(
        "graph-search",
        FAMILY,
        "heuristic",
        "graph: our search; jobs are taken out and sent anew at prices of what is busy",
        _heuristic("graph.search", "GraphSearch"),
    ),
    Entry(
        "graph-negotiation",
        FAMILY,
        "heuristic",
        "graph: goal congestion; ours, jobs negotiate for links and aggregators at prices that rise",
        _heuristic("graph.negotiation", "GraphNegotiation"),
    ),
    Entry(
        "ring",
        FAMILY,
        "reference",
        "graph: ring all-reduce among the workers on the same network",
        _heuristic("graph.ring", "Ring"),
    ),
)
