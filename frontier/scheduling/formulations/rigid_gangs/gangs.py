"""Jobs of fixed width that run in one piece, as lengths and amounts of one pool, and schedules from their starts."""

import heapq
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ddlopt.frontier.scheduling.makespan.needs import slots_needed
from ddlopt.models.scheduling.instance import SchedulingInstance
from ddlopt.models.scheduling.pool import Placer, Pool, pool
from ddlopt.models.scheduling.solution import Run, Schedule
from ddlopt.models.tolerances import let_pass

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Gangs:
    """Jobs at their largest width, alone on the cluster.

    Parameters
    ----------
    arrival, last : (I,) arrays
        First slot in which each may run, and first in which it may no longer.
    slots : (I,) array
        Length at the job's own bandwidth.
    taken : (I, R) array
        What the job takes of the pool while it runs.
    capacity : (R,) array
        Of the pool, rounding allowed for.
    weight : (I,) array
        In the total completion time.
    """

    arrival: Ints
    last: Ints
    slots: Ints
    taken: Floats
    capacity: Floats
    weight: Floats


def gangs(instance: SchedulingInstance, cluster: Pool | None = None) -> Gangs:
    """The jobs of an instance at their largest width."""
    cluster = pool(instance) if cluster is None else cluster
    jobs = range(len(instance.jobs))
    widths = np.array([job.max_workers for job in instance.jobs], dtype=np.int64)
    lengths = [
        slots_needed(job.minibatches, instance.progress(place, job.max_workers))
        for place, job in enumerate(instance.jobs)
    ]
    last = np.array([instance.last_slot(job) for job in jobs], dtype=np.int64)
    longest = int(last.max(initial=0)) + 1
    return Gangs(
        arrival=np.array([job.arrival for job in instance.jobs], dtype=np.int64),
        last=last,
        # One slot more than there are fits nowhere, nor does what no array holds.
        slots=np.array([min(length, longest) for length in lengths], dtype=np.int64),
        taken=cluster.demand * widths[:, None],
        capacity=let_pass(cluster.capacity),
        weight=np.array([job.utility.value for job in instance.jobs]),
    )


def earliest_starts(jobs: Gangs, order: Iterable[int]) -> Ints:
    """(I,) starts when each job in turn starts as early as it fits, whatever its deadline."""
    areas = (jobs.slots[:, None] * jobs.taken).sum(axis=0) / jobs.capacity
    left = np.repeat(jobs.capacity[None, :], int(jobs.arrival.max() + areas.max() + jobs.slots.max()) + 1, axis=0)
    starts = np.zeros(len(jobs.slots), dtype=np.int64)
    for job in order:
        arrival, length = int(jobs.arrival[job]), int(jobs.slots[job])
        blocked = np.flatnonzero((left[arrival:] < jobs.taken[job]).any(axis=1)) + arrival
        edges = np.concatenate(([arrival - 1], blocked))
        gaps = np.flatnonzero(np.diff(edges) > length)
        start = int(edges[gaps[0]] if len(gaps) else edges[-1]) + 1
        if start + length > len(left):
            left = np.concatenate((left, np.repeat(jobs.capacity[None, :], len(left) + length, axis=0)))
        left[start : start + length] -= jobs.taken[job]
        starts[job] = start
    return starts


def quick_starts(jobs: Gangs) -> Ints:
    """The better of two lists by makespan: widest first, and longest first; later arrivals behind."""
    share = (jobs.taken / jobs.capacity).max(axis=1)
    lists = [np.lexsort((-jobs.slots, -share, jobs.arrival)), np.lexsort((-share, -jobs.slots, jobs.arrival))]
    found = [earliest_starts(jobs, order.tolist()) for order in lists]
    return min(found, key=lambda starts: int((starts + jobs.slots).max()))


def useful_starts(jobs: Gangs, horizon: int) -> int:
    """Slots at which jobs may have to start, as the bits of a number; others are useless.

    A job that could start earlier may as well, so that in some best schedule each starts at its arrival or when another
    one ends: after a chain of distinct jobs from somebody's arrival.
    """
    mask = (1 << horizon) - 1
    reached = 0
    for arrival in set(jobs.arrival.tolist()):
        reached |= 1 << arrival
    for length in jobs.slots.tolist():
        reached |= (reached << length) & mask
    return reached & mask


def schedule_of_starts(
    instance: SchedulingInstance, starts: Mapping[int, int] | Sequence[int], lengths: Mapping[int, int] | Sequence[int]
) -> Schedule:
    """The schedule of an exact pool in which jobs run at their largest width from ``starts`` on.

    Raises
    ------
    SolverError
        If they do not fit.
    """
    jobs = starts.keys() if isinstance(starts, Mapping) else range(len(starts))
    placer = Placer(instance)
    widths: dict[int, int] = {}
    runs: list[Run] = []
    ends: list[tuple[int, int]] = []  # whole slots, which are the same or are not
    waiting = sorted(((int(starts[job]), job) for job in jobs), reverse=True)
    while waiting:
        start = waiting[-1][0]
        while ends and ends[0][0] <= start:
            del widths[heapq.heappop(ends)[1]]
        begun = []
        while waiting and waiting[-1][0] == start:
            job = waiting.pop()[1]
            widths[job] = instance.jobs[job].max_workers
            heapq.heappush(ends, (start + int(lengths[job]), job))
            begun.append(job)
        placed = placer.place(widths)
        runs += [Run(job=job, start=start, slots=int(lengths[job]), workers=placed[job]) for job in begun]
    return Schedule(instance=instance.name, instance_digest=instance.digest, runs=tuple(runs))
