"""A bound for lookup tables that needs no solver."""

import math

import numpy as np

from ddlopt.models.aggregation.table.instance import LookupFunction, TableInstance
from ddlopt.models.aggregation.table.trie import block_errors, split_errors
from ddlopt.models.aggregation.table.values import Floats, best_values
from ddlopt.models.tolerances import ROUNDING

_ROUNDS = 60
"""Of the search for the best price of memory; every price gives a bound."""
_HALVINGS = 10
"""Of the search for the error that makes a bound meet itself."""
_ROUNDING = 1e-13
"""Relative to the largest value: by which values and their sums may be off."""


def table_bound(instance: TableInstance) -> float:
    r"""A lower bound on the weighted error of all tables.

    Between the operands with the least and the largest value, the function climbs by V: within entries, by no more than
    twice the error E in each of n, and from one entry to the next, which is n - 1 of the jumps between neighbours, at
    most the n - 1 largest, :math:`J_{n-1}`. So :math:`E \ge (V - J_{n-1}) / 2n`. An operand with jumps above 2 E on
    either side is alone in its entry, where nothing climbs: with S(E) of these,
    :math:`2 E\, (n - S(E)) \ge V - J_{n-1}`, whose left side grows with E. For relative errors the same holds of
    logarithms, where an entry spans at most :math:`\ln \frac{1 + E}{1 - E} = 2 \operatorname{artanh} E`. Where values
    have a step, no error is below that of a table with an entry for every operand. Of prefixes, the least errors
    themselves are known (:mod:`~ddlopt.models.aggregation.table.trie`).

    Memory is shared among tables by these bounds: for the largest error by the least for which all fit; for the sum by
    Lagrange's multiplier, which bounds it at every price of memory.
    """
    bounds = [table.weight * least_errors(table, _most_entries(instance, k)) for k, table in enumerate(instance.tables)]
    sizes = [table.entry_bytes for table in instance.tables]
    if instance.goal == "max":
        return _largest(bounds, sizes, instance.budget_bytes)
    return _at_best_price(bounds, sizes, instance.budget_bytes)


def least_errors(table: LookupFunction, most: int) -> Floats:
    """Lower bounds on the error of a table with 1, 2, …, ``most`` entries, not weighted; shape (most,)."""
    values = np.log(np.abs(table.values)) if table.relative else table.values
    climb = float(values.max() - values.min())
    rounding = _ROUNDING * max(1.0, float(np.abs(values).max()), climb)
    single = float(best_values(table.values, table.values, table.relative, table.step)[1].max()) - rounding
    if table.entries == "prefixes":
        found = split_errors(table, block_errors(table))[:most] - rounding
        return np.maximum(np.pad(found, (0, most - len(found))), single)
    jumps = np.sort(np.abs(np.diff(values)))[::-1]
    passed = np.concatenate(([0.0], np.cumsum(jumps)))[:most]
    passed = np.pad(passed, (0, most - len(passed)), mode="edge")
    halves = _halved(np.maximum(climb - passed - rounding, 0.0), _lonely(values) - rounding)
    return np.maximum(np.tanh(halves) if table.relative else halves, single)


def _lonely(values: Floats) -> Floats:
    """For every operand the error below which it is alone in its entry, ascending."""
    jumps = 0.5 * np.abs(np.diff(values))
    return np.sort(np.minimum(np.append(jumps, np.inf), np.insert(jumps, 0, np.inf)))


def _halved(climbs: Floats, lonely: Floats) -> Floats:
    """For 1, 2, … entries that climb by as much in all: half of what one of them must climb, at least."""
    entries = np.arange(1, len(climbs) + 1)
    low = climbs / (2 * entries)
    # Most of the gain is within a factor of four; wherever the search ends, what failed is a bound.
    factor, stride = np.ones(len(low)), 2.0
    for _ in range(_HALVINGS):
        tried = low * factor * stride
        left = entries - (len(lonely) - np.searchsorted(lonely, tried, side="right"))
        fails = (left < 0) | (2 * tried * left < climbs)
        factor[fails] *= stride
        stride = math.sqrt(stride)
    return low * factor


def _most_entries(instance: TableInstance, place: int) -> int:
    """Entries of a table where all others have one; more than it has operands serve nothing."""
    table = instance.tables[place]
    others = sum(each.entry_bytes for each in instance.tables) - table.entry_bytes
    return min((instance.budget_bytes - others) // table.entry_bytes, table.operands)


def _largest(bounds: list[Floats], sizes: list[int], budget: int) -> float:
    """The least error for which each table may, by its bounds, have as many entries as it takes."""
    candidates = np.unique(np.concatenate(bounds))
    low, high = -1, len(candidates) - 1
    # Fewer entries have bounds that are no smaller, so the first that is small enough is found by search.
    while high - low > 1:
        middle = (low + high) // 2
        counts = [1 + np.searchsorted(-each, -candidates[middle]) for each in bounds]
        fits = all(count <= len(each) for count, each in zip(counts, bounds, strict=True))
        fits = fits and sum(int(count) * size for count, size in zip(counts, sizes, strict=True)) <= budget
        low, high = (low, middle) if fits else (middle, high)
    return float(candidates[high])


def _at_best_price(bounds: list[Floats], sizes: list[int], budget: int) -> float:
    """The largest of the bounds at all prices, which are concave in the price, by golden sections of its logarithm."""
    top = max(float(each[0]) / size for each, size in zip(bounds, sizes, strict=True))
    best = max(0.0, _priced(bounds, sizes, budget, 0.0))
    if top <= 0:
        return best
    ratio = (math.sqrt(5) - 1) / 2
    low, high = math.log(top) - 2 * math.log(max(map(len, bounds))) - 3, math.log(top) + 1
    for _ in range(_ROUNDS):
        one, other = high - ratio * (high - low), low + ratio * (high - low)
        left, right = (_priced(bounds, sizes, budget, math.exp(each)) for each in (one, other))
        best = max(best, left, right)
        low, high = (low, other) if left > right else (one, high)
    return best * (1 - ROUNDING)


def _priced(bounds: list[Floats], sizes: list[int], budget: int, price: float) -> float:
    total = -price * budget
    for errors, size in zip(bounds, sizes, strict=True):
        total += float((errors + price * size * np.arange(1, len(errors) + 1)).min())
    return total
