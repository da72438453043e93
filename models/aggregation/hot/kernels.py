"""Numba kernels of the hot set: a greedy placement, and a knapsack by dynamic programming.

Nothing here knows an instance.
"""

# mypy: disable-error-code="untyped-decorator, no-any-return"

import numpy as np
import numpy.typing as npt

from ddlopt.models.kernels import kernel

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]


@kernel("(const(i8[::1]), const(i8[::1]), const(f8[:, ::1]), f8[::1], i8[::1])")
def place(order: Ints, widths: Ints, values: Floats, prices: Floats, room: Ints) -> Ints:
    """Switch of each item, (N,), -1 for none: in the order given, where value less price is most and there is room.

    ``values`` is (N, S), ``prices`` (S,) of a register; ``room`` (S,) is what is left, and is lowered.
    """
    count, switches = values.shape
    placed = np.full(count, -1, np.int64)
    for i in order:
        best, most = -1, 0.0
        for s in range(switches):
            if values[i, s] > 0.0 and widths[i] <= room[s]:
                profit = values[i, s] - prices[s] * widths[i]
                if best < 0 or profit > most:
                    best, most = s, profit
        if best >= 0:
            placed[i] = best
            room[best] -= widths[i]
    return placed


@kernel("(i8[::1], f8[::1], i8)")
def knapsack(widths: Ints, values: Floats, capacity: int) -> npt.NDArray[np.bool_]:
    """Which items, (N,), have the greatest value among those that fit into ``capacity``, by dynamic programming."""
    count = len(widths)
    best = np.zeros(capacity + 1)
    taken = np.zeros((count, capacity + 1), np.bool_)
    for i in range(count):
        for used in range(capacity, widths[i] - 1, -1):
            with_it = best[used - widths[i]] + values[i]
            if with_it > best[used]:
                best[used] = with_it
                taken[i, used] = True
    chosen = np.zeros(count, np.bool_)
    left = capacity
    for i in range(count - 1, -1, -1):
        if taken[i, left]:
            chosen[i] = True
            left -= widths[i]
    return chosen
