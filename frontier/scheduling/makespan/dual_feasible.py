r"""Dual feasible functions: sizes put differently such that what fits together still does.

A function u on 0..C with :math:`\sum_i u(x_i) \le u(C)` whenever :math:`\sum_i x_i \le C` turns a bound on the total
size of things that share C into another one, often a better one: where everything is larger than C / 2, there is one
that counts each thing as all of C. All values are whole numbers, so that bounds made of them are exact.
"""

import math
from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]

MOST_ROUNDED = 10
"""Largest k of the rounding functions."""
CHOSEN = (1, 2, 3, 4, 6, 1 << 30)
"""How many of the longest things are counted."""


class Transformed(NamedTuple):
    """Sizes under several dual feasible functions.

    Parameters
    ----------
    sizes : (K, n) array
    capacity : (K,) array
        Positive.
    """

    sizes: Ints
    capacity: Ints


def identity(sizes: Ints, capacity: int) -> tuple[Ints, int]:
    """The sizes themselves."""
    return sizes, capacity


def threshold(sizes: Ints, capacity: int, least: int) -> tuple[Ints, int]:
    """What is smaller than ``least`` <= capacity / 2 counts nothing, and what then has no company counts all."""
    counted = np.where(sizes < least, 0, sizes)
    return np.where(sizes > capacity - least, capacity, counted), capacity


def rounding(sizes: Ints, capacity: int, parts: int) -> tuple[Ints, int]:
    """Sizes rounded down to multiples of 1 / (k + 1), of which at most k fit where none is exact; k = ``parts``."""
    scaled = sizes * (parts + 1)
    rounded = scaled // capacity * capacity
    return np.where(scaled % capacity == 0, sizes * parts, rounded), capacity * parts


def complement(sizes: Ints, capacity: int, unit: int) -> tuple[Ints, int]:
    """How many times ``unit`` <= capacity / 2 goes into a size; larger ones leave what does not go into the rest."""
    whole = capacity // unit
    large = 2 * (whole - (capacity - sizes) // unit)
    values = np.where(2 * sizes < capacity, 2 * (sizes // unit), large)
    return np.where(2 * sizes == capacity, whole, values), 2 * whole


def counting(sizes: Ints, capacity: int, chosen: Ints) -> tuple[Ints, int]:
    """How many of the ``chosen`` things, none larger than half, fit beside nothing but not beside this one.

    A chosen thing counts 1, every thing larger than half what it keeps out, others nothing. It is right as long as each
    chosen thing is there only once.
    """
    together = np.cumsum(np.sort(sizes[chosen]))
    whole = int(np.searchsorted(together, capacity, side="right"))
    beside = np.searchsorted(together, capacity - sizes, side="right")
    values = np.where(2 * sizes > capacity, whole - beside, 0)
    values[chosen] = 1
    return values, whole


def transformed(sizes: Ints, capacity: int, most: int = 40, length: Ints | None = None) -> Transformed:
    """Sizes as they are, then under each function that may help; those that tell the same only once.

    Parameters
    ----------
    sizes : (n,) array
        Whole numbers in 0..capacity.
    capacity : int
        At least 1.
    most : int
        Thresholds and units tried of each function; 0 leaves the sizes as they are.
    length : (n,) array, optional
        What the sizes will be multiplied by. If given, each thing is there only once, and those that are longest are
        tried as the chosen ones of :func:`counting`.

    References
    ----------
    S. Fekete, J. Schepers, "New classes of fast lower bounds for bin packing problems", Math. Program. 91, 2001
    (threshold, rounding); J. Carlier, F. Clautiaux, A. Moukrim, "New reduction procedures and lower bounds for the
    two-dimensional bin packing problem with fixed orientation", Comput. Oper. Res. 34, 2007 (complement, counting).
    """
    distinct, place = np.unique(sizes, return_inverse=True)
    place = place.ravel()
    found = [(values[place], total) for values, total in _each(distinct, capacity, most)]
    if length is not None and most:
        found += [counting(sizes, capacity, chosen) for chosen in _choices(sizes, capacity, length, most)]
    rows: dict[bytes, Ints] = {}
    for values, total in found:
        row = np.append(values, total)
        row //= math.gcd(*np.unique(row).tolist())
        if row[:-1].any() or not rows:
            rows.setdefault(row.tobytes(), row)
    table = np.array(list(rows.values()))
    return Transformed(table[:, :-1], table[:, -1])


def _each(distinct: Ints, capacity: int, most: int) -> Iterator[tuple[Ints, int]]:
    yield identity(distinct, capacity)
    if not most:
        return
    interesting = np.unique(np.concatenate((distinct, capacity - distinct + 1)))
    interesting = interesting[(interesting >= 1) & (2 * interesting <= capacity)]
    functions: tuple[Callable[[Ints, int, int], tuple[Ints, int]], ...] = (threshold, complement)
    for function in functions:
        for step in sampled(interesting, most).tolist():
            yield function(distinct, capacity, step)
    for parts in range(1, MOST_ROUNDED + 1):
        yield rounding(distinct, capacity, parts)


def _choices(sizes: Ints, capacity: int, length: Ints, most: int) -> Iterator[Ints]:
    """The longest few, and all, of those that are at most half and at least some size."""
    small = np.flatnonzero((sizes > 0) & (2 * sizes <= capacity))
    small = small[np.argsort(-length[small], kind="stable")]
    for least in sampled(np.unique(sizes[small]), max(1, most // len(CHOSEN))).tolist():
        candidates = small[sizes[small] >= least]
        for count in sorted({min(count, len(candidates)) for count in CHOSEN}):
            yield candidates[:count]


def sampled(values: Ints, most: int) -> Ints:
    """At most ``most`` of the values, evenly spread, the first and the last among them."""
    if len(values) <= most:
        return values
    return values[np.unique(np.linspace(0, len(values) - 1, most).round().astype(np.int64))]
