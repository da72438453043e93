"""Entries as paths, against all divisions of small tables."""

import pytest
from table_cases import optimum, several
from volume import for_each

from ddlopt.instances.generators.aggregation import generate
from ddlopt.models.aggregation import LookupTables, TableInstance
from ddlopt.models.aggregation.table.formulations.table_path import TablePath, error_unit
from ddlopt.solvers.aggregation.table.exact import OptimalTables
from ddlopt.solvers.contracts import Limits, Status
from ddlopt.solvers.exact import Exact, build_model, lp_relaxation

MODEL = Exact("model", "aggregation", TablePath())


@pytest.mark.parametrize("goal", ["sum", "max"])
@pytest.mark.parametrize("entries", ["ranges", "prefixes"])
def test_the_least_error_is_that_of_all_divisions(goal: str, entries: str) -> None:
    for instance in several(4, 302, goal=goal, entries=entries):
        result = MODEL.solve(instance, Limits(gap=1e-6))
        assert result.status is Status.OPTIMAL
        assert result.objective == pytest.approx(optimum(instance), rel=1e-6, abs=1e-9)


@pytest.mark.parametrize("goal", ["sum", "max"])
@pytest.mark.parametrize(("entries", "bits"), [("ranges", 3), ("prefixes", 5)])
def test_it_agrees_with_staircases_on_the_tables_of_a_sum(goal: str, entries: str, bits: int) -> None:
    instance = generate("table", 0, bits=bits, fraction_bits=bits - 2, entries=entries, goal=goal)
    other = OptimalTables().solve(instance, Limits(gap=0))
    result = MODEL.solve(instance, Limits(gap=1e-5), start=other.solution)
    assert result.status is other.status is Status.OPTIMAL
    assert result.objective == pytest.approx(other.objective, rel=1e-4)
    assert result.bound == pytest.approx(other.objective, rel=1e-4)


def line(count: int, budget: int) -> TableInstance:
    table = {"name": "line", "function": "samples", "high": count - 1, "samples": list(range(count))}
    return TableInstance.from_data({"name": "line", "tables": [table], "budget_bytes": budget})


@for_each(
    ("entries", "relaxation", "least"),
    [
        (1, 3.5, 3.5),
        (2, 1.5, 1.5),
        (3, 1, 1),
        (4, 0.5, 0.5),
        (5, 0.375, 0.5),
        (6, 0.25, 0.5),
        (7, 0.125, 0.5),
        (8, 0, 0),
    ],
)
def test_the_relaxation_of_a_line_is_the_convex_hull_of_its_staircase(
    entries: int, relaxation: float, least: float
) -> None:
    instance = line(8, entries)
    assert lp_relaxation(TablePath(), instance).objective == pytest.approx(relaxation, abs=1e-9)
    assert MODEL.solve(instance, Limits()).objective == least


def test_ports_are_there() -> None:
    instance = line(6, 3)
    model = build_model("aggregation", TablePath(), instance)
    block = model.component("aggregation")
    assert len(block.chosen) == 21
    # A host model may forbid an entry or limit an error.
    block.chosen[0, 0, 2].fix(0)
    block.error[0].setub(1.0 / error_unit(instance))
    solved = MODEL.backend.solve(model, Limits())
    assert solved.status is Status.OPTIMAL
    starts = TablePath().read(block, instance).starts[0]
    assert starts[0] == 0
    assert starts[1] != 2
    assert max(b - a for a, b in zip(starts, (*starts[1:], 6), strict=True)) <= 3


def test_a_start_is_set_and_read_back() -> None:
    instance = line(6, 3)
    solution = LookupTables(instance="line", starts=((0, 1, 5),))
    block = build_model("aggregation", TablePath(), instance).component("aggregation")
    TablePath().start(block, instance, solution)
    assert TablePath().read(block, instance) == solution


def test_large_tables_are_refused() -> None:
    large = generate("table", 0, bits=8)
    assert "use table" in (TablePath().refuses(large) or "")
