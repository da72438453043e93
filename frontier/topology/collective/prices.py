r"""A bound from prices of links.

Let each byte on link e cost :math:`\pi_e \ge 0`. In T seconds links carry at most :math:`T \sum_e B_e \pi_e` worth of
bytes. Each byte of the collective has to be somewhere, and that costs at least:

* all-gather: a least spanning tree out of its root, in the mean over roots (reduce-scatter: into it);
* broadcast: a least spanning tree out of the root;
* all-reduce: a least tree into and a least tree out of the same root, for the root where the sum is least;
* all-to-all: a shortest path, in the mean over all ordered pairs and (N - 1) times.

Trees are over accelerators, where an arc is a shortest path of any links. So :math:`T \ge M c(\pi) / \sum_e B_e \pi_e`.
The best prices attain the optimum of the linear program over trees (or paths), whose dual they are; prices of 1 on the
links out of a set are the bound of a cut.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from ddlopt.frontier.topology.collective.arborescence import least_arborescence
from ddlopt.models.topology.collective.cuts import whole
from ddlopt.models.topology.collective.instance import Arc, CollectiveInstance, Path
from ddlopt.models.topology.collective.paths import Prices, shortest


@dataclass(frozen=True)
class Wanted:
    """What costs least for a part of the bytes.

    Parameters
    ----------
    part : Fraction
        Of M.
    cost : number
        Per byte.
    root : int
    gather, spread : tuple of paths
        As of a :class:`~ddlopt.models.topology.collective.instance.Tree`.
    """

    part: Fraction
    cost: Any
    root: int
    gather: tuple[Path, ...] = ()
    spread: tuple[Path, ...] = ()


def cheapest(instance: CollectiveInstance, prices: Prices) -> list[Wanted]:
    """For each root, or pair of an all-to-all, the tree or path that costs least; in the arithmetic of the prices.

    In an all-reduce each root may have all bytes; elsewhere the parts add up to what the collective has.
    """
    count = instance.accelerators
    costs, paths = shortest(instance, prices)
    if instance.collective == "all-to-all":
        part = Fraction(1, count)
        pairs = [(i, j) for i in range(count) for j in range(count) if i != j]
        return [Wanted(part, costs[i][j], i, spread=(paths[i][j],)) for i, j in pairs]
    roots = range(count) if instance.root is None else (instance.root,)
    backwards = [list(row) for row in zip(*costs, strict=True)]
    found = []
    for root in roots:
        cost: Any = 0
        gather: tuple[Path, ...] = ()
        spread: tuple[Path, ...] = ()
        if instance.collective in ("reduce-scatter", "all-reduce"):
            value, before = least_arborescence(backwards, root)
            cost, gather = cost + value, tuple(paths[v][u] for v, u in enumerate(before) if u >= 0)
        if instance.collective != "reduce-scatter":
            value, before = least_arborescence(costs, root)
            cost, spread = cost + value, tuple(paths[u][v] for v, u in enumerate(before) if u >= 0)
        part = Fraction(1) if instance.collective == "all-reduce" else Fraction(1, len(roots))
        found.append(Wanted(part, cost, root, gather, spread))
    return found


def least_cost(instance: CollectiveInstance, found: list[Wanted]) -> Any:
    """What a byte of the collective costs at least, of what :func:`cheapest` found."""
    if instance.collective == "all-reduce":
        return min(each.cost for each in found)
    return sum(each.part * each.cost for each in found)


def price_bound(instance: CollectiveInstance, prices: Mapping[Arc, Fraction]) -> Fraction:
    """Seconds below which no plan is, by prices that are not negative; links without one cost nothing.

    Raises
    ------
    ValueError
        If no link has a price.
    """
    numbers, _ = whole([prices.get(link, Fraction(0)) for link in instance.bandwidth])
    if not any(numbers):
        raise ValueError("no link has a price")
    known = dict(zip(instance.bandwidth, numbers, strict=True))
    worth = sum((Fraction(each) * known[link] for link, each in instance.bandwidth.items()), Fraction(0))
    least = Fraction(least_cost(instance, cheapest(instance, known)))
    return Fraction(instance.collective_bytes) * least / worth
