r"""The bound of lookup tables in whole numbers, which anybody can recompute.

Values of functions are calculated to 60 decimal digits, of which 40 are certain, and samples are the fractions that
they are; each lies between two whole numbers in a unit that is :math:`2^{-110}` of the largest. What follows holds for
every value in between.

*Entries that an error takes* (:mod:`~ddlopt.certificates.aggregation.table.exact_entries`): a lower bound on the
entries of a table with an error below t, for any t.

*Largest error*: where tables with weighted errors below t do not fit together into memory, t is a bound.

*Sum of errors*: between errors :math:`t < t'`, a table has an error of at least t and as many entries as an error below
t' takes. The best choice of one such pair a table within memory, a knapsack in whole numbers, is a lower bound; the
chosen pairs are divided until they are narrow.
"""

from fractions import Fraction

import numpy as np
import numpy.typing as npt

from ddlopt.certificates.aggregation.table.exact_entries import ExactTable
from ddlopt.models.aggregation.table.instance import TableInstance
from ddlopt.models.errors import NotApplicableError

_MOST_OPERANDS = 300_000
"""Of all tables: their values to 60 digits take ten seconds."""
_MOST_ENTRIES = 10_000_000
"""Looked at in search of the best bound, some ten seconds; what is known until then is one, too."""
_MOST_CHOICES = 4_000_000
"""Of some tables at once in the knapsack: memory, and half a second."""
_MOST_TABLES = 16
"""That share memory."""
_MOST_ROUNDS = 150
"""Knapsacks; what is known until then is a bound, too."""
_NARROW = 2.0**-17
"""Width, relative to the bound, of pairs of errors that are not divided further: a tenth of the gap asked for."""
_HALVINGS = 40
"""Of the largest error and of the least at the beginning: a factor of 10^12."""
_VALUE_BITS = 56
"""Of a sum of weighted errors in whole numbers, each rounded down: far below 64, and finer than a double."""

Ints = npt.NDArray[np.int64]


def exact_table_bound(instance: TableInstance) -> Fraction:
    """A lower bound on the weighted error of all tables, without any rounding.

    Raises
    ------
    NotApplicableError
        If there are too many operands or tables, or values too small for the digits that are calculated.
    """
    if instance.size > _MOST_OPERANDS or len(instance.tables) > _MOST_TABLES:
        raise NotApplicableError(
            f"'{instance.name}' has {len(instance.tables)} tables with {instance.size} operands; exactly bounded are "
            f"{_MOST_TABLES} with {_MOST_OPERANDS}"
        )
    tables = [ExactTable(table) for table in instance.tables]
    if instance.goal == "max":
        return _largest(instance, tables)
    return _sum(instance, tables)


