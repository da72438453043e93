"""Links of the ``exact`` chain and steps of searches: the entry point ``ddlopt.exact``.

What is behind one is loaded when an instance of its problem is answered.
"""

from ddlopt.models.problem import later
from ddlopt.solvers.chain import Link, Step

_KERNELS = {
    "topology": (
        "ddlopt.frontier.topology.branch_and_bound.tree",
        "ddlopt.certificates.topology.hops.canonical_kernel",
    ),
}
_HOMES = {
    "topology": "topology",
    "topology/collective": "topology.collective",
    "codesign": "codesign",
    "scheduling": "scheduling",
    "compression/timeline": "compression.timeline",
    "compression/levels": "compression.timeline",
    "deployment/plan": "deployment.plan",
    "deployment/microbatches": "deployment.microbatches",
    "deployment/pipeline": "deployment.pipeline",
    "deployment/partition": "deployment.partition",
    "deployment/strategies": "deployment.strategies",
    "aggregation/graph": "aggregation.graph",
    "gossip/matchings": "gossip.matchings",
}
"""Problems, and the rooms whose ``methods`` have their links."""
_EXCHANGE = "topology/link-exchange"
_TOPOLOGY = "ddlopt.frontier.topology"
_SYMMETRIC, _LIFTS = f"{_TOPOLOGY}.symmetric_rings.symmetric_rings", f"{_TOPOLOGY}.lifts.lifts"
_COUNTED = "ddlopt.frontier.scheduling.formulations.server_patterns.counted_slot:CountedSlot"
_STEPS = (
    Step("scheduling/gadget", "slots", later(_COUNTED)),
    Step("codesign/bound-guided", "links", later("ddlopt.frontier.codesign.closed_columns:starts_for")),
    Step(
        "compression/forward-search",
        "options",
        later("ddlopt.frontier.compression.timeline.methods:options"),
        ("ddlopt.frontier.compression.timeline.label_setting.kernels",),
    ),
    Step(_EXCHANGE, "designs", later(f"{_SYMMETRIC}:symmetric")),
    Step(
        _EXCHANGE,
        "links",
        later(f"{_LIFTS}:lift_starts"),
        (f"{_TOPOLOGY}.lifts.lift_kernels",),
        later(f"{_LIFTS}:are_worth_it"),
    ),
)
_LINKS = (
    Link(path, later(f"ddlopt.frontier.{home}.methods:link"), kernels=_KERNELS.get(path, ()))
    for path, home in _HOMES.items()
)
_VOLUME = Link("topology", later("ddlopt.frontier.topology.methods:bound_first"), priority=1, share=0.5)
"""Of the time at most: it ends with the root of its tree, after a second or a few, and what follows has the rest."""
LINKS = (_VOLUME, *_LINKS, *_STEPS)
