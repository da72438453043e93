"""The methods of the family, and which one is taken where none is named."""

from importlib import import_module
from math import comb

from ddlopt.models.topology import CollectiveInstance, TopologyInstance, TopologyProblem
from ddlopt.models.topology.symmetry.server_symmetry import interchangeable
from ddlopt.solvers.backends import backend
from ddlopt.solvers.contracts import Method
from ddlopt.solvers.makers import entries, formulation, heuristic
from ddlopt.solvers.topology.collective import methods as collective
from ddlopt.solvers.wrappers.by_problem import exact_of
from ddlopt.solvers.wrappers.warm_started import WarmStarted

FAMILY = ROOM = "topology"


def best(instance: TopologyInstance, solver: str) -> Method:
    """What proves most, from link-exchange's design: all rings of groups of at most 7 servers, else generators' rings."""
    short = import_module("ddlopt.solvers.topology.link_exchange.link_exchange").LinkExchange(_SHORT)
    return WarmStarted("exact", FAMILY, short, lambda asked: _after_short(asked, solver))


def _after_short(instance: TopologyInstance, solver: str) -> Method:
    """What proves most; before that a search of full length, unless servers are few."""
    model = _model_for(instance, solver)
    if instance.servers <= _ALIKE_SERVERS:
        return model
    return WarmStarted("exact", FAMILY, _link_exchange(solver), lambda _: model)


def _model_for(instance: TopologyInstance, solver: str) -> Method:
    """The exact method that leaves the least out, and proves the most."""
    if instance.allreduce_groups and instance.servers <= _REDUCING_SERVERS and instance.host_forwarding:
        return _branch_and_bound(solver)
    if _hop_enumeration(solver).refuses(instance) is None:
        return _hop_enumeration(solver)
    if not instance.allreduce_groups:
        return (_branch_and_bound if _few_neighbours(instance) else _min_congestion)(solver)
    every_ring = _all_rings(solver)
    return _rings_and_routes(solver) if every_ring.refuses(instance) else every_ring


def _metric_cuts(solver: str) -> Method:
    made: Method = import_module("ddlopt.solvers.topology.metric.metric_cuts").MetricCuts(backend=backend(solver))
    return made


def _circulant(solver: str) -> Method:
    from ddlopt.models.topology.formulations.circulant import CirculantDesign
    from ddlopt.solvers.topology.circulant import Circulant

    return Circulant("circulant", FAMILY, CirculantDesign(), backend(solver))


def _few_neighbours(instance: TopologyInstance) -> bool:
    """Whether the branch and bound ends, in seconds or minutes: few servers with few ports, or more that are alike."""
    n, d = instance.servers, instance.degree
    alike = n <= _ALIKE_SERVERS and any(len(twins) == n for twins in interchangeable(instance))
    return alike or (n <= _BRANCHED_SERVERS and comb(n + d - 2, d) <= _BRANCHED_SETS)


_min_congestion = formulation(ROOM, "min-congestion", "formulations.min_congestion:MinCongestion")
_rings_and_routes = formulation(ROOM, "rings-and-routes", "formulations.rings_and_routes:RingsAndRoutes")
_all_rings = formulation(
    ROOM, "rings-and-routes:rings=all", "formulations.rings_and_routes:RingsAndRoutes", rings="all"
)
_branch_and_bound = heuristic(ROOM, "branch_and_bound.branch_and_bound:BranchAndBound")
_hop_enumeration = heuristic(ROOM, "hop_enumeration:HopEnumeration")
_link_exchange = heuristic(ROOM, "link_exchange.link_exchange:LinkExchange")


_OF_DESIGN = entries(
    ROOM,
    ("min-congestion", "exact", "any links and routes, traffic without all-reduce", "models:formulations.min_congestion:MinCongestion"),
    ("rings-and-routes", "exact", "any links and routes, rings from generators; or all rings of groups of at most 7 servers", "models:formulations.rings_and_routes:RingsAndRoutes"),
    ("branch-and-bound", "exact", "any links, routes and rings, by refuting neighbours", "branch_and_bound.branch_and_bound:BranchAndBound"),
    ("hop-enumeration", "exact", "all-to-all, also beside all-reduces of all servers, by listing links with few hops", "hop_enumeration:HopEnumeration"),
    ("circulant", "exact", "the best circulant for traffic that looks alike everywhere: by enumeration, or the model where there are too many", _circulant),
    ("circulant-enumeration", "exact", "the same by generator sets up to automorphism only, up to 128 servers", "circulant_enumeration:CirculantEnumeration"),
    ("metric-cuts", "exact", "min-congestion with metric inequalities at its root", _metric_cuts),
    ("topology-finder", "heuristic", "TopoOpt's TopologyFinder, as in the paper or as in the released code", "topoopt.topology_finder:TopologyFinder"),
    ("concave-matching", "heuristic", "TopologyFinder with an exact b-matching", "topoopt.concave_matching:ConcaveMatchingFinder"),
    ("link-exchange", "heuristic", "our local search on links and rings", "link_exchange.link_exchange:LinkExchange"),
    ("symmetric-rings", "heuristic", "Cayley graphs with all translates of rings and routes, for jobs that look the same from every server", "symmetric_rings.symmetric_rings:SymmetricRings"),
    ("ocs-greedy", "heuristic", "the greedy of reconfigurable circuit switches", "ocs_greedy:OcsGreedy"),
    ("expander", "heuristic", "a random regular graph", "expander:Expander"),
    ("ideal-switch", "reference", "a non-blocking switch of bandwidth d·B", "references:IdealSwitch"),
    ("fat-tree", "reference", "a fat-tree of similar cost", "references:FatTree"),
)  # fmt: skip
ENTRIES = (exact_of(FAMILY), *_OF_DESIGN, *collective.ENTRIES)

_SHORT = 0.3
"""Effort of the first search, which ends by itself within a few seconds."""
_BRANCHED_SERVERS, _BRANCHED_SETS, _ALIKE_SERVERS = 8, 100, 11
"""What the branch and bound searches to the end, where a general model does not: sizes with traffic of any kind, and
with servers that can all be exchanged."""
_REDUCING_SERVERS = 6
"""With all-reduce groups, where the bound of a node is weak; without forwarding the model is small and ends at once."""
_EXACT_SERVERS = 16
"""Beyond so many servers the general models hardly move their bound within hours."""


def default_method(instance: TopologyProblem) -> str:
    """The best exact method for the instance's size; a heuristic with a certified gap where none is within reach."""
    if isinstance(instance, CollectiveInstance):
        return "exact"
    assert isinstance(instance, TopologyInstance)
    return "exact" if instance.servers <= _EXACT_SERVERS else "link-exchange"
