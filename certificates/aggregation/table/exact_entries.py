r"""How many entries a lookup table takes at least for an error below a limit, in whole numbers.

An entry with function values a and b has an error below t only if a multiple v of the step lies between them so that
:math:`b - t < v < a + t`, for relative errors :math:`b (1 - t) < v < a (1 + t)`. The largest v below the right side
says which b are too large: those from :math:`h(a)` on, which grows with a.

*Ranges*: where operands :math:`s_0 < s_1 < \dots < s_m` are such that no entry has values at or between :math:`s_k`
and :math:`s_{k+1}` within the limit, an entry begins after each :math:`s_k` and no later than :math:`s_{k+1}`, so there
are at least m + 1. To go each time to the first such operand gives the most.

*Prefixes*: aligned blocks whose own error is not below t are divided, each of them one entry more.
"""

import decimal
from bisect import bisect_left
from decimal import Decimal
from fractions import Fraction
from math import floor

from ddlopt.models.aggregation.table.instance import LookupFunction
from ddlopt.models.aggregation.table.values import DIGITS, exact_value
from ddlopt.models.errors import NotApplicableError

_BITS = 110
"""Of the largest value: 40 digits are 132 bits, of which a value as small as 2^-20 has no use for the last ones."""
_LEAST = 2.0**-20
"""Of the largest value of a function: below, 40 digits are not enough for the bits."""


class ExactTable:
    """Bounds for one table.

    Errors are whole numbers of ``unit``, a fraction.
    """

    def __init__(self, table: LookupFunction) -> None:
        self.looked_at = 0
        """Entries until now."""
        self._relative, self._prefixes = table.relative, table.entries == "prefixes"
        self._sorted = table.function != "samples"
        if self._sorted:
            self._least, self._most, unit = _function_values(table)
        else:
            self._least, self._most, unit = _sample_values(table)
        self.unit = Fraction(1, 2**_BITS) if self._relative else unit
        step = Fraction(table.step) / unit if table.step is not None else Fraction(0)
        if step.denominator != 1:
            raise NotApplicableError(f"table '{table.name}' has a step with too many digits to be counted exactly")
        self._step = int(step)
        pairs = zip(self._most, self._least, strict=True)
        self.floor = max(0, max(self._error(least, most) for least, most in pairs))
        """No table has a lower error."""
        # Beyond, one entry is all that is said to be needed.
        self.top = max(self.floor + 1, self._error(min(self._most), max(self._least)))
        if self._prefixes:
            self._forks = sorted(self._fork_errors(table))
        elif self._sorted:
            if self._least[0] > self._least[-1]:
                self._least.reverse()
                self._most.reverse()
            # A value is no less than those before it.
            for k in range(1, len(self._least)):
                self._least[k] = max(self._least[k], self._least[k - 1])

    def entries(self, error: int, most: int) -> int:
        """A lower bound on the entries whose tables have errors below ``error``, counted up to ``most``."""
        if error <= self.floor:
            return most + 1
        if self._prefixes:
            return 1 + len(self._forks) - bisect_left(self._forks, error)
        if self._relative and error >= 2**_BITS:
            return 1
        count = self._sorted_entries(error, most) if self._sorted else self._any_entries(error, most)
        self.looked_at += count if self._sorted else len(self._least)
        return count

    def _sorted_entries(self, error: int, most: int) -> int:
        least, highest, above, count = self._least, self._most, self._above, 1
        place, end = 0, len(self._least)
        while count <= most:
            place = bisect_left(least, above(highest[place], error), place + 1)
            if place == end:
                break
            count += 1
        return count

    def _any_entries(self, error: int, most: int) -> int:
        count, smallest, largest = 1, self._most[0], self._least[0]
        above = self._above(smallest, error)
        for low, high in zip(self._least, self._most, strict=True):
            largest = max(largest, low)
            if high < smallest:
                smallest, above = high, self._above(high, error)
            if largest >= above:
                count, smallest, largest, above = count + 1, high, low, self._above(high, error)
                if count > most:
                    break
        return count

    def _above(self, least: int, error: int) -> int:
        """h(a): an entry with ``least`` and a value as large as this has no error below ``error``."""
        if not self._relative:
            if not self._step:
                return least + 2 * error
            return (least + error - 1) // self._step * self._step + error
        one = 1 << _BITS
        if not self._step:
            return -(least * (one + error) // (error - one))
        multiple = (least * (one + error) - 1) // (self._step << _BITS) * self._step
        return -((multiple << _BITS) // (error - one))

    def _error(self, least: int, most: int) -> int:
        """The least error of an entry with values as small and as large as these, rounded down."""
        if not self._relative:
            if not self._step:
                return (most - least) // 2
            below = (least + most) // 2 // self._step * self._step
            return min(max(most - each, each - least) for each in (below, below + self._step))
        if most <= 0:
            return 0
        if not self._step:
            return ((most - least) << _BITS) // (most + least)
        below = 2 * least * most // (least + most) // self._step * self._step
        one = 1 << _BITS
        return min(
            max(one - -(-(each << _BITS) // most), (each << _BITS) // least - one)
            for each in (below, below + self._step)
        )

    def _fork_errors(self, table: LookupFunction) -> list[int]:
        """Errors of all aligned blocks with operands in both halves."""
        blocks = {table.low + k: pair for k, pair in enumerate(zip(self._most, self._least, strict=True))}
        found = []
        while len(blocks) > 1:
            merged: dict[int, tuple[int, int]] = {}
            for place, (least, most) in blocks.items():
                twin = merged.get(place >> 1)
                if twin is not None:
                    least, most = min(least, twin[0]), max(most, twin[1])
                    found.append(self._error(least, most))
                merged[place >> 1] = least, most
            blocks = merged
        return found


def _function_values(table: LookupFunction) -> tuple[list[int], list[int], Fraction]:
    """Whole numbers of the unit below and above the values, positive if errors are relative; and the unit."""
    name = table.function
    assert name != "samples"
    with decimal.localcontext(DIGITS):
        values = [exact_value(name, z, table.fraction_bits) for z in range(table.low, table.high + 1)]
        if table.relative:
            values = [abs(value) for value in values]
        largest = max(abs(value) for value in values)
        if largest < _LEAST:
            raise NotApplicableError(f"values of table '{table.name}' are too small to be calculated exactly")
        exponent = _BITS - floor(largest.ln() / Decimal(2).ln())
        scale = Decimal(2) ** exponent
        # The digits that are not certain, and those that the product has not, are less than a unit.
        least = [floor(value * scale) - 1 for value in values]
    return least, [value + 3 for value in least], Fraction(1, 2) ** exponent


def _sample_values(table: LookupFunction) -> tuple[list[int], list[int], Fraction]:
    """The same of samples; what is no multiple of the unit is between two."""
    values = [abs(Fraction(value)) if table.relative else Fraction(value) for value in table.samples]
    largest = max(map(abs, values))
    bits = largest.numerator.bit_length() - largest.denominator.bit_length() if largest else 0
    unit = Fraction(2) ** (bits - _BITS)
    return [value // unit for value in values], [-(-value // unit) for value in values], unit
