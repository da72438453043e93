"""Numba kernels for sets of blocks that are closed under predecessors (ideals), and the dynamic program over them.

Blocks have numbers in a topological order. An ideal grows by blocks of ascending number in exactly one way, so every
one is met once without a look-up. Nothing here knows an instance.
"""

# mypy: disable-error-code="untyped-decorator, no-any-return"

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from ddlopt.models.kernels import helper, kernel

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]


class Costs(NamedTuple):
    """Times of n blocks on both kinds of device, memory, and outputs: those with a pin in each block, and their pins.

    Times where a block cannot run are infinite.
    """

    accelerator: Floats
    processor: Floats
    memory: Floats
    output_start: Ints
    output: Ints
    transfer: Floats
    pins: Ints


class Sums(NamedTuple):
    """What the blocks of each of N ideals add up to, and the outputs that it cuts.

    ``never`` counts blocks that cannot run on an accelerator, and on a processor (N, 2); ``cut`` is the time of outputs
    with pins on both sides, ``across`` their numbers, ascending, at ``start[i]`` to ``start[i + 1]``, and ``inside``
    how many of their pins are in the ideal.
    """

    bits: Ints
    accelerator: Floats
    processor: Floats
    memory: Floats
    never: Ints
    cut: Floats
    start: Ints
    across: Ints
    inside: Ints


_COSTS = "record(Costs, f8[::1], f8[::1], f8[::1], i8[::1], i8[::1], f8[::1], i8[::1])"
SUMS = "record(Sums, i8[:, ::1], f8[::1], f8[::1], f8[::1], i8[:, ::1], f8[::1], i8[::1], i8[::1], i8[::1])"


@kernel("(i8, i8[::1], i8[::1], i8)")
def ideals(n: int, pred_start: Ints, pred: Ints, most: int) -> Ints:
    """Bits of all ideals, smaller ones first; of more than ``most`` only as many and one."""
    words = n // 64 + 1
    room = 1024
    bits = np.zeros((room, words), dtype=np.int64)
    last = np.full(room, -1, dtype=np.int64)
    count, done = 1, 0
    while done < count:
        for v in range(last[done] + 1, n):
            free = True
            for p in range(pred_start[v], pred_start[v + 1]):
                u = pred[p]
                if (bits[done, u >> 6] >> (u & 63)) & 1 == 0:
                    free = False
                    break
            if not free:
                continue
            if count > most:
                return bits[:count]
            if count == room:
                room *= 2
                more = np.zeros((room, words), dtype=np.int64)
                more[:count] = bits
                bits = more
                longer = np.full(room, -1, dtype=np.int64)
                longer[:count] = last
                last = longer
            bits[count] = bits[done]
            bits[count, v >> 6] |= np.int64(1) << (v & 63)
            last[count] = v
            count += 1
        done += 1
    return bits[:count]


@kernel(f"(i8[:, ::1], {_COSTS})")
def sums(bits: Ints, costs: Costs) -> Sums:
    """Sums of ideals."""
    count = len(bits)
    n, outputs = len(costs.accelerator), len(costs.transfer)
    accelerator, processor, memory, cut = np.zeros(count), np.zeros(count), np.zeros(count), np.zeros(count)
    never = np.zeros((count, 2), dtype=np.int64)
    start = np.zeros(count + 1, dtype=np.int64)
    room = 8 * count
    across, inside = np.empty(room, dtype=np.int64), np.empty(room, dtype=np.int64)
    pins = np.zeros(outputs, dtype=np.int64)
    filled = 0
    for i in range(count):
        pins[:] = 0
        for v in range(n):
            if (bits[i, v >> 6] >> (v & 63)) & 1 == 0:
                continue
            if costs.accelerator[v] < np.inf:
                accelerator[i] += costs.accelerator[v]
            else:
                never[i, 0] += 1
            if costs.processor[v] < np.inf:
                processor[i] += costs.processor[v]
            else:
                never[i, 1] += 1
            memory[i] += costs.memory[v]
            for p in range(costs.output_start[v], costs.output_start[v + 1]):
                pins[costs.output[p]] += 1
        if filled + outputs > room:
            room = 2 * room + outputs
            wider = np.empty(room, dtype=np.int64)
            wider[:filled] = across[:filled]
            across = wider
            longer = np.empty(room, dtype=np.int64)
            longer[:filled] = inside[:filled]
            inside = longer
        for h in range(outputs):
            if 0 < pins[h] < costs.pins[h]:
                cut[i] += costs.transfer[h]
                across[filled], inside[filled] = h, pins[h]
                filled += 1
        start[i + 1] = filled
    return Sums(bits, accelerator, processor, memory, never, cut, start, across[:filled], inside[:filled])


@helper
def is_within(bits: Ints, small: int, large: int) -> bool:
    """Whether one ideal is within another."""
    outside = np.int64(0)
    for w in range(bits.shape[1]):
        outside |= bits[small, w] & ~bits[large, w]
    return outside == 0


@helper
def transfers(small: int, large: int, sets: Sums, transfer: Floats) -> float:
    """Time of what a device fetches and sends that has the blocks of one ideal without those of a smaller one.

    An output with pins among them and elsewhere is cut by one of the ideals. One that is cut by both counts once, and
    not at all where it has as many pins in both.
    """
    time = sets.cut[small] + sets.cut[large]
    p, end = sets.start[small], sets.start[small + 1]
    q, stop = sets.start[large], sets.start[large + 1]
    while p < end and q < stop:
        h, g = sets.across[p], sets.across[q]
        if h == g:
            time -= transfer[h] if sets.inside[p] < sets.inside[q] else 2 * transfer[h]
        p += h <= g
        q += g <= h
    return time


