"""Numba kernels for lookup tables: how few ranges cover all operands within an error.

Nothing here knows an instance.
"""

# mypy: disable-error-code="untyped-decorator, no-any-return"

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from ddlopt.models.kernels import inner, kernel

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

_FUNCTION = "record(Function, const(f8[::1]), b1, b1, f8)"


class Function(NamedTuple):
    """A function as kernels take it: its values, whether they are monotone, relative errors, step (0: none)."""

    values: Floats
    monotone: bool
    relative: bool
    step: float


@inner()
def error_of(value: float, least: float, most: float, relative: bool) -> float:
    """The largest error of a value over function values from ``least`` to ``most``."""
    if relative:
        return max(abs(value - least) / abs(least), abs(most - value) / abs(most))
    return max(abs(value - least), abs(most - value))


@inner()
def least_error(one: float, other: float, relative: bool, step: float) -> float:
    """Error of the best value of an entry with these extremes."""
    least, most = min(one, other), max(one, other)
    middle = least + 0.5 * (most - least)
    if relative:
        middle = 2.0 * least * (most / (least + most))
    if step == 0.0:
        return error_of(middle, least, most, relative)
    below = np.floor(middle / step) * step
    return min(error_of(below, least, most, relative), error_of(below + step, least, most, relative))


@inner()
def _monotone_end(function: Function, start: int, limit: float, guess: int) -> int:
    """The first operand after ``start`` that an entry from there cannot cover, by galloping from a guess."""
    values, relative, step = function.values, function.relative, function.step
    n = len(values)
    # ``inside`` is covered; ``outside`` is not, or the end.
    inside, outside = start, n
    stride = max(1, guess)
    while inside + stride < outside:
        if least_error(values[start], values[inside + stride], relative, step) <= limit:
            inside += stride
            stride *= 2
        else:
            outside = inside + stride
    while outside - inside > 1:
        middle = (inside + outside) // 2
        if least_error(values[start], values[middle], relative, step) <= limit:
            inside = middle
        else:
            outside = middle
    return outside


@inner()
def _end(function: Function, start: int, limit: float) -> int:
    """The same for any function, operand by operand."""
    values = function.values
    least = most = values[start]
    for place in range(start + 1, len(values)):
        least, most = min(least, values[place]), max(most, values[place])
        if least_error(least, most, function.relative, function.step) > limit:
            return place
    return len(values)


@kernel(f"({_FUNCTION}, f8, i8[::1])")
def cover(function: Function, limit: float, starts: Ints) -> tuple[int, float, float]:
    """As few ranges as cover all operands with errors up to ``limit``, each as long as it can be.

    Parameters
    ----------
    starts : array of int
        Filled with the places where ranges begin.

    Returns
    -------
    tuple
        How many there are, -1 if ``starts`` has no room for as many; the largest error of them; and the least limit
        above this one with which any of the ranges filled in would be another.
    """
    values = function.values
    count, place, reached, following, length = 0, 0, 0.0, np.inf, 1
    while place < len(values):
        if count == len(starts):
            return -1, reached, following
        starts[count] = place
        count += 1
        end = _monotone_end(function, place, limit, length) if function.monotone else _end(function, place, limit)
        least = most = values[place]
        if function.monotone:
            most = values[end - 1]
        else:
            for inner in range(place + 1, end):
                least, most = min(least, values[inner]), max(most, values[inner])
        reached = max(reached, least_error(least, most, function.relative, function.step))
        if end < len(values):
            least, most = min(least, most, values[end]), max(least, most, values[end])
            following = min(following, least_error(least, most, function.relative, function.step))
        length = end - place
        place = end
    return count, reached, following


@kernel(f"({_FUNCTION}, i8[::1])")
def split_ranges(function: Function, bounds: Ints) -> Floats:
    """Error of each range between consecutive ``bounds``."""
    errors = np.empty(len(bounds) - 1)
    for k in range(len(errors)):
        least = most = function.values[bounds[k]]
        for place in range(bounds[k], bounds[k + 1]):
            least, most = min(least, function.values[place]), max(most, function.values[place])
        errors[k] = least_error(least, most, function.relative, function.step)
    return errors
