import csv
import dataclasses
import io
import json
import math
from fractions import Fraction

import numpy as np
import pytest
from rich.console import Console
from volume import for_each

from ddlopt.analysis import tables, texts, views
from ddlopt.analysis.views import sizes
from ddlopt.models.catalogue import problem
from ddlopt.models.contracts import Evidence
from ddlopt.solvers.contracts import Result, Status


def result(status=Status.FEASIBLE, method="m", instance="square", digest="?", **figures):
    return Result(instance, digest, "topology", method, status, **figures)


@for_each(
    ("seconds", "like", "text"),
    [
        (None, None, "–"),
        (65.666666666, None, "65.6667 s"),
        (0.0, None, "0 s"),
        (0.0873, None, "87.3 ms"),
        (0.0873, 2.0, "0.0873 s"),
        (1.2, 0.9, "1200 ms"),
        (2.5e-6, None, "2.5 µs"),
        (1e-12, None, "0.001 ns"),
    ],
)
def test_times_have_a_unit_that_suits(seconds, like, text):
    assert tables.time_text(seconds, like=like) == text


@for_each(
    ("gap", "text"),
    [
        (None, "–"),
        (0.0, "0 %"),
        (1e-12, "0 %"),
        (2e-5, "<0.01 %"),
        (5e-5, "0.01 %"),
        (0.0407, "4.07 %"),
        (1.5, "150.00 %"),
    ],
)
def test_gaps_are_in_percent(gap, text):
    assert tables.gap_text(gap) == text


@for_each(
    ("figures", "text"),
    [
        ({"status": Status.OPTIMAL, "objective": 1.0, "bound": 1.0, "evidence": Evidence.COMBINATORIAL}, "optimal"),
        ({"status": Status.OPTIMAL, "objective": 1.0, "bound": 1.0, "evidence": Evidence.CERTIFICATE}, "optimal"),
        (
            {"status": Status.OPTIMAL, "objective": 1.0, "bound": 1.0, "evidence": Evidence.SOLVER},
            "optimal (floating point)",
        ),
        ({"status": Status.INFEASIBLE, "evidence": Evidence.SOLVER}, "infeasible (floating point)"),
        ({"status": Status.INFEASIBLE, "evidence": Evidence.COMBINATORIAL}, "infeasible"),
        ({"objective": 2.0, "bound": 1.0, "evidence": Evidence.SOLVER}, "feasible"),
        ({"status": Status.NO_SOLUTION}, "no solution"),
        ({"status": Status.REFERENCE, "objective": 1.0}, "reference"),
        ({"objective": 2.0, "bound": 1.0}, "feasible"),
        ({"objective": 2.0, "scope": "circulant"}, "feasible (circulant)"),
        ({"objective": 2.0, "scope": "circulant", "scope_bound": 1.99999}, "best circulant (proven)"),
        ({"objective": 2.0, "scope": "circulant", "scope_bound": 1.9}, "feasible (circulant: gap 5.00 %)"),
        (
            {"status": Status.OPTIMAL, "objective": 2.0, "scope": "circulant", "scope_bound": 2.0},
            "optimal (floating point)",
        ),
    ],
)
def test_the_status_says_what_is_proven(figures, text):
    assert tables.status_text(result(**figures)) == text


def test_a_row_has_the_sizes_of_its_instance_and_no_figure_where_there_is_none(instance):
    row = tables.cells(result(objective=0.024, runtime_s=1.234, checked=True), instance)
    assert row == {
        "instance": "square",
        "n": "4",
        "d": "2",
        "method": "m",
        "status": "feasible",
        "objective": "24 ms",
        "bound": "–",
        "gap": "–",
        "time": "1.23 s",
        "checked": "yes",
    }
    assert tables.cells(result(status=Status.ERROR))["checked"] == "–"


def test_objective_and_bound_share_a_unit():
    row = tables.cells(result(objective=1.5, bound=0.75))
    assert (row["objective"], row["bound"], row["gap"]) == ("1.5 s", "0.75 s", "50.00 %")


@for_each(
    ("value", "unit", "text"),
    [
        (0.0873, "s", "87.3 ms"),
        (None, "", "–"),
        (0.0873, "", "0.0873"),
        (-1234567.0, "", "-1.23457e+06"),
        (12.0, "jobs", "12 jobs"),
    ],
)
def test_objectives_are_written_in_their_unit(value, unit, text):
    assert tables.objective_text(value, unit) == text


def test_a_maximised_objective_has_no_seconds_and_a_gap_to_its_upper_bound():
    shown = result(objective=0.5, bound=0.75, scope="half", scope_bound=0.6, sense="maximize", unit="")
    row = tables.cells(shown)
    assert (row["objective"], row["bound"], row["gap"]) == ("0.5", "0.75", "50.00 %")
    assert row["status"] == "feasible (half: gap 20.00 %)"
    (line,) = csv.DictReader(io.StringIO(tables.csv_text([shown])))
    assert (line["sense"], line["unit"], float(line["gap"])) == ("maximize", "", 0.5)
    (line,) = csv.DictReader(io.StringIO(tables.csv_text([result(objective=0.5)])))
    assert (line["sense"], line["unit"]) == ("minimize", "s")


