"""Compiled dynamic programme of the multiple-choice knapsack: one width for every job, within one capacity."""

# mypy: disable-error-code="untyped-decorator, no-any-return"

import numpy as np
import numpy.typing as npt

from ddlopt.models.kernels import inner, kernel
from ddlopt.models.sorting_kernels import stable_order

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]


@kernel("(const(i8[::1]), const(f8[::1]), const(i8[::1]), i8)")
def choose_widths(starts: Integers, gains: Floats, costs: Integers, capacity: int) -> tuple[float, Integers]:
    r"""Widths of largest total gain: :math:`\max \sum_i g_i(w_i)` subject to :math:`\sum_i c_i w_i \le C`.

    A table over the capacity is filled for the jobs that need one, in a time of jobs times capacity times widths at
    worst: not at all if all jobs fit at their best, and not for jobs of one width, of the weight that most of those
    have, which are sorted.

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
    """The option of every job: jobs that are one item or nothing are sorted, all others go through the table."""
    jobs = len(chosen)
    heaviest, counts = np.zeros(jobs, np.int64), np.zeros(room + 1, np.int64)
    for i in range(jobs):
        chosen[i] = firsts[i]
        heaviest[i] = weights[firsts[i + 1] - 1]
        if firsts[i + 1] - firsts[i] == 2 and heaviest[i] > 0:
            counts[heaviest[i]] += 1
    # Items are the jobs with one option besides nothing, of the weight that is the commonest among such jobs.
    commonest = 0
    for weight in range(room + 1):
        if counts[weight] > counts[commonest]:
            commonest = weight
    items, others = np.zeros(jobs, np.int64), np.zeros(jobs, np.int64)
    keys = np.zeros(jobs)
    item_count, other_count = 0, 0
    for i in range(jobs):
        if firsts[i + 1] - firsts[i] == 2 and heaviest[i] > 0 and heaviest[i] == commonest:
            items[item_count] = i
            item_count += 1
        elif heaviest[i] > 0:
            others[other_count] = i
            keys[other_count] = heaviest[i]
            other_count += 1
    order = stable_order(keys[:other_count])
    for row in range(other_count):
        order[row] = others[order[row]]
    picks, reaches = np.zeros((other_count, room + 1), np.int32), np.zeros(other_count, np.int64)
    best = np.zeros(room + 1)
    reach = _table(order, firsts, weights, worths, room, best, picks, reaches)

    used = 0
    for left in range(reach + 1):
        if best[left] > best[used]:
            used = left
    total, taken = best[used], 0
    for place in range(item_count):
        keys[place] = -worths[firsts[items[place]] + 1]
    ranks = stable_order(keys[:item_count])
    if item_count > 0:
        # Of the items the most valuable ones are taken, and the table tells what the room left is worth.
        extra = 0.0
        for count in range(1, min(item_count, room // commonest) + 1):
            left = min(room - count * commonest, reach)
            extra += worths[firsts[items[ranks[count - 1]]] + 1]
            if best[left] + extra > total:
                taken, total, used = count, best[left] + extra, left
    for place in range(taken):
        chosen[items[ranks[place]]] += 1
    for row in range(other_count - 1, -1, -1):
        used = min(used, reaches[row])
        pick = picks[row, used]
        used -= weights[firsts[order[row]] + pick]
        chosen[order[row]] += pick


@inner(inline="always")
def _table(
    jobs: Integers,
    firsts: Integers,
    weights: Integers,
    worths: Floats,
    room: int,
    best: Floats,
    picks: npt.NDArray[np.int32],
    reaches: Integers,
) -> int:
    """Best worth of all ``jobs`` in each room, the option of job r in ``[r, room]``, and what the jobs 0..r can use.

    Returns what they can use together.
    """
    before = np.zeros(room + 1)
    reach = 0
    for row in range(len(jobs)):
        first, last = firsts[jobs[row]], firsts[jobs[row] + 1]
        past = min(room, reach + weights[last - 1])
        for used in range(past + 1):
            if used > reach:
                best[used] = best[reach]
            before[used] = best[used]
        for option in range(first + 1, last):
            weight, worth = weights[option], worths[option]
            for used in range(weight, past + 1):
                value = before[used - weight] + worth
                if value > best[used]:
                    best[used] = value
                    picks[row, used] = option - first
        reach = reaches[row] = past
    return reach
