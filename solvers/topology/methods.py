"""The methods of the family, and which one is taken where none is named."""

from importlib import import_module

from ddlopt.models.topology import CollectiveInstance, TopologyInstance, TopologyProblem
from ddlopt.solvers import chain
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
    model = chain.exact(ROOM, instance, solver, _model_for)
    if instance.servers <= _FEW_SERVERS:
        return model
    return WarmStarted("exact", FAMILY, _link_exchange(solver), lambda _: model)


def _model_for(instance: TopologyInstance, solver: str) -> Method:
    """The formulation that leaves the least out."""
    if not instance.allreduce_groups:
        return _numbered(solver)
    every_ring = _all_rings(solver)
    return _rings_and_routes(solver) if every_ring.refuses(instance) else every_ring


_rings_and_routes = formulation(ROOM, "rings-and-routes", "formulations.rings_and_routes:RingsAndRoutes")
_all_rings = formulation(
    ROOM, "rings-and-routes:rings=all", "formulations.rings_and_routes:RingsAndRoutes", rings="all"
)
_numbered = formulation(
    ROOM, "rings-and-routes:numbering=true", "formulations.rings_and_routes:RingsAndRoutes", numbering=True
)
_link_exchange = heuristic(ROOM, "link_exchange.link_exchange:LinkExchange")


_OF_DESIGN = entries(
    ROOM,
    ("rings-and-routes", "exact", "any links and routes, rings from generators; or all rings of groups of at most 7 servers", "models:formulations.rings_and_routes:RingsAndRoutes"),
    ("topology-finder", "heuristic", "TopoOpt's TopologyFinder, as in the paper or as in the released code", "topoopt.topology_finder:TopologyFinder"),
    ("link-exchange", "heuristic", "our local search on links and rings", "link_exchange.link_exchange:LinkExchange"),
    ("ocs-greedy", "heuristic", "the greedy of reconfigurable circuit switches", "ocs_greedy:OcsGreedy"),
    ("expander", "heuristic", "a random regular graph", "expander:Expander"),
    ("ideal-switch", "reference", "a non-blocking switch of bandwidth d·B", "references:IdealSwitch"),
    ("fat-tree", "reference", "a fat-tree of similar cost", "references:FatTree"),
)  # fmt: skip
ENTRIES = (exact_of(FAMILY), *_OF_DESIGN, *collective.ENTRIES)

_SHORT = 0.3
"""Effort of the first search, which ends by itself within a few seconds."""
_FEW_SERVERS = 11
"""Up to which the short search finds what a longer one does."""
_EXACT_SERVERS = 16
"""Servers beyond which the general models hardly move their bound within hours."""


def default_method(instance: TopologyProblem) -> str:
    """The best exact method for the instance's size; a heuristic with a certified gap where none is within reach."""
    if isinstance(instance, CollectiveInstance):
        return "exact"
    assert isinstance(instance, TopologyInstance)
    return "exact" if instance.servers <= _EXACT_SERVERS else "link-exchange"
