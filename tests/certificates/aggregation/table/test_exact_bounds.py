"""The bound of lookup tables in whole numbers, against all divisions of small ones."""

from fractions import Fraction
from math import ceil, floor, inf
from typing import Any

import pytest
from table_cases import optimum, random_tables, several, staircase_of
from volume import for_each

from ddlopt import instances
from ddlopt.certificates.aggregation.table import exact_bounds
from ddlopt.certificates.aggregation.table.exact_bounds import exact_table_bound
from ddlopt.certificates.aggregation.table.exact_entries import ExactTable
from ddlopt.instances.generators.aggregation import generate
from ddlopt.models.aggregation import LookupFunction, LookupTables, TableInstance
from ddlopt.models.aggregation.table.evaluate import evaluate_table
from ddlopt.models.errors import NotApplicableError
from ddlopt.solvers.aggregation.table.exact import OptimalTables
from ddlopt.solvers.contracts import Limits

CLOSE = Fraction(1, 10**5)
NAMED: list[dict[str, Any]] = [
    {"function": "log2"},
    {"function": "log2", "error": "relative", "low": 1, "high": 3, "step": 0.25},
    {"function": "exp2", "error": "relative"},
    {"function": "exp2", "error": "relative", "step": 0.5},
    {"function": "log2-difference", "step": 0.125},
    {"function": "log2-difference", "error": "relative"},
    {"function": "log2-sum"},
    {"function": "log2-sum", "error": "relative", "step": 0.0625},
    {"function": "samples", "low": 0, "high": 4, "samples": [-1, -3, -2, -7, -2], "error": "relative", "step": 0.75},
    {"function": "samples", "low": 0, "high": 4, "samples": [2, 2, 2, 2, 2]},
]


@pytest.mark.parametrize("entries", ["ranges", "prefixes"])
def test_entries_are_those_of_all_divisions(entries: str) -> None:
    cut = {"low": 3, "high": 12, "fraction_bits": 2, "entries": entries}
    tables = [LookupFunction.model_validate({"name": "t", **cut, **each}) for each in NAMED]
    tables += [table for seed in range(6) for table in random_tables(seed, entries=entries).tables]
    for table in tables:
        exact, size = ExactTable(table), table.operands
        reference = [least if least is not None else inf for least in staircase_of(table)]
        for count in range(1, size + 1):
            least = min(reference[: count + 1])
            # Values in the reference are doubles.
            assert exact.entries(ceil(least * (1 + CLOSE**2) / exact.unit) + 1, size) <= count
            if least > 1e-9:
                assert exact.entries(floor(least * (1 - CLOSE**2) / exact.unit), size) > count
        assert exact.floor * exact.unit <= reference[size] + 1e-12
        assert exact.entries(exact.floor, size) == size + 1


@pytest.mark.parametrize("goal", ["sum", "max"])
@pytest.mark.parametrize("entries", ["ranges", "prefixes"])
def test_it_is_just_below_the_optimum(goal: str, entries: str) -> None:
    for instance in several(4, 500, goal=goal, entries=entries):
        best, found = Fraction(optimum(instance)), exact_table_bound(instance)
        assert best * (1 - CLOSE) - Fraction(1, 10**12) <= found <= best * (1 + Fraction(1, 10**15))


@for_each(("goal", "entries"), [("sum", "ranges"), ("max", "ranges"), ("sum", "prefixes"), ("max", "prefixes")])
def test_the_tables_of_a_sum(goal: str, entries: str) -> None:
    instance = generate("table", 0, bits=5, fraction_bits=6, entries=entries, goal=goal)
    assert isinstance(instance, TableInstance)
    solution = OptimalTables().solve(instance, Limits(gap=0)).solution
    assert isinstance(solution, LookupTables)
    best = evaluate_table(instance, solution, exact=True).objective
    assert best is not None
    assert best * (1 - CLOSE) <= exact_table_bound(instance) <= best


def test_what_is_known_early_is_a_bound_too(monkeypatch: pytest.MonkeyPatch) -> None:
    instance = instances.load("aggregation/table-random-b8")
    solution = instances.best("aggregation/table-random-b8")
    best, bounds = evaluate_table(instance, solution, exact=True).objective, []
    for rounds in (1, 3, 150):
        monkeypatch.setattr(exact_bounds, "_MOST_ROUNDS", rounds)
        bounds.append(exact_table_bound(instance))
    assert bounds[0] < bounds[1] < bounds[2] <= best
    assert bounds[2] >= best * (1 - CLOSE)


def test_large_tables_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    instance = next(several(1, 503))
    for name in ("_MOST_OPERANDS", "_MOST_TABLES"):
        with monkeypatch.context() as patch:
            patch.setattr(exact_bounds, name, 1)
            with pytest.raises(NotApplicableError, match=r"has 2 tables with 16 operands; exactly bounded are "):
                exact_table_bound(instance)
    monkeypatch.setattr(exact_bounds, "_MOST_CHOICES", 1)
    with pytest.raises(NotApplicableError, match="too many tables that share memory"):
        exact_table_bound(instance)


def test_figures_far_from_each_other_are_bounded_or_refused() -> None:
    tiny = {"name": "t", "function": "log2-sum", "low": 100, "high": 103}
    with pytest.raises(NotApplicableError, match="values of table 't' are too small"):
        exact_table_bound(TableInstance.from_data({"name": "i", "tables": [tiny], "budget_bytes": 2}))
    for error, least in (("absolute", Fraction(2**940)), ("relative", Fraction(1, 4))):
        # Values that are nothing beside 2^1000 need no entries of their own; what is left is a bound.
        far = {"name": "t", "function": "exp2", "high": 1000, "error": error}
        instance = TableInstance.from_data({"name": "i", "tables": [far], "budget_bytes": 50})
        solution = OptimalTables().solve(instance, Limits(gap=0)).solution
        assert isinstance(solution, LookupTables)
        best = evaluate_table(instance, solution, exact=True).objective
        assert best is not None
        assert least < exact_table_bound(instance) <= best
    samples = {"name": "t", "function": "samples", "high": 2, "samples": [1e-99, 0.0, 1e100]}
    found = exact_table_bound(TableInstance.from_data({"name": "i", "tables": [samples], "budget_bytes": 1}))
    assert found == pytest.approx(5e99, rel=1e-5)
