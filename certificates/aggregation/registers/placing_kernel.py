"""Numba kernel of the checker: all placements in registers in whole numbers, without those that cost too much.

With some parameters placed, a batch costs at least the pairs that it has, and what the others add if each goes where
fewest of the batch are, among arrays that still may have it: pairs are a sum of convex functions of counts. Then

* a parameter *may not* be in an array where all of its batches together would add more than is left to spend;
* an array has no more of a batch than those of its parameters that may be there, nor than its own room,

and again, until nothing changes. Both say something of all placements that go on from here and cost no more than
``most``, so that it holds deeper in the tree, too. Branching is on a parameter with the fewest arrays left.

*Interchangeable arrays.* Of empty arrays with equal capacities only the first is tried: swapping two of them makes
a placement in the one a placement in the other, at the same cost.
"""

# mypy: disable-error-code="untyped-decorator, no-any-return"

import numpy as np
import numpy.typing as npt

from ddlopt.models.kernels import kernel, leaf

Ints = npt.NDArray[np.int64]

DONE, FOUND, PAUSED = range(3)
"""Why the search returns: there is no placement, there is one, or it has looked at as many parts as it was to."""


@kernel(
    "i8(i8[::1], i8[::1], i8[::1], i8[::1], i8[::1], i8, i8[::1], i8[::1], i8[:, :, ::1], i8[::1], i8[::1],"
    " i8[:, ::1], i8[::1], i8[::1])"
)
def search(
    first: Ints, batches: Ints, weights: Ints, capacities: Ints, order: Ints, most: int,
    chosen: Ints, following: Ints, free: Ints, place: Ints, held: Ints, count: Ints, left: Ints, at: Ints,
) -> int:  # fmt: skip
    """Go on in depth first order.

    Parameter i is in ``batches[first[i]:first[i + 1]]``. ``chosen`` has the parameter of each depth, ``following`` the
    array to try next, ``free`` where parameters may be; ``place`` the array of each or -1, ``held`` the size of each
    array; ``count`` parameters of each batch in each array, ``left`` those that are not placed. ``at`` is the depth,
    whether its node is new, and how many new nodes may yet be looked at.
    """
    n, arrays = len(place), len(held)
    room, spread = np.zeros_like(count), np.zeros_like(count)
    low, high = np.zeros_like(left), np.zeros_like(left)
    while True:
        depth = at[0]
        if at[1]:
            if at[2] <= 0:
                return PAUSED
            at[1], at[2] = 0, at[2] - 1
            following[depth] = arrays
            for i in range(n):
                for r in range(arrays):
                    before = 1 if depth == 0 else free[depth - 1, i, r]
                    free[depth, i, r] = before if held[r] < capacities[r] else 0
            now = free[depth]
            if _promising(
                first, batches, weights, capacities, most, now, place, held, count, left, room, spread, low, high
            ):
                if depth == n:
                    return FOUND
                chosen[depth], following[depth] = _next(order, now, place), 0
        if depth < n and following[depth] < arrays:
            r, i = following[depth], chosen[depth]
            following[depth] += 1
            if free[depth, i, r] and not _like_an_earlier_one(r, held, capacities):
                _move(first, batches, place, held, count, left, i, r, 1)
                at[0], at[1] = depth + 1, 1
            continue
        if depth == 0:
            return DONE
        at[0] = depth - 1
        i = chosen[depth - 1]
        _move(first, batches, place, held, count, left, i, place[i], -1)


@leaf
def _like_an_earlier_one(r: int, held: Ints, capacities: Ints) -> bool:
    found = False
    for other in range(r):
        found |= held[other] == 0 and capacities[other] == capacities[r]
    return found and held[r] == 0


@leaf
def _move(
    first: Ints, batches: Ints, place: Ints, held: Ints, count: Ints, left: Ints, i: int, r: int, step: int
) -> None:
    """Put parameter i into array r, or with step -1 take it out."""
    place[i] = r if step > 0 else -1
    held[r] += step
    for k in range(first[i], first[i + 1]):
        count[batches[k], r] += step
        left[batches[k]] -= step


@leaf
def _next(order: Ints, free: Ints, place: Ints) -> int:
    """A parameter with the fewest arrays, the first in the order."""
    found, fewest = -1, len(free[0]) + 1
    for i in order:
        if place[i] < 0:
            number = 0
            for r in range(len(free[i])):
                number += free[i, r]
            if number < fewest:
                found, fewest = i, number
    return found


@leaf
def _promising(
    first: Ints, batches: Ints, weights: Ints, capacities: Ints, most: int,
    free: Ints, place: Ints, held: Ints, count: Ints, left: Ints, room: Ints, spread: Ints, low: Ints, high: Ints,
) -> bool:  # fmt: skip
    """Whether a placement may cost no more than ``most``; takes from ``free`` where no parameter may be."""
    n, arrays = len(place), len(held)
    changed = True
    while changed:
        changed = False
        room[:] = 0
        for i in range(n):
            if place[i] < 0:
                for k in range(first[i], first[i + 1]):
                    for r in range(arrays):
                        room[batches[k], r] += free[i, r]
        cost = 0
        for t in range(len(left)):
            for r in range(arrays):
                room[t, r] = min(room[t, r], capacities[r] - held[r])
            if not _filled(count[t], room[t], spread[t], left[t], low[t : t + 1], high[t : t + 1]):
                return False
            cost += weights[t] * low[t]
            if cost > most:
                return False
        for i in range(n):
            if place[i] >= 0:
                continue
            open_ones = 0
            for r in range(arrays):
                if not free[i, r]:
                    continue
                more = 0
                for k in range(first[i], first[i + 1]):
                    t = batches[k]
                    if spread[t, r] == 0 and count[t, r] > high[t]:
                        # One goes here in place of the dearest of the others.
                        more += weights[t] * (count[t, r] - high[t])
                if cost + more > most:
                    free[i, r] = 0
                    changed = True
                else:
                    open_ones += 1
            if open_ones == 0:
                return False
    return True


@leaf
def _filled(count: Ints, room: Ints, spread: Ints, left: int, low: Ints, high: Ints) -> bool:
    """Where the parameters of a batch that are left make the fewest pairs.

    ``spread`` is how many more each array has, ``low`` all pairs of the batch, ``high`` the most that one adds.
    """
    low[0], high[0] = 0, -1
    for r in range(len(count)):
        low[0] += count[r] * (count[r] - 1) // 2
        spread[r] = 0
    for _ in range(left):
        best = -1
        for r in range(len(count)):
            if spread[r] < room[r] and (best < 0 or count[r] + spread[r] < count[best] + spread[best]):
                best = r
        if best < 0:
            return False
        high[0] = count[best] + spread[best]
        low[0] += high[0]
        spread[best] += 1
    return True
