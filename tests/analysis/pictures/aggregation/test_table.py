"""Pictures of lookup tables: curves are functions and tables, lines are at the error that the check finds."""

import numpy as np
import pytest
from matplotlib.figure import Figure

from ddlopt.analysis.pictures.aggregation.table import draw
from ddlopt.models.aggregation import LookupTables, TableInstance, evaluate


def test_every_table_is_drawn_with_its_error() -> None:
    ramp = {"name": "ramp", "function": "samples", "high": 7, "samples": [0, 1, 2, 3, 4, 5, 6, 7], "weight": 2}
    powers = {"name": "powers", "function": "exp2", "low": 4, "high": 11, "fraction_bits": 2, "error": "relative"}
    instance = TableInstance.from_data({"name": "two", "tables": [ramp, powers], "budget_bytes": 9})
    solution = LookupTables(instance="two", starts=((0, 4), (4, 6, 8)))
    axes = Figure().add_subplot()
    draw(axes, instance, solution)
    columns = [axes.child_axes[:2], axes.child_axes[2:]]
    found = evaluate(instance, solution)
    for (above, below), table in zip(columns, instance.tables, strict=True):
        function, steps = above.lines
        assert function.get_ydata().tolist() == table.values.tolist()
        error, *levels = below.lines
        largest = table.weight * float(found.details[f"error {table.name}"])
        assert [line.get_ydata()[0] for line in levels] == pytest.approx([-largest, largest])
        assert np.abs(error.get_ydata()).max() == pytest.approx(largest)
        assert len(np.unique(steps.get_ydata())) == found.details[f"entries {table.name}"]
    assert columns[0][0].lines[1].get_ydata().tolist() == [1.5] * 4 + [5.5] * 4
    assert columns[1][1].lines[0].get_xdata().tolist() == [1, 1.25, 1.5, 1.75, 2, 2.25, 2.5, 2.75]
    assert columns[0][0].get_title() == "ramp\n2 entries"


def test_given_values_and_long_tables() -> None:
    table = {"name": "l", "function": "log2", "low": 1, "high": 2**14}
    instance = TableInstance.from_data({"name": "one", "tables": [table], "budget_bytes": 2})
    axes = Figure().add_subplot()
    draw(axes, instance, LookupTables(instance="one", starts=((1, 9),), values=((1.0, 2.0),)))
    above, below = axes.child_axes
    assert set(above.lines[1].get_ydata()) == {1.0, 2.0}
    assert 1000 < len(below.lines[0].get_xdata()) <= 4000
    assert below.lines[1].get_ydata()[0] == -12
