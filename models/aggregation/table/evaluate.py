"""The independent check of lookup tables, from the problem statement."""

import decimal
import math
from collections.abc import Callable, Sequence
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np

from ddlopt.models.aggregation.table.instance import LookupFunction, LookupTables, TableInstance
from ddlopt.models.aggregation.table.values import DIGITS, best_values, errors_of, exact_value
from ddlopt.models.contracts import Evaluation, Number, Violation


def evaluate_table(instance: TableInstance, solution: LookupTables, exact: bool = False) -> Evaluation:
    """Error of the tables, and what they violate.

    In floating point the error is taken over every operand. In exact mode functions are calculated with 60 decimal
    digits, of which 40 are certain; each is monotone, so the extremes of an entry are at its ends. Samples are the
    stated numbers, all of them, and their errors are rational numbers.

    Details are ``bytes``, and ``error NAME`` and ``entries NAME`` of every table.
    """
    broken = _malformed(instance, solution)
    if broken:
        return Evaluation(None, tuple(broken))
    violations: list[Violation] = []
    errors: list[Number] = []
    for place, table in enumerate(instance.tables):
        starts = solution.starts[place]
        values = solution.values[place] if solution.values else None
        if table.entries == "prefixes":
            violations += _unaligned(place, table, starts)
        if values is not None:
            violations += _off_step(place, table, values)
        errors.append(_exact_error(table, starts, values) if exact else _float_error(table, starts, values))
    used = sum(table.entry_bytes * len(starts) for table, starts in zip(instance.tables, solution.starts, strict=True))
    if used > instance.budget_bytes:
        violations.append(Violation("memory suffices", "tables", used, instance.budget_bytes))
    weights = [Fraction(table.weight) if exact else table.weight for table in instance.tables]
    weighted = [weight * error for weight, error in zip(weights, errors, strict=True)]
    objective: Number = sum(weighted) if instance.goal == "sum" else max(weighted)
    details: dict[str, Number] = {"bytes": used}
    for table, error, starts in zip(instance.tables, errors, solution.starts, strict=True):
        details |= {f"error {table.name}": error, f"entries {table.name}": len(starts)}
    return Evaluation(objective, tuple(violations), details)


def _malformed(instance: TableInstance, solution: LookupTables) -> list[Violation]:
    count = len(instance.tables)
    if len(solution.starts) != count:
        return [Violation("every table has entries", "starts", len(solution.starts), count)]
    if solution.values and len(solution.values) != count:
        return [Violation("every table has values", "values", len(solution.values), count)]
    found = []
    for place, (table, starts) in enumerate(zip(instance.tables, solution.starts, strict=True)):
        where = f"starts[{place}] ('{table.name}')"
        if not starts:
            found.append(Violation("every table has entries", where, 0, 1))
            continue
        if starts[0] != table.low:
            found.append(Violation("the first entry begins at the first operand", where, starts[0], table.low))
        late = [k for k in range(1, len(starts)) if starts[k] <= starts[k - 1]]
        if late:
            found.append(
                Violation("entries ascend", f"{where}, entry {late[0]}", starts[late[0]], starts[late[0] - 1] + 1)
            )
        if starts[-1] > table.high:
            found.append(Violation("entries begin at operands", where, starts[-1], table.high))
        if solution.values and len(solution.values[place]) != len(starts):
            given = len(solution.values[place])
            found.append(Violation("every entry has a value", f"values[{place}] ('{table.name}')", given, len(starts)))
    return found


def _unaligned(place: int, table: LookupFunction, starts: Sequence[int]) -> list[Violation]:
    """The first entry whose operands are not all that there are of an aligned block."""
    ends = [*starts[1:], table.high + 1]
    for k, (start, end) in enumerate(zip(starts, ends, strict=True)):
        # The smallest block that has the first and the last operand.
        bits = (start ^ (end - 1)).bit_length()
        first, last = (start >> bits) << bits, (((start >> bits) + 1) << bits) - 1
        first, last = max(first, table.low), min(last, table.high)
        if (first, last) != (start, end - 1):
            where = f"starts[{place}] ('{table.name}'), entry {k}, operands {start} to {end - 1}"
            return [Violation("entries are prefixes", where, end - start, last - first + 1)]
    return []


def _off_step(place: int, table: LookupFunction, values: Sequence[float]) -> list[Violation]:
    if table.step is None:
        return []
    step = Fraction(table.step)
    for k, value in enumerate(values):
        if Fraction(value) % step:
            where = f"values[{place}] ('{table.name}'), entry {k}"
            return [Violation("values are multiples of the step", where, value, table.step)]
    return []


def _float_error(table: LookupFunction, starts: Sequence[int], values: Sequence[float] | None) -> float:
    places = np.array(starts) - table.low
    least, most = (extreme.reduceat(table.values, places) for extreme in (np.minimum, np.maximum))
    if values is None:
        _, errors = best_values(least, most, table.relative, table.step)
    else:
        errors = errors_of(np.array(values, dtype=np.float64), least, most, table.relative)
    return float(errors.max())


def _exact_error(table: LookupFunction, starts: Sequence[int], values: Sequence[float] | None) -> Fraction:
    number: Callable[[float], Any] = Fraction if table.function == "samples" else Decimal
    with decimal.localcontext(DIGITS):
        worst = number(0)
        for k, (start, end) in enumerate(zip(starts, [*starts[1:], table.high + 1], strict=True)):
            least, most = _extremes(table, start, end)
            given = _candidates(table, least, most, number) if values is None else [number(values[k])]
            worst = max(worst, min(_exact_error_of(each, least, most, table.relative) for each in given))
    return Fraction(worst)


def _extremes(table: LookupFunction, start: int, end: int) -> tuple[Any, Any]:
    if table.function == "samples":
        own = table.samples[start - table.low : end - table.low]
        return Fraction(min(own)), Fraction(max(own))
    one, other = (exact_value(table.function, z, table.fraction_bits) for z in (start, end - 1))
    return min(one, other), max(one, other)


def _candidates(table: LookupFunction, least: Any, most: Any, number: Callable[[float], Any]) -> list[Any]:
    """Among which the best value of an entry is."""
    middle = 2 * least * most / (least + most) if table.relative else (least + most) / 2
    if table.step is None:
        return [middle]
    below = math.floor(middle / number(table.step))
    return [below * number(table.step), (below + 1) * number(table.step)]


def _exact_error_of(value: Any, least: Any, most: Any, relative: bool) -> Any:
    if relative:
        return max(abs((value - least) / least), abs((most - value) / most))
    return max(abs(value - least), abs(most - value))
