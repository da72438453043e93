"""Lists of lists of numbers as arrays, and how they travel through JSON."""

import reprlib
from collections.abc import Callable, Sequence
from itertools import chain
from typing import Annotated, Any

import numpy as np
import numpy.typing as npt
from pydantic import BeforeValidator, PlainSerializer, WithJsonSchema

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

EXACT = 2.0**53
"""Whole numbers below this are exact in double precision."""


def offsets(sizes: Ints) -> Ints:
    """(n + 1,) where rows of these sizes begin, and where the last one ends."""
    found = np.zeros(len(sizes) + 1, dtype=np.int64)
    np.cumsum(sizes, out=found[1:])
    return found


class Ragged:
    """Rows of different lengths, one after the other in one array; both arrays are read-only.

    Parameters
    ----------
    values : (k,) float64 array
        Infinite where a row has null.
    starts : (n + 1,) int64 array
        Row i is ``values[starts[i]:starts[i + 1]]``.
    """

    __slots__ = ("starts", "values")

    def __init__(self, values: Floats, starts: Ints) -> None:
        self.values, self.starts = values, starts
        for array in (values, starts):
            array.setflags(write=False)

    @classmethod
    def of(cls, rows: Sequence[Sequence[float | None]]) -> "Ragged":
        """From lists, with None for infinity."""
        starts = offsets(np.fromiter(map(len, rows), dtype=np.int64, count=len(rows)))
        flat = chain.from_iterable(rows)
        values = np.fromiter(
            (np.inf if each is None else each for each in flat), dtype=np.float64, count=int(starts[-1])
        )
        return cls(values, starts)

    def __len__(self) -> int:
        return len(self.starts) - 1

    def __getitem__(self, row: int) -> Floats:
        return self.values[self.starts[row] : self.starts[row + 1]]

    @property
    def sizes(self) -> Ints:
        """(n,) lengths of the rows."""
        return np.diff(self.starts)

    def as_lists(self) -> list[list[float | None]]:
        """Lists with None for infinity, and whole numbers as such."""
        values = self.values
        finite = values[np.isfinite(values)]
        whole = bool((finite == np.floor(finite)).all()) and float(np.abs(finite).max(initial=0.0)) < EXACT
        plain = np.where(np.isinf(values), 0, values)
        numbers: list[Any] = (plain.astype(np.int64) if whole else plain).tolist()
        for place in np.flatnonzero(np.isinf(values)).tolist():
            numbers[place] = None
        bounds = self.starts.tolist()
        return [numbers[bounds[i] : bounds[i + 1]] for i in range(len(self))]


def _ragged(null: bool) -> Callable[[Any], Ragged]:
    """A validator of rows of numbers of at least 0, with null for what is forbidden where there is such."""
    wanted = {int, float, type(None)} if null else {int, float}
    what = "a number of at least 0" + (", or null" if null else "")

    def read(value: Any) -> Ragged:
        if isinstance(value, Ragged):
            return value
        if not isinstance(value, list | tuple):
            raise ValueError(f"expected a list of lists of numbers, got {reprlib.repr(value)}")
        for i, row in enumerate(value):
            if not isinstance(row, list | tuple):
                raise ValueError(f"row {i} is {reprlib.repr(row)}; expected a list of numbers")
            if not set(map(type, row)) <= wanted:
                j = next(j for j, each in enumerate(row) if type(each) not in wanted)
                raise ValueError(f"row {i}, entry {j} is {reprlib.repr(row[j])}; expected {what}")
        try:
            rows = Ragged.of(value)
        except OverflowError:
            raise ValueError("a number is too large for double precision") from None
        wrong = np.flatnonzero(~(rows.values >= 0))
        if len(wrong):
            i = int(np.searchsorted(rows.starts, wrong[0], side="right")) - 1
            raise ValueError(
                f"row {i}, entry {wrong[0] - rows.starts[i]} is {rows.values[wrong[0]]:g}; expected {what}"
            )
        return rows

    return read


def _pairs(value: Any) -> Ints:
    """Read an (n, 2) array of whole numbers."""
    if not isinstance(value, np.ndarray):
        if not isinstance(value, list | tuple):
            raise ValueError(f"expected a list of pairs, got {reprlib.repr(value)}")
        for i, pair in enumerate(value):
            if not (isinstance(pair, list | tuple) and len(pair) == 2 and all(type(each) is int for each in pair)):
                raise ValueError(f"entry {i} is {reprlib.repr(pair)}; expected a pair of whole numbers")
    array = _whole(value).reshape(-1, 2)
    array.setflags(write=False)
    return array


def _indices(value: Any) -> Ints:
    """Read an (n,) array of whole numbers."""
    if not isinstance(value, np.ndarray):
        if not isinstance(value, list | tuple):
            raise ValueError(f"expected a list of whole numbers, got {reprlib.repr(value)}")
        for i, each in enumerate(value):
            if type(each) is not int:
                raise ValueError(f"entry {i} is {reprlib.repr(each)}; expected a whole number")
    array = _whole(value)
    array.setflags(write=False)
    return array


def _whole(value: Any) -> Ints:
    try:
        return np.array(value, dtype=np.int64)
    except OverflowError:
        raise ValueError("a number is too large") from None


def _schema(description: str, entry: dict[str, Any]) -> WithJsonSchema:
    return WithJsonSchema({"description": description, "type": "array", "items": entry})


def _list_of(entry: dict[str, Any]) -> dict[str, Any]:
    return {"type": "array", "items": entry}


_NUMBER = {"type": "number", "minimum": 0}
_INTEGER = {"type": "integer"}
_AS_LISTS = PlainSerializer(lambda rows: rows.as_lists())
_AS_LIST = PlainSerializer(lambda array: array.tolist())

Costs = Annotated[
    Ragged,
    BeforeValidator(_ragged(null=True)),
    _AS_LISTS,
    _schema("Lists of numbers, null where forbidden.", _list_of({"anyOf": [_NUMBER, {"type": "null"}]})),
]
"""Rows of numbers of at least 0; null where something is forbidden, which is infinite in the array."""

Usages = Annotated[
    Ragged, BeforeValidator(_ragged(null=False)), _AS_LISTS, _schema("Lists of numbers.", _list_of(_NUMBER))
]
"""Rows of numbers of at least 0."""

Pairs = Annotated[
    Ints,
    BeforeValidator(_pairs),
    _AS_LIST,
    _schema("Pairs of whole numbers.", {**_list_of(_INTEGER), "minItems": 2, "maxItems": 2}),
]
"""A read-only (n, 2) array of whole numbers."""

Indices = Annotated[Ints, BeforeValidator(_indices), _AS_LIST, _schema("Whole numbers.", _INTEGER)]
"""A read-only (n,) array of whole numbers."""
