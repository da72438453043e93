"""A Numba kernel that lists the convex sets of blocks that fit into an accelerator: differences of two ideals."""

# mypy: disable-error-code="untyped-decorator, no-any-return"

import numpy as np
import numpy.typing as npt

from ddlopt.models.deployment.partition.ideals.kernels import SUMS, Sums, is_within, transfers
from ddlopt.models.kernels import kernel

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]


@kernel(f"({SUMS}, f8[::1], f8, i8)")
def pieces(sets: Sums, transfer: Floats, memory: float, most: int) -> tuple[Ints, Ints, Floats]:
    """All pairs of an ideal within another whose difference an accelerator can take: smaller, larger, load.

    Of more than ``most`` only as many and one.
    """
    count = len(sets.bits)
    room = 1024
    small, large, load = np.empty(room, dtype=np.int64), np.empty(room, dtype=np.int64), np.empty(room)
    found = 0
    for i in range(count):
        for j in range(i):
            if sets.never[i, 0] != sets.never[j, 0] or sets.memory[i] - sets.memory[j] > memory:
                continue
            if not is_within(sets.bits, j, i):
                continue
            if found == room:
                room *= 2
                smaller = np.empty(room, dtype=np.int64)
                smaller[:found] = small
                small = smaller
                larger = np.empty(room, dtype=np.int64)
                larger[:found] = large
                large = larger
                loads = np.empty(room)
                loads[:found] = load
                load = loads
            small[found], large[found] = j, i
            load[found] = sets.accelerator[i] - sets.accelerator[j] + transfers(j, i, sets, transfer)
            found += 1
            if found > most:
                return small[:found], large[:found], load[:found]
    return small[:found], large[:found], load[:found]
