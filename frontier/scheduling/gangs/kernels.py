"""Compiled kernels of the search over orders of gangs: list schedules on a pool, and simulated annealing of them."""

# mypy: disable-error-code="untyped-decorator, no-any-return"

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from ddlopt.models.kernels import inner, kernel

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

LATE = 1e12
"""Cost of each slot that a job ends past its deadline, in units of the objective."""

POOLED = "record(Pooled, i8[::1], i8[::1], f8[:, ::1], f8[::1])"
GOAL = "record(Goal, i8[::1], i8[::1], f8[::1], f8[::1], b1)"


class Pooled(NamedTuple):
    """Gangs of fixed length on one pool.

    Parameters
    ----------
    slots, arrival : (I,) arrays
    taken : (I, R) array
        What a job takes of the pool.
    capacity : (R,) array
    """

    slots: Ints
    arrival: Ints
    taken: Floats
    capacity: Floats


class Goal(NamedTuple):
    """What makes one schedule better than another.

    Parameters
    ----------
    arrival, last : (I,) arrays
        First slot in which a job may run, and first in which it may no longer.
    size : (I,) array
        What a job counts in a slot at or after the target.
    weight : (I,) array
        In the total completion time.
    makespan : bool
        Whether that is the objective; else it is the total completion time.
    """

    arrival: Ints
    last: Ints
    size: Floats
    weight: Floats
    makespan: bool


@kernel(f"(i8[::1], {POOLED}, i8[::1], f8[:, ::1], i8[::1])")
def list_schedule(order: Ints, jobs: Pooled, times: Ints, free: Floats, starts: Ints) -> None:
    """Start each job of ``order`` in turn as early as it fits; ``starts`` gets the result.

    ``times`` (2 I + 3,) and ``free`` (2 I + 3, R) are room for the profile: from slot ``times[i]`` to the next one the
    pool has ``free[i]`` left.
    """
    slots, arrival, taken, capacity = jobs
    resources = len(capacity)
    count = 1
    times[0] = 0
    for r in range(resources):
        free[0, r] = capacity[r]
    for job in order:
        length = slots[job]
        i = 0
        while i + 1 < count and times[i + 1] <= arrival[job]:
            i += 1
        while True:
            start = max(times[i], arrival[job])
            end = start + length
            blocked = -1
            k = i
            while k < count and times[k] < end:
                for r in range(resources):
                    if free[k, r] < taken[job, r]:
                        blocked = k
                        break
                k += 1
            if blocked < 0:
                break
            i = blocked + 1
        if times[i] < start:
            count = _cut(times, free, count, i, start)
            i += 1
            k += 1
        if k == count or times[k] != end:
            count = _cut(times, free, count, k - 1, end)
        for x in range(i, k):
            for r in range(resources):
                free[x, r] -= taken[job, r]
        count = _join(times, free, count, k)
        count = _join(times, free, count, i)
        starts[job] = start


@kernel(f"(i8[::1], {POOLED}, i8[::1])")
def serve(order: Ints, jobs: Pooled, starts: Ints) -> None:
    """Whenever something ends or arrives, start all jobs that fit, in this order; ``starts`` gets the result."""
    free = jobs.capacity.copy()
    waiting, ends, active = order.copy(), np.empty(len(order), np.int64), np.empty(len(order), np.int64)
    left, running, now = len(order), 0, np.int64(0)
    while left:
        following, kept = np.int64(2**62), 0
        for job in waiting[:left]:
            if jobs.arrival[job] > now:
                following = min(following, jobs.arrival[job])
            elif _fits(free, jobs.taken[job]):
                _take(free, jobs.taken[job], 1.0)
                starts[job], ends[job] = now, now + jobs.slots[job]
                active[running] = job
                running += 1
                continue
            waiting[kept] = job
            kept += 1
        left, kept = kept, 0
        for job in active[:running]:
            following = min(following, ends[job])
        for job in active[:running]:
            if ends[job] == following:
                _take(free, jobs.taken[job], -1.0)
            else:
                active[kept] = job
                kept += 1
        running, now = kept, following


@inner(inline="always")
def _fits(free: Floats, taken: Floats) -> bool:
    fits = True
    for r in range(len(free)):
        fits &= free[r] >= taken[r]
    return fits


