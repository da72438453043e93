"""The methods of the family, and which one is taken where none is named."""

from ddlopt.models.codesign import CodesignInstance
from ddlopt.solvers import chain
from ddlopt.solvers.catalogue import method_names
from ddlopt.solvers.contracts import Method
from ddlopt.solvers.makers import entries, formulation, heuristic
from ddlopt.solvers.wrappers.by_problem import exact_of
from ddlopt.solvers.wrappers.warm_started import WarmStarted

FAMILY = ROOM = "codesign"


def best(instance: CodesignInstance, solver: str) -> Method:
    """What the links say; else our search, and then the program for everything from its plan, up to 8 servers."""
    return chain.exact(ROOM, instance, solver, _own)


def _own(_: CodesignInstance, solver: str) -> Method:
    return WarmStarted("exact", FAMILY, _bound_guided(solver), lambda asked: _program(asked, solver))


def _program(instance: CodesignInstance, solver: str) -> Method:
    """The formulation that leaves the least out."""
    every_ring = _all_rings(solver)
    return _joint_milp(solver) if every_ring.refuses(instance) else every_ring


_bound_guided = heuristic(ROOM, "bound_guided:BoundGuided")
_joint_milp = formulation(ROOM, "joint-milp", "formulations.joint_milp:JointStrategyTopology")
_all_rings = formulation(ROOM, "joint-milp:rings=all", "formulations.joint_milp:JointStrategyTopology", rings="all")

_OF_DESIGN = entries(
    ROOM,
    ("joint-milp", "exact", "strategies, links, rings and routes in one program, up to 8 servers; rings from generators, all with rings=all", "models:formulations.joint_milp:JointStrategyTopology"),
    ("bound-guided", "heuristic", "our search: strategies that a bound on every topology likes, links for them by link exchange, in turn", "bound_guided:BoundGuided"),
    ("alternating", "heuristic", "TopoOpt: MCMC on strategies, TopologyFinder on links, in turn; each may be exact", "topoopt.alternating:Alternating"),
    ("alternating-released", "heuristic", "the same as released: both planes in one loop", "topoopt.alternating_released:AlternatingReleased"),
    ("compression-apart", "heuristic", "TopoOpt without compressors, which are chosen last by Espresso's greedy, or first, or never", "compression_apart:CompressionApart"),
    ("data-parallel", "heuristic", "data parallel, embedding tables spread; links by TopologyFinder", "data_parallel:DataParallel"),
    ("expander", "heuristic", "a random regular graph and the best strategies for it", "expander:Expander"),
    ("ideal-switch", "reference", "a non-blocking switch of bandwidth d·B, with the best strategies for it", "switches:IdealSwitch"),
    ("fat-tree", "reference", "a fat-tree of similar cost", "switches:FatTree"),
    ("oversubscribed-fat-tree", "reference", "a fat-tree of racks whose uplinks are oversubscribed", "switches:OversubscribedFatTree"),
)  # fmt: skip
ENTRIES = (exact_of(FAMILY), *_OF_DESIGN)


def default_method(instance: CodesignInstance) -> str:
    """The method of the frontier; without it our search, and the program for everything where servers are few."""
    return "joint" if "joint" in method_names(ROOM) else "exact"
