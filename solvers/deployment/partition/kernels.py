"""Numba kernels for partitions that change block by block: loads of devices, moves and swaps.

Devices are numbered with the accelerators first. Nothing here knows an instance.
"""

# mypy: disable-error-code="untyped-decorator, no-any-return"

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from ddlopt.models.kernels import helper, kernel
from ddlopt.models.tolerances import IMPROVEMENT_TOL

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]


class Work(NamedTuple):
    """Blocks as the kernels take them.

    ``time`` is (2, passes, n), on accelerators and on processors; outputs of block v are ``output[start[v]]`` to
    ``output[start[v + 1]]``, ``pins`` counts the blocks of each. There are k accelerators of ``memory`` each.
    """

    time: Floats
    need: Floats
    start: Ints
    output: Ints
    transfer: Floats
    of_pass: Ints
    pins: Ints
    k: int
    memory: float


class State(NamedTuple):
    """Device of each block; pins of each output on each device; loads (passes, devices); memory in use."""

    device: Ints
    held: Ints
    load: Floats
    used: Floats


_WORK = "record(Work, f8[:, :, ::1], f8[::1], i8[::1], i8[::1], f8[::1], i8[::1], i8[::1], i8, f8)"


@helper
def empty_state(work: Work, devices: int) -> State:
    """A state in which no block is anywhere."""
    passes, n = work.time.shape[1:]
    return State(
        np.full(n, -1, dtype=np.int64),
        np.zeros((len(work.pins), devices), dtype=np.int64),
        np.zeros((passes, devices)),
        np.zeros(devices),
    )


@helper
def put(work: Work, state: State, v: int, d: int) -> None:
    """Put block v on device d, or nowhere (-1)."""
    old = state.device[v]
    if old == d:
        return
    passes = len(state.load)
    for side in range(2):
        at = old if side == 0 else d
        if at < 0:
            continue
        sign = 2 * side - 1
        kind = 0 if at < work.k else 1
        for p in range(passes):
            state.load[p, at] += sign * work.time[kind, p, v]
        state.used[at] += sign * work.need[v]
        for q in range(work.start[v], work.start[v + 1]):
            h = work.output[q]
            before = state.held[h, at]
            state.held[h, at] = before + sign
            if kind == 0:
                paid = int(0 < before + sign < work.pins[h]) - int(0 < before < work.pins[h])
                state.load[work.of_pass[h], at] += paid * work.transfer[h]
    state.device[v] = d


@helper
def may(work: Work, state: State, v: int, d: int) -> bool:
    """Whether block v can run on device d, and fits."""
    kind = 0 if d < work.k else 1
    for p in range(len(state.load)):
        if work.time[kind, p, v] == np.inf:
            return False
    return kind == 1 or state.used[d] + work.need[v] <= work.memory


@helper
def largest(state: State) -> float:
    """The objective: the largest load, of each pass."""
    total = 0.0
    for p in range(len(state.load)):
        total += state.load[p].max()
    return total


@helper
def _value(state: State, scale: float) -> float:
    """The objective, and a little of how uneven loads are, so that moves on a plateau have a direction."""
    squares = 0.0
    for p in range(len(state.load)):
        for d in range(state.load.shape[1]):
            squares += (state.load[p, d] / scale) ** 2
    return largest(state) + 0.01 * scale * squares / state.load.shape[1]


@helper
def _critical(state: State, p: int) -> int:
    return int(np.argmax(state.load[p]))


