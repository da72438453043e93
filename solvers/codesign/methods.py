"""The methods of the family, and which one is taken where none is named."""

from ddlopt.models.codesign import CodesignInstance
from ddlopt.solvers.catalogue import method_names
from ddlopt.solvers.makers import entries

ROOM = "codesign"


ENTRIES = entries(
    ROOM,
    ("joint-milp", "exact", "strategies, links, rings and routes in one program, up to 8 servers; rings from generators, all with rings=all", "models:formulations.joint_milp:JointStrategyTopology"),
    ("alternating", "heuristic", "TopoOpt: MCMC on strategies, TopologyFinder on links, in turn; each may be exact", "topoopt.alternating:Alternating"),
    ("alternating-released", "heuristic", "the same as released: both planes in one loop", "topoopt.alternating_released:AlternatingReleased"),
    ("compression-apart", "heuristic", "TopoOpt without compressors, which are chosen last by Espresso's greedy, or first, or never", "compression_apart:CompressionApart"),
    ("data-parallel", "heuristic", "data parallel, embedding tables spread; links by TopologyFinder", "data_parallel:DataParallel"),
    ("expander", "heuristic", "a random regular graph and the best strategies for it", "expander:Expander"),
    ("ideal-switch", "reference", "a non-blocking switch of bandwidth d·B, with the best strategies for it", "switches:IdealSwitch"),
    ("fat-tree", "reference", "a fat-tree of similar cost", "switches:FatTree"),
    ("oversubscribed-fat-tree", "reference", "a fat-tree of racks whose uplinks are oversubscribed", "switches:OversubscribedFatTree"),
    ("sip-ml", "reference", "SiP-ML: circuits chosen anew by an assignment, nobody forwards", "reconfigured.reconfigured:SipMl"),
    ("ocs-reconfig", "reference", "circuit switches set anew during the iteration", "reconfigured.reconfigured:OcsReconfig"),
)  # fmt: skip


def default_method(instance: CodesignInstance) -> str:
    """The method of the frontier that answers any size with a bound; without it TopoOpt's."""
    return "joint" if "joint" in method_names(ROOM) else "alternating"
