"""Intervals between arrivals and deadlines, in which all slots look the same."""

import itertools
from dataclasses import dataclass

from ddlopt.models.scheduling.instance import SchedulingInstance


@dataclass(frozen=True)
class Interval:
    """Slots ``first .. last - 1`` between two events: no job arrives and no deadline passes, so all are identical."""

    first: int
    last: int
    jobs: tuple[int, ...]
    """The jobs that may run, in increasing order."""

    @property
    def slots(self) -> int:
        """How many slots."""
        return self.last - self.first


def intervals(instance: SchedulingInstance) -> list[Interval]:
    """The intervals between arrivals and deadlines in which some job may run, in order."""
    windows = [(job.arrival, instance.last_slot(i)) for i, job in enumerate(instance.jobs)]
    events = sorted({slot for window in windows for slot in window})
    found = []
    for first, last in itertools.pairwise(events):
        jobs = tuple(i for i, (start, end) in enumerate(windows) if start <= first and last <= end)
        if jobs:
            found.append(Interval(first, last, jobs))
    return found