@helper
def _useful(left_s: float, k: int, cores: int, limit: float, spared: float, states: npt.NDArray[np.bool_]) -> bool:
    """Which counts of devices leave enough others for the work that is left."""
    some = False
    for c in range(cores + 1):
        for a in range(k + 1):
            states[c * (k + 1) + a] = left_s - (cores - c) * spared <= (k - a) * limit
            some |= states[c * (k + 1) + a]
    return some


@helper
def _spread(own: Floats, back: Ints, k: int, cores: int) -> None:
    """A device more may stay idle."""
    for c in range(cores + 1):
        for a in range(k + 1):
            s = c * (k + 1) + a
            if a > 0 and own[s - 1] < own[s]:
                own[s], back[s] = own[s - 1], back[s - 1]
            if c > 0 and own[s - k - 1] < own[s]:
                own[s], back[s] = own[s - k - 1], back[s - k - 1]


@kernel(f"({SUMS}, f8[::1], i8[::1], i8, i8, f8, f8, f8, f8[:, ::1], i8[:, ::1], i8[::1], i8[::1], i8)")
def least_load(
    sets: Sums,
    transfer: Floats,
    order: Ints,
    k: int,
    cores: int,
    memory: float,
    limit: float,
    spared: float,
    best: Floats,
    back: Ints,
    live: Ints,
    state: Ints,
    until: int,
) -> None:
    """Fill ``best[i, c (k + 1) + a]``, the least largest load of ideal i on a accelerators and c processors.

    Only loads below ``limit`` count; what is not reached, or of no use for the whole, has an infinite load. ``back``
    has twice the ideal before the last device, plus 1 if that is a processor. ``order`` has ideals by accelerator time
    and size, the empty one first; ``spared`` is what one processor can take off the accelerators, at most.

    Goes on to place ``until`` of ``order`` from where it was. ``state`` is that place, how many ideals are ``live``,
    the first of them that still counts, and the pairs looked at: at first ``(1, 1, 0, 0)`` with ``live[0] = order[0]``,
    ``best`` 0 for that one, and infinite otherwise.
    """
    size = (k + 1) * (cores + 1)
    states = np.zeros(size, dtype=np.bool_)
    _, lives, first, pairs = state
    total = sets.accelerator[order[-1]]
    width = max(limit, spared)
    for place in range(state[0], until):
        i = order[place]
        while first < lives and sets.accelerator[live[first]] < sets.accelerator[i] - width:
            first += 1
        if not _useful(total - sets.accelerator[i], k, cores, limit, spared, states):
            continue
        own = best[i]
        for p in range(lives - 1, first - 1, -1):
            j = live[p]
            a_time = sets.accelerator[i] - sets.accelerator[j]
            c_time = sets.processor[i] - sets.processor[j]
            if sets.never[i, 1] > sets.never[j, 1]:
                c_time = np.inf
            may = a_time < limit and sets.memory[i] - sets.memory[j] <= memory and sets.never[i, 0] == sets.never[j, 0]
            if not may and not (cores > 0 and c_time < limit):
                continue
            pairs += 1
            if not is_within(sets.bits, j, i):
                continue
            below = best[j]
            if may and k > 0:
                load = a_time + transfers(j, i, sets, transfer)
                if load < limit:
                    for c in range(cores + 1):
                        for a in range(1, k + 1):
                            s = c * (k + 1) + a
                            value = max(load, below[s - 1])
                            if value < own[s]:
                                own[s] = value
                                back[i, s] = 2 * j
            if c_time < limit:
                for s in range(k + 1, size):
                    value = max(c_time, below[s - k - 1])
                    if value < own[s]:
                        own[s] = value
                        back[i, s] = 2 * j + 1
        _spread(own, back[i], k, cores)
        alive = False
        for s in range(size):
            if not states[s]:
                own[s] = np.inf
            alive |= own[s] < np.inf
        if alive:
            live[lives] = i
            lives += 1
    state[:] = (until, lives, first, pairs)


@kernel(f"({SUMS}, f8[::1], i8, f8, f8[::1], f8[:, ::1], i8[:, ::1], i8, i8)")
def least_sum(
    sets: Sums,
    transfer: Floats,
    k: int,
    memory: float,
    block_s: Floats,
    best: Floats,
    back: Ints,
    place: int,
    until: int,
) -> None:
    """Fill ``best[i, a]``, the least time of ideal i with a accelerators one after the other, processors in between.

    For ideals ``place`` to ``until``, when all smaller ones are done. ``back`` has twice the ideal before the last
    step, plus 1 if that was a processor's; ``block_s`` is what each block takes there.
    """
    words = sets.bits.shape[1]
    for i in range(place, until):
        for j in range(i):
            if not is_within(sets.bits, j, i):
                continue
            fits = sets.never[i, 0] == sets.never[j, 0] and sets.memory[i] - sets.memory[j] <= memory
            alone = -1
            for w in range(words):
                rest = sets.bits[i, w] & ~sets.bits[j, w]
                if rest == 0:
                    continue
                if alone >= 0 or rest & (rest - 1) != 0:
                    alone = -2
                    break
                bit = 0
                while (rest >> bit) & 1 == 0:
                    bit += 1
                alone = 64 * w + bit
            if fits:
                load = sets.accelerator[i] - sets.accelerator[j] + transfers(j, i, sets, transfer)
                for a in range(1, k + 1):
                    if best[j, a - 1] + load < best[i, a]:
                        best[i, a] = best[j, a - 1] + load
                        back[i, a] = 2 * j
            if alone >= 0:
                for a in range(k + 1):
                    if best[j, a] + block_s[alone] < best[i, a]:
                        best[i, a] = best[j, a] + block_s[alone]
                        back[i, a] = 2 * j + 1
