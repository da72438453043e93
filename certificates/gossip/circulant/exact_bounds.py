"""The largest gap of circulant graphs in whole numbers: every set of generators, with eigenvalues rounded upwards."""

from collections.abc import Iterator
from fractions import Fraction
from itertools import combinations
from math import ceil, comb, gcd

import numpy as np
import numpy.typing as npt

from ddlopt.models.errors import NotApplicableError
from ddlopt.models.gossip.circulant.instance import CirculantInstance

Units = npt.NDArray[np.int64]

_PI = Fraction(31415926535897932385, 10**19)
"""More than pi, by less than 10⁻¹⁹."""
_TERMS = 15
"""Of the series of a cosine up to pi: the next is below 10⁻¹⁸; the last of an odd number is added, not subtracted."""
_BITS = 48
"""Eigenvalues are counted in units of two to the minus this; 2048 generators, of 4 each, stay below 2⁶¹."""
_MOST_SUMS = 400_000_000
"""Additions of eigenvalues in a listing: a few seconds."""


def exact_circulant_bound(instance: CirculantInstance) -> Fraction:
    r"""A second smallest eigenvalue that no circulant graph of the degree exceeds; the largest one has 10⁻¹¹ less.

    Another generator makes no eigenvalue smaller, so only sets that leave no room for one are listed. Multiplication
    by a unit of :math:`Z_n` permutes the eigenvalues, maps n/2 to itself, and each other generator to any with the
    same divisor in common with n; so one generator of a set may be taken for the least of its divisors.
    Each :math:`2 - 2 \cos x` is replaced by an odd number of terms of :math:`x^2 - x^4/12 + …`, which fall for
    :math:`x \le \pi`, at a fraction that is no less than x, rounded upwards.

    Raises
    ------
    NotApplicableError
        If the goal is ``averaging``, or there are too many sets.
    """
    if instance.goal != "gap":
        raise NotApplicableError("factors of averaging with the best weights are not recomputed in rational numbers")
    cases = list(_cases(instance.nodes, instance.degree))
    places = instance.nodes // 2
    sums = sum((comb(len(rest), more) + comb(len(rest), more - 1 if more else 0) * more) for _, rest, more, _ in cases)
    if sums * places > _MOST_SUMS:
        raise NotApplicableError(f"'{instance.name}' has too many sets of generators to list them in whole numbers")
    table = _characters(instance.nodes)
    best = 0
    for leader, rest, more, half in cases:
        base = table[leader - 1] + (table[-1] if half else 0)
        best = max(best, _largest(base, table[[g - 1 for g in rest]], more))
    return Fraction(best, 2**_BITS)


def _cases(nodes: int, degree: int) -> Iterator[tuple[int, list[int], int, bool]]:
    """The generator that is least among its set's divisors, the others, how many of them, whether n/2 is added."""
    pool = range(1, (nodes + 1) // 2)
    for half in (False, True):
        if (half and nodes % 2) or (not half and nodes % 2 == 0 and degree % 2):
            continue  # no n/2, or room for it
        count = min((degree - half) // 2, len(pool))
        for leader in (g for g in pool if nodes % g == 0):
            rest = [g for g in pool if gcd(g, nodes) >= leader and g != leader]
            if len(rest) >= count - 1 >= 0:
                yield leader, rest, count - 1, half


def _characters(nodes: int) -> Units:
    """(⌊n/2⌋, ⌊n/2⌋) what each generator adds to each eigenvalue, in units and at least so much."""
    near = [_above(Fraction(2 * k, nodes)) for k in range(nodes // 2 + 1)]
    around = np.array([near[min(k, nodes - k)] for k in range(nodes)], dtype=np.int64)
    numbers = np.arange(1, nodes // 2 + 1)
    table: Units = around[np.outer(numbers, numbers) % nodes]
    if nodes % 2 == 0:
        table[-1] //= 2  # of n/2: 0 or 4, which are exact
    return table


def _above(turn: Fraction) -> int:
    """Units that 2 - 2 cos(pi turn) does not exceed, for a turn in 0..1."""
    if turn == 1:
        return 4 << _BITS
    square, value = (turn * _PI) ** 2, Fraction(0)
    for term in range(_TERMS, 0, -1):
        value = (1 - value) * square / ((2 * term - 1) * (2 * term))
    return ceil(2 * value * (1 << _BITS))


def _largest(base: Units, table: Units, more: int) -> int:
    """The least eigenvalue of the best set with a given number of further generators of the table."""
    if more == 0:
        return int(base.min())
    best = 0
    for begun in combinations(range(len(table) - 1), more - 1):
        last = begun[-1] + 1 if begun else 0
        if last < len(table):
            sums = base + table[list(begun)].sum(axis=0)
            best = max(best, int((sums + table[last:]).min(axis=1).max()))
    return best
