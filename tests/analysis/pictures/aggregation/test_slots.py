"""Pictures of slots: bars are the jobs' parts, and what is left is grey."""

import pytest
from matplotlib.colors import to_rgba
from matplotlib.figure import Figure

from ddlopt.analysis.pictures.aggregation.slots import _FREE, draw
from ddlopt.instances.generators.aggregation import generate
from ddlopt.solvers.aggregation.slots.methods import best
from ddlopt.solvers.contracts import Limits


def test_bars_are_the_parts_of_slots_and_links() -> None:
    instance = generate("slots", 7, jobs=10, racks=2, memory=0.02, servers=0.8, spread=0.8)
    solution = best(instance, "highs").solve(instance, Limits()).solution
    axes = Figure().add_subplot()
    draw(axes, instance, solution)
    rows = len(instance.switches) + len(instance.links)
    assert len(axes.get_yticks()) == rows
    assert "rack1 up" in axes.get_yticklabels()[-1].get_text()
    bars = [bar for bar in axes.patches if bar.get_facecolor() != to_rgba(_FREE)]
    for s in range(len(instance.switches)):
        own = sum(bar.get_width() for bar in bars if round(bar.get_y() + 0.4) == s)
        given = sum(
            slots[job.switches.index(s)]
            for job, slots in zip(instance.jobs, solution.slots, strict=True)
            if s in job.switches
        )
        assert own == pytest.approx(given / instance.switches[s].slots)
    back = sum(rate is None for rate in solution.rates_bytes_per_s)
    assert back > 0
    assert f"{back} of 10 jobs fall back" in axes.get_xlabel()
