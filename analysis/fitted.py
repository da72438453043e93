"""Tables that fit the screen: where it is narrow they drop and fold columns rather than break words."""

import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from rich import box
from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, RenderResult
from rich.table import Table
from rich.text import Text

from ddlopt.models.errors import plain

_PADDING, _EDGES = 3, 1
"""Characters that Rich draws beside the text of each column, and beside all columns."""
# Columns where there is no terminal: enough for every table, so that files have no broken lines.
_WIDE = 240


def out_console() -> Console:
    """Standard output; tables are not squeezed where it is a file or a pipe."""
    return Console(width=None if sys.stdout.isatty() else _WIDE, highlight=False, markup=False, emoji=False)


@dataclass(frozen=True)
class FittedTable:
    """Rows by column header, drawn for the width there is.

    Parameters
    ----------
    rows : sequence of mapping
        Text by header; a row need not have every column.
    left : set of str
        Columns that begin at the left; figures end at the right.
    fold : sequence of str
        Columns whose words go on several lines where the table is too wide.
    head : sequence of str
        Columns that then go into a line above the rows that agree in them.
    drop : sequence of str
        Columns that go where it is still too wide, one after the other.
    styles : mapping
        Style of a row's cell by (row number, header).
    title : str, optional
    empty : str
        What a cell shows where a row has none.
    narrow : int
        Characters to which a column is folded, and no further, before another one is dropped.
    """

    rows: Sequence[Mapping[str, str]]
    left: frozenset[str] = frozenset()
    fold: Sequence[str] = ()
    head: Sequence[str] = ()
    drop: Sequence[str] = ()
    styles: Mapping[tuple[int, str], str] | None = None
    title: str | None = None
    empty: str = "–"
    narrow: int = 14

    def __post_init__(self) -> None:
        rows = [{plain(header): plain(text) for header, text in row.items()} for row in self.rows]
        object.__setattr__(self, "rows", rows)

    @property
    def headers(self) -> list[str]:
        """All columns, in the order of the longest row."""
        longest = max(self.rows, key=len, default={})
        return list(dict.fromkeys([*longest, *(header for row in self.rows for header in row)]))

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Draw the table for the width of the console."""
        headers, width = self.headers, options.max_width
        heads: list[str] = []
        if self._least(headers) > width:
            heads = [header for header in self.head if header in headers]
            headers = [header for header in headers if header not in heads]
        for header in self.drop:
            if self._least(headers) > width and header in headers:
                headers.remove(header)
        widths = self._folded(headers, width)
        if self.title:
            yield Text(plain(self.title), style="bold")
        for number, (head, places) in enumerate(self._parts(heads)):
            if head:
                yield Text(("\n" if number else "") + head, style="bold")
            yield self._drawn(headers, widths, places)

    def _parts(self, heads: Sequence[str]) -> list[tuple[str, list[int]]]:
        """The text above some rows, and their numbers."""
        parts: list[tuple[str, list[int]]] = []
        for place, row in enumerate(self.rows):
            words = [
                row[header] if header == heads[0] else f"{header} {row[header]}" for header in heads if header in row
            ]
            text = "  ".join(words)
            if not parts or parts[-1][0] != text:
                parts.append((text, []))
            parts[-1][1].append(place)
        return parts or [("", [])]

    def _drawn(self, headers: Sequence[str], widths: Mapping[str, int], places: Iterable[int]) -> Table:
        drawn = Table(box=box.SIMPLE_HEAD)
        for header in headers:
            text = header in self.left
            drawn.add_column(
                header, justify="left" if text else "right", min_width=widths[header], max_width=widths[header],
                no_wrap=header not in self.fold, overflow="ellipsis",
            )  # fmt: skip
        places = list(places)
        first = self.head[0] if self.head else None
        for turn, place in enumerate(places):
            row, after = self.rows[place], self.rows[places[turn + 1]] if turn + 1 < len(places) else None
            drawn.add_row(
                *(Text(row.get(header, self.empty), style=self._style(place, header)) for header in headers),
                end_section=first is not None and (after is None or after.get(first) != row.get(first)),
            )
        return drawn

    def _style(self, place: int, header: str) -> str:
        return (self.styles or {}).get((place, header), "")

    def _natural(self, header: str) -> int:
        return max([cell_len(header), *(cell_len(row.get(header, self.empty)) for row in self.rows)])

    def _least(self, headers: Sequence[str]) -> int:
        """Width where all that can be is folded, but not too far."""
        least = {header: max(self.narrow, self._longest_word(header)) for header in self.fold}
        natural = {header: self._natural(header) for header in headers}
        return sum(min(natural[header], least.get(header, natural[header])) + _PADDING for header in headers) + _EDGES

    def _longest_word(self, header: str) -> int:
        return max(map(cell_len, [header, *(word for row in self.rows for word in row.get(header, "").split())]))

    def _folded(self, headers: Sequence[str], width: int) -> dict[str, int]:
        """How wide each column is: as its text, less where it is folded, never less than its longest word."""
        widths = {header: self._natural(header) for header in headers}
        for header in self.fold:
            excess = sum(widths.values()) + _PADDING * len(widths) + _EDGES - width
            if excess > 0 and header in widths:
                widths[header] = min(widths[header], max(self._longest_word(header), widths[header] - excess))
        return widths
