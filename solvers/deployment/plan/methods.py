"""The methods for the problem ``plan`` that prove something."""

from ddlopt.models.deployment.plan.instance import DeploymentInstance
from ddlopt.solvers.backends.contracts import Backend
from ddlopt.solvers.contracts import Method
from ddlopt.solvers.makers import entries

FAMILY, ROOM = "deployment", "deployment/plan"
_LOOKS = 10_000_000
"""Partial plans that branch and bound may look at, which takes about a minute."""
_VERY_FEW_GROUPS = 5
"""With which it ends within half a minute nearly always."""
_FEW_GROUPS = 20
"""With which the makespan bound may be the better one."""
_TREE = 0.7
"""Part of the time for branch and bound where it may end."""
_SEARCH = 0.3
"""Part of the time for the local search where groups are many."""


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
    ("brute-force", "exact", "all plans of a small instance one by one, by the fast simulator", "brute_force:BruteForce"),
    ("plan-tree", "exact", "all plans by branch and bound, under the simulator's order of work", "tree.method:PlanTree"),
    ("plan-prices", "exact", "a bound by prices of resources and paths for every deployment, and plans from them", "prices.method:PlanPrices"),
    ("makespan-bound", "exact", "a bound on the time of every deployment, and its plan", _certified),
    ("disjunctive-makespan", "exact", "the same for small graphs, with an order of operators on every device", _disjunctive),
    ("tag", "heuristic", "TAG's tree search over plans of operator groups, with a uniform, bounding or learned prior", "tag:Tag"),
    ("sufficient-factors", "heuristic", "TAG, or another search, then sufficient factors by a minimum cut", "sufficient_factors:WithFactors"),
    ("plan-search", "heuristic", "our local search on groups and runs of groups", "search:PlanSearch"),
    ("local-branching", "heuristic", "our neighbourhoods of a plan by the makespan bound; with its bound", "local_branching:LocalBranching"),
    ("mcmc", "heuristic", "FlexFlow's Markov chain over actions of groups", "mcmc:PlanMcmc"),
    ("data-parallel", "heuristic", "a replica on every device, the batch split evenly or by speed", "data_parallel:DataParallel"),
    ("heft", "heuristic", "HEFT: each group on the device where it ends first", "list_scheduling:ListScheduling", {"rule": "heft"}),
    ("m-etf", "heuristic", "Baechi's earliest task first, with memory", "list_scheduling:ListScheduling", {"rule": "m-etf"}),
    ("m-sct", "heuristic", "the same with favourite children, by a linear program", "list_scheduling:ListScheduling", {"rule": "m-sct"}),
)  # fmt: skip


def best(instance: DeploymentInstance, solver: str) -> Method:
    """Branch and bound over plans where it may end, or else prices and searches; then the bounds for any order of work.

    Where groups are few, prices have a bound within a second or two, and branch and bound all of the time that is left.
    """
    from ddlopt.solvers.deployment.plan.prices.method import PlanPrices
    from ddlopt.solvers.deployment.plan.search import PlanSearch
    from ddlopt.solvers.deployment.plan.tree.method import PlanTree
    from ddlopt.solvers.wrappers.warm_started import WarmStarted

    tree, prices = PlanTree(most=_LOOKS), PlanPrices()
    priced = prices.refuses(instance) is None
    if instance.groups <= _VERY_FEW_GROUPS and priced and tree.may_end(instance):
        return WarmStarted("exact", FAMILY, PlanPrices(parts=0, kicks=0), lambda _: PlanTree())
    if instance.groups > _FEW_GROUPS and priced:
        # The makespan bound does not get beyond the prices' there, and a search of its own is often the better one.
        return WarmStarted("exact", FAMILY, PlanSearch(), lambda _: prices, lambda _: _SEARCH)
    ordered = _disjunctive(solver)
    closing = ordered if ordered.refuses(instance) is None else _certified(solver)
    opening: Method = prices if priced else PlanSearch()
    later: Method = WarmStarted("exact", FAMILY, opening, lambda _: closing)
    return WarmStarted("exact", FAMILY, tree, lambda _: later, lambda _: _TREE) if tree.may_end(instance) else later
