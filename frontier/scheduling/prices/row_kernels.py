"""Compiled multiple-choice knapsack with several capacities, all of them small."""

# mypy: disable-error-code="untyped-decorator, no-any-return"

import numpy as np
import numpy.typing as npt

from ddlopt.models.kernels import inner, kernel

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]


@inner()
def _state(capacity: Ints, left: Ints) -> int:
    """Place of what is left of capacities in a table over all of it."""
    state = 0
    for row in range(len(capacity)):
        state = state * (capacity[row] + 1) + left[row]
    return state


@kernel("(i8[::1], i8[::1], f8[::1], i8[:, ::1])", thorough=True)
def rests(capacity: Ints, starts: Ints, values: Floats, weights: Ints) -> Floats:
    """(J + 1, states) the most that the jobs from each on are worth in what is left of the capacities.

    Parameters
    ----------
    capacity : (rows,) array
        States are all that may be left, the last row the fastest to change.
    starts : (J + 1,) array
        Into ``values`` and ``weights``: the options of each job, of which it takes one or none.
    values : (n,) array
    weights : (n, rows) array
        What an option takes of each capacity.
    """
    jobs, rows = len(starts) - 1, len(capacity)
    states = 1
    for row in range(rows):
        states *= capacity[row] + 1
    table = np.zeros((jobs + 1, states))
    left = np.zeros(rows, np.int64)
    for job in range(jobs - 1, -1, -1):
        table[job] = table[job + 1]
        for o in range(starts[job], starts[job + 1]):
            if values[o] <= 0:
                continue
            offset = _state(capacity, weights[o])
            left[:] = 0
            for state in range(states):
                fits = True
                for row in range(rows):
                    if left[row] < weights[o, row]:
                        fits = False
                if fits:
                    table[job, state] = max(table[job, state], table[job + 1, state - offset] + values[o])
                row = rows - 1
                while row >= 0 and left[row] == capacity[row]:
                    left[row] = 0
                    row -= 1
                if row >= 0:
                    left[row] += 1
    return table


@kernel("(i8[::1], i8[::1], f8[::1], i8[:, ::1])", thorough=True)
def choose_options(capacity: Ints, starts: Ints, values: Floats, weights: Ints) -> tuple[float, Ints]:
    """The most that jobs are worth together, and (J,) the option of each, -1 for none; arguments as of ``rests``."""
    table = rests(capacity, starts, values, weights)
    jobs = len(starts) - 1
    chosen = np.full(jobs, -1, np.int64)
    left = capacity.copy()
    for job in range(jobs):
        state = _state(capacity, left)
        if table[job, state] == table[job + 1, state]:
            continue
        for o in range(starts[job], starts[job + 1]):
            fits = True
            for row in range(len(capacity)):
                if left[row] < weights[o, row]:
                    fits = False
            if fits and table[job + 1, _state(capacity, left - weights[o])] + values[o] == table[job, state]:
                chosen[job] = o
                left = left - weights[o]
                break
    return table[0, len(table[0]) - 1], chosen
