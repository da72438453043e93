"""Numba kernels that find sets of blocks of the least value along a walk. Nothing here knows an instance."""

# mypy: disable-error-code="untyped-decorator, no-any-return"

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from ddlopt.models.kernels import helper, kernel
from ddlopt.models.tolerances import IMPROVEMENT_TOL

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

_FINEST = 2e-3
"""Step of multipliers at which the climb ends."""
_STATE_BITS = 42
"""Loads are smaller."""


class Sets(NamedTuple):
    """A walk of n places with at most m states each.

    ``after`` and ``moved`` are (n, m, 2); ``states`` (n + 1) counts states; ``time`` is -1 where no set has the block.
    """

    after: Ints
    moved: Ints
    states: Ints
    time: Ints
    memory: Ints
    counted: float
    limit: int


class Labels(NamedTuple):
    """Sets of the blocks so far: value, load, memory, state, and which label each came from, with the block or not."""

    value: Floats
    load: Ints
    memory: Ints
    state: Ints
    source: Ints
    inside: Ints


_SETS = "record(Sets, i8[:, :, ::1], i8[:, :, ::1], i8[::1], i8[::1], i8[::1], f8, i8)"
_LABELS = "record(Labels, f8[::1], i8[::1], i8[::1], i8[::1], i8[::1], i8[::1])"


@helper
def _hope(sets: Sets, prices: Floats, alpha: float, beta: float) -> Floats:
    """(n + 1, m) the least value of what may follow, with prices of load and memory."""
    n, m = sets.after.shape[0], sets.after.shape[1]
    least = np.full((n + 1, m), np.inf)
    least[n, : sets.states[n]] = 0.0
    weight = sets.counted + alpha
    for v in range(n - 1, -1, -1):
        for state in range(sets.states[v]):
            best = np.inf
            if sets.after[v, state, 0] >= 0:
                best = least[v + 1, sets.after[v, state, 0]] + weight * sets.moved[v, state, 0]
            if sets.time[v] >= 0 and sets.after[v, state, 1] >= 0:
                own = weight * (sets.moved[v, state, 1] + sets.time[v]) + beta * sets.memory[v] - prices[v]
                best = min(best, least[v + 1, sets.after[v, state, 1]] + own)
            least[v, state] = best
    return least


@kernel(f"({_SETS}, f8[::1], f8, f8)")
def hope(sets: Sets, prices: Floats, alpha: float, beta: float) -> Floats:
    """(n + 1, m) the least value of what may follow on each state, with prices of load and memory.

    Parameters
    ----------
    prices : (n,) array
        Of the blocks along the walk.
    alpha, beta : float
        Of a unit of load and of memory.
    """
    return _hope(sets, prices, alpha, beta)


@kernel(f"({_SETS}, f8[::1], f8, f8, i8)")
def climb(sets: Sets, prices: Floats, alpha: float, beta: float, rounds: int) -> tuple[float, float, float]:
    """Better multipliers by steps along the axes, and the bound on the value of any set that they give."""
    best = _hope(sets, prices, alpha, beta)[0, 0] - (alpha + beta) * sets.limit
    step = 0.3
    for _ in range(rounds):
        moved = False
        for way in range(4):
            a, b = alpha, beta
            if way < 2:
                a = max(0.0, a + (step if way == 0 else -step))
            else:
                b = max(0.0, b + (step if way == 2 else -step))
            value = _hope(sets, prices, a, b)[0, 0] - (a + b) * sets.limit
            if value > best + IMPROVEMENT_TOL * abs(best):
                best, alpha, beta, moved = value, a, b, True
        if not moved:
            step /= 2
        if step < _FINEST:
            break
    return alpha, beta, best


@kernel(f"({_SETS}, i8, {_LABELS}, f8, f8[:, ::1], f8[:, ::1], f8)")
def extended(
    sets: Sets, v: int, labels: Labels, price: float, multipliers: Floats, hopes: Floats, cut: float
) -> Labels:
    """The labels at the place after ``v`` that may fall below ``cut`` and that no other label dominates.

    Parameters
    ----------
    price : float
        Of the block at this place.
    multipliers, hopes : (k, 2) and (k, m) array
        Pairs of multipliers, and what they hope of each state after the place.
    """
    count = len(labels.value)
    value, load = np.empty(2 * count), np.empty(2 * count, np.int64)
    memory, state = np.empty(2 * count, np.int64), np.empty(2 * count, np.int64)
    source, inside = np.empty(2 * count, np.int64), np.empty(2 * count, np.int64)
    found = 0
    for i in range(count):
        for x in range(2 if sets.time[v] >= 0 else 1):
            then = sets.after[v, labels.state[i], x]
            if then < 0:
                continue
            more = sets.moved[v, labels.state[i], x] + x * sets.time[v]
            own_load, own_memory = labels.load[i] + more, labels.memory[i] + x * sets.memory[v]
            if own_load > sets.limit or own_memory > sets.limit:
                continue
            own = labels.value[i] + sets.counted * more - x * price
            alive = True
            for k in range(len(multipliers)):
                left = multipliers[k, 0] * (sets.limit - own_load) + multipliers[k, 1] * (sets.limit - own_memory)
                if own + hopes[k, then] - left > cut:
                    alive = False
                    break
            if alive:
                value[found], load[found], memory[found], state[found] = own, own_load, own_memory, then
                source[found], inside[found] = i, x
                found += 1
    order = np.argsort((state[:found] << _STATE_BITS) | load[:found])
    kept = np.empty(found, np.int64)
    count = 0
    # Of the state at hand: memory ascending, and the least value up to there, descending.
    step_memory, step_value = np.empty(found + 1, np.int64), np.empty(found + 1)
    steps, current = 0, -1
    for i in order:
        if state[i] != current:
            current, steps = state[i], 0
        place = np.searchsorted(step_memory[:steps], memory[i], side="right")
        if place > 0 and step_value[place - 1] <= value[i]:
            continue
        first = place - 1 if place > 0 and step_memory[place - 1] == memory[i] else place
        end = place
        while end < steps and step_value[end] >= value[i]:
            end += 1
        shift = first + 1 - end
        if shift > 0:
            for j in range(steps - 1, end - 1, -1):
                step_memory[j + 1], step_value[j + 1] = step_memory[j], step_value[j]
        elif shift < 0:
            for j in range(end, steps):
                step_memory[j + shift], step_value[j + shift] = step_memory[j], step_value[j]
        step_memory[first], step_value[first] = memory[i], value[i]
        steps += shift
        kept[count] = i
        count += 1
    own_kept = kept[:count]
    return Labels(
        value[own_kept], load[own_kept], memory[own_kept], state[own_kept], source[own_kept], inside[own_kept]
    )
