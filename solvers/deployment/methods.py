"""The methods of the family, and which one is taken where none is named."""

from ddlopt.models.deployment import DeploymentProblem
from ddlopt.solvers.by_problem import ByProblem
from ddlopt.solvers.contracts import Entry
from ddlopt.solvers.deployment import partition_methods, plan_methods, search_methods, strategies_methods

FAMILY = "deployment"

ENTRIES = (
    Entry(
        "exact",
        FAMILY,
        "exact",
        "the exact method that fits the problem",
        lambda solver: ByProblem("exact", FAMILY, "best", solver),
    ),
    *plan_methods.ENTRIES,
    *search_methods.ENTRIES,
    *partition_methods.ENTRIES,
    *strategies_methods.ENTRIES,
)


def default_method(instance: DeploymentProblem) -> str:
    """``exact``, at any size."""
    return "exact"
