"""Heuristics for lookup tables: entries by a rule, and the memory of each table by another."""

import heapq
import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from ddlopt.models.aggregation.table.instance import LookupFunction, LookupTables, TableInstance
from ddlopt.models.contracts import Solution
from ddlopt.models.tolerances import ROUNDING
from ddlopt.solvers.aggregation.table.exact import most_entries, tables_of
from ddlopt.solvers.aggregation.table.kernels import Floats, Ints, split_ranges
from ddlopt.solvers.aggregation.table.staircase import function_of, staircase
from ddlopt.solvers.heuristic import Answer, Clock, Heuristic

Starts = tuple[int, ...]
_LOOKS = 256
"""Splits between looks at the clock."""


def equal_bytes(instance: TableInstance) -> list[int]:
    """Entries of each table where all have the same memory; what a table cannot use goes to the others."""
    counts = [1] * len(instance.tables)
    caps = most_entries(instance)
    order = sorted(range(len(counts)), key=lambda k: caps[k] * instance.tables[k].entry_bytes)
    left = instance.budget_bytes
    for done, k in enumerate(order):
        size = instance.tables[k].entry_bytes
        reserve = sum(instance.tables[other].entry_bytes for other in order[done + 1 :])
        share = min(left // (len(order) - done), left - reserve)
        counts[k] = max(1, min(caps[k], share // size))
        left -= counts[k] * size
    return counts


def _answer(instance: TableInstance, starts: list[Starts]) -> Answer[Solution]:
    return LookupTables(instance=instance.name, starts=tuple(starts)), {}


@dataclass(frozen=True)
class EvenTables(Heuristic, uses=()):
    """Every table has the same memory, and the best entries for it (our baseline for how memory is shared)."""

    name: ClassVar[str] = "table-even"
    covers: ClassVar[type[TableInstance]] = TableInstance
    kernels: ClassVar[tuple[str, ...]] = ("ddlopt.solvers.aggregation.table.kernels",)

    def answer(self, instance: TableInstance, seed: int, clock: Clock, start: Any) -> Answer[Solution]:
        """The optimum of each table by itself."""
        stairs = [staircase(table) for table in instance.tables]
        limits = [stair.error(count) for stair, count in zip(stairs, equal_bytes(instance), strict=True)]
        return tables_of(instance, stairs, limits), {}


@dataclass(frozen=True)
class UniformTables(Heuristic, uses=()):
    """Every table has the same memory, and entries of one length; with prefixes, the shortest blocks that fit."""

    name: ClassVar[str] = "table-uniform"
    covers: ClassVar[type[TableInstance]] = TableInstance

    def answer(self, instance: TableInstance, seed: int, clock: Clock, start: Any) -> Answer[Solution]:
        """One division a table."""
        counts = equal_bytes(instance)
        return _answer(instance, [_uniform(table, n) for table, n in zip(instance.tables, counts, strict=True)])


def _uniform(table: LookupFunction, count: int) -> Starts:
    if table.entries == "ranges":
        places = np.arange(count) * table.operands // count
        return tuple((places + table.low).tolist())
    bits = 0
    while (table.high >> bits) - (table.low >> bits) + 1 > count:
        bits += 1
    return tuple(max(block << bits, table.low) for block in range(table.low >> bits, (table.high >> bits) + 1))


@dataclass(frozen=True)
class LogarithmicTables(Heuristic, uses=()):
    """Every table has the same memory, and entries by the leading bits of the operand, as floating-point numbers are.

    An entry covers the operands with the same first m + 1 significant bits, with the largest m that fits. The papers on
    such tables in switches do not say how theirs are cut; this is the plain way, and ours.
    """

    name: ClassVar[str] = "table-logarithmic"
    covers: ClassVar[type[TableInstance]] = TableInstance

    def answer(self, instance: TableInstance, seed: int, clock: Clock, start: Any) -> Answer[Solution]:
        """One cut a table."""
        counts = equal_bytes(instance)
        return _answer(instance, [_logarithmic(table, n) for table, n in zip(instance.tables, counts, strict=True)])


def _logarithmic(table: LookupFunction, count: int) -> Starts:
    best: Starts = (table.low,)
    operands = np.arange(table.low, table.high + 1)
    length = np.frexp(operands)[1]
    for kept in range(1, int(length[-1]) + 1):
        dropped = np.maximum(length - kept, 0)
        blocks = operands >> dropped
        first = np.concatenate(([True], (np.diff(blocks) != 0) | (np.diff(dropped) != 0)))
        if np.count_nonzero(first) > count:
            break
        best = tuple(operands[first].tolist())
    return best


@dataclass(frozen=True)
class VariationTables(Heuristic, uses=()):
    r"""Entries over each of which the function, or its logarithm for relative errors, climbs by the same.

    Where a table is much finer than its entries, an entry of length l has the error :math:`l |f'| / 2`, so entries as
    dense as :math:`|f'|` have equal errors, and n of them the error :math:`V / 2n`, with V the variation. Memory is
    shared as is best for these: for the sum, entries in proportion to :math:`\sqrt{w V / c}` with entry size c; for the
    largest error, to w V.
    """

    name: ClassVar[str] = "table-variation"
    covers: ClassVar[type[TableInstance]] = TableInstance

    def refuses(self, instance: Any) -> str | None:
        """Prefixes, which cannot begin anywhere."""
        if any(table.entries == "prefixes" for table in instance.tables):
            return "its entries begin anywhere, and those of a table are prefixes; use table-split"
        return None

    def answer(self, instance: TableInstance, seed: int, clock: Clock, start: Any) -> Answer[Solution]:
        """Quantiles of the variation."""
        climbs = [_climb(table) for table in instance.tables]
        counts = _by_variation(instance, [float(climb[-1]) for climb in climbs])
        return _answer(
            instance,
            [_quantiles(table, climb, n) for table, climb, n in zip(instance.tables, climbs, counts, strict=True)],
        )


def _climb(table: LookupFunction) -> Floats:
    """Variation from the first operand to each; shape (operands,)."""
    values = np.log(np.abs(table.values)) if table.relative else table.values
    return np.concatenate(([0.0], np.cumsum(np.abs(np.diff(values)))))


def _quantiles(table: LookupFunction, climb: Floats, count: int) -> Starts:
    """The most levels of the variation that ask for at most ``count`` entries: several may fall between operands."""
    low, high = count, count * table.operands
    best = _cut_at(climb, low)
    while high - low > 1:
        middle = (low + high) // 2
        places = _cut_at(climb, middle)
        if len(places) <= count:
            low, best = middle, places
        else:
            high = middle
        if len(best) == count:
            break
    return tuple((best + table.low).tolist())


def _cut_at(climb: Floats, levels: int) -> Ints:
    """First operands, each once, of entries with a given number of levels."""
    # A little less, as the last operand is in the last level and begins none.
    reached = np.floor(climb * (levels / climb[-1] * (1 - ROUNDING))) if climb[-1] > 0 else climb
    return np.concatenate(([0], 1 + np.flatnonzero(np.diff(reached))))


def _by_variation(instance: TableInstance, variations: list[float]) -> list[int]:
    """Entries of each table; what one cannot use is shared again among the others."""
    caps, tables = most_entries(instance), instance.tables
    if instance.goal == "sum":
        shares = [math.sqrt(t.weight * v / t.entry_bytes) for t, v in zip(tables, variations, strict=True)]
    else:
        shares = [t.weight * v for t, v in zip(tables, variations, strict=True)]
    counts = [1] * len(tables)
    spare = instance.budget_bytes - sum(table.entry_bytes for table in tables)
    open_ = {k for k in range(len(tables)) if shares[k] > 0}
    while open_:
        unit = spare / sum(shares[k] * tables[k].entry_bytes for k in open_)
        full = {k for k in open_ if 1 + unit * shares[k] >= caps[k]}
        for k in full or open_:
            counts[k] = caps[k] if full else 1 + int(unit * shares[k])
            spare -= (counts[k] - 1) * tables[k].entry_bytes
        open_ = open_ - full if full else set()
    return counts


@dataclass(frozen=True)
class SplitTables(Heuristic, uses=()):
    """One entry in each table; then, again and again, the worst entry of a table in two, as long as memory lasts.

    It is the table with the largest weighted error; where their sum counts, with the largest one per byte that the
    table has so far, as that is what an error that falls with 1 / n gains by another byte. A range is cut in the
    middle of its variation, a prefix by its next bit.
    """

    name: ClassVar[str] = "table-split"
    covers: ClassVar[type[TableInstance]] = TableInstance
    kernels: ClassVar[tuple[str, ...]] = ("ddlopt.solvers.aggregation.table.kernels",)

    def answer(self, instance: TableInstance, seed: int, clock: Clock, start: Any) -> Answer[Solution]:
        """Splits until memory is used up, no entry can be split, or the time is up."""
        piles = [_Pile(table) for table in instance.tables]
        spare = instance.budget_bytes - sum(table.entry_bytes for table in instance.tables)
        open_, splits = list(range(len(piles))), 0
        while open_ and (splits % _LOOKS or not clock.expired):
            chosen = max(open_, key=lambda k: piles[k].urgency(instance.goal == "sum"))
            if instance.tables[chosen].entry_bytes > spare or not piles[chosen].split():
                open_.remove(chosen)
                continue
            spare -= instance.tables[chosen].entry_bytes
            splits += 1
        solution, _ = _answer(instance, [pile.starts for pile in piles])
        return solution, {"splits": float(splits)}


class _Pile:
    """Entries of one table, the worst on top."""

    def __init__(self, table: LookupFunction) -> None:
        self._table, self._function = table, function_of(table)
        self._climb = _climb(table)
        self._heap: list[tuple[float, int, int]] = []
        self._add(0, table.operands)

    @property
    def starts(self) -> Starts:
        return tuple(sorted(first + self._table.low for _, first, _ in self._heap))

    def urgency(self, by_byte: bool) -> float:
        error = -self._table.weight * self._heap[0][0]
        return error / (len(self._heap) * self._table.entry_bytes) if by_byte else error

    def split(self) -> bool:
        """Cut the worst entry; False where it has one operand, or no error."""
        error, first, end = self._heap[0]
        if end - first == 1 or error == 0:
            return False
        heapq.heappop(self._heap)
        cut = self._cut(first, end)
        self._add(first, cut)
        self._add(cut, end)
        return True

    def _cut(self, first: int, end: int) -> int:
        if self._table.entries == "prefixes":
            one, other = first + self._table.low, end - 1 + self._table.low
            bits = (one ^ other).bit_length() - 1
            return ((other >> bits) << bits) - self._table.low
        half = 0.5 * (self._climb[first] + self._climb[end - 1])
        return min(max(int(np.searchsorted(self._climb, half)), first + 1), end - 1)

    def _add(self, first: int, end: int) -> None:
        error = float(split_ranges(self._function, np.array([first, end]))[0])
        heapq.heappush(self._heap, (-error, first, end))
