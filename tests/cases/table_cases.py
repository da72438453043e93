"""Small lookup tables, and all ways to divide them."""

from collections.abc import Iterator
from fractions import Fraction
from functools import cache, lru_cache
from itertools import combinations_with_replacement, product
from typing import Any

from ddlopt.instances.generators.aggregation import generate
from ddlopt.models.aggregation.table.instance import LookupFunction, TableInstance


def random_tables(seed: int, **options: Any) -> TableInstance:
    """Two random functions of eight operands."""
    instance = generate("table", seed, **{"shape": "random", "bits": 3, "tables": 2, **options})
    assert isinstance(instance, TableInstance)
    return instance


def several(count: int, first: int, **options: Any) -> Iterator[TableInstance]:
    """Random instances with all kinds of memory, from hardly enough to a lot."""
    for seed in range(first, first + count):
        instance = random_tables(seed, **options)
        least = sum(table.entry_bytes for table in instance.tables)
        most = sum(table.entry_bytes * table.operands for table in instance.tables)
        budget = least + (most - least) * (seed % 7) // 6
        yield TableInstance.from_data(instance.model_dump(mode="json") | {"budget_bytes": budget})


def entry_error(table: LookupFunction, first: int, end: int) -> Fraction:
    """Of the best value for operands ``first`` to ``end`` - 1, by trying all that could be best."""
    own = [Fraction(float(value)) for value in table.values[first - table.low : end - table.low]]
    if table.step is None:
        # The largest error is that of two operands, and least where both have the same.
        pairs = combinations_with_replacement(sorted(set(own)), 2)
        candidates = [2 * a * b / (a + b) if table.relative else (a + b) / 2 for a, b in pairs]
    else:
        step = Fraction(table.step)
        candidates = [k * step for k in range(int(min(own) / step) - 2, int(max(own) / step) + 3)]

    def error(value: Fraction) -> Fraction:
        return max(abs(value - each) / (abs(each) if table.relative else 1) for each in own)

    return min(map(error, candidates))


def is_prefix(first: int, end: int, low: int, high: int) -> bool:
    """Whether these are all operands that an aligned block has."""
    for bits in range(high.bit_length() + 1):
        block = range(first >> bits << bits, ((first >> bits) + 1) << bits)
        if (max(block[0], low), min(block[-1], high)) == (first, end - 1):
            return True
    return False


def staircase_of(table: LookupFunction) -> list[Fraction | None]:
    """The least error with exactly 0, 1, 2, … entries, by a dynamic program over all divisions; None: impossible."""
    return _staircase_of(table.model_dump_json())


@lru_cache(maxsize=100)
def _staircase_of(text: str) -> list[Fraction | None]:
    """Of a table, which many instances have."""
    table = LookupFunction.model_validate_json(text)
    size = table.operands
    errors: dict[tuple[int, int], Fraction] = {}
    for a in range(size):
        for b in range(a + 1, size + 1):
            if table.entries == "ranges" or is_prefix(a + table.low, b + table.low, table.low, table.high):
                errors[a, b] = entry_error(table, a + table.low, b + table.low)

    @cache
    def least(end: int, count: int) -> Fraction | None:
        if end == 0 or count == 0:
            return Fraction(0) if end == count == 0 else None
        found = []
        for first in range(end):
            rest = least(first, count - 1)
            if rest is not None and (first, end) in errors:
                found.append(max(rest, errors[first, end]))
        return min(found, default=None)

    return [least(size, count) for count in range(size + 1)]


def optimum(instance: TableInstance) -> float:
    """The least error, over all numbers of entries of all tables."""
    stairs = [staircase_of(table) for table in instance.tables]
    best: list[Fraction] = []
    for counts in product(*(range(1, len(stair)) for stair in stairs)):
        sizes = [table.entry_bytes * count for table, count in zip(instance.tables, counts, strict=True)]
        errors = [stair[count] for stair, count in zip(stairs, counts, strict=True)]
        if sum(sizes) <= instance.budget_bytes and None not in errors:
            weighted = [Fraction(t.weight) * e for t, e in zip(instance.tables, errors, strict=True) if e is not None]
            best.append(sum(weighted, Fraction(0)) if instance.goal == "sum" else max(weighted))
    return float(min(best))
