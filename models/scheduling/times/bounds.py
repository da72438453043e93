"""Lower bounds on makespans, completion times and ratios of times, from the lengths and the work of jobs."""

import heapq
import math
from collections.abc import Iterator, Sequence
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from ddlopt.models.errors import InfeasibleError, NotApplicableError
from ddlopt.models.scheduling.instance import SchedulingInstance
from ddlopt.models.scheduling.times.ratios import ratio_bound
from ddlopt.models.scheduling.times.works import Works
from ddlopt.models.tolerances import BOUND_MARGIN, ROUNDING

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]


def time_bound(instance: SchedulingInstance) -> float:
    """What no schedule gets below of an objective that is minimised.

    Raises
    ------
    InfeasibleError
        If it proves that not all jobs can be finished in time.
    """
    works = Works(instance)
    require_time(works.instance, works.slots)
    if instance.goal.counts_last_end:
        slots = makespan_slots(works)
        require_slots(instance, slots)
        return slots * instance.slot_s
    if instance.goal.counts_ends:
        return whole_seconds(instance, _completion_slots(works))
    return float(ratio_bound(works)) * (1 - ROUNDING)


def exact_time_bound(instance: SchedulingInstance) -> Fraction:
    """What no schedule gets below, in rational numbers: its makespan, or its largest ratio of times.

    Raises
    ------
    NotApplicableError
        If the objective is another one, or bandwidth is shared.
    """
    if instance.goal.counts_ratios:
        return Fraction(ratio_bound(Works(instance, Fraction), Fraction))
    if not instance.goal.counts_last_end:
        raise NotApplicableError("bounds on schedules are recomputed in rational numbers for makespans and ratios only")
    return makespan_slots(Works(instance, Fraction)) * Fraction(instance.slot_s)


def makespan_slots(works: Works) -> int:
    r"""Slots that every schedule needs which finishes all jobs.

    The larger of two figures. *Longest*: job j takes :math:`p_j` slots at least and ends after :math:`r_j + p_j`.
    *Area*: jobs that arrive from a slot a on take no more of a resource than all servers have from there to the end.
    """
    longest = max(job.arrival + count for job, count in zip(works.instance.jobs, works.slots, strict=True))
    return max(longest, works.area_slots())


def _completion_slots(works: Works) -> float:
    """Weighted slots from arrival to end of all jobs together; of each resource alone, and of the jobs' lengths."""
    jobs = works.instance.jobs
    arrival, slots = np.array([job.arrival for job in jobs]), np.array(works.slots)
    weight = np.array([job.utility.value for job in jobs])
    best = float(weight @ slots)
    for resource in works.resources:
        work, most = np.array(resource.work, dtype=np.float64), np.array(resource.most, dtype=np.float64)
        # An elastic job is done no sooner than where it takes its most in every slot.
        length = np.where(works.rigid, slots, work / np.where(most > 0, most, 1.0))
        best = max(best, mean_busy_slots(arrival, weight, slots, length, work, float(resource.capacity)))
    return best


def mean_busy_slots(arrival: Ints, weight: Floats, slots: Ints, length: Floats, work: Floats, speed: float) -> float:
    r"""Weighted slots from arrival to end at least, on a machine that does ``speed`` of the jobs' work in a slot.

    A machine that does the work :math:`W_j` of one job after another can follow every schedule. Among all its ways,
    preemptive order by :math:`v_j / W_j` has the least :math:`\sum_j v_j M_j`, where the mean busy time :math:`M_j` is
    the mean of the moments at which j is worked on. A job ends at least half its length after its mean busy time:
    :math:`\sum_j v_j (M_j + p_j / 2 - r_j)`.

    Parameters
    ----------
    arrival, weight, slots : (I,) arrays
        Of each job; its slots count where it has no work.
    length, work : (I,) arrays
        p in slots, and W.
    speed : float

    References
    ----------
    M. X. Goemans, "A supermodular relaxation for scheduling with release dates", IPCO 1996.
    """
    busy = work > 0
    some = np.where(busy, work, 1.0)
    order = np.argsort(-weight / some, kind="stable")
    place = np.empty(len(order), dtype=np.int64)
    place[order] = np.arange(len(order))
    moments = np.zeros(len(work))
    for job, begin, end in _one_machine(arrival.tolist(), (work / speed).tolist(), place.tolist()):
        moments[job] += (end - begin) * (begin + end) / 2
    mean = np.where(busy, moments * speed / some, arrival)
    return float(weight @ np.where(busy, mean + length / 2 - arrival, slots))


def _one_machine(
    arrival: Sequence[int], length: Sequence[float], place: Sequence[int]
) -> Iterator[tuple[int, float, float]]:
    """(job, begin, end) of one machine that always does the job of least ``place`` there is, interrupting others."""
    jobs = sorted((job for job in range(len(arrival)) if length[job] > 0), key=lambda job: arrival[job])
    left, now, following = list(length), 0.0, 0
    waiting: list[tuple[int, int]] = []
    while following < len(jobs) or waiting:
        if not waiting:
            now = max(now, float(arrival[jobs[following]]))
        while following < len(jobs) and arrival[jobs[following]] <= now:
            heapq.heappush(waiting, (place[jobs[following]], jobs[following]))
            following += 1
        _, job = waiting[0]
        until = now + left[job]
        if following < len(jobs) and arrival[jobs[following]] < until:
            until = float(arrival[jobs[following]])
            left[job] -= until - now
        else:
            heapq.heappop(waiting)
        yield job, now, until
        now = until


def whole_seconds(instance: SchedulingInstance, slots: float) -> float:
    """A bound on weighted slots in seconds, less a margin for rounding; weights in whole numbers make slots whole."""
    slots *= 1 - BOUND_MARGIN
    if all(float(job.utility.value).is_integer() for job in instance.jobs):
        slots = math.ceil(slots)
    return slots * instance.slot_s


def require_time(instance: SchedulingInstance, slots: Sequence[int]) -> None:
    """Raise InfeasibleError if a job cannot do its ``slots`` (I,) between its arrival and its deadline, even alone."""
    for place, (job, least) in enumerate(zip(instance.jobs, slots, strict=True)):
        span = instance.last_slot(place) - job.arrival
        if least > span:
            raise InfeasibleError(
                f"'{instance.name}': jobs[{place}] '{job.name}' takes {least} slots at least, but there are {span} "
                "from its arrival to its deadline"
            )


def require_slots(instance: SchedulingInstance, slots: int) -> None:
    """Raise InfeasibleError if all jobs together need more ``slots`` than there are."""
    if slots > instance.slots:
        raise InfeasibleError(
            f"'{instance.name}': to finish all jobs takes {slots} slots at least, but there are {instance.slots}"
        )
