r"""Numba kernels of the checker: stages that may take less than the claim, in whole numbers that are rounded down.

A stage with d replicas *may take less* unless one of these says that it does not; each holds for every choice of an
option for each layer. With times p and memory m of options, L = d times the claim, and M the room:

1. the fastest options take :math:`\sum \min p \ge L`;
2. the leanest need :math:`\sum \min m > M`;
3. for a rate :math:`\lambda \ge 0`, :math:`\sum \min (p + \lambda m) - \lambda M \ge L`: what fits has
   :math:`\lambda (\sum m - M) \le 0`;
4. layer by layer, of all choices for the first layers those are kept that no other one beats in both p and m, and that
   1 to 3 do not exclude together with the layers that follow; none is left.

Any rate proves something, so that how one is found does not matter. Sums are below 2^61
(:mod:`~ddlopt.certificates.deployment.pipeline.tables`).
"""

# mypy: disable-error-code="untyped-decorator, no-any-return"
# ruff: noqa: SIM110 (compiled code is written in loops)

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from ddlopt.certificates.deployment.pipeline.tables import FINE, ROOM, Ints, Tables, Words
from ddlopt.models.kernels import helper, kernel

_NEVER = 2**62
"""More than any time, memory, or number of devices."""
_LONGEST = 2**14
"""Choices for some layers of a stage that are kept; with more the stage counts as possible."""
_SHIFT = 2**14
"""A rate is a number of units of time for this number of units of memory."""
_HIGHEST = 2**24
"""Rate, so that a rate times a memory is below 2^61."""
_TRIES = 40
"""Rates for a stage: each cuts off a corner of what is between the fastest and the leanest options."""

TABLES = (
    "record(Tables, i8[:, ::1], i8[:, ::1], i8[::1], i8[::1], i8[::1], i8[::1], i8[::1], i8[:, :, ::1], "
    "i8[:, :, ::1], i8[::1], i8[::1], i8[:, ::1], i8[:, ::1], i8[:, :, ::1], u8[:, ::1], i8[::1], i8, i8)"
)
ROOM_TYPE = "record(Room, i8[::1], i8[::1], i8[:, ::1], i8[::1], i8[::1], i8[::1], i8[:, ::1], i8[:, :, ::1], i8[::1])"


class Room(NamedTuple):
    """Where the kernels calculate.

    Parameters
    ----------
    layers : (layers,)
        Of a stage.
    place : (layers,)
        In the stage, or -1.
    more : (layers, options)
        What transfers to other stages add to a time.
    start : (layers + 1,)
        First row of each layer of the stage.
    time, memory : (rows,)
        Of its options.
    rest : (layers + 1, 3)
        Of the layers from one on: least time, memory, and sum of both at a rate.
    kept : (3, choices, 2)
        Memory and time of choices for some layers, the leanest first: before a layer, after it, and in between.
    fits : (replicas,)
        Samples in flight with which the stage may take less.
    """

    layers: Ints
    place: Ints
    more: Ints
    start: Ints
    time: Ints
    memory: Ints
    rest: Ints
    kept: Ints
    fits: Ints


def room_for(tables: Tables) -> Room:
    """Room for an instance."""
    layers, options = tables.first.shape[1] - 1, tables.gathered.shape[2]
    return Room(
        np.zeros(layers, np.int64),
        np.full(layers, -1),
        np.zeros((layers, options), np.int64),
        np.zeros(layers + 1, np.int64),
        np.zeros(layers * options, np.int64),
        np.zeros(layers * options, np.int64),
        np.zeros((layers + 1, 3), np.int64),
        np.zeros((3, _LONGEST, 2), np.int64),
        np.zeros(len(tables.replicas), np.int64),
    )


