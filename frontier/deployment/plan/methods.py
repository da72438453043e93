"""Special exact methods for the problem ``plan``, and when ``exact`` asks them."""

from dataclasses import dataclass

from ddlopt.frontier.deployment.plan.prices.method import PlanPrices
from ddlopt.frontier.deployment.plan.tree.method import PlanTree
from ddlopt.models.deployment.plan.instance import DeploymentInstance
from ddlopt.solvers.contracts import Method
from ddlopt.solvers.deployment.plan.methods import FAMILY, ROOM, makespan_bound
from ddlopt.solvers.deployment.plan.search import PlanSearch
from ddlopt.solvers.makers import formulation
from ddlopt.solvers.wrappers.warm_started import WarmStarted

_ordered = formulation(
    ROOM, "disjunctive-makespan", "formulations.disjunctive_makespan:DisjunctiveMakespan", "frontier"
)


@dataclass(frozen=True)
class Effort:
    """What a search spends, and why so much."""

    looks: int = 10_000_000
    """Partial plans that branch and bound may look at, which takes about a minute."""
    very_few_groups: int = 5
    """With which it ends within half a minute nearly always."""
    few_moves: int = 10_000
    """Of annealing before it, which then has a plan to prune by."""
    many_moves: int = 300_000
    """Of annealing where groups are more: a quarter of a minute with ten of them, a minute with forty."""
    few_groups: int = 20
    """With which the makespan bound may be the better one."""
    tree: float = 0.7
    """Part of the time for branch and bound where it may end; the makespan bound needs the rest."""
    prices: float = 0.5
    """The same for prices before it, and the search that goes on from their plans."""
    search: float = 0.3
    """Part of the time for the local search where groups are many."""


_EFFORT = Effort()


def link(instance: DeploymentInstance, solver: str) -> Method | None:
    """Branch and bound over plans where it may end, or else prices and searches; then the bounds for any order of work.

    Where groups are few, prices have a bound within a second or two, and branch and bound all of the time that is left.
    """
    tree, prices = PlanTree(most=_EFFORT.looks), PlanPrices(moves=_EFFORT.many_moves)
    priced = prices.refuses(instance) is None
    if instance.groups <= _EFFORT.very_few_groups and priced and tree.may_end(instance):
        return WarmStarted("exact", FAMILY, PlanPrices(parts=0, moves=_EFFORT.few_moves), lambda _: PlanTree())
    if instance.groups > _EFFORT.few_groups and priced:
        # The makespan bound does not get beyond the prices' there, and a search of its own is often the better one.
        return WarmStarted("exact", FAMILY, PlanSearch(_EFFORT.many_moves), lambda _: prices, lambda _: _EFFORT.search)
    if not priced:
        later: Method = WarmStarted("exact", FAMILY, PlanSearch(), lambda asked: closing(asked, solver))
        return (
            WarmStarted("exact", FAMILY, tree, lambda _: later, lambda _: _EFFORT.tree)
            if tree.may_end(instance)
            else later
        )
    if tree.may_end(instance):
        later = WarmStarted("exact", FAMILY, tree, lambda asked: closing(asked, solver), lambda _: _EFFORT.tree)
        return WarmStarted("exact", FAMILY, prices, lambda _: later, lambda _: _EFFORT.prices)
    return WarmStarted("exact", FAMILY, prices, lambda asked: closing(asked, solver))


def closing(instance: DeploymentInstance, solver: str) -> Method:
    """The formulation for an instance: with an order of operators where graphs are small."""
    ordered = _ordered(solver)
    return ordered if ordered.refuses(instance) is None else makespan_bound(solver)
