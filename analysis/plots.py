"""Pictures of results; Matplotlib's Agg canvas, no window and no global state."""

import warnings
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from matplotlib.text import Text
from matplotlib.ticker import FuncFormatter, LogFormatter, ScalarFormatter

from ddlopt.analysis import proofs
from ddlopt.analysis.tables import gap_text, objective_text
from ddlopt.analysis.views import picture_of, sizes
from ddlopt.models.contracts import Instance
from ddlopt.models.errors import OptionError, plain_lines
from ddlopt.models.files import replacing, writable
from ddlopt.solvers.contracts import Result, Status, best_bound, best_objective, relative_gap

FORMATS = (".png", ".svg", ".pdf")

_COLOURS = ("#1f6fb4", "#d95f02", "#3a9d5d", "#8c4a9e", "#b8860b", "#5f6b76", "#c0392b", "#17a2b8")
_HATCHES = ("", "//", "xx", "..", "\\\\", "||", "--")
# A bar of four times the best is cut off, so that differences of some percent stay visible.
_WORST_SHOWN = 4.0
_LONGEST = 60
"""Characters of a line in a picture."""


def picture_path(path: str | Path) -> Path:
    """The path, if a picture can appear there.

    Raises
    ------
    OptionError
        If its ending is not one of ``FORMATS``, or a file cannot appear there.
    """
    path = Path(path)
    if path.suffix.lower() not in FORMATS:
        raise OptionError(f"{path}: a picture's name must end in {', '.join(FORMATS)}")
    return writable(path)


def save(figure: Figure, path: str | Path) -> None:
    """Write a figure; the file appears whole or not at all."""
    with replacing(picture_path(path)) as temporary:
        draw(figure, temporary, 150)


def _tame(formatter: Any, value: float, position: int | None) -> str:
    return _shown(str(formatter(value, position)))


def _shown(text: str) -> str:
    """What can be drawn: nothing that is no character, and no line that leaves no room for the picture."""
    return "\n".join(line if len(line) <= _LONGEST else f"{line[:_LONGEST]}…" for line in plain_lines(text).split("\n"))


def draw(figure: Figure, path: Path, dpi: int) -> None:
    """Write a figure in which names of instances and methods are no mathematics, whatever characters they have."""
    figures: set[Text] = set()
    for axes in figure.axes:
        for axis in (axes.xaxis, axes.yaxis):
            formatter = axis.get_major_formatter()
            if not isinstance(formatter, ScalarFormatter | LogFormatter):
                axis.set_major_formatter(FuncFormatter(partial(_tame, formatter)))
            else:  # powers of ten
                ticks = (*axis.get_major_ticks(), *axis.get_minor_ticks())
                figures |= {label for tick in ticks for label in (tick.label1, tick.label2)}
    for text in figure.findobj(Text):
        if text not in figures:
            text.set_parse_math(False)
            text.set_text(_shown(text.get_text()))
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Glyph .* missing")  # of a script that the font does not have
        figure.savefig(path, dpi=dpi, bbox_inches="tight", facecolor="white")