@kernel(f"i8({TABLES}, {ROOM_TYPE}, i4[:, ::1], i8, i8)", nogil=True)
def extend(net: Tables, room: Room, need: npt.NDArray[np.int32], low: int, high: int) -> int:
    """Put stages that may take less than the claim in front of ideals from ``high`` down to ``low``.

    ``need`` has by ideal and replicas behind it the fewest devices; how many stages were asked about is returned.
    """
    labels = np.empty(net.most + 1, np.int64)
    fails = np.empty(net.replicas.size, np.int64)
    asked = 0
    for behind in range(high, low - 1, -1):
        # More replicas are of use with fewer devices only.
        count, fewest = 0, _NEVER
        for total in range(net.most + 1):
            if need[behind, total] < min(fewest, net.left[behind] + 1):
                fewest = int(need[behind, total])
                labels[count] = total
                count += 1
        if not count:
            continue
        for ahead in range(behind):
            if net.left[ahead] <= fewest or not _within(net.words, ahead, behind):
                continue
            for degree in range(net.tensors.size):
                tensor = net.tensors[degree]
                if net.missing[degree, behind] > net.missing[degree, ahead]:
                    continue
                least = net.fastest[degree, behind] - net.fastest[degree, ahead]
                if least >= net.goal * ((net.left[ahead] - fewest) // tensor):
                    continue
                size, base = 0, 0
                room.fits[:] = 0
                fails[:] = _NEVER
                for label in labels[:count]:
                    for number in range(net.replicas.size):
                        d = net.replicas[number]
                        total, used = label + d, need[behind, label] + d * tensor
                        if total > net.most or used > net.left[ahead] or _beaten(need, ahead, total, used):
                            break
                        if least >= net.goal * d:
                            continue
                        flying = (total + d - 1) // d
                        # With fewer samples in flight a stage takes no longer.
                        if flying >= fails[number]:
                            continue
                        if flying > room.fits[number]:
                            asked += 1
                            slow = _overfull(net, ahead, behind, degree, flying)
                            if not slow:
                                if not size:
                                    size = _put(net, room, ahead, behind)
                                    base = _cut(net, room, size, degree)
                                slow = _is_slow(net, room, size, base, degree, number, flying)
                            if slow:
                                fails[number] = flying
                                continue
                            room.fits[number] = flying
                        need[ahead, total] = used
                        break
    return asked


@helper
def _within(words: Words, ahead: int, behind: int) -> bool:
    for word in range(words.shape[1]):
        if words[ahead, word] & ~words[behind, word]:
            return False
    return True


@helper
def _beaten(need: npt.NDArray[np.int32], ideal: int, total: int, used: int) -> bool:
    """Whether a state is known with as few replicas and devices."""
    for fewer in range(total + 1):
        if need[ideal, fewer] <= used:
            return True
    return False


@helper
def _overfull(net: Tables, ahead: int, behind: int, degree: int, flying: int) -> bool:
    """Whether the leanest options need more than the memory."""
    row = min(flying, net.lean.shape[1]) - 1
    return net.lean[degree, row, behind] - net.lean[degree, row, ahead] > ROOM


@helper
def _put(net: Tables, room: Room, ahead: int, behind: int) -> int:
    """How many layers the stage has, which are written down."""
    size = 0
    for layer in range(net.first.shape[1] - 1):
        word = net.words[behind, layer // 64] & ~net.words[ahead, layer // 64]
        room.place[layer] = -1
        if (word >> np.uint64(layer % 64)) & np.uint64(1):
            room.layers[size] = layer
            room.place[layer] = size
            size += 1
    return size


@helper
def _cut(net: Tables, room: Room, size: int, degree: int) -> int:
    """Time of edges to other stages, whatever the options; what they add to options is written down."""
    base = 0
    room.more[:size, :] = 0
    for edge in range(net.moved.size):
        maker, user = room.place[net.maker[edge]], room.place[net.user[edge]]
        if (maker >= 0) == (user >= 0):
            continue
        base += net.moved[edge]
        for option in range(net.gathered.shape[2]):
            if user >= 0:
                room.more[user, option] += net.gathered[edge, degree, option]
            else:
                room.more[maker, option] += net.scattered[edge, degree, option]
    return base


@helper
def _is_slow(net: Tables, room: Room, size: int, base: int, degree: int, number: int, flying: int) -> bool:
    """Whether no choice of options takes less than the claim within the memory."""
    limit, rows = net.goal * net.replicas[number] - base, 0
    for place in range(size):
        room.start[place] = rows
        first = net.first[degree, room.layers[place]]
        for option in range(first, net.first[degree, room.layers[place] + 1]):
            room.time[rows] = net.time[number, option] + room.more[place, option - first]
            room.memory[rows] = min(ROOM + 1, (net.kept[option] * flying + net.fixed[option]) // FINE)
            rows += 1
    room.start[size] = rows
    fast, most, _ = _choice(room, size, 1, 0)
    if fast >= limit:
        return True
    if most <= ROOM:
        return False
    lean, least, _ = _choice(room, size, 0, _SHIFT)
    if least > ROOM:
        return True
    if lean < limit:
        return False
    rate = 0
    for _ in range(_TRIES):
        # The fastest choice does not fit, and the leanest is slow: weigh both equally.
        rate = min(_HIGHEST, int((lean - fast) / (most - least) * _SHIFT))
        time, memory, value = _choice(room, size, 1, rate)
        if value - _paid(rate) >= limit:
            return True
        if memory > ROOM:
            if memory >= most or time >= limit:
                break
            fast, most = time, memory
        elif time < limit:
            return False
        elif memory <= least:
            break
        else:
            lean, least = time, memory
    return _none_is_left(room, size, limit, rate)


@helper
def _paid(rate: int) -> int:
    """What the whole memory is worth at a rate, rounded up."""
    return -(-(rate * ROOM) // _SHIFT)


@helper
def _choice(room: Room, size: int, weight: int, rate: int) -> tuple[int, int, int]:
    """Time and memory of the options with the least sum of both, weighted, and that sum."""
    time, memory, value = 0, 0, 0
    for place in range(size):
        best, its = _NEVER, -1
        for row in range(room.start[place], room.start[place + 1]):
            own = weight * room.time[row] + rate * room.memory[row] // _SHIFT
            tie = own == best and room.time[row] + room.memory[row] < room.time[its] + room.memory[its]
            if own < best or tie:
                best, its = own, row
        time += room.time[its]
        memory += room.memory[its]
        value += best
    return time, memory, value


@helper
def _none_is_left(room: Room, size: int, limit: int, rate: int) -> bool:
    """Whether no choice takes less than the limit within the room, layer by layer."""
    room.rest[size, :] = 0
    for place in range(size - 1, -1, -1):
        time, memory, value = _NEVER, _NEVER, _NEVER
        for row in range(room.start[place], room.start[place + 1]):
            time, memory = min(time, room.time[row]), min(memory, room.memory[row])
            value = min(value, room.time[row] + rate * room.memory[row] // _SHIFT)
        room.rest[place, 0] = room.rest[place + 1, 0] + time
        room.rest[place, 1] = room.rest[place + 1, 1] + memory
        room.rest[place, 2] = room.rest[place + 1, 2] + value
    now, then, spare, count = 0, 1, 2, 1
    room.kept[now, 0, :] = 0
    for place in range(size):
        longer = 0
        for row in range(room.start[place], room.start[place + 1]):
            longer = _merged(room, now, count, then, longer, spare, row, place + 1, limit, rate)
            if longer < 0:
                return False
            then, spare = spare, then
        now, then, count = then, now, longer
    return count == 0


@helper
def _merged(
    room: Room, now: int, count: int, then: int, longer: int, out: int, row: int, place: int, limit: int, rate: int
) -> int:
    """Put choices with an option besides to those with others, and say how many there are; -1 if too many."""
    one, other, size, quickest = 0, 0, 0, _NEVER
    while one < count or other < longer:
        new = other == longer
        memory, time = 0, 0
        if one < count:
            memory = room.kept[now, one, 0] + room.memory[row]
            time = room.kept[now, one, 1] + room.time[row]
            new = new or memory < room.kept[then, other, 0]
        if new:
            one += 1
            if memory + room.rest[place, 1] > ROOM or time + room.rest[place, 0] >= limit:
                continue
            if time + rate * memory // _SHIFT + room.rest[place, 2] - _paid(rate) >= limit:
                continue
        else:
            memory, time = room.kept[then, other, 0], room.kept[then, other, 1]
            other += 1
        if time >= quickest:
            continue
        if size == _LONGEST:
            return -1
        room.kept[out, size, 0], room.kept[out, size, 1] = memory, time
        size, quickest = size + 1, time
    return size
