"""The methods for the problem ``plan`` that prove something."""

from typing import TYPE_CHECKING

from ddlopt.models.deployment.plan.instance import DeploymentInstance
from ddlopt.solvers import chain
from ddlopt.solvers.contracts import Method
from ddlopt.solvers.makers import entries

if TYPE_CHECKING:
    from ddlopt.models.deployment.plan.formulations.makespan_bound import MakespanBound

FAMILY, ROOM = "deployment", "deployment/plan"


def certified(solver: str, formulation: "MakespanBound | None" = None) -> Method:
    """The makespan bound and its plan, or those of a formulation that has more rows.

    Of HiGHS the interior point method solves the first relaxation, which is degenerate.
    """
    from ddlopt.models.deployment.plan.formulations.makespan_bound import MakespanBound
    from ddlopt.solvers.backends import backend
    from ddlopt.solvers.backends.highs import Highs
    from ddlopt.solvers.deployment.plan.certified_plan import CertifiedPlan

    behind = Highs({"mip_lp_solver": "ipm"}) if solver == "highs" else backend(solver)
    return CertifiedPlan(formulation or MakespanBound(), behind)


ENTRIES = entries(
    ROOM,
    ("makespan-bound", "exact", "a bound on the time of every deployment, and its plan", certified),
    ("tag", "heuristic", "TAG's tree search over plans of operator groups, with a uniform, bounding or learned prior", "tag:Tag"),
    ("sufficient-factors", "heuristic", "TAG, or another search, then sufficient factors by a minimum cut", "sufficient_factors:WithFactors"),
    ("plan-search", "heuristic", "our simulated annealing over all deployments", "search:PlanSearch"),
    ("mcmc", "heuristic", "FlexFlow's Markov chain over actions of groups", "mcmc:PlanMcmc"),
    ("data-parallel", "heuristic", "a replica on every device, the batch split evenly or by speed", "data_parallel:DataParallel"),
    ("heft", "heuristic", "HEFT: each group on the device where it ends first", "list_scheduling:ListScheduling", {"rule": "heft"}),
    ("m-etf", "heuristic", "Baechi's earliest task first, with memory", "list_scheduling:ListScheduling", {"rule": "m-etf"}),
    ("m-sct", "heuristic", "the same with favourite children, by a linear program", "list_scheduling:ListScheduling", {"rule": "m-sct"}),
)  # fmt: skip


def best(instance: DeploymentInstance, solver: str) -> Method:
    """What links of the chain say; else a search, and the bounds for any order of work."""
    return chain.exact(ROOM, instance, solver, _own)


def _own(instance: DeploymentInstance, solver: str) -> Method:
    from ddlopt.solvers.deployment.plan.search import PlanSearch
    from ddlopt.solvers.wrappers.warm_started import WarmStarted

    return WarmStarted("exact", FAMILY, PlanSearch(), lambda _: certified(solver))
