"""The least error of one table against its number of entries: a staircase, found step by step where it is asked for."""

from abc import ABC, abstractmethod
from typing import NamedTuple

import numpy as np

from ddlopt.models.aggregation.table.instance import LookupFunction
from ddlopt.models.aggregation.table.trie import block_errors, split_errors
from ddlopt.models.aggregation.table.values import best_values
from ddlopt.solvers.aggregation.table.kernels import Function, Ints, cover

_CLOSE = 1 + 1e-14
"""Ratio of errors up to which floating-point numbers do not tell them apart."""


class Cover(NamedTuple):
    """What covers a table within a limit of error: entries, the error they reach, the next limit that matters.

    ``entries`` is -1 where more were needed than were allowed.
    """

    entries: int
    error: float
    following: float


class Staircase(ABC):
    """Errors and entries of one table."""

    def __init__(self, table: LookupFunction) -> None:
        self.table = table
        _, single = best_values(table.values, table.values, table.relative, table.step)
        self.floor = float(single.max())
        """The error with an entry for each operand."""
        self._known: dict[int, float] = {}

    @abstractmethod
    def cover(self, limit: float, most: int) -> Cover:
        """The fewest entries, at most ``most``, with errors up to ``limit``, which is no less than the floor."""

    @abstractmethod
    def starts(self, limit: float) -> tuple[int, ...]:
        """The first operands of the fewest entries with errors up to ``limit``."""

    def error(self, entries: int) -> float:
        """The least error with at most as many entries."""
        if entries not in self._known:
            self._known[entries] = self._least(entries)
        return self._known[entries]

    def _least(self, entries: int) -> float:
        """By bisection of the limit, where each limit that fails says which is the next to be of any use."""
        fewer = [count for count in self._known if count < entries]
        more = [count for count in self._known if count > entries]
        low = self._known[min(more)] if more else self.floor
        high = self._known[max(fewer)] if fewer else self.cover(np.inf, 1).error
        while True:
            found = self.cover(above(low), entries)
            if found.entries >= 0:
                return min(high, found.error)
            low = min(high, max(low, found.following))
            middle = low + 0.5 * (high - low)
            found = self.cover(above(middle), entries)
            if found.entries >= 0:
                high = min(high, found.error)
            else:
                low = min(high, max(middle, found.following))


def above(limit: float) -> float:
    """A limit that admits errors equal to this one, whichever way they were rounded."""
    return limit * _CLOSE


def staircase(table: LookupFunction) -> Staircase:
    """The staircase of a table, by the kind of its entries."""
    return Prefixes(table) if table.entries == "prefixes" else Ranges(table)


def function_of(table: LookupFunction) -> Function:
    """A table as kernels take it."""
    steps = np.diff(table.values)
    monotone = bool((steps >= 0).all() or (steps <= 0).all())
    return Function(table.values, monotone, table.relative, table.step or 0.0)


class Ranges(Staircase):
    r"""Free ranges.

    The error of a range never falls as it grows. So for a given limit, ranges that are as long as they can be, one
    after the other, are as few as can be: by induction, the k-th of them ends no earlier than the k-th of any others.
    """

    def __init__(self, table: LookupFunction) -> None:
        super().__init__(table)
        self._function = function_of(table)
        self._room: Ints = np.empty(table.operands, np.int64)

    def cover(self, limit: float, most: int) -> Cover:
        """See :class:`Staircase`."""
        return Cover(*cover(self._function, limit, self._room[:most]))

    def starts(self, limit: float) -> tuple[int, ...]:
        """See :class:`Staircase`."""
        count, _, _ = cover(self._function, limit, self._room)
        return tuple((self._room[:count] + self.table.low).tolist())


class Prefixes(Staircase):
    """Aligned blocks; see :mod:`~ddlopt.models.aggregation.table.trie`."""

    def __init__(self, table: LookupFunction) -> None:
        super().__init__(table)
        self._levels = block_errors(table)
        self._splits = split_errors(table, self._levels)

    def cover(self, limit: float, most: int) -> Cover:
        """See :class:`Staircase`."""
        split = int(np.searchsorted(-self._splits, -limit))
        following = float(self._splits[split - 1]) if split else np.inf
        if split + 1 > most:
            # With a lower one of these limits, as many are still too many.
            return Cover(-1, np.inf, float(self._splits[most - 1]))
        rest = float(self._splits[split]) if split < len(self._splits) else 0.0
        return Cover(split + 1, max(rest, self.floor), following)

    def starts(self, limit: float) -> tuple[int, ...]:
        """See :class:`Staircase`."""
        found = []
        whole = np.ones(len(self._levels[-1]), dtype=bool)
        for bits in reversed(range(len(self._levels))):
            fits = (self._levels[bits] <= limit) | (bits == 0)
            chosen = np.flatnonzero(whole & fits)
            found.append((chosen + (self.table.low >> bits)) << bits)
            if bits:
                own = np.arange(self.table.low >> (bits - 1), (self.table.high >> (bits - 1)) + 1)
                whole = (whole & ~fits)[(own >> 1) - (self.table.low >> bits)]
        firsts = np.maximum(np.concatenate(found), self.table.low)
        return tuple(np.sort(firsts).tolist())
