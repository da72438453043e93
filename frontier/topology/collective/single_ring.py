"""The best single ring of few accelerators: which order, and over which paths each of its hops goes.

What an order takes is a linear program: each hop's bytes over paths of its own. Its prices of links say of *every*
order what it takes at least, as each hop costs a cheapest path. So the order with the least such bound is solved, its
prices are added, and so on until the least bound is that of an order that has been solved.
"""

from collections.abc import Callable, Hashable, Iterator, Mapping
from fractions import Fraction
from itertools import pairwise, permutations

import numpy as np

from ddlopt.frontier.topology.collective.shares import (
    SAME,
    Column,
    Generation,
    roundings,
)
from ddlopt.frontier.topology.collective.tours import Floats
from ddlopt.models.errors import NoSolutionError
from ddlopt.models.topology.collective.instance import Arc, CollectiveInstance, Path
from ddlopt.models.topology.collective.paths import loads

MOST = 9
"""Accelerators up to which all orders are kept: 40 320."""
_ROUNDS = 200
"""Linear programs of an order at most."""

Pricing = Callable[[Mapping[Arc, float]], tuple[Floats, list[list[Path]]]]
"""Costs of hops under prices of links, infinite where there is no path, and the paths."""


Shared = list[tuple[Fraction, tuple[Path, ...]]]
"""Rings over one order: shares, and the path of each hop."""


def best_order(
    instance: CollectiveInstance, hops: Pricing, once: Fraction, floor: float, expired: Callable[[], bool]
) -> tuple[list[Shared], float]:
    """Ways to round the best order's shares, and the seconds a byte below which no single ring is.

    Parameters
    ----------
    hops : callable
    once : Fraction
        Bytes over each hop for each byte of the collective.
    floor : float
        Seconds a byte below which nothing is.

    Raises
    ------
    NoSolutionError
        If no order has paths for all its hops.
    """
    count = instance.accelerators
    orders = np.array([(0, *rest) for rest in permutations(range(1, count))])
    after = np.roll(orders, -1, axis=1)
    costs, _ = hops({link: 1 / each for link, each in instance.bandwidth.items()})
    there = np.isfinite(costs[orders, after].sum(axis=1))
    orders, after = orders[there], after[there]
    if not len(orders):
        raise NoSolutionError("there is no ring of direct links over all accelerators")
    bounds = np.full(len(orders), floor)
    best, found = np.inf, list[Shared]()
    while bounds.min() < best * (1 - SAME):
        place = int(bounds.argmin())
        order = orders[place].tolist()
        generation = _solved(instance, hops, order, once, floor, expired)
        assert generation.shares is not None
        if generation.shares.seconds < best:
            found = list(_rings(instance, order, generation))
            best = generation.shares.seconds
        costs, _ = hops(generation.prices)
        worth = sum(each * generation.prices[link] for link, each in instance.bandwidth.items())
        bounds = np.maximum(bounds, costs[orders, after].sum(axis=1) * float(once) / worth)
        bounds[place] = max(generation.shares.seconds, floor)
        if expired():
            break
    return found, float(min(bounds.min(), best))


def _solved(
    instance: CollectiveInstance,
    hops: Pricing,
    order: list[int],
    once: Fraction,
    floor: float,
    expired: Callable[[], bool],
) -> Generation:
    """The linear program of an order: parts are hops, columns paths."""
    ends = [(i, j) for i, j in pairwise([*order, order[0]]) if j != instance.root]

    def priced(prices: Mapping[Arc, float]) -> tuple[float, bool, Mapping[Hashable, Column]]:
        costs, paths = hops(prices)
        columns: dict[Hashable, Column] = {}
        for i, j in ends:
            path = paths[i][j]
            columns[path] = Column((i, j), {link: times * once for link, times in loads([path]).items()})
        return float(sum(costs[i, j] for i, j in ends)) * float(once), True, columns

    parts: dict[Hashable, Fraction] = {end: Fraction(1) for end in ends}
    generation = Generation(instance.bandwidth, parts)
    generation.run(priced, _ROUNDS, floor, expired)
    return generation


def _rings(instance: CollectiveInstance, order: list[int], generation: Generation) -> Iterator[Shared]:
    """Rings of the order, for each share of the bytes the path of each hop that it takes; for each way to round."""
    assert generation.shares is not None
    paths, columns = list(generation.columns), list(generation.columns.values())
    ends = list(pairwise([*order, order[0]]))
    for told in roundings(columns, instance.bandwidth, generation.parts, generation.shares):
        left: dict[Hashable, list[tuple[Fraction, Path]]] = {}
        for place, share in told.items():
            left.setdefault(columns[place].part, []).append((share, paths[place]))  # type: ignore[arg-type]
        found: Shared = []
        rest = Fraction(1)
        while rest:
            share = min([rest, *(each[-1][0] for each in left.values())])
            # The hop into a broadcast's root is not used.
            found.append((share, tuple(left[end][-1][1] if end in left else end for end in ends)))
            for each in left.values():
                size, path = each.pop()
                if size > share:
                    each.append((size - share, path))
            rest -= share
        yield found
