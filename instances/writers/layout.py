"""Tables as aligned text, and figures in units that people use."""

import json
import re
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from ddlopt.models.tolerances import ROUNDING

_PLAIN = re.compile(r"[\w.,:;/+\-*\[\]@=()<>|&^~!?]+")
_NONE = "-"
# Units from the largest down, by what one of them is.
_TIMES = ((1.0, "s"), (1e-3, "ms"), (1e-6, "us"), (1e-9, "ns"))
# The same of bytes.
_SIZES = ((1e12, "TB"), (1e9, "GB"), (1e6, "MB"), (1e3, "kB"), (1, "B"))


@dataclass(frozen=True)
class Section:
    """A table with a title.

    Parameters
    ----------
    title : str
    columns : tuple of str
    rows : tuple of tuple of str
        As many cells each as columns.
    """

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]

    def lines(self) -> list[str]:
        """The section as text."""
        if not self.rows:
            return [f"{self.title}: none"]
        cells = [self.columns, *self.rows]
        widths = [max(_width(row[place]) for row in cells) for place in range(len(self.columns))]
        ruled = ["-" * width for width in widths]
        return [self.title, *(_line(row, widths) for row in (self.columns, ruled, *self.rows))]


def section(title: str, columns: Sequence[str], rows: Iterable[Sequence[object]]) -> Section:
    """A section of anything that has a text."""
    return Section(title, tuple(columns), tuple(tuple(map(str, row)) for row in rows))


def text_of(sections: Iterable[Section]) -> str:
    """Sections with an empty line between them."""
    return "\n\n".join("\n".join(each.lines()) for each in sections) + "\n"


def name(text: str) -> str:
    """A name as it is, or as JSON in ASCII where it could be taken for something else than one cell."""
    return text if _PLAIN.fullmatch(text) else json.dumps(text)


def label(place: int, text: str) -> str:
    """Number and name of something that may have no name."""
    return f"{place} {name(text)}" if text else str(place)


def seconds(value: float | None) -> str:
    """A time in the unit that suits it."""
    return _scaled(value, _TIMES)


def size(value: float | None) -> str:
    """Bytes in the unit that suits them."""
    return _scaled(value, _SIZES)


def rate(value: float | None) -> str:
    """Bytes in a second, as bits in a second."""
    return _NONE if value is None else f"{8 * value / 1e9:.6g} Gb/s"


def number(value: float | None) -> str:
    """Six digits; what is rounding, which differs from machine to machine, as 0."""
    if value is None:
        return _NONE
    return "0" if abs(value) < ROUNDING else f"{value:.6g}"


def path(nodes: Iterable[object]) -> str:
    """Nodes one after the other."""
    return " -> ".join(map(str, nodes)) or _NONE


def listed(items: Iterable[object]) -> str:
    """Items with commas."""
    return ", ".join(map(str, items)) or _NONE


def quantity(key: str, value: float) -> str:
    """A figure in the unit that its name ends in."""
    if key.endswith("_bytes_per_s"):
        return rate(value)
    if key.endswith("_bytes"):
        return size(value)
    if key.endswith("_s") and "_per_" not in key:
        return seconds(value)
    return number(value)


def _scaled(value: float | None, units: Sequence[tuple[float, str]]) -> str:
    if value is None:
        return _NONE
    if abs(value) < ROUNDING:
        return f"0 {units[0][1] if units is _TIMES else 'B'}"
    factor, unit = next((pair for pair in units if abs(value) >= pair[0]), units[-1])
    return f"{value / factor:.6g} {unit}"


def _width(text: str) -> int:
    """Columns of a terminal."""
    return sum(2 if unicodedata.east_asian_width(each) in "WF" else 1 for each in text)


def _line(cells: Sequence[str], widths: Sequence[int]) -> str:
    padded = (cell + " " * (width - _width(cell)) for cell, width in zip(cells, widths, strict=True))
    return "  ".join(padded).rstrip()
