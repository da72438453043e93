"""What writes certificates: the entry point ``ddlopt.proofs``."""

from ddlopt.models.problem import later
from ddlopt.solvers.provers import Prover, TreeProver

_PATHS = (
    *("topology", "topology/collective", "scheduling", "codesign", "deployment/plan", "deployment/partition"),
    *("aggregation/registers", "gossip/matchings"),
    *("compression/timeline", "compression/levels", "compression/forward"),
)
PROVERS = (
    *(Prover(path, later(f"ddlopt.frontier.{path.replace('/', '.')}.prove:prove")) for path in _PATHS),
    TreeProver(later("ddlopt.frontier.linear_proof.tree:prove")),
)
