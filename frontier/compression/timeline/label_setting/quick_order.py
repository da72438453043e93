"""Compiled quicksort, for long rows of keys of which equal ones need no order."""

# mypy: disable-error-code="untyped-decorator, no-any-return"

import numpy as np
import numpy.typing as npt

from ddlopt.models.kernels import inner

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

_SMALL = 15
"""Length up to which numbers are inserted one after the other."""
# The larger part waits: 64 halvings are enough for any array.
_DEPTH = 100


@inner()
def quick_order(values: Floats) -> Ints:
    """Places of (n,) numbers, the least first; equal ones in any order, but always the same. By the median of three."""
    n = len(values)
    order = np.empty(n, np.int64)
    for i in range(n):
        order[i] = i
    lows, highs = np.empty(_DEPTH, np.int64), np.empty(_DEPTH, np.int64)
    lows[0], highs[0] = 0, n - 1
    waiting = 1
    while waiting > 0:
        waiting -= 1
        low, high = lows[waiting], highs[waiting]
        while high - low >= _SMALL:
            middle = (low + high) >> 1
            if values[order[middle]] < values[order[low]]:
                order[low], order[middle] = order[middle], order[low]
            if values[order[high]] < values[order[middle]]:
                order[high], order[middle] = order[middle], order[high]
            if values[order[middle]] < values[order[low]]:
                order[low], order[middle] = order[middle], order[low]
            pivot = values[order[middle]]
            order[high], order[middle] = order[middle], order[high]
            i, j = low, high - 1
            while True:
                while i < high and values[order[i]] < pivot:
                    i += 1
                while j >= low and pivot < values[order[j]]:
                    j -= 1
                if i >= j:
                    break
                order[i], order[j] = order[j], order[i]
                i += 1
                j -= 1
            order[i], order[high] = order[high], order[i]
            # The longer part waits.
            if high - i > i - low:
                if high > i:
                    lows[waiting], highs[waiting] = i + 1, high
                    waiting += 1
                high = i - 1
            else:
                if i > low:
                    lows[waiting], highs[waiting] = low, i - 1
                    waiting += 1
                low = i + 1
        for i in range(low + 1, high + 1):
            k, moved = i, order[i]
            while k > low and values[moved] < values[order[k - 1]]:
                order[k] = order[k - 1]
                k -= 1
            order[k] = moved
    return order
