"""The methods of the family, and which one is taken where none is named."""

from ddlopt.models.topology import TopologyInstance
from ddlopt.solvers.backends import backend
from ddlopt.solvers.contracts import Entry, Method
from ddlopt.solvers.exact import Exact
from ddlopt.solvers.opened import Opened


def _exact(solver: str) -> Method:
    return Opened("exact", "topology", _link_exchange(solver), lambda instance: _model_for(instance, solver))


def _model_for(instance: TopologyInstance, solver: str) -> Method:
    """The exact model that leaves the least out."""
    if not instance.allreduce_groups:
        return _min_congestion(solver)
    every_ring = _all_rings(solver)
    return _rings_and_routes(solver) if every_ring.refuses(instance) else every_ring


def _min_congestion(solver: str) -> Method:
    from ddlopt.models.topology.min_congestion import MinCongestion

    return Exact("min-congestion", "topology", MinCongestion(), backend(solver))


def _rings_and_routes(solver: str) -> Method:
    from ddlopt.models.topology.rings_and_routes import RingsAndRoutes

    return Exact("rings-and-routes", "topology", RingsAndRoutes(), backend(solver))


def _all_rings(solver: str) -> Method:
    from ddlopt.models.topology.rings_and_routes import RingsAndRoutes

    return Exact("all-rings", "topology", RingsAndRoutes(rings="all"), backend(solver))


def _circulant(solver: str) -> Method:
    from ddlopt.models.topology.circulant import CirculantDesign

    return Exact("circulant", "topology", CirculantDesign(), backend(solver))


def _circulant_enumeration(_: str) -> Method:
    from ddlopt.solvers.topology.circulant_enumeration import CirculantEnumeration

    return CirculantEnumeration()


def _topology_finder(_: str) -> Method:
    from ddlopt.solvers.topology.topology_finder import TopologyFinder

    return TopologyFinder(variant="paper")


def _topology_finder_released(_: str) -> Method:
    from ddlopt.solvers.topology.topology_finder import TopologyFinder

    return TopologyFinder(variant="released")


def _concave_matching(_: str) -> Method:
    from ddlopt.solvers.topology.concave_matching import ConcaveMatchingFinder

    return ConcaveMatchingFinder()


def _link_exchange(_: str) -> Method:
    from ddlopt.solvers.topology.link_exchange import LinkExchange

    return LinkExchange()


def _ocs_greedy(_: str) -> Method:
    from ddlopt.solvers.topology.ocs_greedy import OcsGreedy

    return OcsGreedy()


def _expander(_: str) -> Method:
    from ddlopt.solvers.topology.expander import Expander

    return Expander()


def _ideal_switch(_: str) -> Method:
    from ddlopt.solvers.topology.references import IdealSwitch

    return IdealSwitch()


def _fat_tree(_: str) -> Method:
    from ddlopt.solvers.topology.references import FatTree

    return FatTree()


ENTRIES = (
    Entry("exact", "topology", "exact", "link-exchange, then from its design the model that fits", _exact),
    Entry("min-congestion", "topology", "exact", "any links and routes, traffic without all-reduce", _min_congestion),
    Entry("rings-and-routes", "topology", "exact", "any links and routes, rings from generators", _rings_and_routes),
    Entry("all-rings", "topology", "exact", "any links, routes and rings; groups of at most 7 servers", _all_rings),
    Entry("circulant", "topology", "exact", "the best circulant for traffic that looks alike everywhere", _circulant),
    Entry(
        "circulant-enumeration",
        "topology",
        "exact",
        "the same by generator sets up to automorphism, up to 128 servers",
        _circulant_enumeration,
    ),
    Entry("topology-finder", "topology", "heuristic", "TopoOpt's TopologyFinder as in the paper", _topology_finder),
    Entry(
        "topology-finder-released",
        "topology",
        "heuristic",
        "TopologyFinder as in the released code",
        _topology_finder_released,
    ),
    Entry("concave-matching", "topology", "heuristic", "TopologyFinder with an exact b-matching", _concave_matching),
    Entry("link-exchange", "topology", "heuristic", "our local search on links and rings", _link_exchange),
    Entry("ocs-greedy", "topology", "heuristic", "the greedy of reconfigurable circuit switches", _ocs_greedy),
    Entry("expander", "topology", "heuristic", "a random regular graph", _expander),
    Entry("ideal-switch", "topology", "reference", "a non-blocking switch of bandwidth d·B", _ideal_switch),
    Entry("fat-tree", "topology", "reference", "a fat-tree of similar cost", _fat_tree),
)

_EXACT_SERVERS = 16
"""Beyond so many servers the general models hardly move their bound within hours."""


def default_method(instance: TopologyInstance) -> str:
    """The best exact method for the instance's size; a heuristic with a certified gap where none is within reach."""
    return "exact" if instance.servers <= _EXACT_SERVERS else "link-exchange"
