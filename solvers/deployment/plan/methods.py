"""The methods for the problem ``plan`` that prove something."""

from ddlopt.models.deployment.plan.instance import DeploymentInstance
from ddlopt.solvers.backends.contracts import Backend
from ddlopt.solvers.contracts import Entry, Method
from ddlopt.solvers.makers import heuristic

FAMILY = "deployment"


def _backend(solver: str) -> Backend:
    """The solver; of HiGHS the interior point method for the first relaxation, which is degenerate."""
    from ddlopt.solvers.backends import backend
    from ddlopt.solvers.backends.highs import Highs

    return Highs({"mip_lp_solver": "ipm"}) if solver == "highs" else backend(solver)


def _certified(solver: str) -> Method:
    from ddlopt.solvers.deployment.plan.certified_plan import CertifiedPlan

    return CertifiedPlan(backend=_backend(solver))


def _disjunctive(solver: str) -> Method:
    from ddlopt.models.deployment.plan.formulations.disjunctive_makespan import DisjunctiveMakespan
    from ddlopt.solvers.deployment.plan.certified_plan import CertifiedPlan

    return CertifiedPlan(DisjunctiveMakespan(), _backend(solver))


ENTRIES: tuple[Entry, ...] = (
    Entry(
        "brute-force",
        FAMILY,
        "exact",
        "all plans of a small instance, by the fast simulator",
        heuristic(FAMILY, "plan.brute_force", "BruteForce"),
    ),
    Entry("makespan-bound", FAMILY, "exact", "a bound on the time of every deployment, and its plan", _certified),
    Entry(
        "disjunctive-makespan",
        FAMILY,
        "exact",
        "the same for small graphs, with an order of operators on every device",
        _disjunctive,
    ),
)


def best(instance: DeploymentInstance, solver: str) -> Method:
    """All plans where they are few, our local search otherwise; from there the disjunctive or the makespan bound."""
    from ddlopt.solvers.deployment.plan.brute_force import BruteForce
    from ddlopt.solvers.deployment.plan.search import PlanSearch
    from ddlopt.solvers.opened import Opened

    small = BruteForce()
    opening: Method = small if small.refuses(instance) is None else PlanSearch()
    ordered = _disjunctive(solver)
    closing = ordered if ordered.refuses(instance) is None else _certified(solver)
    return Opened("exact", FAMILY, opening, lambda _: closing)
