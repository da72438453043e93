"""The methods for the problem ``graph``."""

from importlib import import_module

from ddlopt.models.aggregation.graph.instance import GraphInstance
from ddlopt.solvers import chain
from ddlopt.solvers.contracts import Method
from ddlopt.solvers.makers import entries, formulation
from ddlopt.solvers.wrappers.warm_started import WarmStarted

FAMILY, ROOM = "aggregation", "aggregation/graph"

_OPENING, _ALONE = 2000, 20_000
"""Rounds of the search before the integer program, and where the search has to find the answer."""
_MOST_FLOWS = 100_000
"""Beyond which a solver takes minutes for the first linear program."""


def _graph(solver: str) -> Method:
    return formulation(ROOM, "graph", "formulations.graph_aggregation:GraphAggregation")(solver)


def _rates(solver: str) -> Method:
    return formulation(ROOM, "rate-levels", "formulations.rate_levels:RateLevels")(solver)


def milp(instance: GraphInstance, solver: str) -> Method:
    """The integer program for the goal, which for rates asks that messages merge."""
    return _rates(solver) if instance.goal == "rates" else _graph(solver)


def best(instance: GraphInstance, solver: str) -> Method:
    """What links of the chain say; else a search, then the integer program if it is small."""
    return chain.exact(ROOM, instance, solver, _own)


def _own(instance: GraphInstance, solver: str) -> Method:
    return after(search(instance, solver), instance, solver)


def search(instance: GraphInstance, solver: str) -> Method:
    """Our search, with more rounds where it has to find the answer."""
    rounds = _ALONE if is_alone(instance, solver) else _OPENING
    found: Method = import_module("ddlopt.solvers.aggregation.graph.search").GraphSearch(rounds=rounds)
    return found


def after(opening: Method, instance: GraphInstance, solver: str) -> Method:
    """The opening, then the integer program if it is small."""
    if is_alone(instance, solver):
        return opening
    return WarmStarted("exact", FAMILY, opening, lambda asked: milp(asked, solver))


def is_alone(instance: GraphInstance, solver: str) -> bool:
    """Whether there is no integer program, or it is too large."""
    return milp(instance, solver).refuses(instance) is not None or is_large(instance)


def is_large(instance: GraphInstance, copies: int = 1) -> bool:
    """Whether an integer program with a number of copies of all flows is too large."""
    flows = 4 * len(instance.links) * sum(len(job.workers) for job in instance.jobs)
    return flows * copies > _MOST_FLOWS


def strategy(instance: GraphInstance, name: str) -> Method:
    """Which switches aggregate by a rule: ``none``, ``level``, ``top`` or ``max``."""
    method: Method = import_module("ddlopt.solvers.aggregation.graph.strategies").ShortestRoutes(name)
    return method


ENTRIES = entries(
    ROOM,
    ("graph", "exact", "utilization or congestion as an integer program with raw messages and sums", _graph),
    ("rate-levels", "exact", "rates of merging jobs as an integer program over levels", _rates),
    ("first-switch", "heuristic", "shortest routes; the first switch with a free slot aggregates", "strategies:ShortestRoutes", {"rule": "first-switch"}),
    ("takahashi-matsuyama", "heuristic", "Steiner trees, the nearest worker first", "search:TakahashiMatsuyama"),
    ("graph-search", "heuristic", "our search; jobs are taken out and sent anew at prices of what is busy", "search:GraphSearch"),
    ("ring", "reference", "ring all-reduce among the workers on the same network", "ring:Ring"),
)  # fmt: skip
