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
LINKS = tuple(
    Link(path, later(f"ddlopt.frontier.{path.replace('/', '.')}.methods:link"), kernels=_KERNELS.get(path, ()))
    for path in ("topology", "scheduling", "deployment/plan", "deployment/partition")
)
