"""What searches of ours do beside their own steps: the entry point ``ddlopt.steps``."""

from ddlopt.models.problem import later
from ddlopt.solvers.steps import Step

STEPS = (
    Step(
        "topology/link-exchange", "designs", later("ddlopt.frontier.topology.symmetric_rings.symmetric_rings:symmetric")
    ),
    Step(
        "topology/link-exchange",
        "links",
        later("ddlopt.frontier.topology.lifts.lifts:lift_starts"),
        later("ddlopt.frontier.topology.lifts.lifts:kernels_of_lifts"),
    ),
)