def _caps(instance: TableInstance) -> list[int]:
    """Entries that each table may have where the others have one."""
    spare = instance.budget_bytes - sum(table.entry_bytes for table in instance.tables)
    return [1 + spare // table.entry_bytes for table in instance.tables]


def _largest(instance: TableInstance, tables: list[ExactTable]) -> Fraction:
    """By bisection of the largest weighted error; what does not fit is a bound."""
    weights = [Fraction(table.weight) for table in instance.tables]
    caps = _caps(instance)

    def fits(limit: Fraction) -> bool:
        used = 0
        for table, own, weight, cap in zip(instance.tables, tables, weights, caps, strict=True):
            # Below ``limit`` is below the next whole number of units, too.
            entries = own.entries(-(-limit // (weight * own.unit)), cap)
            if entries > cap:
                return False
            used += table.entry_bytes * entries
        return used <= instance.budget_bytes

    low = max(weight * own.floor * own.unit for weight, own in zip(weights, tables, strict=True))
    high = max(weight * own.top * own.unit for weight, own in zip(weights, tables, strict=True))
    for _ in range(_HALVINGS):
        middle = Fraction(float(low + high) / 2)
        if not low < middle < high or high - low <= _NARROW * low / 8:
            break
        low, high = (low, middle) if fits(middle) else (middle, high)
    return low


class _Pairs:
    """Of one table: errors, ascending, and for each the entries that an error below the next one takes."""

    def __init__(self, table: ExactTable, cap: int) -> None:
        self.table, self.cap = table, cap
        self.errors, self.entries = [table.floor], [1]
        error = table.top
        # The entries of the last pair, whose error is anything above, are one.
        self._divide(0, error)
        for _ in range(_HALVINGS):
            error = (error + table.floor) // 2
            if error <= table.floor or self._divide(0, error) > cap:
                break

    def _divide(self, place: int, error: int) -> int:
        """Divide a pair at an error; the entries of its lower part."""
        entries = self.table.entries(error, self.cap)
        self.errors.insert(place + 1, error)
        self.entries.insert(place, max(entries, self.entries[place]))
        return entries

    def divide(self, place: int) -> None:
        """Divide a pair in the middle; the last one has no end."""
        if self.width(place) > 1:
            self._divide(place, (self.errors[place] + self.errors[place + 1]) // 2)

    def width(self, place: int) -> int:
        """Of a pair, in units."""
        return self.errors[place + 1] - self.errors[place] if place + 1 < len(self.errors) else 0


def _sum(instance: TableInstance, tables: list[ExactTable]) -> Fraction:
    """By knapsacks of pairs of errors, of which those chosen are divided."""
    pairs = [_Pairs(own, cap) for own, cap in zip(tables, _caps(instance), strict=True)]
    scales = [Fraction(table.weight) * own.unit for table, own in zip(instance.tables, tables, strict=True)]
    most = sum((scale * max(own.errors) for scale, own in zip(scales, pairs, strict=True)), Fraction(0))
    if most <= 0:
        return Fraction(0)
    grain = Fraction(2) ** (_floor_log2(most) + 1 - _VALUE_BITS)
    bound = 0
    for _ in range(_MOST_ROUNDS):
        value, chosen = _knapsack(instance, pairs, [scale / grain for scale in scales])
        bound = max(bound, value)
        wide = [
            (own, place)
            for own, place, scale in zip(pairs, chosen, scales, strict=True)
            if own.width(place) > 1 and own.width(place) * scale > _NARROW / len(pairs) * bound * grain
        ]
        if not wide or sum(own.looked_at for own in tables) > _MOST_ENTRIES:
            break
        for own, place in wide:
            own.divide(place)
    return Fraction(bound) * grain


def _floor_log2(value: Fraction) -> int:
    found = value.numerator.bit_length() - value.denominator.bit_length()
    return found if Fraction(2) ** found <= value else found - 1


def _knapsack(instance: TableInstance, pairs: list[_Pairs], scales: list[Fraction]) -> tuple[int, list[int]]:
    """The least sum of weighted errors, each rounded down, of one pair a table; and the places of the pairs."""
    budget = instance.budget_bytes
    reserve = sum(table.entry_bytes for table in instance.tables)
    sizes, errors, stages = np.zeros(1, np.int64), np.zeros(1, np.int64), []
    for table, own, scale in zip(instance.tables, pairs, scales, strict=True):
        reserve -= table.entry_bytes
        places = np.array([k for k, entries in enumerate(own.entries) if entries <= own.cap])
        size = np.array([table.entry_bytes * own.entries[k] for k in places], dtype=np.int64)
        error = np.array([int(own.errors[k] * scale) for k in places], dtype=np.int64)
        if len(sizes) * len(places) > _MOST_CHOICES:
            raise NotApplicableError(f"'{instance.name}' has too many tables that share memory to be bounded exactly")
        used, value = np.add.outer(sizes, size).ravel(), np.add.outer(errors, error).ravel()
        fit = np.flatnonzero(used <= budget - reserve)
        order = fit[np.lexsort((value[fit], used[fit]))]
        least = np.minimum.accumulate(value[order])
        kept = order[np.concatenate(([True], value[order][1:] < least[:-1]))]
        sizes, errors = used[kept], value[kept]
        stages.append((kept // len(places), places[kept % len(places)]))
    place, chosen = len(errors) - 1, []
    for before, own_places in reversed(stages):
        chosen.append(int(own_places[place]))
        place = int(before[place])
    return int(errors[-1]), chosen[::-1]
