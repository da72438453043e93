"""Compiled: the least load of a set of layers by its price, and the dearest sequence of stages."""

# mypy: disable-error-code="untyped-decorator, no-any-return"

import numpy as np
import numpy.typing as npt

from ddlopt.models.kernels import kernel
from ddlopt.models.tolerances import BOUND_MARGIN

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Choices = npt.NDArray[np.uint16]

_SWEEP = "i8[::1], i8[::1], i8[::1], i8[::1], f8[::1], f8[::1]"


@kernel(f"({_SWEEP}, f8[::1], i8[::1], i8, i8, f8, u2[:, :, ::1])", thorough=True)
def least_loads(
    slot: Ints,
    freed: Ints,
    first: Ints,
    other: Ints,
    inside: Floats,
    outside: Floats,
    own: Floats,
    price: Ints,
    width: int,
    most: int,
    limit: float,
    chosen: Choices,
) -> Floats:
    """By price, the least load of a set of layers that has it; infinite where that is above a limit.

    Layers stand in the order of a sweep. Of those that are done, the ones with an edge to come have a slot, a bit that
    says whether they are in the set.

    Parameters
    ----------
    slot, freed : (l,) arrays
        Slot of a layer, or -1; slots that are free after it, as bits.
    first : (l + 1,) array
        First edge of each layer to one before it.
    other, inside, outside : (e,) arrays
        Slot of the layer before, what the edge adds if only this layer is in the set, and if only that one is.
    own, price : (l,) arrays
    width, most : int
        Slots, and the largest price.
    limit : float
    chosen : (l, 2^w, most + 1) array
        Filled with where each value came from: twice the bits before the layer, and one if it is in the set. Left alone
        where it has no rows.
    """
    masks = 1 << width
    old = np.full((masks, most + 1), np.inf)
    new = np.full((masks, most + 1), np.inf)
    reached = np.zeros(masks, np.int64)
    after = np.zeros(masks, np.int64)
    keep = chosen.shape[0] > 0
    old[0, 0] = 0.0
    reached[0] = 1
    for layer in range(slot.size):
        after[:] = 0
        bit = 0 if slot[layer] < 0 else 1 << slot[layer]
        for mask in range(masks):
            top = reached[mask]
            if not top:
                continue
            out, taken = 0.0, own[layer]
            for edge in range(first[layer], first[layer + 1]):
                if mask >> other[edge] & 1:
                    out += outside[edge]
                else:
                    taken += inside[edge]
            row = old[mask]
            to = mask & ~freed[layer]
            if after[to] < top:
                new[to, after[to] : top] = np.inf
                after[to] = top
            target = new[to]
            for value in range(top):
                load = row[value] + out
                if load < target[value]:
                    target[value] = load
                    if keep:
                        chosen[layer, to, value] = 2 * mask
            if taken > limit:
                continue
            to = (mask | bit) & ~freed[layer]
            more = price[layer]
            last = min(top + more, most + 1)
            if after[to] < last:
                new[to, after[to] : last] = np.inf
                after[to] = last
            target = new[to]
            for value in range(more, last):
                load = row[value - more] + taken
                if load < target[value] and load <= limit:
                    target[value] = load
                    if keep:
                        chosen[layer, to, value] = 2 * mask + 1
        old, new = new, old
        reached, after = after, reached
    found = np.full(most + 1, np.inf)
    found[: reached[0]] = old[0, : reached[0]]
    return found


@kernel("(i8[:, ::1], f8[:, ::1], f8[::1], f8[::1], i8[::1], i8[:, ::1], i8[:, ::1], i8[:, ::1])")
def mixed_values(
    order: Ints, own: Floats, price: Floats, room: Floats, more: Ints, window: Ints, part: Ints, found: Ints
) -> None:
    """By kind of a stage and place, the largest price of layers, taken in parts, whose loads are within a room.

    Parameters
    ----------
    order, own : (kinds, l) arrays
        Layers, the dearest for their load first, and their loads; infinite where a layer cannot be.
    price : (l,) array
    room : (kinds,) array
    more : (kinds,) array
        Devices of a stage.
    window : (l, 2) array
        The devices that stages up to the layer's, counted from the last one on, have at least, and that those behind it
        have at most.
    part : (places, 2) array
        The devices up to a stage at a place: the fewest and the most.
    found : (kinds, places) array
        Filled with the values, rounded up by a margin.
    """
    for kind in range(order.shape[0]):
        for place in range(part.shape[0]):
            left, value = room[kind], 0.0
            for layer in order[kind]:
                if window[layer, 0] > part[place, 1] or part[place, 0] - more[kind] > window[layer, 1]:
                    continue
                load = own[kind, layer]
                if load > left:
                    if load < np.inf:
                        value += price[layer] * (left / load)
                    break
                left -= load
                value += price[layer]
            found[kind, place] = int(value * (1 + BOUND_MARGIN) + BOUND_MARGIN)


@kernel("(i8[:, :, :, ::1], i8[::1], i8[::1], i8[::1], i8[::1], i8, i8[:, ::1])")
def dearest(value: Ints, row: Ints, place: Ints, tensors: Ints, replicas: Ints, most: int, stages: Ints) -> int:
    """The largest sum of values over sequences of stages from the last one on.

    Parameters
    ----------
    value : (t, d, y, p) array
        Of a stage with degrees and samples in flight at a place; -1 where there is none.
    row : (most + 1,) array
        Place along the third axis of a number of samples in flight.
    place : (devices + 1,) array
        Place along the last axis of a number of devices up to a stage.
    tensors, replicas : arrays
    most : int
        Replicas of all stages.
    stages : (most, 4) array
        Filled with the places of the stages of that sequence, and with -1 behind them.
    """
    devices = place.size - 1
    best = np.full((most + 1, devices + 1), -1, dtype=np.int64)
    came = np.zeros((most + 1, devices + 1), dtype=np.int64)
    best[0, 0] = 0
    count = replicas.size
    top, end_total, end_used = 0, 0, 0
    for total in range(1, most + 1):
        for number in range(count):
            d = replicas[number]
            if d > total:
                break
            flying = row[(total + d - 1) // d]
            for degree in range(tensors.size):
                more = d * tensors[degree]
                for used in range(more, devices + 1):
                    before = best[total - d, used - more]
                    own = value[degree, number, flying, place[used]]
                    if before >= 0 and own >= 0 and before + own > best[total, used]:
                        best[total, used] = before + own
                        came[total, used] = degree * count + number
        for used in range(devices + 1):
            if best[total, used] > top:
                top, end_total, end_used = best[total, used], total, used
    stages[:] = -1
    length = 0
    while end_total > 0:
        degree, number = came[end_total, end_used] // count, came[end_total, end_used] % count
        d = replicas[number]
        stages[length, 0], stages[length, 1] = degree, number
        stages[length, 2], stages[length, 3] = row[(end_total + d - 1) // d], place[end_used]
        length += 1
        end_total -= d
        end_used -= d * tensors[degree]
    return top
