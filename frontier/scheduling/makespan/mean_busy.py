"""Completion times on one machine that may interrupt: when jobs are worked on in the mean."""

import heapq
from collections.abc import Iterator, Sequence

import numpy as np

from ddlopt.frontier.scheduling.makespan.needs import Floats, Ints


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