@inner()
def _take(free: Floats, taken: Floats, sign: float) -> None:
    for r in range(len(free)):
        free[r] -= sign * taken[r]


@inner()
def _cut(times: Ints, free: Floats, count: int, i: int, slot: int) -> int:
    """Let piece i end at ``slot``, where a new one begins."""
    for x in range(count, i, -1):
        times[x] = times[x - 1]
        for r in range(free.shape[1]):
            free[x, r] = free[x - 1, r]
    times[i + 1] = slot
    return count + 1


@inner()
def _join(times: Ints, free: Floats, count: int, i: int) -> int:
    """Join piece i with the one before where both have the same left."""
    if i == 0 or i >= count:
        return count
    for r in range(free.shape[1]):
        if free[i, r] != free[i - 1, r]:
            return count
    for x in range(i, count - 1):
        times[x] = times[x + 1]
        for r in range(free.shape[1]):
            free[x, r] = free[x + 1, r]
    return count - 1


@inner()
def objective_of(starts: Ints, slots: Ints, goal: Goal, target: int) -> tuple[float, float]:
    """The objective in slots, and the cost that guides the search.

    For the makespan that is the size of what runs at or after slot ``target``: of two schedules that end at the same
    time, that with less in its last slots is closer to a better one. Slots past a deadline are added to both.
    """
    late, latest, overflow, total = 0, 0, 0.0, 0.0
    for job in range(len(starts)):
        end = starts[job] + slots[job]
        late += max(0, end - goal.last[job])
        latest = max(latest, end)
        if end > target:
            overflow += goal.size[job] * (end - max(target, starts[job]))
        total += goal.weight[job] * (end - goal.arrival[job])
    if goal.makespan:
        return float(latest) + LATE * late, overflow + LATE * late
    return total + LATE * late, total + LATE * late


@kernel("(i8,)")
def seed_kernels(seed: int) -> None:
    """Seed the generator of the compiled kernels, which is not NumPy's."""
    np.random.seed(seed)  # noqa: NPY002


@inner()
def move(order: Ints, first: int, second: int, swap: bool) -> None:
    """Exchange two places of the order, or put the job at the first place to the second one."""
    job = order[first]
    if swap:
        order[first] = order[second]
    elif first < second:
        for i in range(first, second):
            order[i] = order[i + 1]
    else:
        for i in range(first, second, -1):
            order[i] = order[i - 1]
    order[second] = job


@kernel(f"(i8[::1], {POOLED}, {GOAL}, i8, f8, f8, i8, i8[::1], f8)")
def anneal_pooled(
    order: Ints,
    jobs: Pooled,
    goal: Goal,
    target: int,
    temperature: float,
    cooling: float,
    moves: int,
    best: Ints,
    least: float,
) -> tuple[float, float]:
    """One stage of simulated annealing of ``order`` in place; ``best`` gets the order of the least objective if new.

    Returns
    -------
    least : float
        The least objective so far, at most the one given.
    cost : float
        Of the order as it now is; 0 once the makespan is the target.
    """
    count = len(order)
    times = np.empty(2 * count + 3, np.int64)
    free = np.empty((2 * count + 3, len(jobs.capacity)))
    starts = np.empty(count, np.int64)
    list_schedule(order, jobs, times, free, starts)
    objective, current = objective_of(starts, jobs.slots, goal, target)
    if objective < least:
        least = objective
        for i in range(count):
            best[i] = order[i]
    for _ in range(moves):
        if current <= 0.0:
            return least, current
        temperature *= cooling
        first, second = np.random.randint(count), np.random.randint(count)  # noqa: NPY002
        swap = np.random.random() < 0.5  # noqa: NPY002
        if first == second:
            continue
        move(order, first, second, swap)
        list_schedule(order, jobs, times, free, starts)
        objective, cost = objective_of(starts, jobs.slots, goal, target)
        if objective < least:
            least = objective
            for i in range(count):
                best[i] = order[i]
        if cost <= current - temperature * np.log(1.0 - np.random.random()):  # noqa: NPY002
            current = cost
        else:
            move(order, second, first, swap)
    return least, current
