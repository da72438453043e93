"""Figures that no instance has by intention, refused before memory is asked for or a product of them overflows."""

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from pydantic import BaseModel

from ddlopt.models.errors import OptionError

SMALLEST, LARGEST = 1e-100, 1e100
"""Sizes of figures other than 0: products of three of them are numbers still. The universe has 1e80 atoms."""
# Of 64 bits, as NumPy and most formats have.
LARGEST_INTEGER = 2**63 - 1
LARGEST_COUNT = 2.0**53
"""Of a quotient that becomes a whole number: what is far beyond has none in 64 bits, and NumPy makes it negative."""
MOST_MEMORY_BYTES = 2 * 2**30
"""What the arrays of an instance may need."""
_DEEPEST = 500
"""Parts inside of each other that are looked through at a glance."""


def require_seed(seed: Any) -> None:
    """Raise OptionError unless it is a whole number that every generator of random numbers takes."""
    if not isinstance(seed, int) or isinstance(seed, bool) or not 0 <= seed <= LARGEST_INTEGER:
        shown = _shown(seed) if isinstance(seed, int) else repr(seed)
        raise OptionError(f"seed is {shown}; it must be a whole number of 0 to {LARGEST_INTEGER}")


def require_memory(what: str, needed_bytes: float, error: type[Exception] = ValueError) -> None:
    """Raise an error, with the estimate, unless there is memory for what a size asks for."""
    if needed_bytes > MOST_MEMORY_BYTES:
        raise error(
            f"{what} would need about {needed_bytes / 2**30:.3g} GB of memory, and at most "
            f"{MOST_MEMORY_BYTES / 2**30:g} GB are asked for; give a smaller number"
        )


def refuse_odd_figures(data: Any, place: str = "") -> None:
    """Raise ValueError at the first figure of data or parts that is too large or too small to calculate with."""
    if not _are_usual(data):
        _refuse(data, place)


def _are_usual(data: Any) -> bool:
    """Whether all figures are, as far as can be told at a glance: nearly always, and several times as fast."""
    inside = [iter((data,))]
    while inside:
        for each in inside[-1]:
            kind = type(each)
            if kind is float:
                if not (SMALLEST <= each <= LARGEST or each == 0 or SMALLEST <= -each <= LARGEST):
                    return False
            elif kind is int:
                if not -LARGEST_INTEGER <= each <= LARGEST_INTEGER:
                    return False
            elif kind is str:
                if _is_odd_text(each):
                    return False
            elif kind is np.ndarray:
                if len(_odd_places(each)):
                    return False
            elif kind is list or kind is tuple or kind is dict or isinstance(each, BaseModel):
                if len(inside) >= _DEEPEST:  # or without end: something that is inside of itself
                    return False
                inside.append(iter(each if kind is list or kind is tuple else _fields(each).values()))
                break
            elif each is not None and kind is not bool:
                return False
        else:
            inside.pop()
    return True


def _fields(data: Any) -> dict[str, Any]:
    """A mapping as it is, and of a part that a program made its fields, without what has been calculated of them."""
    return data if isinstance(data, dict) else {name: getattr(data, name) for name in type(data).model_fields}


def _refuse(data: Any, place: str) -> None:
    """Raise ValueError, with its place, at the first figure that is not usual."""
    if isinstance(data, BaseModel):
        # A part that a program made: it was not looked at when it was read.
        data = _fields(data)
    if isinstance(data, Mapping):
        for name, value in data.items():
            _refuse(value, f"{place}.{name}" if place else str(name))
    elif isinstance(data, list | tuple):
        for number, value in enumerate(data):
            _refuse(value, f"{place}[{number}]")
    elif isinstance(data, np.ndarray):
        for odd in _odd_places(data):
            index = "".join(f"[{int(each)}]" for each in odd)
            raise ValueError(f"{place}{index} is {data[tuple(odd)]:g}; {_EXPECTED}")
    elif isinstance(data, int) and not isinstance(data, bool):
        if not -LARGEST_INTEGER <= data <= LARGEST_INTEGER:
            raise ValueError(f"{place} is {_shown(data)}; whole numbers go up to {LARGEST_INTEGER}")
    elif isinstance(data, float) and _is_odd(data):
        raise ValueError(f"{place} is {data:g}; {_EXPECTED}")
    elif isinstance(data, str) and _is_odd_text(data):
        raise ValueError(f"{place} is '{data[:30]}'; {_EXPECTED}")


def _odd_places(array: np.ndarray) -> np.ndarray:
    """(n, dimensions) indices of odd figures of an array; those of whole numbers are taken as they are."""
    if array.dtype.kind != "f":
        return np.empty((0, array.ndim), dtype=int)
    size = np.abs(array)
    return np.argwhere(np.isfinite(size) & (size > 0) & ((size < SMALLEST) | (size > LARGEST)))


def _is_odd_text(text: str) -> bool:
    """Whether a text is, which fields of numbers would take for one."""
    if text[:1].isalpha():  # infinite, or no number
        return False
    try:
        return _is_odd(float(text))
    except ValueError:
        return False


def _is_odd(value: float) -> bool:
    """Whether a figure is; of what is not finite its field says more."""
    return value != 0 and math.isfinite(value) and not SMALLEST <= abs(value) <= LARGEST


_EXPECTED = f"figures are 0 or of a size of {SMALLEST:g} to {LARGEST:g}: use another unit"


def _shown(value: int) -> str:
    """A whole number; one with thousands of digits by their count."""
    return str(value) if abs(value) < 10**30 else f"a number of {int(abs(value).bit_length() * 0.30103) + 1} digits"
