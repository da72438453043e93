"""Lower bounds on the largest ratio of times by what excludes deadlines best: intervals, and prices on slots."""

import math
from collections.abc import Callable

import numpy as np

from ddlopt.frontier.scheduling.makespan.bounds import Deadlines
from ddlopt.frontier.scheduling.prices.lagrangian import quick_bound
from ddlopt.models.scheduling.fair_time import fair_slots
from ddlopt.models.scheduling.instance import SchedulingInstance
from ddlopt.models.scheduling.utility import DONE
from ddlopt.models.tolerances import ROUNDING

_TESTS = 40
"""Ratios tried: each halves what is open, and many jobs in many slots have some 2^20 ratios."""
_PRICED_TESTS = 8
"""Of them by prices, which take the most time."""
_PRICED_PAIRS = 40_000
"""Of a job and a slot of its window up to which prices take a second or two."""


class Ratios:
    """The ratios that a schedule may have: whole slots from arrival to end over the time with a fair share.

    Parameters
    ----------
    instance : SchedulingInstance
    """

    def __init__(self, instance: SchedulingInstance) -> None:
        self._fair = fair_slots(instance)
        self._arrival = [job.arrival for job in instance.jobs]
        self._last = [instance.last_slot(job) for job in range(len(instance.jobs))]
        self.largest = max(self.of(job, last) for job, last in enumerate(self._last))
        """At which every job may take all of its window."""

    def of(self, job: int, end: int) -> float:
        """The ratio of a job that ends before slot ``end``."""
        return (end - self._arrival[job]) / self._fair[job]

    def due(self, ratio: float) -> list[int]:
        """(I,) slot before which each job has to end for its ratio to be no larger."""
        return [min(last, start + self._slots(ratio, job)) for job, (start, last) in enumerate(self._windows)]

    def next(self, ratio: float) -> float:
        """The least ratio that is larger."""
        return min(
            ((self._slots(ratio, job) + 1) / self._fair[job] for job in range(len(self._fair))), default=self.largest
        )

    @property
    def _windows(self) -> zip:  # type: ignore[type-arg]
        return zip(self._arrival, self._last, strict=True)

    def _slots(self, ratio: float, job: int) -> int:
        return math.floor(ratio * self._fair[job] * (1 + ROUNDING) + ROUNDING)


def least_ratio(
    ratios: Ratios, excluded: Callable[[list[int]], bool], lowest: float, tests: int, highest: float | None = None
) -> float:
    """The largest ratio found, by halving, that no schedule stays below.

    Parameters
    ----------
    excluded : callable
        Whether deadlines (I,) are proven not to be met, all of them.
    lowest : float
        A ratio that no schedule stays below.
    tests : int
    highest : float, optional
        Where to begin from above; None: where all windows are whole.
    """
    low, high = lowest, ratios.largest if highest is None else highest
    for _ in range(tests):
        if low >= high:
            break
        middle = (low + high) / 2
        if excluded(ratios.due(middle)):
            low = ratios.next(middle)
        else:
            high = middle
            if ratios.due(middle) == ratios.due(low):
                break
    return low


def ratio_bound(instance: SchedulingInstance) -> float:
    r"""A ratio that no schedule stays below.

    In a schedule of ratio :math:`\rho` job i ends :math:`\rho` times its time with a fair share after its arrival.
    Deadlines are excluded by the length of a job, by intervals
    (:class:`~ddlopt.frontier.scheduling.makespan.bounds.Deadlines`) and, where jobs and slots are not too many, by
    prices on slots: at them, not all jobs can do all that they want before theirs.

    Raises
    ------
    InfeasibleError
        If a job cannot be finished in time, even alone.
    """
    ratios, deadlines = Ratios(instance), Deadlines(instance)
    jobs = deadlines.jobs
    ends = (jobs.arrival + jobs.slots).tolist()
    lowest = max(ratios.of(job, end) for job, end in enumerate(ends))
    bound = least_ratio(ratios, lambda due: deadlines.excluded(np.array(due)), lowest, _TESTS)
    if int((jobs.last - jobs.arrival).sum()) <= _PRICED_PAIRS:

        def priced(due: list[int]) -> bool:
            return quick_bound(_in_time(instance, due)).bound < float(DONE) * (1 - ROUNDING)

        bound = least_ratio(ratios, priced, bound, _PRICED_TESTS, min(ratios.largest, 2 * bound))
    return bound * (1 - ROUNDING)


def _in_time(instance: SchedulingInstance, due: list[int]) -> SchedulingInstance:
    """The same jobs with deadlines, of which the smallest part done is asked for."""
    jobs = tuple(job.model_copy(update={"deadline": each}) for job, each in zip(instance.jobs, due, strict=True))
    return instance.changed(jobs=jobs, objective="max_min")
