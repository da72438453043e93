"""The methods of the family, and which one is taken where none is named."""

from functools import partial

from ddlopt.models.aggregation import AggregationProblem
from ddlopt.solvers.contracts import Entry
from ddlopt.solvers.wrappers.by_problem import ByProblem, entries_of_rooms, exact_of

FAMILY = "aggregation"

_STRATEGIES = {
    "none": "tree, graph: no switch aggregates; all messages travel to the server",
    "level": "tree, graph: switches of one level aggregate",
    "top": "tree, graph: the switches nearest to the server aggregate",
    "max": "tree, graph: the switches that save the most messages aggregate",
}


def _strategy(name: str, _: str) -> ByProblem:
    return ByProblem(name, FAMILY, "strategy", name)


ENTRIES = (
    exact_of(FAMILY),
    Entry(
        "milp",
        FAMILY,
        "exact",
        "the integer program of the problem",
        lambda solver: ByProblem("milp", FAMILY, "milp", solver),
    ),
    *(Entry(name, FAMILY, "heuristic", summary, partial(_strategy, name)) for name, summary in _STRATEGIES.items()),
    *entries_of_rooms(FAMILY),
)


def default_method(instance: AggregationProblem) -> str:
    """``exact``, at any size."""
    return "exact"
