"""Lookup tables of switches as tables: the range of operands of every entry, and its value."""

from collections.abc import Iterator

from ddlopt.instances.writers.layout import Section, label, section, size
from ddlopt.models.aggregation.table.instance import LookupTables, TableInstance


def table(instance: TableInstance, solution: LookupTables) -> Iterator[Section]:
    """Sections of a set of tables."""
    sizes, entries = [], []
    for place, (function, starts) in enumerate(zip(instance.tables, solution.starts, strict=True)):
        called = label(place, function.name)
        sizes.append((called, function.function, len(starts), size(len(starts) * function.entry_bytes)))
        ends = [start - 1 for start in starts[1:]] + [function.high]
        values = [repr(each) for each in solution.values[place]] if solution.values else ["best"] * len(starts)
        entries += [(called, *row) for row in zip(starts, ends, values, strict=True)]
    yield section("Tables", ("table", "function", "entries", "memory"), sizes)
    yield section("Entries", ("table", "from operand", "to", "value"), entries)
