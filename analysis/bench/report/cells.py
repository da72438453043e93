"""Tables as HTML: plain rows that the script of the site makes sortable, filterable and cut into pages."""

import json
import math
from collections.abc import Iterable, Sequence
from html import escape
from typing import NamedTuple

from markupsafe import Markup

from ddlopt.models.errors import plain

LARGEST_PLAIN = 1000
"""Rows beyond which a table is data that the script shows page by page."""
LONG = 48
"""Characters beyond which a text may be broken over lines."""

_LARGEST = 1e300
"""Stands for infinity, which JSON does not have."""


class Column(NamedTuple):
    """A column: ``choice`` gives it a menu of its values beside the filter, ``help`` says what it means."""

    title: str
    numeric: bool = False
    choice: bool = False
    help: str = ""


class Cell(NamedTuple):
    """What a cell shows, what it is sorted by where that is not its text, and where it leads."""

    text: str
    value: float | None = None
    href: str | None = None


def number(text: str, value: float | None) -> Cell:
    """A cell of a number; one that is not there is sorted last."""
    if value is None or math.isnan(value):
        return Cell(text)
    return Cell(text, max(-_LARGEST, min(float(value), _LARGEST)))


def table(name: str, caption: str, columns: Sequence[Column], rows: Iterable[Sequence[Cell]]) -> Markup:
    """A table.

    Parameters
    ----------
    name : str
        Its ``id``, unique on its page.
    caption : str
    columns : sequence of Column
    rows : iterable of sequence of Cell
    """
    rows = list(rows)
    numeric = [column.numeric for column in columns]
    head = "".join(_head(column) for column in columns)
    body = "\n".join(_row(row, numeric) for row in rows[:LARGEST_PLAIN])
    data = "" if len(rows) <= LARGEST_PLAIN else _data(rows)
    return Markup(  # every text in it is escaped
        f'<div class="table" id="{escape(name)}"><div class="scroll" role="region" tabindex="0" '
        f'aria-label="{escape(caption)}"><table><caption>{escape(caption)}</caption>'
        f"<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>{data}</div>"
    )


def _head(column: Column) -> str:
    kind = ' class="number"' if column.numeric else ""
    choice = " data-choice" if column.choice else ""
    title = f' title="{escape(column.help)}"' if column.help else ""
    return f'<th scope="col"{kind}{choice}{title}>{escape(column.title)}</th>'


def _row(row: Sequence[Cell], numeric: Sequence[bool]) -> str:
    texts = []
    for (text, value, href), number in zip(row, numeric, strict=True):
        shown = escape(text) if href is None else f'<a href="{escape(href)}">{escape(text)}</a>'
        if number:
            key = "" if value is None else f" data-v={value!r}"
            texts.append(f"<td class=n{key}>{shown}</td>")
        else:
            texts.append(f"<td class=w>{shown}</td>" if len(text) > LONG else f"<td>{shown}</td>")
    return f"<tr>{''.join(texts)}</tr>"


def _data(rows: Sequence[Sequence[Cell]]) -> str:
    """All rows as JSON, and what to say to those without a script."""
    packed = json.dumps(
        [[[plain(cell.text), *cell[1:]] for cell in row] for row in rows], separators=(",", ":")
    ).replace("<", "\\u003c")
    note = f"Without a script the first {LARGEST_PLAIN} of {len(rows)} rows are shown."
    return f'<script type="application/json">{packed}</script><noscript><p>{note}</p></noscript>'
