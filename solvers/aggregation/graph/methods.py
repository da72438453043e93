"""The methods for the problem ``graph``."""

from functools import partial
from importlib import import_module

from ddlopt.models.aggregation.graph.instance import GraphInstance
from ddlopt.solvers.contracts import Entry, Method
from ddlopt.solvers.makers import Maker, formulation, heuristic
from ddlopt.solvers.opened import Opened

FAMILY = "aggregation"

_OPENING, _ALONE = 2000, 20_000
"""Rounds of the search before the integer program, and where the search has to find the answer."""
_MOST_FLOWS = 100_000
"""Beyond which a solver takes minutes for the first linear program."""

_formulation = partial(formulation, FAMILY)


def _entry(name: str, kind: str, summary: str, make: Maker) -> Entry:
    return Entry(name, FAMILY, kind, f"graph: {summary}", make)


def _graph(solver: str) -> Method:
    return _formulation("graph", "graph.formulations.graph_aggregation", "GraphAggregation")(solver)


def _rates(solver: str) -> Method:
    return _formulation("rate-levels", "graph.formulations.rate_levels", "RateLevels")(solver)


def _rates_apart(solver: str) -> Method:
    return _formulation("rate-messages", "graph.formulations.rate_messages", "RateMessages")(solver)


def milp(instance: GraphInstance, solver: str) -> Method:
    """The integer program for the goal."""
    if instance.goal != "rates":
        return _graph(solver)
    return _rates(solver) if instance.merging else _rates_apart(solver)


def best(instance: GraphInstance, solver: str) -> Method:
    """A search, or column generation over trees where it covers the instance; then the integer program if it is small.

    For rates without merging the search is long, as it is fast and the program tells more by its bound.
    """
    trees = import_module("ddlopt.solvers.aggregation.graph.column_generation.trees").GraphTrees()
    model = milp(instance, solver)
    apart = instance.goal == "rates" and not instance.merging
    alone = model.refuses(instance) is not None or _flows(instance) * (1 + apart) > _MOST_FLOWS
    rounds = _ALONE if alone or apart else _OPENING
    opening: Method = _searches(instance, rounds) if trees.refuses(instance) else trees
    if alone:
        return opening
    return Opened("exact", FAMILY, opening, lambda _: model)


def _searches(instance: GraphInstance, rounds: int) -> Method:
    search: Method = import_module("ddlopt.solvers.aggregation.graph.search").GraphSearch(rounds=rounds)
    negotiation: Method = import_module("ddlopt.solvers.aggregation.graph.negotiation").GraphNegotiation()
    if negotiation.refuses(instance) is not None:
        return search
    return Opened("exact", FAMILY, search, lambda _: negotiation)


def _flows(instance: GraphInstance) -> int:
    """Columns of the integer program, about."""
    return 4 * len(instance.links) * sum(len(job.workers) for job in instance.jobs)


def strategy(instance: GraphInstance, name: str) -> Method:
    """Which switches aggregate by a rule: ``none``, ``level``, ``top`` or ``max``."""
    method: Method = import_module("ddlopt.solvers.aggregation.graph.search_methods").strategy(instance, name)
    return method


ENTRIES = (
    _entry("graph", "exact", "utilization or congestion as an integer program with raw messages and sums", _graph),
    _entry(
        "graph-plain",
        "exact",
        "utilization or congestion as an integer program of one layer",
        _formulation("graph-plain", "graph.formulations.single_layer_flow", "PlainGraph"),
    ),
    _entry(
        "graph-trees",
        "exact",
        "utilization or congestion by column generation over trees of jobs",
        heuristic(FAMILY, "graph.column_generation.trees", "GraphTrees"),
    ),
    _entry("rate-levels", "exact", "rates of merging jobs as an integer program over levels", _rates),
    _entry(
        "rate-levels-plain",
        "exact",
        "the same without the flows that make it strong",
        _formulation("rate-levels-plain", "graph.formulations.rate_levels", "RateLevels", flows=False),
    ),
    _entry(
        "rate-messages",
        "exact",
        "rates of jobs that need not merge as an integer program over messages and levels",
        _rates_apart,
    ),
    _entry(
        "rate-messages-plain",
        "exact",
        "the same without messages times rates",
        _formulation("rate-messages-plain", "graph.formulations.rate_messages", "RateMessages", flows=False),
    ),
)
