"""Compiled dynamic programme of the multiple-choice knapsack: one width for every job, within one capacity."""

# mypy: disable-error-code="untyped-decorator, no-any-return"

import numpy as np
import numpy.typing as npt

from ddlopt.models.kernels import inner, kernel

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]


@kernel("(const(i8[::1]), const(f8[::1]), const(i8[::1]), i8)")
def choose_widths(starts: Integers, gains: Floats, costs: Integers, capacity: int) -> tuple[float, Integers]:
    r"""Widths of largest total gain: :math:`\max \sum_i g_i(w_i)` subject to :math:`\sum_i c_i w_i \le C`.

    A table over the capacity is filled job by job, in a time of jobs times capacity times widths at worst: not at all
    if all jobs fit at their best.

    Parameters
    ----------
    starts : (I + 1,) array
        Width w of job i is worth ``gains[starts[i] + w]``; -inf where it may not have it, but for width 0.
    gains : array
    costs : (I,) array
        Capacity that each worker of a job takes, at least 0.
    capacity : int
        At least 0.

    Returns
    -------
    (float, (I,) array)
        The total and the widths.
    """
    jobs = len(costs)
    firsts, options = np.zeros(jobs + 1, np.int64), np.zeros(len(gains), np.int64)
    weights, worths = np.zeros(len(gains), np.int64), np.zeros(len(gains))
    _without_dominated(starts, gains, costs, capacity, firsts, options, weights, worths)
    chosen = np.zeros(jobs, np.int64)
    heaviest = 0
    for i in range(jobs):
        chosen[i] = firsts[i + 1] - 1
        heaviest += weights[chosen[i]]
    if heaviest > capacity:
        common = 0
        for option in range(firsts[jobs]):
            rest = weights[option]
            while rest:
                common, rest = rest, common % rest
        for option in range(firsts[jobs]):
            weights[option] //= common
        _search(firsts, weights, worths, capacity // common, chosen)
    total = 0.0
    for i in range(jobs):
        chosen[i] = options[chosen[i]]
        total += gains[starts[i] + chosen[i]]
    return total, chosen


@inner(inline="always")
def _without_dominated(
    starts: Integers,
    gains: Floats,
    costs: Integers,
    capacity: int,
    firsts: Integers,
    options: Integers,
    weights: Integers,
    worths: Floats,
) -> None:
    """First option of each job; width, weight and worth of the options: 0, and those worth more than all lighter."""
    last = -1
    for i in range(len(costs)):
        last += 1
        nothing = gains[starts[i]]
        options[last], weights[last], worths[last] = 0, 0, 0.0
        for width in range(1, starts[i + 1] - starts[i]):
            weight = width * costs[i]
            if weight > capacity:
                break
            worth = gains[starts[i] + width] - nothing
            if worth > worths[last]:
                last += weight > weights[last]
                options[last], weights[last], worths[last] = width, weight, worth
        firsts[i + 1] = last + 1


@inner()
def _search(firsts: Integers, weights: Integers, worths: Floats, room: int, chosen: Integers) -> None:
    """The option of every job, by the best worth of the jobs so far in each room."""
    jobs, reach = len(chosen), 0
    picks, reaches = np.zeros((jobs, room + 1), np.int32), np.zeros(jobs, np.int64)
    best, before = np.zeros(room + 1), np.zeros(room + 1)
    for i in range(jobs):
        past = min(room, reach + weights[firsts[i + 1] - 1])
        best[reach + 1 : past + 1] = best[reach]
        before[: past + 1] = best[: past + 1]
        for option in range(firsts[i] + 1, firsts[i + 1]):
            weight, worth = weights[option], worths[option]
            for used in range(weight, past + 1):
                value = before[used - weight] + worth
                if value > best[used]:
                    best[used] = value
                    picks[i, used] = option - firsts[i]
        reach = reaches[i] = past
    used = room
    for i in range(jobs - 1, -1, -1):
        # More room than the jobs up to here can use makes no difference.
        used = min(used, reaches[i])
        chosen[i] = firsts[i] + picks[i, used]
        used -= weights[chosen[i]]
