"""Heat maps: one figure by row and column, such as a method's gap by model and network."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.colors import LinearSegmentedColormap, PowerNorm
from matplotlib.figure import Figure

_COLOURS = LinearSegmentedColormap.from_list("gap", ["#f7fbff", "#9ecae1", "#3182bd", "#08306b"])


def heat_maps(
    panels: Mapping[str, Mapping[tuple[str, str], float | None]],
    rows: Sequence[str],
    columns: Sequence[str],
    title: str = "",
    unit: str = "%",
) -> Figure:
    """A panel for each method, a cell for each (row, column), all on one scale; None is left blank.

    Parameters
    ----------
    panels : mapping
        Panel title -> (row, column) -> value in ``unit``.
    rows, columns : sequence of str
        In the order in which they are shown.
    """
    known = [value for panel in panels.values() for value in panel.values() if value is not None]
    # Small gaps matter, and a large one must not wash them out.
    norm = PowerNorm(0.5, vmin=0.0, vmax=max([*known, 1e-9]))
    figure = Figure(figsize=(1.6 + (0.62 * len(columns) + 0.5) * len(panels), 1.9 + 0.36 * len(rows)))
    figure.set_layout_engine("constrained")
    for place, (name, panel) in enumerate(panels.items()):
        axes = figure.add_subplot(1, len(panels), place + 1)
        _draw(axes, panel, rows, columns, norm, unit)
        axes.set_title(name, fontsize=9)
        axes.set_yticks(np.arange(len(rows)), rows if place == 0 else [""] * len(rows), fontsize=8)
    if title:
        figure.suptitle(title, fontsize=10)
    return figure


def _draw(
    axes: Any,
    panel: Mapping[tuple[str, str], float | None],
    rows: Sequence[str],
    columns: Sequence[str],
    norm: Any,
    unit: str,
) -> None:
    values = np.array([[_number(panel.get((row, column))) for column in columns] for row in rows])
    axes.imshow(np.ma.masked_invalid(values), cmap=_COLOURS, norm=norm, aspect="auto")
    for i, j in zip(*np.nonzero(np.isfinite(values)), strict=True):
        dark = norm(values[i, j]) > 0.55
        text = f"{values[i, j]:.0f}" if values[i, j] >= 9.95 else f"{values[i, j]:.1f}"
        axes.text(j, i, text, ha="center", va="center", fontsize=7, color="white" if dark else "black")
    axes.set_xticks(np.arange(len(columns)), columns, fontsize=7, rotation=45, ha="right")
    axes.tick_params(length=0)
    axes.set_xlabel(f"[{unit}]", fontsize=7)


def _number(value: float | None) -> float:
    return np.nan if value is None else value