def solutions(results: Sequence[Result], instances: Iterable[Instance]) -> Figure:
    """One panel for each result that carries a solution whose family can be drawn.

    A gap is that to the best bound: of all these results on the instance, and of the library.

    Raises
    ------
    OptionError
        If there is none.
    """
    by_digest = {instance.digest: instance for instance in instances}
    drawn = {digest: draw for digest, instance in by_digest.items() if (draw := picture_of(instance)) is not None}
    shown = [result for result in results if result.solution is not None and result.instance_digest in drawn]
    if not shown:
        raise OptionError("there is no picture to draw: no result carries a solution that can be drawn")
    columns = min(3, len(shown))
    rows = -(-len(shown) // columns)
    figure = Figure(figsize=(4.6 * columns, 5.2 * rows), layout="constrained")
    for place, result in enumerate(shown):
        axes = figure.add_subplot(rows, columns, place + 1)
        instance = by_digest[result.instance_digest]
        drawn[result.instance_digest](axes, instance, result.solution)
        size = ", ".join(f"{header} = {value}" for header, value in sizes(instance).items())
        same = [each.bound for each in results if each.instance_digest == instance.digest]
        known = proofs.known(instance)
        bound = best_bound([*same, None if known is None else known.bound], result.sense)
        gap = relative_gap(result.objective, bound, result.sense)
        told = "" if gap is None else f", gap {gap_text(gap)}"
        figures = f"{result.method}: {objective_text(result.objective, result.unit, digits=5)}{told}"
        status = proofs.status_text(result, known)
        axes.set_title(f"{result.instance} ({size})\n{figures}\n{status}", fontsize=9)
    return figure


def comparison(results: Sequence[Result], title: str = "Heuristics against the optimum") -> Figure:
    """Bars of every method's objective on every instance, relative to the best found; the best bound as a line.

    Where the objective is minimised no bar is below 1 and no line above; where it is maximised it is the other way
    round. What is beyond 4 ends in a point. Results of a different network (status ``reference``) are left out.

    Raises
    ------
    OptionError
        If no result has an objective.
    """
    shown = [r for r in results if r.objective is not None and r.status is not Status.REFERENCE]
    if not shown:
        raise OptionError("there is nothing to compare: no result has an objective")
    methods = list(dict.fromkeys(r.method for r in shown))
    colours = {method: _COLOURS[place % len(_COLOURS)] for place, method in enumerate(methods)}
    groups = [
        [r for r in shown if (r.family, r.instance) == key]
        for key in dict.fromkeys((r.family, r.instance) for r in shown)
    ]
    most = max(len({r.method for r in group}) for group in groups)
    figure = Figure(figsize=(max(6.0, 1.2 + 0.34 * len(groups) * (most + 1)), 4.8), layout="constrained")
    axes = figure.add_subplot()
    for place, group in enumerate(groups):
        _bars(axes, place, group, colours, 0.8 / most)
    axes.set_xticks(np.arange(len(groups)), [group[0].instance.rpartition("/")[2] for group in groups])
    axes.tick_params(axis="x", labelsize=8, rotation=0 if len(groups) <= 4 else 30)
    axes.set_xlim(-0.6, len(groups) - 0.4)
    axes.set_ylim(0, axes.get_ylim()[1] * 1.06)
    axes.set_ylabel("objective relative to the best found")
    axes.set_title(title, fontsize=11)
    axes.spines[["top", "right"]].set_visible(False)
    handles = dict(zip(*reversed(axes.get_legend_handles_labels()), strict=True))
    order = [name for name in (*methods, "best bound") if name in handles]
    figure.legend(
        [handles[name] for name in order],
        order,
        loc="outside lower center",
        ncols=min(5, len(order)),
        fontsize=8,
        frameon=False,
    )
    return figure


def _bars(axes: Any, place: int, group: Sequence[Result], colours: Mapping[str, str], width: float) -> None:
    """The bars of one instance and the line of its best bound, around x = ``place``."""
    sense = group[0].sense
    here = {r.method: float(r.objective) for r in group if r.objective is not None}
    best = best_objective(here.values(), sense) or 1.0
    bound = best_bound((r.bound for r in group), sense)
    line = 0.0 if bound is None else min(bound / best, _WORST_SHOWN)
    for slot, method in enumerate(sorted(here, key=list(colours).index)):
        ratio = here[method] / best
        height = min(ratio, _WORST_SHOWN)
        x = place + (slot - (len(here) - 1) / 2) * width
        hatch = _HATCHES[list(colours).index(method) % len(_HATCHES)]
        axes.bar(
            x, height, 0.92 * width, color=colours[method], hatch=hatch, edgecolor="white", linewidth=0, label=method
        )
        if ratio > height:
            axes.plot(x, height, marker="^", markersize=24 * width, color=colours[method])
        text = "1" if abs(ratio - 1) < 0.0005 else f"{ratio:.2f}" if ratio < 10 else f"{ratio:.0f}"
        above = max(height, line) + (0.14 if ratio > height else 0.02)
        axes.text(x, above, text, ha="center", va="bottom", fontsize=7, rotation=90)
    if bound is not None:
        axes.hlines(line, place - 0.44, place + 0.44, color="black", linewidth=1.4, label="best bound")
        if bound / best > line:
            axes.plot(place, line, marker="^", color="black")
