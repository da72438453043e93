"""Methods for lookup tables: against all divisions, against each other, and closed forms."""

import math
from typing import Any

import numpy as np
import pytest
from table_cases import optimum, random_tables, several, staircase_of
from volume import for_each

from ddlopt.instances.generators.aggregation import generate
from ddlopt.models.aggregation import LookupFunction, LookupTables, TableInstance
from ddlopt.models.aggregation.table.evaluate import evaluate_table
from ddlopt.solvers.aggregation.methods import ENTRIES
from ddlopt.solvers.aggregation.table import methods as table_methods
from ddlopt.solvers.aggregation.table.exact import OptimalTables
from ddlopt.solvers.aggregation.table.heuristics import (
    EvenTables,
    LogarithmicTables,
    SplitTables,
    UniformTables,
    VariationTables,
    equal_bytes,
)
from ddlopt.solvers.aggregation.table.staircase import above, staircase
from ddlopt.solvers.contracts import Limits, Method, Status
from ddlopt.solvers.heuristic import Clock

HEURISTICS = (EvenTables(), UniformTables(), LogarithmicTables(), VariationTables(), SplitTables())


def table_of(instance: Any) -> TableInstance:
    assert isinstance(instance, TableInstance)
    return instance


@pytest.mark.parametrize("entries", ["ranges", "prefixes"])
def test_staircases_are_those_of_the_plain_dynamic_program(entries: str) -> None:
    cut = {"low": 3, "high": 12, "fraction_bits": 2, "entries": entries}
    named: list[dict[str, Any]] = [
        {"function": "log2"},
        {"function": "exp2", "error": "relative"},
        {"function": "log2-difference", "step": 0.125},
        {"function": "log2-difference", "error": "relative"},
        {"function": "log2-sum", "error": "relative", "step": 0.0625},
    ]
    tables = [LookupFunction(name="t", **cut, **each) for each in named]
    tables += [table for seed in range(6) for table in random_tables(seed, entries=entries).tables]
    for table in tables:
        reference = staircase_of(table)
        # From few to many and from many to few: what is known then brackets the search from either side.
        for counts in (range(1, table.operands + 1), range(table.operands, 0, -1)):
            stair = staircase(table)
            for count in counts:
                least = min(each for each in reference[: count + 1] if each is not None)
                assert stair.error(count) == pytest.approx(float(least), rel=1e-12, abs=1e-13)
                starts = stair.starts(above(stair.error(count)))
                assert len(starts) <= count
                alone = TableInstance(name="t", tables=(table,), budget_bytes=10**3)
                found = evaluate_table(alone, LookupTables(instance="t", starts=(starts,)))
                assert not found.violations
                assert found.details[f"error {table.name}"] == pytest.approx(stair.error(count), rel=1e-12)


@pytest.mark.parametrize("goal", ["sum", "max"])
@pytest.mark.parametrize("entries", ["ranges", "prefixes"])
def test_no_division_of_memory_and_operands_is_better(goal: str, entries: str) -> None:
    methods = [method for method in HEURISTICS if entries == "ranges" or method.name != "table-variation"]
    met = dict.fromkeys([method.name for method in methods], 0)
    for instance in several(9, 200, goal=goal, entries=entries):
        best = optimum(instance)
        result = OptimalTables().solve(instance, Limits(gap=0))
        assert result.status is Status.OPTIMAL
        assert result.objective == pytest.approx(best, rel=1e-12, abs=1e-13)
        assert result.bound == pytest.approx(best, rel=1e-12, abs=1e-13)
        for method in methods:
            other = method.solve(instance, Limits(), seed=1)
            assert other.objective is not None
            assert other.objective >= best * (1 - 1e-12)
            assert other.bound is not None
            assert other.bound <= best * (1 + 1e-9) + 1e-12
            met[method.name] += other.objective <= best * (1 + 1e-9)
    assert all(count > 0 for count in met.values())
    assert min(met.values()) < 9


