"""The methods for the problem ``joint``."""

from ddlopt.models.cluster.joint.instance import JointInstance
from ddlopt.solvers.contracts import Method
from ddlopt.solvers.makers import entries, heuristic

ROOM = "cluster/joint"

_refinement = heuristic(ROOM, "refinement:Refinement")


def best(instance: JointInstance, solver: str) -> Method:
    """``refinement``."""
    return _refinement(solver)


ENTRIES = entries(
    ROOM,
    ("refinement", "exact", "intervals of step times, sharpened where the gap comes from", "refinement:Refinement"),
    ("plans-and-flows", "exact", "one program of all plans and the schedule, for the tiniest", "models:formulations.plans_and_flows:PlansAndFlows"),
    ("apart", "heuristic", "plans, then widths, then order; each alone or with what comes after it", "apart:Apart"),
)  # fmt: skip
