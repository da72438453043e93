"""Compiled sorting of numbers: small kernels, as those of Numba take seconds to compile."""

# mypy: disable-error-code="untyped-decorator, no-any-return"

import numpy as np
import numpy.typing as npt

from ddlopt.models.kernels import inner

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

_SMALL = 15
"""Length up to which numbers are inserted one after the other."""


@inner()
def stable_order(values: Floats) -> Ints:
    """Places of (n,) numbers, the least first; equal ones stay in their order. Bottom-up merge sort."""
    n = len(values)
    order, other = np.empty(n, np.int64), np.empty(n, np.int64)
    for first in range(0, n, _SMALL):
        for i in range(first, min(n, first + _SMALL)):
            k = i
            while k > first and values[i] < values[order[k - 1]]:
                order[k] = order[k - 1]
                k -= 1
            order[k] = i
    width = _SMALL
    while width < n:
        for first in range(0, n, 2 * width):
            middle, last = min(n, first + width), min(n, first + 2 * width)
            i, j = first, middle
            for k in range(first, last):
                if i < middle and (j == last or values[order[i]] <= values[order[j]]):
                    other[k] = order[i]
                    i += 1
                else:
                    other[k] = order[j]
                    j += 1
        order, other = other, order
        width *= 2
    return order
