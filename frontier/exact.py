"""Links of the ``exact`` chain: the entry point ``ddlopt.exact``.

What is behind a link is loaded when an instance of its problem is answered.
"""

from ddlopt.models.problem import later
from ddlopt.solvers.chain import Link

_KERNELS = {
    "topology": (
        "ddlopt.frontier.topology.branch_and_bound.tree",
        "ddlopt.models.topology.symmetry.canonical_kernel",
    ),
}
_HOMES = {
    "topology": "topology",
    "scheduling": "scheduling",
    "compression/timeline": "compression.timeline",
    "compression/levels": "compression.timeline",
    "deployment/plan": "deployment.plan",
    "deployment/partition": "deployment.partition",
    "aggregation/graph": "aggregation.graph",
    "aggregation/registers": "aggregation.registers",
    "gossip/matchings": "gossip.matchings",
}
"""Problems, and the rooms whose ``methods`` have their links."""
LINKS = tuple(
    Link(path, later(f"ddlopt.frontier.{home}.methods:link"), kernels=_KERNELS.get(path, ()))
    for path, home in _HOMES.items()
)
