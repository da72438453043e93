"""The methods of the family, and which one is taken where none is named."""

from ddlopt.models.deployment import DeploymentProblem
from ddlopt.solvers.by_problem import exact_of
from ddlopt.solvers.deployment.partition import methods as partition_methods
from ddlopt.solvers.deployment.plan import methods as plan_methods
from ddlopt.solvers.deployment.strategies import methods as strategies_methods

FAMILY = "deployment"

ENTRIES = (
    exact_of(FAMILY),
    *plan_methods.ENTRIES,
    *partition_methods.ENTRIES,
    *strategies_methods.ENTRIES,
)


def default_method(instance: DeploymentProblem) -> str:
    """``exact``, at any size."""
    return "exact"
