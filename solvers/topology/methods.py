"""The methods of the family, and which one is taken where none is named."""

from functools import partial
from importlib import import_module
from math import comb

from ddlopt.models.topology import TopologyInstance
from ddlopt.models.topology.symmetry.server_symmetry import interchangeable
from ddlopt.solvers.backends import backend
from ddlopt.solvers.contracts import Entry, Method
from ddlopt.solvers.makers import formulation, heuristic
from ddlopt.solvers.opened import Opened

FAMILY = "topology"


def _exact(solver: str) -> Method:
    return Opened("exact", FAMILY, _link_exchange(solver), lambda instance: _model_for(instance, solver))


def _model_for(instance: TopologyInstance, solver: str) -> Method:
    """The exact method that leaves the least out, and proves the most."""
    if not instance.allreduce_groups:
        return (_branch_and_bound if _few_neighbours(instance) else _min_congestion)(solver)
    every_ring = _all_rings(solver)
    return _rings_and_routes(solver) if every_ring.refuses(instance) else every_ring


def _metric_cuts(solver: str) -> Method:
    made: Method = import_module("ddlopt.solvers.topology.metric.metric_cuts").MetricCuts(backend=backend(solver))
    return made


def _few_neighbours(instance: TopologyInstance) -> bool:
    """Whether the branch and bound ends, in seconds or minutes: few servers with few ports, or more that are alike."""
    n, d = instance.servers, instance.degree
    alike = n <= _ALIKE_SERVERS and any(len(twins) == n for twins in interchangeable(instance))
    return alike or (n <= _BRANCHED_SERVERS and comb(n + d - 2, d) <= _BRANCHED_SETS)


_formulation = partial(formulation, FAMILY)
_heuristic = partial(heuristic, FAMILY)
_min_congestion = _formulation("min-congestion", "formulations.min_congestion", "MinCongestion")
_rings_and_routes = _formulation("rings-and-routes", "formulations.rings_and_routes", "RingsAndRoutes")
_all_rings = _formulation("all-rings", "formulations.rings_and_routes", "RingsAndRoutes", rings="all")
_circulant = _formulation("circulant", "formulations.circulant", "CirculantDesign")
_circulant_enumeration = _heuristic("circulant_enumeration", "CirculantEnumeration")
_branch_and_bound = _heuristic("branch_and_bound.branch_and_bound", "BranchAndBound")
_topology_finder = _heuristic("topoopt.topology_finder", "TopologyFinder", variant="paper")
_topology_finder_released = _heuristic("topoopt.topology_finder", "TopologyFinder", variant="released")
_concave_matching = _heuristic("topoopt.concave_matching", "ConcaveMatchingFinder")
_link_exchange = _heuristic("link_exchange.link_exchange", "LinkExchange")
_ocs_greedy = _heuristic("ocs_greedy", "OcsGreedy")
_expander = _heuristic("expander", "Expander")
_ideal_switch = _heuristic("references", "IdealSwitch")
_fat_tree = _heuristic("references", "FatTree")


ENTRIES = (
    Entry("exact", FAMILY, "exact", "link-exchange, then from its design the model that fits", _exact),
    Entry("min-congestion", FAMILY, "exact", "any links and routes, traffic without all-reduce", _min_congestion),
    Entry("rings-and-routes", FAMILY, "exact", "any links and routes, rings from generators", _rings_and_routes),
    Entry("all-rings", FAMILY, "exact", "any links, routes and rings; groups of at most 7 servers", _all_rings),
    Entry(
        "branch-and-bound", FAMILY, "exact", "any links, routes and rings, by refuting neighbours", _branch_and_bound
    ),
    Entry("circulant", FAMILY, "exact", "the best circulant for traffic that looks alike everywhere", _circulant),
    Entry(
        "circulant-enumeration",
        FAMILY,
        "exact",
        "the same by generator sets up to automorphism, up to 128 servers",
        _circulant_enumeration,
    ),
    Entry("metric-cuts", FAMILY, "exact", "min-congestion with metric inequalities at its root", _metric_cuts),
    Entry("topology-finder", FAMILY, "heuristic", "TopoOpt's TopologyFinder as in the paper", _topology_finder),
    Entry(
        "topology-finder-released",
        FAMILY,
        "heuristic",
        "TopologyFinder as in the released code",
        _topology_finder_released,
    ),
    Entry("concave-matching", FAMILY, "heuristic", "TopologyFinder with an exact b-matching", _concave_matching),
    Entry("link-exchange", FAMILY, "heuristic", "our local search on links and rings", _link_exchange),
    Entry("ocs-greedy", FAMILY, "heuristic", "the greedy of reconfigurable circuit switches", _ocs_greedy),
    Entry("expander", FAMILY, "heuristic", "a random regular graph", _expander),
    Entry("ideal-switch", FAMILY, "reference", "a non-blocking switch of bandwidth d·B", _ideal_switch),
    Entry("fat-tree", FAMILY, "reference", "a fat-tree of similar cost", _fat_tree),
)

_BRANCHED_SERVERS, _BRANCHED_SETS, _ALIKE_SERVERS = 8, 100, 11
"""What the branch and bound searches to the end, where a general model does not: sizes with traffic of any kind, and
with servers that can all be exchanged."""
_EXACT_SERVERS = 16
"""Beyond so many servers the general models hardly move their bound within hours."""


def default_method(instance: TopologyInstance) -> str:
    """The best exact method for the instance's size; a heuristic with a certified gap where none is within reach."""
    return "exact" if instance.servers <= _EXACT_SERVERS else "link-exchange"
