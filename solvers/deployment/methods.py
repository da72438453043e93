"""The methods of the family, and which one is taken where none is named."""

from ddlopt.models.deployment import DeploymentProblem
from ddlopt.solvers.wrappers.by_problem import entries_of_rooms, exact_of

FAMILY = "deployment"

ENTRIES = (
    exact_of(FAMILY),
    *entries_of_rooms(FAMILY),
)


def default_method(instance: DeploymentProblem) -> str:
    """``exact``, at any size."""
    return "exact"