def test_three_tables_and_odd_sizes_of_entries() -> None:
    for instance in several(4, 60, tables=3, bits=2):
        result = OptimalTables().solve(instance, Limits(gap=0))
        assert result.objective == pytest.approx(optimum(instance), rel=1e-12, abs=1e-13)


@pytest.mark.parametrize("entries", ["ranges", "prefixes"])
def test_a_long_line_has_equal_entries(entries: str) -> None:
    line = LookupFunction(
        name="l", function="samples", high=2**16 - 1, samples=tuple(map(float, range(2**16))), entries=entries
    )
    for budget, length in ((1, 2**16), (256, 256), (300, 219 if entries == "ranges" else 256), (2**16, 1)):
        instance = TableInstance(name="line", tables=(line,), budget_bytes=budget, goal="max")
        result = OptimalTables().solve(instance, Limits())
        assert (result.status, result.objective) == (Status.OPTIMAL, (length - 1) / 2)


def test_powers_on_a_logarithmic_scale_have_equal_entries() -> None:
    table = LookupFunction(name="p", function="exp2", high=2**12 - 1, fraction_bits=12, error="relative")
    instance = TableInstance(name="powers", tables=(table,), budget_bytes=2**7)
    result = OptimalTables().solve(instance, Limits())
    # 32 operands an entry: the ratio of its ends is 2 ** (31 / 4096).
    assert result.objective == pytest.approx(math.tanh(math.log(2) * 31 / 4096 / 2), rel=1e-12)
    assert isinstance(result.solution, LookupTables)
    assert result.solution.starts[0] == tuple(range(0, 2**12, 32))


@pytest.mark.parametrize("goal", ["sum", "max"])
def test_more_memory_is_never_worse_and_ranges_are_never_worse_than_prefixes(goal: str) -> None:
    before = dict.fromkeys(("ranges", "prefixes"), math.inf)
    for budget in (100, 400, 1000, 3000, 9000, 10**6):
        found = {}
        for entries in before:
            instance = generate("table", 0, bits=7, goal=goal, entries=entries, budget_bytes=budget)
            result = OptimalTables().solve(instance, Limits(gap=0))
            assert result.objective is not None
            assert result.status is Status.OPTIMAL
            assert result.objective <= before[entries] * (1 + 1e-12)
            before[entries] = found[entries] = result.objective
        assert found["ranges"] <= found["prefixes"] * (1 + 1e-12)
    # Only the steps of logarithms are left in the end: half a step in each of two tables.
    assert before["ranges"] == pytest.approx(math.log(2) * 2**-7 * (1 if goal == "sum" else 0.5), rel=0.02)


def test_to_split_the_worst_is_optimal_for_prefixes_of_one_table() -> None:
    for function, low in (("log2", 1), ("log2-sum", 0), ("exp2", 0)):
        for budget in (1, 7, 50, 333):
            table = {"name": "t", "function": function, "low": low, "high": 900, "fraction_bits": 7}
            data = {"name": "one", "tables": [table | {"entries": "prefixes"}], "budget_bytes": budget}
            instance = TableInstance.from_data(data)
            best, split = (method.solve(instance, Limits()) for method in (OptimalTables(), SplitTables()))
            assert split.objective == best.objective


def test_the_time_limit_is_kept_with_a_solution_and_a_bound() -> None:
    for goal in ("sum", "max"):
        instance = generate("table", 0, bits=10, goal=goal, stepped=False)
        short = OptimalTables().solve(instance, Limits(time_s=1e-9))
        best = OptimalTables().solve(instance, Limits(gap=0))
        assert short.status is Status.FEASIBLE
        assert short.objective is not None
        assert short.bound is not None
        assert best.objective is not None
        assert short.bound < best.objective < short.objective
    assert SplitTables().solve(instance, Limits(time_s=1e-9)).checked


