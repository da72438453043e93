"""Numba kernels for placements in register arrays: counts of batches in arrays, moves, swaps, annealing.

An array of a batch with c of its parameters costs ``table[t, c]``, and the batch costs ``top[t, m]`` more, where m is
the largest of its counts. Nothing here knows an instance.
"""

# mypy: disable-error-code="untyped-decorator, no-any-return"

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from ddlopt.models.kernels import inner, kernel
from ddlopt.models.tolerances import IMPROVEMENT_TOL

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]

WORK = "record(Work, i8[::1], i8[::1], b1[:, ::1], f8[:, ::1], f8[:, ::1], i8[::1], f8, f8)"
STATE = "record(State, i8[::1], i8[::1], i8[:, ::1], i8[:, ::1], i8[::1])"


class Work(NamedTuple):
    """Batches as the kernels take them.

    The batches of parameter i are ``batch[start[i]]`` to ``batch[start[i + 1]]``; ``touches`` is (T, n). ``table`` and
    ``top`` are (T, counts); an objective is ``of_table`` times the sums of the first and ``of_top`` times the second.
    """

    start: Ints
    batch: Ints
    touches: Flags
    table: Floats
    top: Floats
    capacity: Ints
    of_table: float
    of_top: float


class State(NamedTuple):
    """Array of each parameter; parameters in arrays; counts (T, R); arrays by count (T, counts); largest counts."""

    array: Ints
    held: Ints
    counts: Ints
    arrays_at: Ints
    largest: Ints


@kernel(f"({WORK}, i8[::1])")
def state_of(work: Work, array: Ints) -> State:
    """What follows from the array of each parameter."""
    batches, counts = work.table.shape
    arrays = len(work.capacity)
    state = State(
        array.copy(),
        np.zeros(arrays, np.int64),
        np.zeros((batches, arrays), np.int64),
        np.zeros((batches, counts), np.int64),
        np.zeros(batches, np.int64),
    )
    for i in range(len(array)):
        state.held[array[i]] += 1
        for k in range(work.start[i], work.start[i + 1]):
            state.counts[work.batch[k], array[i]] += 1
    for t in range(batches):
        for r in range(arrays):
            c = state.counts[t, r]
            state.arrays_at[t, c] += 1
            state.largest[t] = max(state.largest[t], c)
    return state


@kernel(f"({WORK}, {STATE})")
def value_of(work: Work, state: State) -> tuple[float, float]:
    """Sum of ``table``, and of ``top``."""
    table = top = 0.0
    for t in range(len(state.largest)):
        for r in range(len(state.held)):
            table += work.table[t, state.counts[t, r]]
        top += work.top[t, state.largest[t]]
    return table, top


@inner()
def _change(work: Work, state: State, i: int, a: int, b: int, other: int) -> tuple[float, float]:
    """What the batches of i cost more if i moves from a to b, those that touch ``other`` apart."""
    table = top = 0.0
    for k in range(work.start[i], work.start[i + 1]):
        t = work.batch[k]
        if other >= 0 and work.touches[t, other]:
            continue
        ca, cb, m = state.counts[t, a], state.counts[t, b], state.largest[t]
        table += work.table[t, ca - 1] - work.table[t, ca] + work.table[t, cb + 1] - work.table[t, cb]
        if cb + 1 > m:
            top += work.top[t, m + 1] - work.top[t, m]
        elif ca == m and cb + 1 < m and state.arrays_at[t, m] == 1:
            top += work.top[t, m - 1] - work.top[t, m]
    return table, top


@inner()
def _move(work: Work, state: State, i: int, b: int) -> None:
    a = state.array[i]
    state.array[i] = b
    state.held[a] -= 1
    state.held[b] += 1
    for k in range(work.start[i], work.start[i + 1]):
        t = work.batch[k]
        ca, cb = state.counts[t, a], state.counts[t, b]
        state.counts[t, a] = ca - 1
        state.counts[t, b] = cb + 1
        state.arrays_at[t, ca] -= 1
        state.arrays_at[t, ca - 1] += 1
        state.arrays_at[t, cb] -= 1
        state.arrays_at[t, cb + 1] += 1
        if cb + 1 > state.largest[t]:
            state.largest[t] = cb + 1
        while state.arrays_at[t, state.largest[t]] == 0:
            state.largest[t] -= 1


@inner(inline="always")
def _move_and_tell(work: Work, state: State, i: int, a: int, b: int, j: int) -> tuple[float, float]:
    """Cost that a move of i from a to b, or a swap with j, would add."""
    table, top = _change(work, state, i, a, b, j)
    if j >= 0:
        more, higher = _change(work, state, j, b, a, i)
        table += more
        top += higher
    return table, top


@kernel(f"({WORK}, i8[::1], i8, f8, f8, f8, NumPyRandomGeneratorType('NumPyRandomGeneratorType'))")
def anneal(
    work: Work, first: Ints, steps: int, hot: float, cold: float, target: float, rng: np.random.Generator
) -> tuple[Ints, float]:
    """The best placement met while the temperature falls from ``hot`` to ``cold``, and its objective.

    A step draws a parameter and an array; it is a move where there is room and a coin falls so, and a swap with a
    parameter drawn from the array otherwise. The walk ends where the objective is at ``target``.
    """
    state = state_of(work, first)
    table, top = value_of(work, state)
    best, best_value = first.copy(), work.of_table * table + work.of_top * top
    n, arrays = len(first), len(work.capacity)
    cooling = (cold / hot) ** (1.0 / max(1, steps))
    temperature = hot
    for _ in range(steps):
        if best_value <= target:
            break
        temperature *= cooling
        i = int(rng.random() * n)
        j = -1
        a, b = state.array[i], int(rng.random() * arrays)
        if state.held[b] >= work.capacity[b] or rng.random() < 0.5:
            j = int(rng.random() * n)
            b = state.array[j]
        if a == b:
            continue
        more, higher = _move_and_tell(work, state, i, a, b, j)
        rise = more + higher
        if rise > 0.0 and rng.random() >= np.exp(-rise / temperature):
            continue
        _move(work, state, i, b)
        if j >= 0:
            _move(work, state, j, a)
        table += more
        top += higher
        value = work.of_table * table + work.of_top * top
        if value < best_value - IMPROVEMENT_TOL:
            best_value = value
            for k in range(n):
                best[k] = state.array[k]
    return best, best_value
