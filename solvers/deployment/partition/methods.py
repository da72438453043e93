"""The methods for the problem ``partition``."""

from collections.abc import Callable
from functools import partial
from importlib import import_module

from ddlopt.models.deployment.partition.instance import PartitionInstance
from ddlopt.solvers.contracts import Entry, Method
from ddlopt.solvers.makers import formulation, heuristic

FAMILY = "deployment"

_formulation = partial(formulation, FAMILY)
_heuristic = partial(heuristic, FAMILY)


def _entry(name: str, kind: str, summary: str, make: Callable[[str], Method]) -> Entry:
    return Entry(name, FAMILY, kind, summary, make)


def _max_load(solver: str) -> Method:
    method: Method = import_module("ddlopt.solvers.deployment.partition.exact").MaxLoad(solver)
    return method


def _latency(solver: str) -> Method:
    method: Method = import_module("ddlopt.solvers.deployment.partition.exact").latency(solver)
    return method


def best(instance: PartitionInstance, solver: str) -> Method:
    """What proves soonest: the dynamic program for few ideals, else a model opened by a heuristic."""
    module = import_module("ddlopt.solvers.deployment.partition.exact")
    method: Method = module.latency(solver) if instance.goal == "latency" else module.throughput(instance, solver)
    return method


ENTRIES: tuple[Entry, ...] = (
    _entry(
        "ideals",
        "exact",
        "partition: contiguous, by dynamic programming over ideals",
        _heuristic("partition.dynamic_program", "IdealProgram"),
    ),
    _entry("max-load", "exact", "partition: largest load as an integer program, after a search", _max_load),
    _entry(
        "max-load-plain",
        "exact",
        "partition: the published program by nodes",
        _formulation("max-load-plain", "partition.formulations.tarnawski_max_load", "PlainMaxLoad"),
    ),
    _entry("latency", "exact", "partition: latency by sets that run as one, after a search", _latency),
    _entry(
        "latency-plain",
        "exact",
        "partition: the published latency program, with big-M rows",
        _formulation("latency-plain", "partition.formulations.tarnawski_latency", "PlainLatency"),
    ),
    _entry(
        "linear",
        "heuristic",
        "partition: the best cuts of topological orders",
        _heuristic("partition.linear", "Linear"),
    ),
    _entry(
        "pipedream",
        "heuristic",
        "partition: PipeDream's line of components, cut in the best way",
        _heuristic("partition.linear", "PipeDream"),
    ),
    _entry(
        "local-search",
        "heuristic",
        "partition: the paper's local search from random starts",
        _heuristic("partition.search", "LocalSearch"),
    ),
    _entry(
        "graph-cut",
        "heuristic",
        "partition: a balanced cut of the graph by METIS",
        _heuristic("partition.search", "GraphCut"),
    ),
    _entry(
        "heaviest-first",
        "heuristic",
        "partition: the heaviest blocks first, where loads grow least",
        _heuristic("partition.search", "HeaviestFirst"),
    ),
    _entry(
        "partition-search",
        "heuristic",
        "partition: our moves, swaps and kicks",
        _heuristic("partition.search", "PartitionSearch"),
    ),
    _entry(
        "latency-greedy",
        "heuristic",
        "partition: the paper's greedy, accelerators filled in topological order",
        _heuristic("partition.latency_search", "LatencyGreedy"),
    ),
    _entry(
        "latency-search",
        "heuristic",
        "partition: our search over intervals of topological orders",
        _heuristic("partition.latency_search", "LatencySearch"),
    ),
)
