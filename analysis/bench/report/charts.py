"""Line charts as SVG inside the page: they take the page's colours, light or dark, and its font."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from html import escape

import numpy as np

from ddlopt.analysis.bench.figures.statistics import Floats
from ddlopt.analysis.tables import time_text
from ddlopt.models.tolerances import WHOLE_TOL

COLOURS, DASHES = 8, ("", "7 3", "2 3", "9 3 2 3")
"""How many colours the style sheet has, and the dashes that tell lines apart where colours do not."""

# Units of the drawing: two charts stand side by side on a usual screen.
_WIDTH, _HEIGHT = 560, 340
# Margins: room for the numbers and names of the axes in the size of type of the style sheet.
_LEFT, _RIGHT, _TOP, _BOTTOM = 68, 26, 12, 46


@dataclass(frozen=True)
class Line:
    """A step function: ``y[k]`` from ``x[k]`` on; ``low`` and ``high`` are the ends of its band, ``quiet`` dots it.

    ``style`` numbers colours and dashes: that of a method is the same on all pages.
    """

    label: str
    x: Floats
    y: Floats
    low: Floats | None = None
    high: Floats | None = None
    quiet: bool = False
    style: int = 0


@dataclass(frozen=True)
class Axis:
    """``write`` turns a value into the text at its tick."""

    title: str
    low: float
    high: float
    logarithmic: bool = False
    write: Callable[[float], str] = lambda value: f"{value:g}"

    def place(self, values: Floats) -> Floats:
        """Parts of the axis, from 0 to 1."""
        clipped = np.clip(np.asarray(values, float), self.low, self.high)
        if self.logarithmic:
            return np.asarray(np.log(clipped / self.low) / math.log(self.high / self.low), float)
        return np.asarray((clipped - self.low) / (self.high - self.low), float)

    def ticks(self) -> list[float]:
        """Round values on the axis, at most eight."""
        if self.logarithmic:
            first, last = math.floor(math.log10(self.low) + WHOLE_TOL), math.floor(math.log10(self.high) + WHOLE_TOL)
            every = max(1, math.ceil((last - first + 1) / 8))
            among = (1, 2, 5) if last - first < 2 else (1,)
            ticks = [factor * 10.0**power for power in range(first, last + 1, every) for factor in among]
            return [tick for tick in ticks if self.low * (1 - WHOLE_TOL) <= tick <= self.high * (1 + WHOLE_TOL)]
        rough = (self.high - self.low) / 5
        power = 10.0 ** math.floor(math.log10(rough))
        step = next(factor * power for factor in (1, 2, 2.5, 5, 10) if factor * power >= rough * (1 - WHOLE_TOL))
        return [
            tick * step for tick in range(math.ceil(self.low / step - WHOLE_TOL), int(self.high / step + WHOLE_TOL) + 1)
        ]


def seconds(title: str, low: float, high: float) -> Axis:
    """A logarithmic axis of times."""
    return Axis(title, low, max(high, low * 1.001), True, lambda value: time_text(value, digits=3))


def percent(title: str, high: float = 1.0) -> Axis:
    """An axis of parts from 0."""
    return Axis(title, 0.0, high, write=lambda value: f"{100 * value:.4g} %")


@dataclass(frozen=True)
class Chart:
    """A figure with a chart and its legend; in a page it writes itself as SVG.

    Parameters
    ----------
    name : str
        Its ``id``, unique on its page.
    title : str
        Printed below it.
    told : str
        What somebody who does not see it should know.
    lines : sequence of Line
    x, y : Axis
    files : sequence of str
        Where it is saved, relative to its page.
    """

    name: str
    title: str
    told: str
    lines: Sequence[Line]
    x: Axis
    y: Axis
    files: Sequence[str] = ()

    def __html__(self) -> str:
        """The figure; every text in it is escaped."""
        drawn = "".join(_line(line, place, self.x, self.y) for place, line in enumerate(self.lines))
        keys = "".join(_key(line, place) for place, line in enumerate(self.lines))
        name, title, told = escape(self.name), escape(self.title), escape(self.told)
        links = ", ".join(f'<a href="{escape(file)}">{file.rpartition(".")[2].upper()}</a>' for file in self.files)
        saved = f'<p class="saved">Saved as {links}.</p>' if links else ""
        return (
            f'<figure class="chart" id="{name}"><div class="scroll" role="region" tabindex="0" '
            f'aria-label="{title}"><svg viewBox="0 0 {_WIDTH} {_HEIGHT}" role="img" '
            f'aria-labelledby="{name}-title {name}-told"><title id="{name}-title">{title}'
            f'</title><desc id="{name}-told">{told}</desc>{_frame(self.x, self.y)}{drawn}</svg></div>'
            f'<figcaption>{title}</figcaption><ul class="legend">{keys}</ul>{saved}</figure>'
        )


def _frame(x: Axis, y: Axis) -> str:
    """Axes, ticks, grid and titles."""
    right, bottom = _WIDTH - _RIGHT, _HEIGHT - _BOTTOM
    parts = []
    for tick in x.ticks():
        at = _across(x, tick)
        parts.append(f'<line class="grid" x1="{at}" y1="{_TOP}" x2="{at}" y2="{bottom}"/>')
        parts.append(f'<text x="{at}" y="{bottom + 17}" text-anchor="middle">{escape(x.write(tick))}</text>')
    for tick in y.ticks():
        at = _down(y, tick)
        parts.append(f'<line class="grid" x1="{_LEFT}" y1="{at}" x2="{right}" y2="{at}"/>')
        parts.append(f'<text x="{_LEFT - 6}" y="{at + 4}" text-anchor="end">{escape(y.write(tick))}</text>')
    middle = (_LEFT + right) / 2
    parts.append(f'<path class="axis" d="M{_LEFT} {_TOP}V{bottom}H{right}"/>')
    parts.append(f'<text x="{middle}" y="{_HEIGHT - 8}" text-anchor="middle">{escape(x.title)}</text>')
    height = (_TOP + bottom) / 2
    parts.append(
        f'<text x="13" y="{height}" text-anchor="middle" transform="rotate(-90 13 {height})">{escape(y.title)}</text>'
    )
    return "".join(parts)


def _line(line: Line, place: int, x: Axis, y: Axis) -> str:
    across = _LEFT + x.place(line.x) * (_WIDTH - _LEFT - _RIGHT)
    band = ""
    if line.low is not None and line.high is not None and np.any(line.high > line.low):
        there, back = _steps(across, _tops(y, line.high)), _steps(across, _tops(y, line.low))
        corners = " ".join(f"{a:.1f},{b:.1f}" for a, b in [*there, *reversed(back)])
        band = f'<polygon class="band" points="{corners}"/>'
    path = "M" + "L".join(f"{a:.1f} {b:.1f}" for a, b in _steps(across, _tops(y, line.y)))
    colour, dashes = _style(line)
    return f'<g class="line {colour}" data-line="{place}">{band}<path d="{path}"{dashes}/></g>'


def dashes_of(style: int) -> int:
    """Place of the dashes: those of neighbours differ, as do those of lines of one colour."""
    return (style + style // COLOURS) % len(DASHES)


def _style(line: Line) -> tuple[str, str]:
    """Class of the colour, and an attribute with the dashes."""
    if line.quiet:
        return "quiet", ' stroke-dasharray="1 4"'
    dash = DASHES[dashes_of(line.style)]
    return f"c{line.style % COLOURS}", f' stroke-dasharray="{dash}"' if dash else ""


def _steps(across: Floats, tops: Floats) -> list[tuple[float, float]]:
    """Corners of a step function, one where it does not change left out."""
    corners = [(float(across[0]), float(tops[0]))]
    for k in range(1, len(across)):
        if tops[k] != tops[k - 1]:
            corners += [(float(across[k]), float(tops[k - 1])), (float(across[k]), float(tops[k]))]
    return [*corners, (float(across[-1]), float(tops[-1]))]


def _tops(y: Axis, values: Floats) -> Floats:
    return np.asarray(np.round(_TOP + (1 - y.place(values)) * (_HEIGHT - _TOP - _BOTTOM), 1), float)


def _across(x: Axis, value: float) -> float:
    return round(float(_LEFT + x.place(np.array(value)) * (_WIDTH - _LEFT - _RIGHT)), 1)


def _down(y: Axis, value: float) -> float:
    return float(_tops(y, np.array(value)))


def _key(line: Line, place: int) -> str:
    colour, dashes = _style(line)
    return (
        f'<li data-line="{place}"><svg class="key {colour}" viewBox="0 0 28 10" aria-hidden="true">'
        f'<path d="M0 5H28"{dashes}/></svg><span>{escape(line.label)}</span></li>'
    )