@helper
def improve(work: Work, state: State, scale: float, most: int) -> float:
    """Move blocks from the busiest device, or swap them with others, as long as that helps, ``most`` times at most."""
    n = len(state.device)
    devices = state.load.shape[1]
    value = _value(state, scale)
    for _ in range(most):
        better = False
        for p in range(len(state.load)):
            d = _critical(state, p)
            best, best_v, best_w, best_e = value - IMPROVEMENT_TOL * scale, -1, -1, -1
            for v in range(n):
                if state.device[v] != d:
                    continue
                for e in range(devices):
                    if e == d or not may(work, state, v, e):
                        continue
                    put(work, state, v, e)
                    now = _value(state, scale)
                    if now < best:
                        best, best_v, best_w, best_e = now, v, -1, e
                    put(work, state, v, d)
            if best_v < 0:
                for v in range(n):
                    if state.device[v] != d:
                        continue
                    for w in range(n):
                        e = state.device[w]
                        if e == d:
                            continue
                        put(work, state, v, -1)
                        if may(work, state, w, d):
                            put(work, state, w, d)
                            if may(work, state, v, e):
                                put(work, state, v, e)
                                now = _value(state, scale)
                                if now < best:
                                    best, best_v, best_w, best_e = now, v, w, e
                                put(work, state, v, -1)
                            put(work, state, w, e)
                        put(work, state, v, d)
            if best_v >= 0:
                put(work, state, best_v, -1)
                if best_w >= 0:
                    put(work, state, best_w, d)
                put(work, state, best_v, best_e)
                value = _value(state, scale)
                better = True
        if not better:
            break
    return largest(state)


@kernel(f"({_WORK}, i8[::1], i8, f8, f8[:, ::1])")
def kicked(work: Work, start: Ints, devices: int, scale: float, chances: Floats) -> tuple[Ints, float]:
    """The best partition of some rounds: kick a few blocks of the best one elsewhere, and improve.

    ``chances`` (rounds, 1 + 2 kicks) are uniform below 1: how many kicks, and the block and device of each.
    """
    n = len(start)
    state = empty_state(work, devices)
    for v in range(n):
        put(work, state, v, start[v])
    best_value = improve(work, state, scale, 10 * n)
    best = state.device.copy()
    for chance in chances:
        for v in range(n):
            put(work, state, v, best[v])
        for kick in range(1 + int(chance[0] * (len(chance) // 2))):
            v, d = int(chance[1 + 2 * kick] * n), int(chance[2 + 2 * kick] * devices)
            if d != state.device[v] and may(work, state, v, d):
                put(work, state, v, d)
        value = improve(work, state, scale, 10 * n)
        if value < best_value * (1 - IMPROVEMENT_TOL):
            best_value = value
            best[:] = state.device
    return best, best_value


@kernel(f"({_WORK}, i8[::1], i8, f8)")
def steepest(work: Work, start: Ints, devices: int, tolerance: float) -> tuple[Ints, float]:
    """The change of one block that makes the largest load least, again and again, while it falls."""
    n = len(start)
    state = empty_state(work, devices)
    for v in range(n):
        put(work, state, v, start[v])
    value = largest(state)
    while True:
        best, best_v, best_e = np.inf, -1, -1
        for v in range(n):
            d = state.device[v]
            for e in range(work.k):
                if e == d or not may(work, state, v, e):
                    continue
                put(work, state, v, e)
                now = largest(state)
                if now < best:
                    best, best_v, best_e = now, v, e
                put(work, state, v, d)
        if best_v < 0 or best > value - tolerance:
            return state.device, value
        put(work, state, best_v, best_e)
        value = largest(state)


@kernel(f"({_WORK}, i8[::1], i8)")
def heaviest_first(work: Work, order: Ints, devices: int) -> Ints:
    """Block by block where the largest load, and then the load of the device, is least; -1 where none will do."""
    state = empty_state(work, devices)
    for v in order:
        best, best_own, best_d = np.inf, np.inf, -1
        for d in range(devices):
            if not may(work, state, v, d):
                continue
            put(work, state, v, d)
            now, own = largest(state), state.load[:, d].sum()
            put(work, state, v, -1)
            if now < best or (now == best and own < best_own):
                best, best_own, best_d = now, own, d
        if best_d < 0:
            break
        put(work, state, v, best_d)
    return state.device
