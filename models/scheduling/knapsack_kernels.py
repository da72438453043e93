"""Compiled dynamic programme of the multiple-choice knapsack: one width for every job, within one capacity."""

# mypy: disable-error-code="untyped-decorator, no-any-return"

import numba
import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]


@numba.njit(cache=True)
def choose_widths(starts: Integers, gains: Floats, costs: Integers, capacity: int) -> tuple[float, Integers]:
    """Widths of largest total gain whose costs fit; the time is that of jobs times capacity times widths at worst.

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
    firsts, options, weights, worths = _without_dominated(starts, gains, costs, capacity)
    chosen = firsts[1:] - 1
    if weights[chosen].sum() > capacity:
        common = 0
        for weight in weights:
            common = _gcd(common, weight)
        weights //= common
        chosen = _search(firsts, weights, worths, capacity // common)
    widths = options[chosen]
    return gains[starts[:-1] + widths].sum(), widths


@numba.njit(cache=True)
def _gcd(a: int, b: int) -> int:
    while b:
        a, b = b, a % b
    return a


@numba.njit(cache=True)
def _without_dominated(
    starts: Integers, gains: Floats, costs: Integers, capacity: int
) -> tuple[Integers, Integers, Integers, Floats]:
    """First option of each job; width, weight and worth of the options: 0, and those worth more than all lighter."""
    jobs = len(costs)
    firsts = np.zeros(jobs + 1, np.int64)
    options = np.zeros(len(gains), np.int64)
    weights = np.zeros(len(gains), np.int64)
    worths = np.zeros(len(gains))
    last = -1
    for i in range(jobs):
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
    return firsts, options[: last + 1], weights[: last + 1], worths[: last + 1]


@numba.njit(cache=True)
def _search(firsts: Integers, weights: Integers, worths: Floats, room: int) -> Integers:
    """The option of every job: jobs that are one item or nothing are sorted, all others go through the table."""
    heaviest = weights[firsts[1:] - 1]
    is_item = _commonest_items(firsts, heaviest, room)
    items = np.flatnonzero(is_item)
    others = np.flatnonzero((heaviest > 0) & ~is_item)
    others = others[np.argsort(heaviest[others], kind="mergesort")]
    best, picks, reaches = _table(others, firsts, weights, worths, room)

    chosen = firsts[:-1].copy()
    used = best.argmax()
    total = best[used]
    taken = 0
    if len(items):
        # Of the items the most valuable ones are taken, and the table tells what the room left is worth.
        items = items[np.argsort(-worths[firsts[items] + 1], kind="mergesort")]
        weight = heaviest[items[0]]
        extra = 0.0
        for count in range(1, min(len(items), room // weight) + 1):
            left = min(room - count * weight, len(best) - 1)
            extra += worths[firsts[items[count - 1]] + 1]
            if best[left] + extra > total:
                taken, total, used = count, best[left] + extra, left
    chosen[items[:taken]] += 1
    for row in range(len(others) - 1, -1, -1):
        pick = picks[row, min(used, reaches[row])]
        used = min(used, reaches[row]) - weights[firsts[others[row]] + pick]
        chosen[others[row]] += pick
    return chosen


@numba.njit(cache=True)
def _commonest_items(firsts: Integers, heaviest: Integers, room: int) -> npt.NDArray[np.bool_]:
    """Which jobs have one option besides nothing, of the weight that is the commonest among such jobs."""
    counts = np.zeros(room + 1, np.int64)
    is_item = np.zeros(len(heaviest), np.bool_)
    for i in range(len(heaviest)):
        is_item[i] = firsts[i + 1] - firsts[i] == 2 and heaviest[i] > 0
        if is_item[i]:
            counts[heaviest[i]] += 1
    commonest = counts.argmax()
    return is_item & (heaviest == commonest)


@numba.njit(cache=True)
def _table(
    jobs: Integers, firsts: Integers, weights: Integers, worths: Floats, room: int
) -> tuple[Floats, npt.NDArray[np.int32], Integers]:
    """Best worth of all ``jobs`` in each room, the option of job r in ``[r, room]``, and what the jobs 0..r can use."""
    picks = np.zeros((len(jobs), room + 1), np.int32)
    reaches = np.zeros(len(jobs), np.int64)
    best = np.zeros(room + 1)
    before = np.zeros(room + 1)
    reach = 0
    for row in range(len(jobs)):
        first, last = firsts[jobs[row]], firsts[jobs[row] + 1]
        past = min(room, reach + weights[last - 1])
        before[: reach + 1] = best[: reach + 1]
        before[reach + 1 : past + 1] = best[reach]
        best[reach + 1 : past + 1] = best[reach]
        for option in range(first + 1, last):
            weight, worth = weights[option], worths[option]
            for used in range(weight, past + 1):
                value = before[used - weight] + worth
                if value > best[used]:
                    best[used] = value
                    picks[row, used] = option - first
        reach = reaches[row] = past
    return best[: reach + 1], picks, reaches
