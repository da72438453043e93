"""Sums of functions of one or two choices each, minimised by eliminating one choice after the other."""

from collections.abc import Iterable, Mapping, Sequence
from math import prod
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]

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


class _Sum(NamedTuple):
    """Tables that are added up, by number and with the shape that each takes for it, and minimised over one axis."""

    shapes: tuple[tuple[int, tuple[int, ...]], ...]
    axis: int
    last: bool
    """Whether no other axis is left."""


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
            return self._entries((v, *neighbours[v])), v

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
        self._plan()

    def _plan(self) -> None:
        """Which tables are added up for every variable: that depends on their shapes alone."""
        rank = {v: place for place, v in enumerate(self.order)}
        scopes: list[tuple[int, ...]] = [(v,) for v in range(len(self.sizes))]
        scopes += [(min(pair), max(pair)) for pair in self.pairs]
        self._buckets: list[list[int]] = [[] for _ in self.sizes]
        for number, scope in enumerate(scopes):
            self._buckets[min(scope, key=rank.__getitem__)].append(number)
        self._sums: list[_Sum] = []
        self.exact = True
        for v in self.order:
            parts = self._parts([(number, scopes[number]) for number in self._buckets[v]])
            self.exact &= len(parts) == 1
            for variables, members in parts:
                shapes = [(i, tuple(self.sizes[u] if u in scopes[i] else 1 for u in variables)) for i in members]
                rest = tuple(u for u in variables if u != v)
                self._sums.append(_Sum(tuple(shapes), variables.index(v), last=not rest))
                if rest:
                    self._buckets[min(rest, key=rank.__getitem__)].append(len(scopes))
                    scopes.append(rest)
        self._scopes = tuple(scopes)

    def minimum(self, unary: Sequence[Floats], tables: Sequence[Floats]) -> MinSum:
        """The minimum for one table per variable and one per pair, of shape (choices of first, of second)."""
        factors = [np.asarray(table, dtype=np.float64) for table in unary]
        factors += [table if u < v else table.T for (u, v), table in zip(self.pairs, tables, strict=True)]
        value = 0.0
        for (first, *others), axis, last in self._sums:
            total = factors[first[0]].reshape(first[1])
            for number, shape in others:
                total = total + factors[number].reshape(shape)
            least = total.min(axis=axis)
            if last:
                value += float(least)
            else:
                factors.append(least)
        choices: dict[int, int] = {}
        for v in reversed(self.order):
            cost = np.zeros(self.sizes[v])
            for number in self._buckets[v]:
                cost += factors[number][tuple(choices[u] if u != v else slice(None) for u in self._scopes[number])]
            choices[v] = int(cost.argmin())
        return MinSum(value, tuple(choices[v] for v in range(len(self.sizes))), self.exact)

    def _parts(self, factors: Sequence[tuple[int, tuple[int, ...]]]) -> list[tuple[tuple[int, ...], list[int]]]:
        """Variables and factors of as few tables as fit, filled in turn, the largest factors first."""
        parts: list[tuple[set[int], list[int]]] = []
        for number, own in sorted(factors, key=lambda each: -self._entries(each[1])):
            for variables, members in parts:
                union = variables.union(own)
                if len(union) == len(variables) or self._entries(union) <= self.largest:
                    variables |= union
                    members.append(number)
                    break
            else:
                parts.append((set(own), [number]))
        return [(tuple(sorted(variables)), members) for variables, members in parts]

    def _entries(self, variables: Iterable[int]) -> float:
        """Of a table with these axes."""
        return prod(float(self.sizes[u]) for u in variables)


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
