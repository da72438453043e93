"""The methods of the family, and which one is taken where none is named."""

from ddlopt.models.deployment import DeploymentProblem
from ddlopt.solvers.by_problem import exact_of
from ddlopt.solvers.deployment import partition_methods, plan_methods, search_methods, strategies_methods

FAMILY = "deployment"

ENTRIES = (
    exact_of(FAMILY),
    *plan_methods.ENTRIES,
    *search_methods.ENTRIES,
    *partition_methods.ENTRIES,
    *strategies_methods.ENTRIES,
)


def default_method(instance: DeploymentProblem) -> str:
    """``exact``, at any size."""
    return "exact"
