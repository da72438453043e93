"""The search for generators with the largest gap, as a Numba kernel."""

# mypy: disable-error-code="untyped-decorator, no-any-return"

import numpy as np
import numpy.typing as npt

from ddlopt.models.kernels import kernel

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]


@kernel("(f8[:, ::1], f8[:, ::1], i8, f8[::1], i8, f8, i8[::1])")
def extend(
    table: Floats, highest: Floats, first: int, base: Floats, count: int, least: float, picks: Ints
) -> tuple[float, int]:
    """Add ``count`` generators to a set such that the least eigenvalue is largest.

    Parameters
    ----------
    table : (p, k) array
        Eigenvalues that each generator adds.
    highest : (p + 1, k) array
        The largest of those of this and later generators.
    first : int
        Generators from this one on may be added.
    base : (k,) array
        Eigenvalues of the set.
    count : int
        At least 1.
    least : float
        Only what is better counts.
    picks : (count,) array
        Filled with the best addition, if one is better.

    Returns
    -------
    value : float
        Its least eigenvalue, or ``least``.
    visited : int
        Sets looked at.
    """
    pool, characters = table.shape
    sums = np.empty((count, characters))
    for k in range(characters):
        sums[0, k] = base[k]
    at = np.empty(count, np.int64)
    at[0] = first
    depth, visited, lowest = 0, 0, 0
    while depth >= 0:
        place, left = at[depth], count - depth
        if place + left > pool:
            depth -= 1
            if depth >= 0:
                at[depth] += 1
            continue
        visited += 1
        # The eigenvalue that was too small last time often is again.
        hopeless = sums[depth, lowest] + left * highest[place, lowest] <= least
        if not hopeless:
            for k in range(characters):
                if sums[depth, k] + left * highest[place, k] <= least:
                    hopeless = True
                    lowest = k
                    break
        if hopeless:
            # As little remains for later generators.
            depth -= 1
            if depth >= 0:
                at[depth] += 1
            continue
        if left > 1:
            for k in range(characters):
                sums[depth + 1, k] = sums[depth, k] + table[place, k]
            at[depth + 1] = place + 1
            depth += 1
            continue
        value = sums[depth, lowest] + table[place, lowest]
        if value > least:
            for k in range(characters):
                other = sums[depth, k] + table[place, k]
                if other < value:
                    value = other
                    if value <= least:
                        lowest = k
                        break
            if value > least:
                least = value
                for k in range(count):
                    picks[k] = at[k]
        at[depth] += 1
    return least, visited
