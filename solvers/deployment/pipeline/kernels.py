"""Compiled kernel of the dynamic program over ideals: stages that take less than a time, with relaxed options."""

# mypy: disable-error-code="untyped-decorator, no-any-return"
# ruff: noqa: SIM110 (compiled code is written in loops)

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from ddlopt.models.kernels import inner, kernel

Ints = npt.NDArray[np.int64]
Smalls = npt.NDArray[np.int32]
Floats = npt.NDArray[np.float64]
Words = npt.NDArray[np.uint64]

_SUMS = 1e-9
"""What differences of long sums may be off by, as a part of the whole; what is near is added up anew."""
_TERM = 1e-15
"""What each term of a sum may be off by, as a part of the sum of their sizes."""
_NODES = 2000
"""Of the search through options of a stage; then it counts as possible."""

NETWORK = (
    "record(Network, i8[:, ::1], f8[::1], f8[::1], f8[::1], f8[::1], i8[::1], i8[::1], f8[::1], f8[:, :, ::1], "
    "f8[:, :, ::1], i8[::1], i8[::1], f8[:, ::1], i8[:, ::1], f8[:, :, ::1], u8[:, ::1], i8, i8, f8)"
)
STATE = "record(State, i4[:, ::1], i4[:, ::1], i4[:, ::1])"
BARRED = "record(Barred, i8[:, ::1], f8[::1])"


class Network(NamedTuple):
    """An instance: layers l, tensor degrees t and replicas d by their numbers, options o, edges e, ideals i.

    Parameters
    ----------
    first : (l + 1, t) array
        First option of a layer at a degree; its last one is before that of the next layer.
    time, reduced, kept, fixed : (o,) arrays
        Seconds of a sample, and for each further replica; memory for a sample in flight, and besides.
    maker, user : (e,) arrays
    moved : (e,) array
        Seconds of a sample if the edge leaves a stage.
    gathered, scattered : (e, t, number of an option) arrays
        Seconds besides, for an option of the user and of the maker.
    tensors, replicas : arrays
    fastest : (t, i) array
        Sum over layers of what the fastest options take.
    missing : (t, i) array
        Layers that have no menu of the degree.
    lean : (t, y, i) array
        Sum over layers of the least memory with y + 1 samples in flight; the last row is for more, too.
    words : (i, w) array
        Ideals as bits.
    devices, most : int
        Devices, and replicas of all stages.
    memory : float
    """

    first: Ints
    time: Floats
    reduced: Floats
    kept: Floats
    fixed: Floats
    maker: Ints
    user: Ints
    moved: Floats
    gathered: Floats
    scattered: Floats
    tensors: Ints
    replicas: Ints
    fastest: Floats
    missing: Ints
    lean: Floats
    words: Words
    devices: int
    most: int
    memory: float


class State(NamedTuple):
    """For each ideal and number of replicas behind it: the fewest devices, the ideal behind, and the degrees there."""

    need: Smalls
    behind: Smalls
    degrees: Smalls


class Barred(NamedTuple):
    """Stages of which the exact time is known: ideals, numbers of t and d, and samples in flight; seconds."""

    stages: Ints
    load: Floats