def test_gaps_that_are_asked_for_are_met() -> None:
    instance = generate("table", 0, bits=9, stepped=False)
    exact = OptimalTables().solve(instance, Limits(gap=0))
    near = OptimalTables().solve(instance, Limits(gap=0.02))
    assert near.status is exact.status is Status.OPTIMAL
    assert near.details["steps"] < exact.details["steps"]
    assert near.objective is not None
    assert exact.objective is not None
    assert exact.objective <= near.objective <= exact.objective * 1.021
    assert near.bound is not None
    assert near.bound <= exact.objective


def test_memory_is_shared_equally_and_what_is_left_goes_to_others() -> None:
    instance = random_tables(2, tables=3, bits=4)
    data = instance.model_dump(mode="json")
    for table, size in zip(data["tables"], (1, 2, 10), strict=True):
        table["entry_bytes"] = size
    assert equal_bytes(TableInstance.from_data(data | {"budget_bytes": 60})) == [16, 11, 2]
    assert equal_bytes(TableInstance.from_data(data | {"budget_bytes": 15})) == [3, 1, 1]
    assert equal_bytes(TableInstance.from_data(data | {"budget_bytes": 10**6})) == [16, 16, 16]


def test_logarithmic_entries_are_the_leading_bits() -> None:
    table = {"name": "t", "function": "exp2", "high": 31, "fraction_bits": 3}
    instance = TableInstance.from_data({"name": "one", "tables": [table], "budget_bytes": 11})
    result = LogarithmicTables().solve(instance, Limits())
    assert isinstance(result.solution, LookupTables)
    # With two significant bits: 0, 1, 1x, 1x.., 1x...
    assert result.solution.starts[0] == (0, 1, 2, 3, 4, 6, 8, 12, 16, 24)


def test_entries_of_equal_variation_use_the_memory() -> None:
    instance = table_of(generate("table", 0, bits=9, stepped=False, budget_bytes=8 * 600))
    result = VariationTables().solve(instance, Limits())
    assert result.details["bytes"] > 0.98 * instance.budget_bytes
    best = OptimalTables().solve(instance, Limits())
    assert result.objective is not None
    assert best.objective is not None
    assert result.objective < 1.3 * best.objective
    flat = {"name": "flat", "function": "samples", "high": 9, "samples": [1] * 10}
    constant = TableInstance.from_data({"name": "flat", "tables": [flat], "budget_bytes": 3})
    assert VariationTables().solve(constant, Limits()).objective == 0


@for_each("method", [*HEURISTICS, OptimalTables()])
def test_the_same_answer_again(method: Method) -> None:
    instance = generate("table", 5, shape="random", bits=5)
    one, other = (method.solve(instance, Limits(), seed=3) for _ in range(2))
    assert one.solution == other.solution
    assert one.checked


def test_prefixes_have_no_quantiles() -> None:
    assert "table-split" in (VariationTables().refuses(generate("table", 0, entries="prefixes")) or "")


def test_the_catalogue_and_the_best() -> None:
    names = {entry.name for entry in ENTRIES}
    for entry in table_methods.ENTRIES:
        assert entry.make("highs").name == entry.name
        assert entry.name in names
    instance = table_of(generate("table", 0, bits=3))
    assert table_methods.best(instance, "highs").name == "table"
    assert table_methods.milp(instance, "highs").name == "milp"


def test_progress_is_reported_with_bounds_that_meet() -> None:
    for goal in ("sum", "max"):
        points: list[Any] = []
        OptimalTables().solve(generate("table", 0, bits=6, goal=goal), Limits(gap=0), progress=points.append)
        bounds, values = [p.bound for p in points], [p.incumbent for p in points]
        assert bounds == sorted(bounds)
        assert values == sorted(values, reverse=True)
        assert bounds[-1] <= values[-1]


def test_a_clock_that_has_expired_leaves_single_entries() -> None:
    instance = table_of(generate("table", 0, bits=6))
    solution, details = SplitTables().answer(instance, 0, Clock(Limits(time_s=1e-9), None), None)
    assert isinstance(solution, LookupTables)
    assert details == {"splits": 0.0}
    assert np.all([len(starts) == 1 for starts in solution.starts])
