"""The methods of the family, and which one is taken where none is named."""

from functools import partial
from importlib import import_module
from importlib.util import find_spec

from ddlopt.models.aggregation import AggregationProblem
from ddlopt.solvers.by_problem import ByProblem
from ddlopt.solvers.contracts import Entry

FAMILY = "aggregation"

_PARTS = ("hot", "registers", "tree", "graph", "graph_search", "slots", "table")
"""Modules ``<part>_methods`` in this folder, each with its ``ENTRIES``."""

_STRATEGIES = {
    "none": "tree, graph: no switch aggregates; all messages travel to the server",
    "level": "tree, graph: switches of one level aggregate",
    "top": "tree, graph: the switches nearest to the server aggregate",
    "max": "tree, graph: the switches that save the most messages aggregate",
}


def _strategy(name: str, _: str) -> ByProblem:
    return ByProblem(name, FAMILY, "strategy", name)


ENTRIES = (
    Entry(
        "exact",
        FAMILY,
        "exact",
        "the exact method that fits the problem",
        lambda solver: ByProblem("exact", FAMILY, "best", solver),
    ),
    Entry(
        "milp",
        FAMILY,
        "exact",
        "the integer program of the problem",
        lambda solver: ByProblem("milp", FAMILY, "milp", solver),
    ),
    *(Entry(name, FAMILY, "heuristic", summary, partial(_strategy, name)) for name, summary in _STRATEGIES.items()),
    *(
        entry
        for part in _PARTS
        if find_spec(f"ddlopt.solvers.aggregation.{part}_methods")
        for entry in import_module(f"ddlopt.solvers.aggregation.{part}_methods").ENTRIES
    ),
)


def default_method(instance: AggregationProblem) -> str:
    """``exact``, at any size."""
    return "exact"
