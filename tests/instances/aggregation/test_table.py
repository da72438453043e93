"""Lookup tables that are generated or bundled."""

import math
from typing import Any

from volume import for_each

from ddlopt.instances.generators.aggregation import generate
from ddlopt.instances.library.aggregation.table import instances
from ddlopt.models.aggregation import TableInstance
from ddlopt.models.aggregation.table.chain import sum_chain
from ddlopt.solvers.aggregation.table.heuristics import UniformTables
from ddlopt.solvers.contracts import Limits


def made(seed: int = 0, **options: Any) -> TableInstance:
    instance = generate("table", seed, **options)
    assert isinstance(instance, TableInstance)
    return instance


def test_the_tables_of_a_sum_of_integers() -> None:
    instance = made(bits=5, fraction_bits=3, signed=True)
    assert [table.function for table in instance.tables] == ["log2", "log2-sum", "log2-difference", "exp2"]
    assert [(table.low, table.high) for table in instance.tables] == [(1, 31), (0, 40), (1, 40), (0, 48)]
    assert [table.step for table in instance.tables] == [0.125, 0.125, 0.125, None]
    assert [table.weight for table in instance.tables] == [math.log(2)] * 3 + [1]
    assert instance.budget_bytes == 8 * (31 + 41 + 40 + 49) // 4
    assert "kind table, seed 0, shape integers, bits 5" in instance.source


def test_the_tables_of_a_sum_of_mantissas() -> None:
    instance = made(shape="mantissas", bits=7, stepped=False, entries="prefixes", entry_bytes=6, budget_bytes=999)
    assert [(table.low, table.high) for table in instance.tables] == [(128, 255), (0, 12 * 1024), (0, 1023)]
    assert [table.fraction_bits for table in instance.tables] == [7, 10, 10]
    assert {table.entries for table in instance.tables} == {"prefixes"}
    assert {table.entry_bytes for table in instance.tables} == {6}
    assert {table.step for table in instance.tables} == {None}
    assert instance.tables[0].values[0] == 0


@for_each("shape", ["integers", "mantissas"])
@for_each("bits", [1, 2, 6])
def test_what_tables_answer_fits_the_next_one(shape: str, bits: int) -> None:
    instance = made(shape=shape, bits=bits, signed=True, goal="max")
    solution = UniformTables().solve(instance, Limits()).solution
    assert solution is not None
    chain = sum_chain(instance, solution)  # type: ignore[arg-type]
    assert chain.normalized is (shape == "mantissas")
    if not chain.normalized:
        assert chain.logarithms.max() + chain.sums.max() < len(chain.powers)
        assert chain.logarithms.max() - chain.logarithms.min() < len(chain.sums)


def test_random_functions_differ_by_seed_alone() -> None:
    one, other = (made(seed, shape="random", bits=4) for seed in (4, 5))
    assert one.tables != other.tables
    assert [table.operands for table in one.tables] == [16] * 3
    assert one.tables[1].step == 0.25
    assert made(4, shape="random", stepped=False).tables[1].step is None
    measures = {table.error for seed in range(5) for table in made(seed, shape="random", bits=3).tables}
    assert measures == {"absolute", "relative"}


def test_the_library_has_every_kind_of_table() -> None:
    found = list(instances())
    assert len({instance.name for instance in found}) == len(found) >= 6
    tables = [table for instance in found if isinstance(instance, TableInstance) for table in instance.tables]
    assert {table.function for table in tables} == {"log2", "log2-sum", "log2-difference", "exp2", "samples"}
    assert {table.entries for table in tables} == {"ranges", "prefixes"}
    assert {getattr(instance, "goal", None) for instance in found} == {"sum", "max"}
    assert min(instance.size for instance in found) <= 16