@kernel(f"({NETWORK}, {STATE}, {BARRED}, i8[::1], f8, i8, i8)", nogil=True)
def extend(net: Network, state: State, barred: Barred, spare: Ints, limit: float, low: int, high: int) -> None:
    """Put stages that take less than ``limit`` in front of ideals from ``high`` down to ``low``.

    Fewer replicas and fewer devices behind a stage are never worse, so of the replicas that a stage may have only the
    fewest are kept for each state, and states that another one beats in both are passed over.
    """
    layers = net.first.shape[0] - 1
    labels = np.empty(net.most + 1, np.int64)
    fits = np.empty(net.replicas.size, np.int64)
    fails = np.empty(net.replicas.size, np.int64)
    options = net.gathered.shape[2]
    piece = Piece(
        np.empty(layers, np.int64),
        np.empty((layers, options)),
        np.full(layers, -1),
        np.empty((layers * options, 3)),
        np.empty(layers + 1, np.int64),
        np.empty(layers + 1, np.int64),
        np.empty((layers + 1, 5)),
    )
    for behind in range(high, low - 1, -1):
        count, fewest = 0, net.devices + 1
        for total in range(net.most + 1):
            if state.need[behind, total] < fewest:
                fewest = state.need[behind, total]
                labels[count] = total
                count += 1
        if not count:
            continue
        for ahead in range(behind - 1, -1, -1):
            if spare[ahead] <= fewest or not _within(net.words, ahead, behind):
                continue
            for degree in range(net.tensors.size):
                if net.missing[degree, behind] > net.missing[degree, ahead]:
                    continue
                whole = net.fastest[degree, behind]
                least = whole - net.fastest[degree, ahead] - _SUMS * whole
                if least >= limit * ((spare[ahead] - fewest) // net.tensors[degree]):
                    continue
                size, base = 0, 0.0
                fits[:] = 0
                fails[:] = net.most + 2
                for label in labels[:count]:
                    devices = state.need[behind, label]
                    for number in range(net.replicas.size):
                        d = net.replicas[number]
                        used = devices + d * net.tensors[degree]
                        total = label + d
                        if used > spare[ahead] or total + (ahead > 0) > net.most:
                            break
                        if least >= limit * d:
                            continue
                        flying = (total + d - 1) // d
                        if flying >= fails[number] or _overfull(net, ahead, behind, degree, flying):
                            continue
                        if _beaten(state.need, ahead, total, used):
                            break
                        if flying > fits[number]:
                            if not size:
                                size = _fill(net, piece, ahead, behind, degree)
                                base = _cut(net, piece, size, degree)
                            inside = _fits(net, piece, size, base, degree, d, flying, limit) and not _barred(
                                barred, ahead, behind, degree, number, flying, limit
                            )
                            if not inside:
                                fails[number] = flying
                                continue
                            fits[number] = flying
                        state.need[ahead, total] = used
                        state.behind[ahead, total] = behind
                        state.degrees[ahead, total] = degree * net.replicas.size + number
                        break


class Piece(NamedTuple):
    """A stage: its layers, what their options take besides, and by layer the place in it or -1; room for a search.

    That is, other options' time, memory and loss, the first one of each layer that has any, the next one to try, and
    by depth what can still be saved of time and memory, and time, memory and what may still be lost.
    """

    layers: Ints
    more: Floats
    place: Ints
    other: Floats
    first: Ints
    next: Ints
    bounds: Floats


@inner()
def _within(words: Words, ahead: int, behind: int) -> bool:
    for word in range(words.shape[1]):
        if words[ahead, word] & ~words[behind, word]:
            return False
    return True


@inner()
def _overfull(net: Network, ahead: int, behind: int, degree: int, flying: int) -> bool:
    """Whether the leanest options surely need more than the memory."""
    row = min(flying, net.lean.shape[1]) - 1
    whole = net.lean[degree, row, behind]
    return whole - net.lean[degree, row, ahead] - _SUMS * whole > net.memory


@inner()
def _beaten(need: Smalls, ideal: int, total: int, used: int) -> bool:
    """Whether a state is known with as few replicas and devices."""
    for fewer in range(total + 1):
        if need[ideal, fewer] <= used:
            return True
    return False


@inner()
def _barred(barred: Barred, ahead: int, behind: int, degree: int, number: int, flying: int, limit: float) -> bool:
    for row in range(barred.load.size):
        stage = barred.stages[row]
        same = stage[0] == ahead and stage[1] == behind and stage[2] == degree and stage[3] == number
        if same and flying >= stage[4] and limit <= barred.load[row]:
            return True
    return False


@inner()
def _fill(net: Network, piece: Piece, ahead: int, behind: int, degree: int) -> int:
    size = 0
    for layer in range(net.first.shape[0] - 1):
        bit = np.uint64(layer % 64)
        word = net.words[behind, layer // 64] & ~net.words[ahead, layer // 64]
        piece.place[layer] = -1
        if (word >> bit) & np.uint64(1):
            piece.layers[size] = layer
            piece.place[layer] = size
            piece.more[size, :] = 0.0
            size += 1
    return size


@inner()
def _cut(net: Network, piece: Piece, size: int, degree: int) -> float:
    """Seconds that edges of the stage take, whatever the options; what they add to options is written down."""
    base = 0.0
    for edge in range(net.moved.size):
        maker, user = piece.place[net.maker[edge]], piece.place[net.user[edge]]
        if (maker >= 0) == (user >= 0):
            continue
        base += net.moved[edge]
        for option in range(net.gathered.shape[2]):
            if user >= 0:
                piece.more[user, option] += net.gathered[edge, degree, option]
            else:
                piece.more[maker, option] += net.scattered[edge, degree, option]
    return base


@inner()
def _fits(net: Network, piece: Piece, size: int, base: float, degree: int, d: int, flying: int, limit: float) -> bool:
    """Whether options might take less than the limit within the memory: false only if none do.

    The largest bound of options that may be mixed, by lines between a choice that fits and a faster one that does not,
    and where it leaves the question open a search through what loses little by it.
    """
    room = limit * d
    time, memory = _choice(net, piece, size, degree, d, flying, 1.0, 0.0)
    if base + time >= room:
        return False
    if memory <= net.memory:
        return True
    lean, least = _choice(net, piece, size, degree, d, flying, 0.0, 1.0)
    if least > net.memory:
        return False
    while base + lean >= room:
        gain, price = lean - time, memory - least
        if gain <= 0.0 or price <= 0.0:
            return True
        rate = gain / price
        new, its = _choice(net, piece, size, degree, d, flying, 1.0, rate)
        off = _TERM * (size + 2) * (new + base + rate * (its + net.memory))
        if base + new + rate * (its - net.memory) - off >= room:
            return False
        if its >= memory or its <= least:
            return _mixed(net, piece, size, degree, d, flying, room - base, rate, off)
        if its > net.memory:
            time, memory = new, its
        else:
            lean, least = new, its
    return True


@inner()
def _mixed(
    net: Network, piece: Piece, size: int, degree: int, d: int, flying: int, room: float, rate: float, off: float
) -> bool:
    """Whether whole options may do, found by depth first among those that lose no more than what is left.

    Every choice loses, by the sum of time and weighted memory, what its options do against the best ones.
    """
    bounds = piece.bounds
    time, memory = _choice(net, piece, size, degree, d, flying, 1.0, rate)
    if memory <= net.memory and time < room:
        return True
    left = room + rate * (net.memory - memory) - time + off
    count, rows = 0, 0
    for place in range(size):
        layer = piece.layers[place]
        first, last = net.first[layer, degree], net.first[layer + 1, degree]
        best, its_time, its_memory = np.inf, 0.0, 0.0
        for option in range(first, last):
            own = net.time[option] + (d - 1) * net.reduced[option] + piece.more[place, option - first]
            size_bytes = net.kept[option] * flying + net.fixed[option]
            value = own + rate * size_bytes
            if value < best or (value == best and own + size_bytes < its_time + its_memory):
                best, its_time, its_memory = value, own, size_bytes
        piece.first[count] = rows
        for option in range(first, last):
            own = net.time[option] + (d - 1) * net.reduced[option] + piece.more[place, option - first] - its_time
            size_bytes = net.kept[option] * flying + net.fixed[option] - its_memory
            loss = own + rate * size_bytes
            if loss <= left and (own < 0.0 or size_bytes < 0.0):
                piece.other[rows, 0], piece.other[rows, 1], piece.other[rows, 2] = own, size_bytes, loss
                rows += 1
        count += rows > piece.first[count]
    piece.first[count] = rows
    bounds[count, :2] = 0.0
    for place in range(count - 1, -1, -1):
        faster, leaner = 0.0, 0.0
        for row in range(piece.first[place], piece.first[place + 1]):
            faster, leaner = max(faster, -piece.other[row, 0]), max(leaner, -piece.other[row, 1])
        bounds[place, 0], bounds[place, 1] = bounds[place + 1, 0] + faster, bounds[place + 1, 1] + leaner
    bounds[0, 2], bounds[0, 3], bounds[0, 4] = time, memory, left
    piece.next[0] = piece.first[0] - 1
    place, nodes = 0, 0
    while place >= 0:
        row = piece.next[place]
        if place == count or row == piece.first[place + 1]:
            place -= 1
            continue
        piece.next[place] += 1
        time, memory, left = bounds[place, 2], bounds[place, 3], bounds[place, 4]
        if row >= piece.first[place]:
            time, memory, left = time + piece.other[row, 0], memory + piece.other[row, 1], left - piece.other[row, 2]
        place += 1
        if left < 0.0 or memory - bounds[place, 1] > net.memory or time - bounds[place, 0] >= room:
            place -= 1
            continue
        nodes += 1
        if (memory <= net.memory and time < room) or nodes > _NODES:
            return True
        bounds[place, 2], bounds[place, 3], bounds[place, 4] = time, memory, left
        piece.next[place] = piece.first[place] - 1
    return False


@inner()
def _choice(
    net: Network, piece: Piece, size: int, degree: int, d: int, flying: int, by_time: float, by_memory: float
) -> tuple[float, float]:
    """Time and memory of the options with the least sum of both, weighted."""
    time, memory = 0.0, 0.0
    for place in range(size):
        layer = piece.layers[place]
        best, its_time, its_memory = np.inf, 0.0, 0.0
        first = net.first[layer, degree]
        for option in range(first, net.first[layer + 1, degree]):
            own = net.time[option] + (d - 1) * net.reduced[option] + piece.more[place, option - first]
            size_bytes = net.kept[option] * flying + net.fixed[option]
            value = by_time * own + by_memory * size_bytes
            if value < best or (value == best and own + size_bytes < its_time + its_memory):
                best, its_time, its_memory = value, own, size_bytes
        time += its_time
        memory += its_memory
    return time, memory
