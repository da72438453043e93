"""The methods for the problem ``plan`` that prove something."""

from ddlopt.models.deployment.plan.instance import DeploymentInstance
from ddlopt.solvers import chain
from ddlopt.solvers.backends.contracts import Backend
from ddlopt.solvers.contracts import Method
from ddlopt.solvers.makers import entries

FAMILY, ROOM = "deployment", "deployment/plan"


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


ENTRIES = entries(
    ROOM,
    ("makespan-bound", "exact", "a bound on the time of every deployment, and its plan", _certified),
    ("disjunctive-makespan", "exact", "the same for small graphs, with an order of operators on every device", _disjunctive),
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

    return WarmStarted("exact", FAMILY, PlanSearch(), lambda asked: closing(asked, solver))


def closing(instance: DeploymentInstance, solver: str) -> Method:
    """The formulation for an instance: with an order of operators where graphs are small."""
    ordered = _disjunctive(solver)
    return ordered if ordered.refuses(instance) is None else _certified(solver)
