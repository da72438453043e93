"""The methods of the family, and which one is taken where none is named."""

from ddlopt.models.cluster import ClusterProblem
from ddlopt.solvers.wrappers.by_problem import entries_of_rooms, exact_of

FAMILY = "cluster"

ENTRIES = (
    exact_of(FAMILY),
    *entries_of_rooms(FAMILY),
)


def default_method(instance: ClusterProblem) -> str:
    """``exact``, at any size."""
    return "exact"
