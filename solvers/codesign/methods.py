"""The methods of the family, and which one is taken where none is named."""

from functools import partial

from ddlopt.models.codesign import CodesignInstance
from ddlopt.solvers.contracts import Entry
from ddlopt.solvers.makers import formulation, heuristic

FAMILY = "codesign"

_formulation = partial(formulation, FAMILY)
_heuristic = partial(heuristic, FAMILY)

ENTRIES = (
    Entry(
        "joint",
        FAMILY,
        "exact",
        "strategies by a certified bound on every topology, then topologies for the best of them, until both meet",
        _heuristic("joint.joint", "Joint"),
    ),
    Entry(
        "joint-milp",
        FAMILY,
        "exact",
        "strategies, links, rings and routes in one program; for a few servers",
        _formulation("joint-milp", "formulations.joint_milp", "JointStrategyTopology"),
    ),
    Entry(
        "alternating",
        FAMILY,
        "heuristic",
        "TopoOpt: MCMC on strategies, TopologyFinder on links, in turn",
        _heuristic("topoopt.alternating", "Alternating"),
    ),
    Entry(
        "alternating-released",
        FAMILY,
        "heuristic",
        "the same as released: both planes in one loop",
        _heuristic("topoopt.alternating_released", "AlternatingReleased"),
    ),
    Entry(
        "alternating-exact",
        FAMILY,
        "heuristic",
        "alternating with both planes exact",
        _heuristic("topoopt.alternating", "Alternating", strategies="exact", topology="exact"),
    ),
    Entry(
        "alternating-exact-strategies",
        FAMILY,
        "heuristic",
        "exact strategies, TopologyFinder's links",
        _heuristic("topoopt.alternating", "Alternating", strategies="exact"),
    ),
    Entry(
        "alternating-exact-topology",
        FAMILY,
        "heuristic",
        "MCMC's strategies, exact topology",
        _heuristic("topoopt.alternating", "Alternating", topology="exact"),
    ),
    Entry(
        "data-parallel",
        FAMILY,
        "heuristic",
        "data parallel, embedding tables spread; links by TopologyFinder",
        _heuristic("data_parallel", "DataParallel"),
    ),
    Entry(
        "expander",
        FAMILY,
        "heuristic",
        "a random regular graph and the best strategies for it",
        _heuristic("expander", "Expander"),
    ),
    Entry(
        "ideal-switch",
        FAMILY,
        "reference",
        "a non-blocking switch of bandwidth d·B, with the best strategies for it",
        _heuristic("switches", "IdealSwitch"),
    ),
    Entry("fat-tree", FAMILY, "reference", "a fat-tree of similar cost", _heuristic("switches", "FatTree")),
    Entry(
        "oversubscribed-fat-tree",
        FAMILY,
        "reference",
        "a fat-tree of racks whose uplinks are oversubscribed",
        _heuristic("switches", "OversubscribedFatTree"),
    ),
    Entry(
        "sip-ml",
        FAMILY,
        "reference",
        "SiP-ML: circuits chosen anew by an assignment, nobody forwards",
        _heuristic("reconfigured.reconfigured", "SipMl"),
    ),
    Entry(
        "ocs-reconfig",
        FAMILY,
        "reference",
        "circuit switches set anew during the iteration",
        _heuristic("reconfigured.reconfigured", "OcsReconfig"),
    ),
)


def default_method(instance: CodesignInstance) -> str:
    """The method that answers any size with a bound."""
    return "joint"
