"""Any collective by column generation: trees (or paths) that prices of links ask for, and the bound of these prices."""

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

from ddlopt.frontier.topology.collective.prices import Wanted, cheapest, least_cost, price_bound
from ddlopt.frontier.topology.collective.shares import (
    DENOMINATORS,
    FINE,
    Column,
    Generation,
    Shares,
    roundings,
)
from ddlopt.models.topology.collective.bounds import bandwidth_bound, exact_collective_bound, latency_bound
from ddlopt.models.topology.collective.instance import (
    Arc,
    CollectiveInstance,
    CollectivePlan,
    Path,
    Tree,
    busy_s,
    longest_way,
)
from ddlopt.models.topology.collective.paths import loads
from ddlopt.solvers.certify import MethodOutput
from ddlopt.solvers.contracts import Limits
from ddlopt.solvers.heuristic import CertifiedMethod, Clock


@dataclass(frozen=True)
class TreeColumns(CertifiedMethod, uses=("start",)):
    r"""The linear program over trees, or over paths for all-to-all, by column generation.

    .. math::
        \max R \quad \text{s. t.} \quad \sum_{\tau \in g} w_\tau = f_g R \ \text{for each part g}, \quad
        \sum_\tau \ell_{\tau e} w_\tau \le B_e \ \text{for each link e}, \quad w \ge 0

    with bytes per second :math:`w_\tau` on tree :math:`\tau`, which uses link e :math:`\ell_{\tau e}` times. A part is
    a root of an all-gather, a pair of an all-to-all, or everything in an all-reduce, where a tree is one into and one
    out of the same root: both phases share links at once, which may beat one after the other. Duals of links are
    prices, and :func:`~ddlopt.frontier.topology.collective.prices.cheapest` finds the trees that they ask for.

    Numbers are then rounded to fractions: shares, so that they add up exactly, and prices, whose bound is calculated
    exactly and so holds whatever was rounded. Where both agree, the plan is proven without any tolerance.

    Parameters
    ----------
    rounds : int
        Linear programs at most.
    smoothing : float
        Weight of the best prices beside the last ones.
    """

    rounds: int = 1000
    smoothing: float = 0.6

    name: ClassVar[str] = "tree-columns"
    covers: ClassVar[type[CollectiveInstance]] = CollectiveInstance

    def find(self, instance: CollectiveInstance, limits: Limits, seed: int, clock: Clock, start: Any) -> MethodOutput:
        """Trees, their shares as fractions, and the bound of the best prices."""
        known = start if isinstance(start, CollectivePlan) else None
        generation, shares, trees, parts = self.generated(instance, known, lambda: clock.expired)
        bound = exact_collective_bound(instance)
        columns = list(generation.columns.items())
        plans = [*_rounded(instance, parts, columns, trees, shares), *_of_start(instance, known)]
        plan, objective = min(plans, key=lambda each: each[1])
        if objective > bound:
            bound = max(
                bound,
                *(price_bound(instance, each) + latency_bound(instance) for each in rounded_prices(generation, shares)),
            )
        details = {"rounds": generation.rounds, "columns": len(columns), "exact": float(objective == bound)}
        return MethodOutput(plan, details, bound=float(bound))

    def generated(
        self, instance: CollectiveInstance, known: CollectivePlan | None, expired: Callable[[], bool]
    ) -> tuple[Generation, Shares, dict[Hashable, Wanted], dict[Hashable, Fraction]]:
        """Column generation until nothing is left to gain or the time has expired.

        Returns
        -------
        Generation, Shares
            With the best prices, and the last linear program.
        dict
            The tree of each column.
        dict
            Of M, the parts that the collective has.
        """
        floor = float(bandwidth_bound(instance)) / instance.collective_bytes
        first = cheapest(instance, {link: 1 / each for link, each in instance.bandwidth.items()})
        parts = {_part(instance, each.root, each.spread): each.part for each in first}
        trees: dict[Hashable, Wanted] = {}

        def priced(prices: Mapping[Arc, float]) -> tuple[float, bool, Mapping[Hashable, Column]]:
            found = cheapest(instance, prices)
            return float(least_cost(instance, found)), True, _columns(instance, trees, found)

        opening = _columns(instance, trees, [] if known is None else _of_plan(instance, parts, known))
        generation = Generation(instance.bandwidth, parts, opening, self.smoothing)
        shares = generation.run(priced, self.rounds, floor, expired)
        return generation, shares, trees, parts


def _of_start(instance: CollectiveInstance, plan: CollectivePlan | None) -> list[tuple[CollectivePlan, Fraction]]:
    return [] if plan is None else [(plan, seconds_of(instance, plan.trees))]


def rounded_prices(generation: Generation, shares: Shares) -> Iterable[dict[Arc, Fraction]]:
    """The best prices and the last ones as fractions, those of small denominators first."""
    for denominator in (*DENOMINATORS, FINE):
        for prices in (generation.prices, shares.prices):
            largest = max(prices.values())
            rounded = {link: Fraction(each / largest).limit_denominator(denominator) for link, each in prices.items()}
            if any(rounded.values()):
                yield rounded


def _part(instance: CollectiveInstance, root: int, spread: tuple[Path, ...]) -> Hashable:
    """The bytes that a tree may carry: all, those of its root, or those of a pair."""
    if instance.collective == "all-reduce":
        return ()
    return (root, spread[0][-1]) if instance.collective == "all-to-all" else (root,)


def _columns(
    instance: CollectiveInstance, trees: dict[Hashable, Wanted], found: Iterable[Wanted]
) -> dict[Hashable, Column]:
    """Columns of trees, which are noted by key."""
    columns: dict[Hashable, Column] = {}
    for each in found:
        key = (each.root, each.gather, each.spread)
        trees.setdefault(key, each)
        columns[key] = Column(_part(instance, each.root, each.spread), loads(each.gather + each.spread))
    return columns


def _of_plan(
    instance: CollectiveInstance, parts: Mapping[Hashable, Fraction], plan: CollectivePlan
) -> Iterable[Wanted]:
    """Trees of a plan; their shares do not matter."""
    for tree in plan.trees:
        part = parts[_part(instance, tree.root, tree.spread)]
        yield Wanted(part, 0, tree.root, tree.gather, tree.spread)


def _rounded(
    instance: CollectiveInstance,
    parts: Mapping[Hashable, Fraction],
    columns: Sequence[tuple[Hashable, Column]],
    trees: Mapping[Hashable, Wanted],
    shares: Shares,
) -> Iterable[tuple[CollectivePlan, Fraction]]:
    """Plans whose shares are the weights as fractions, and their seconds."""
    alone = [column for _, column in columns]
    for told_shares in roundings(alone, instance.bandwidth, parts, shares):
        found = []
        for place, share in told_shares.items():
            each = trees[columns[place][0]]
            told = str(share * parts[alone[place].part])
            found.append(Tree(share=told, root=each.root, gather=each.gather, spread=each.spread))
        made = CollectivePlan(instance=instance.name, instance_digest=instance.digest, trees=tuple(found))
        yield made, seconds_of(instance, found)


def seconds_of(instance: CollectiveInstance, trees: Iterable[Tree]) -> Fraction:
    """For which the busiest link is busy, with the steps of the longest way."""
    known = list(trees)
    busy = max(busy_s(instance, known).values())
    return busy + longest_way(known) * Fraction(instance.step_s) if instance.step_s else busy
