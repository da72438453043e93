"""Changes of a list of jobs with widths, and what a list is worth, for Numba kernels that place the jobs of one."""

# mypy: disable-error-code="untyped-decorator"

import numpy as np
import numpy.typing as npt

from ddlopt.models.kernels import helper

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
NEAR = 8
"""Places that every other move goes at most."""


@helper
def change(order: Ints, chosen: Ints, menus: Ints, first: int) -> tuple[int, int, int, int]:
    """Give a job another place in its menu, or move one from a to b in the list.

    What was done is (job, its old place, 0, 0) or (-1, 0, a, b); with a = b nothing is changed.
    """
    n = len(order)
    if np.random.random() < 0.5:
        job = np.random.randint(n)
        old = chosen[job]
        if menus[job] == 1:
            return -1, 0, 0, 0
        if np.random.random() < 0.7:
            chosen[job] = min(menus[job] - 1, max(0, old + (1 if np.random.random() < 0.5 else -1)))
        else:
            chosen[job] = np.random.randint(menus[job])
        if chosen[job] == old:
            return -1, 0, 0, 0
        return job, old, 0, 0
    a, b = np.random.randint(first, n), np.random.randint(first, n)
    if np.random.random() < 0.5:
        b = min(n - 1, max(first, a + np.random.randint(-NEAR, NEAR + 1)))
    _move(order, a, b)
    return -1, 0, a, b


@helper
def undo(order: Ints, chosen: Ints, job: int, old: int, a: int, b: int) -> None:
    """Take back what :func:`change` did."""
    if job >= 0:
        chosen[job] = old
    else:
        _move(order, b, a)


@helper
def _move(order: Ints, a: int, b: int) -> None:
    """Take what is at a, and put it at b."""
    job = order[a]
    step = 1 if b > a else -1
    while a != b:
        order[a] = order[a + step]
        a += step
    order[b] = job


@helper
def value_of(ends: Floats, jobs: Floats, goal: int) -> float:
    """The objective: makespan (0), weighted sum of ends (1), or of how late they are (2)."""
    value = 0.0
    for job in range(jobs.shape[1]):
        if goal == 0:
            value = max(value, ends[job])
        elif goal == 1:
            value += jobs[1, job] * ends[job]
        else:
            value += jobs[1, job] * max(0.0, ends[job] - jobs[2, job])
    return value
