"""The methods for the problem ``weights``."""

from ddlopt.models.gossip.weights.instance import WeightsInstance
from ddlopt.solvers.contracts import Method
from ddlopt.solvers.makers import entries, heuristic

ROOM = "gossip/weights"


def best(instance: WeightsInstance, solver: str) -> Method:
    """The interior-point method for the goal of the instance."""
    return heuristic(ROOM, "exact:FastestWeights")(solver)


ENTRIES = entries(
    ROOM,
    ("fastest-weights", "exact", "FDLA, FMMC, FMMP, randomized gossip: the best weights for the goal", "exact:FastestWeights"),
    ("metropolis", "heuristic", "Metropolis–Hastings: 1 over the larger degree", "rules:Rule", {"rule": "metropolis"}),
    ("max-degree", "heuristic", "1 over the largest degree", "rules:Rule", {"rule": "max-degree"}),
    ("best-constant", "heuristic", "the best weight that all edges can share", "rules:Rule", {"rule": "best-constant"}),
    ("uniform", "heuristic", "equal rates, or every neighbour as likely", "rules:Uniform"),
)  # fmt: skip
