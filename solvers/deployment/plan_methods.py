"""The methods for the problem ``plan`` that prove something."""

from ddlopt.models.deployment.instance import DeploymentInstance
from ddlopt.solvers.contracts import Entry, Method
from ddlopt.solvers.makers import heuristic

FAMILY = "deployment"


def _certified(solver: str) -> Method:
    from ddlopt.solvers.backends import backend
    from ddlopt.solvers.deployment.certified_plan import CertifiedPlan

    return CertifiedPlan(backend=backend(solver))


ENTRIES: tuple[Entry, ...] = (
    Entry(
        "brute-force",
        FAMILY,
        "exact",
        "all plans of a small instance, by the fast simulator",
        heuristic(FAMILY, "brute_force", "BruteForce"),
    ),
    Entry("makespan-bound", FAMILY, "exact", "a bound on the time of every deployment, and its plan", _certified),
)


def best(instance: DeploymentInstance, solver: str) -> Method:
    """All plans where they are few, our local search otherwise; then the makespan bound from there."""
    from ddlopt.solvers.deployment.brute_force import BruteForce
    from ddlopt.solvers.deployment.plan_search import PlanSearch
    from ddlopt.solvers.opened import Opened

    small = BruteForce()
    opening: Method = small if small.refuses(instance) is None else PlanSearch()
    return Opened("exact", FAMILY, opening, lambda _: _certified(solver))
