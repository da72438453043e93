"""The charts of a report as files, for papers and slides: what its pages draw, by Matplotlib."""

import dataclasses
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

from ddlopt.analysis.bench.report.charts import COLOURS, DASHES, Axis, Chart, Line, dashes_of
from ddlopt.analysis.plots import save as save_figure

FORMATS = ("png", "pdf", "svg")

_COLOURS = ("#1f6fb4", "#c65102", "#2a8049", "#8c3fa0", "#8f6c00", "#4f5b66", "#b8261b", "#0b7f92")
"""Those of the style sheet on light ground."""


def save(chart: Chart, folder: Path, start: str, formats: Sequence[str]) -> Chart:
    """Save a chart as ``charts/START-NAME.FORMAT``; the chart that knows of its files."""
    if not formats:
        return chart
    (folder / "charts").mkdir(exist_ok=True)
    drawn, files = figure(chart), [f"charts/{start}-{chart.name}.{each}" for each in dict.fromkeys(formats)]
    for file in files:
        save_figure(drawn, folder / file)
    return dataclasses.replace(chart, files=files)


def figure(chart: Chart) -> Figure:
    """The chart with its legend below."""
    made = Figure(figsize=(5.6, 4.2), layout="constrained")
    axes = made.add_subplot()
    for line in chart.lines:
        colour, dashes = _style(line)
        axes.step(line.x, line.y, where="post", color=colour, linestyle=dashes, linewidth=1.4, label=line.label)
        if line.low is not None and line.high is not None and np.any(line.high > line.low):
            axes.fill_between(line.x, line.low, line.high, step="post", color=colour, alpha=0.12, linewidth=0)
    for axis, of, name in ((axes.xaxis, chart.x, "x"), (axes.yaxis, chart.y, "y")):
        _fit(axes, axis, of, name)
    axes.grid(color="#dddddd", linewidth=0.6)
    axes.set_title(chart.title, fontsize=9)
    made.legend(loc="outside lower center", ncols=2, fontsize=7, frameon=False)
    return made


def _style(line: Line) -> tuple[str, tuple[int, tuple[float, ...]] | str]:
    if line.quiet:
        return "black", ":"
    dash = tuple(float(each) / 2 for each in DASHES[dashes_of(line.style)].split())
    return _COLOURS[line.style % COLOURS], (0, dash) if dash else "-"


def _fit(axes: object, axis: object, of: Axis, name: str) -> None:
    """Scale, limits, ticks and title of one axis."""
    getattr(axes, f"set_{name}scale")("log" if of.logarithmic else "linear")
    getattr(axes, f"set_{name}lim")(of.low, of.high)
    ticks = of.ticks()
    getattr(axes, f"set_{name}ticks")(ticks, [of.write(tick) for tick in ticks], minor=False)
    getattr(axes, f"set_{name}ticks")([], minor=True)
    getattr(axes, f"set_{name}label")(of.title, fontsize=8)
    axis.set_tick_params(labelsize=7)  # type: ignore[attr-defined]
