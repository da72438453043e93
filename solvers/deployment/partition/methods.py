"""The methods for the problem ``partition``."""

from importlib import import_module

from ddlopt.models.deployment.partition.instance import PartitionInstance
from ddlopt.solvers.contracts import Method
from ddlopt.solvers.makers import entries

ROOM = "deployment/partition"


def _max_load(solver: str) -> Method:
    method: Method = import_module("ddlopt.solvers.deployment.partition.exact").MaxLoad(solver)
    return method


def _latency(solver: str) -> Method:
    method: Method = import_module("ddlopt.solvers.deployment.partition.exact").Latency(solver)
    return method


def best(instance: PartitionInstance, solver: str) -> Method:
    """What proves soonest: the dynamic program for few ideals, what links of the chain say, else a model."""
    module = import_module("ddlopt.solvers.deployment.partition.exact")
    method: Method = module.Latency(solver) if instance.goal == "latency" else module.throughput(instance, solver)
    return method


ENTRIES = entries(
    ROOM,
    ("ideals", "exact", "contiguous, by dynamic programming over ideals", "dynamic_program:IdealProgram"),
    ("max-load", "exact", "largest load as an integer program, after a search", _max_load),
    ("max-load-plain", "exact", "the published program by nodes", "models:formulations.tarnawski_max_load:Tarnawski2020MaxLoad"),
    ("latency", "exact", "latency by branch and bound, or by sets that run as one after a search", _latency),
    ("latency-plain", "exact", "the published latency program, with big-M rows", "models:formulations.tarnawski_latency:Tarnawski2020Latency"),
    ("linear", "heuristic", "the best cuts of topological orders", "linear:Linear"),
    ("pipedream", "heuristic", "PipeDream's line of components, cut in the best way", "linear:PipeDream"),
    ("local-search", "heuristic", "the paper's local search from random starts", "search:LocalSearch"),
    ("graph-cut", "heuristic", "a balanced cut of the graph by METIS", "search:GraphCut"),
    ("heaviest-first", "heuristic", "the heaviest blocks first, where loads grow least", "search:HeaviestFirst"),
    ("partition-search", "heuristic", "our moves, swaps and kicks", "search:PartitionSearch"),
    ("latency-greedy", "heuristic", "the paper's greedy, accelerators filled in topological order", "latency_search:LatencyGreedy"),
    ("latency-search", "heuristic", "our search over intervals of topological orders", "latency_search:LatencySearch"),
)  # fmt: skip