def test_the_terminal_table_shows_every_row_and_rules_between_instances(instance):
    results = [
        result(method="alpha", digest=instance.digest, objective=0.02),
        result(method="beta", digest=instance.digest, status=Status.ERROR),
        result(instance="elsewhere", method="gamma", objective=1.0),
    ]
    console = Console(width=200, file=io.StringIO(), record=True)
    console.print(tables.table(results, [instance]))
    lines = console.export_text().splitlines()
    row = next(line for line in lines if "alpha" in line)
    assert row.split() == ["square", "4", "2", "alpha", "feasible", "20", "ms", "–", "–", "0.00", "s", "–"]
    first, second, third = (
        next(i for i, line in enumerate(lines) if name in line) for name in ("alpha", "beta", "gamma")
    )
    assert (second - first, third - second) == (1, 2)


def test_an_error_stands_beside_the_time_where_a_plan_loses_anything():
    lossy, lossless, failed = (
        Result("job", "?", "compression", method, status, **figures)
        for method, status, figures in (
            ("all", Status.FEASIBLE, {"objective": 0.02, "details": {"error": 0.91512}}),
            ("none", Status.FEASIBLE, {"objective": 0.03, "details": {"error": 0.0}}),
            ("lost", Status.NO_SOLUTION, {}),
        )
    )
    header, _, *rows = tables.markdown([lossy, lossless, failed]).splitlines()
    assert "| objective | error | bound |" in header
    for row, cells in zip(rows, ("| 20 ms | 0.915 |", "| 30 ms | 0 |", "| – | – |"), strict=True):
        assert cells in row
    assert "error" not in tables.markdown([lossless, failed]).splitlines()[0]
    objective = dataclasses.replace(lossy, unit="")
    assert "error" not in tables.markdown([objective]).splitlines()[0]


def test_markdown_is_one_line_for_each_result(instance):
    text = tables.markdown([result(digest=instance.digest, method="a|b", objective=1.0)], [instance])
    header, rule, row = text.splitlines()
    assert header.startswith("| instance | n | d | method |")
    assert rule.startswith("| --- | ---: | ---: | --- |")
    assert "a\\|b" in row


def test_csv_keeps_all_digits_and_leaves_gaps_empty(instance):
    third = 1 / 3
    results = [result(digest=instance.digest, objective=third, bound=None, message="a, b")]
    (row,) = csv.DictReader(io.StringIO(tables.csv_text(results, [instance])))
    assert float(row["objective"]) == third
    assert row["bound"] == row["gap"] == ""
    assert (row["n"], row["d"], row["message"], row["status"]) == ("4", "2", "a, b", "feasible")


@pytest.mark.parametrize(
    ("value", "written"),
    [
        ("=1+1", "'=1+1"),
        ("+cmd", "'+cmd"),
        ("-cmd", "'-cmd"),
        ("@sum(a)", "'@sum(a)"),
        ("\t=1", "'\t=1"),
        ("a=b", "a=b"),
        ("-1.5", "-1.5"),
        ("-1e-3", "-1e-3"),
        ("-inf", "-inf"),
        (-1.5, -1.5),
        (None, None),
        ("", ""),
    ],
)
def test_no_cell_of_a_csv_is_a_formula(value, written):
    assert texts.csv_cell(value) == written


def test_words_in_csv_are_no_formulas_and_figures_stay():
    shown = dataclasses.replace(result(objective=-1.5, message="=HYPERLINK(1)"), instance="@evil", method="+m")
    (row,) = csv.DictReader(io.StringIO(tables.csv_text([shown])))
    assert (row["instance"], row["method"], row["message"]) == ("'@evil", "'+m", "'=HYPERLINK(1)")
    assert row["objective"] == "-1.5"


def test_json_is_valid_whatever_a_method_puts_into_its_details():
    details = {
        "infinite": math.inf,
        "nan": np.float64("nan"),
        "integer": np.int64(3),
        "array": np.array([1.5, np.inf]),
        "exact": Fraction(1, 3),
        "nested": ({1: True},),
    }
    data = json.loads(tables.json_text(result(details=details).to_data()), parse_constant=pytest.fail)
    assert data["details"] == {
        "infinite": None,
        "nan": None,
        "integer": 3,
        "array": [1.5, None],
        "exact": "1/3",
        "nested": [{"1": True}],
    }
    assert data["status"] == "feasible"
    assert data["gap"] is None


def test_notes_are_the_messages():
    assert tables.notes([result(), result(method="x", message="time limit")]) == ["square, x: time limit"]


def test_the_size_of_a_tuple_is_its_length(instance, monkeypatch):
    assert sizes(instance) == {"n": 4, "d": 2}
    told = dataclasses.replace(problem("topology"), columns={"groups": "allreduce_groups", "d": "degree"})
    monkeypatch.setattr(views, "problem_of", lambda _: told)
    assert sizes(instance) == {"groups": 1, "d": 2}
