"""Sums of functions of one or two choices each, minimised by eliminating one choice after the other."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Factor = tuple[tuple[int, ...], Floats]
"""Variables, increasing, and a table with one axis for each."""

# Entries of 8 bytes: two megabytes; larger tables are bounded instead.
LARGEST_TABLE = 200_000


class MinSum(NamedTuple):
    """What :func:`min_sum` finds.

    Parameters
    ----------
    value : float
        The minimum, or a lower bound on it.
    choices : tuple of int
        Where it is attained, or choices that are good.
    exact : bool
        Whether it is the minimum.
    """

    value: float
    choices: tuple[int, ...]
    exact: bool


class Elimination:
    r"""An order in which to eliminate variables, and tables to go with it; found once for many sums of one shape.

    :math:`\min_a \sum_v \theta_v(a_v) + \sum_{uv} \theta_{uv}(a_u, a_v)` is found exactly by dynamic programming on the
    graph of pairs: to eliminate v, add up all tables with v, and replace them by their minimum over :math:`a_v`, a
    table of v's neighbours. The next one is always the variable whose table has the fewest entries. On a chain or a
    tree no table has more entries than a pair; in general the number of axes is the treewidth of the order, plus one.

    Where a table would exceed ``largest``, the tables with v are parted into several that do not, each minimised over
    its own copy of :math:`a_v` (mini-buckets). The copies may differ, so that the result is a lower bound.

    Parameters
    ----------
    sizes : sequence of int
        How many choices each variable has.
    pairs : sequence of (int, int)
        The two variables of each pair table, in any order; a pair may occur more than once.
    largest : int
        Entries of a table.

    References
    ----------
    U. Bertelè, F. Brioschi, "Nonserial Dynamic Programming", 1972; R. Dechter, I. Rish, "Mini-buckets: A general scheme
    for bounded inference", J. ACM 50(2), 2003.
    """

    def __init__(self, sizes: Sequence[int], pairs: Sequence[tuple[int, int]], largest: int = LARGEST_TABLE) -> None:
        self.sizes, self.pairs, self.largest = tuple(sizes), tuple(pairs), largest
        neighbours: list[set[int]] = [set() for _ in sizes]
        for u, v in pairs:
            neighbours[u].add(v)
            neighbours[v].add(u)
        order: list[int] = []
        left = set(range(len(sizes)))

        def entries(v: int) -> tuple[float, int]:
            return float(np.prod([float(sizes[u]) for u in (v, *neighbours[v])])), v

        cost = {v: entries(v) for v in left}
        while left:
            v = min(left, key=cost.__getitem__)
            left.remove(v)
            order.append(v)
            around = neighbours[v]
            for u in around:
                neighbours[u] |= around
                neighbours[u] -= {u, v}
            for u in around:
                cost[u] = entries(u)
        self.order = tuple(order)

    def minimum(self, unary: Sequence[Floats], tables: Sequence[Floats]) -> MinSum:
        """The minimum for one table per variable and one per pair, of shape (choices of first, of second)."""
        buckets: list[list[Factor]] = [[((v,), np.asarray(table, dtype=np.float64))] for v, table in enumerate(unary)]
        rank = {v: place for place, v in enumerate(self.order)}
        for (u, v), table in zip(self.pairs, tables, strict=True):
            buckets[min(u, v, key=rank.__getitem__)].append(((u, v), table) if u < v else ((v, u), table.T))
        value, exact = 0.0, True
        for v in self.order:
            parts = self._parts(buckets[v])
            exact &= len(parts) == 1
            for variables, table in parts:
                rest = tuple(u for u in variables if u != v)
                least = table.min(axis=variables.index(v))
                if rest:
                    buckets[min(rest, key=rank.__getitem__)].append((rest, least))
                else:
                    value += float(least)
        choices: dict[int, int] = {}
        for v in reversed(self.order):
            cost = np.zeros(self.sizes[v])
            for variables, table in buckets[v]:
                cost += table[tuple(choices[u] if u != v else slice(None) for u in variables)]
            choices[v] = int(cost.argmin())
        return MinSum(value, tuple(choices[v] for v in range(len(self.sizes))), exact)

    def _parts(self, factors: Sequence[Factor]) -> list[Factor]:
        """Sums of the factors over as few tables as fit, filled in turn, the largest factors first."""
        parts: list[tuple[set[int], list[Factor]]] = []
        for factor in sorted(factors, key=lambda each: -each[1].size):
            for variables, members in parts:
                union = variables.union(factor[0])
                if len(union) == len(variables) or np.prod([float(self.sizes[u]) for u in union]) <= self.largest:
                    variables |= union
                    members.append(factor)
                    break
            else:
                parts.append((set(factor[0]), [factor]))
        return [self._sum(tuple(sorted(variables)), members) for variables, members in parts]

    def _sum(self, variables: tuple[int, ...], factors: Sequence[Factor]) -> Factor:
        total = np.zeros([self.sizes[u] for u in variables])
        for own, table in factors:
            total += table.reshape([self.sizes[u] if u in own else 1 for u in variables])
        return variables, total


def min_sum(unary: Sequence[Floats], pairs: Mapping[tuple[int, int], Floats], largest: int = LARGEST_TABLE) -> MinSum:
    """Minimum of a sum of tables, see :class:`Elimination`.

    Parameters
    ----------
    unary : sequence of (choices,) array
        By variable.
    pairs : mapping (u, v) -> (choices of u, choices of v) array
    largest : int
        Entries of a table, beyond which the result is only a bound.
    """
    elimination = Elimination([len(each) for each in unary], list(pairs), largest)
    return elimination.minimum(unary, list(pairs.values()))
