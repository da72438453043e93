"""The methods for the problem ``plan``."""

from ddlopt.models.deployment.plan.instance import DeploymentInstance
from ddlopt.solvers import chain
from ddlopt.solvers.contracts import Method
from ddlopt.solvers.makers import entries, formulation

FAMILY, ROOM = "deployment", "deployment/plan"

makespan_bound = formulation(ROOM, "makespan-bound", "formulations.makespan_bound:MakespanBound")
"""A bound for any order of work, and its plan where that fits into memory."""

ENTRIES = entries(
    ROOM,
    ("makespan-bound", "exact", "a bound on the time of every deployment, and its plan where that fits into memory", makespan_bound),
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

    return WarmStarted("exact", FAMILY, PlanSearch(), lambda _: makespan_bound(solver))
