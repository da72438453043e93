"""Rows of a CSV file, whose cells are refused with their row, column and value."""

import csv
import io
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import NamedTuple

from ddlopt.instances.readers.text_files import text_of
from ddlopt.models.errors import InstanceError


def text_of_file(path: str | Path) -> str:
    """Text of a file, unpacked where its name ends in ``.gz``.

    Raises
    ------
    InstanceError
        If it cannot be read, or holds nothing.
    """
    text = text_of(path)
    if not text.strip():
        raise InstanceError(f"{path}: is empty")
    return text


class Row(NamedTuple):
    """A row with its number in the file, the header being row 1, and its cells by column."""

    path: Path
    number: int
    cells: dict[str, str]

    def wrong(self, column: str, why: str) -> InstanceError:
        """The error that names file, row, column and value."""
        shown = self.cells.get(column, "")
        shown = shown if len(shown) <= 60 else shown[:57] + "…"
        return InstanceError(f"{self.path}: row {self.number}, {column} is {shown!r}; {why}")

    def has(self, column: str) -> bool:
        """Whether the cell is there and not blank."""
        return bool(self.cells.get(column, "").strip())

    def number_of(self, column: str, least: float | None = None, positive: bool = False) -> float:
        """A finite number in a range."""
        try:
            value = float(self.cells[column])
        except ValueError:
            raise self.wrong(column, "expected a number") from None
        if not math.isfinite(value):
            raise self.wrong(column, "expected a finite number")
        if positive and value <= 0:
            raise self.wrong(column, "it must be positive")
        if least is not None and value < least:
            raise self.wrong(column, f"it must be at least {least:g}")
        return value

    def count_of(self, column: str, least: int = 0) -> int:
        """A whole number of at least ``least``."""
        value = self.number_of(column, least)
        if not value.is_integer():
            raise self.wrong(column, "expected a whole number")
        return int(value)


@dataclass(frozen=True)
class Header:
    """Names of columns and what is asked of them."""

    path: Path
    columns: Sequence[str]

    def needs(self, wanted: Sequence[str]) -> None:
        """Raise InstanceError unless these columns are there, and every column is there once."""
        missing = [column for column in wanted if column not in self.columns]
        if missing:
            names = f"column {missing[0]} is" if len(missing) == 1 else f"columns {', '.join(missing)} are"
            raise InstanceError(f"{self.path}: {names} missing; the header has: {', '.join(self.columns)}")
        twice = [column for place, column in enumerate(self.columns) if column in self.columns[:place]]
        if twice:
            raise InstanceError(f"{self.path}: column {twice[0]} is given twice")


def csv_rows(path: str | Path, otherwise: Sequence[str] = ()) -> tuple[Header, Iterator[Row]]:
    """The header of a CSV file and its rows; blank lines are skipped.

    Parameters
    ----------
    path : str or Path
    otherwise : sequence of str
        Columns of a file whose first row is no header: of as many cells, but none of these names.

    Raises
    ------
    InstanceError
        If the file cannot be read or, while rows are taken, if one has more or fewer cells than the header.
    """
    path = Path(path)
    reader = csv.reader(io.StringIO(text_of_file(path), newline=""), strict=True)
    try:
        first = next(reader, [])
    except csv.Error as problem:
        raise InstanceError(f"{path}: row 1 is no CSV: {problem}") from None
    header = Header(path, [column.strip() for column in first])
    if len(first) == len(otherwise) and not set(header.columns) & set(otherwise):
        return Header(path, otherwise), _rows(path, chain([first], reader), otherwise, 0)
    return header, _rows(path, reader, header.columns)


def _rows(path: Path, reader: Iterator[list[str]], columns: Sequence[str], number: int = 1) -> Iterator[Row]:
    while True:
        number += 1
        try:
            cells = next(reader, None)
        except csv.Error as problem:
            raise InstanceError(f"{path}: row {number} is no CSV: {problem}") from None
        if cells is None:
            return
        if not cells:
            continue
        if len(cells) != len(columns):
            raise InstanceError(f"{path}: row {number} has {len(cells)} cells, but the header has {len(columns)}")
        yield Row(path, number, dict(zip(columns, cells, strict=True)))
