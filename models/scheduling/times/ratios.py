"""Lower bounds on the largest ratio of a job's time to that with its fair share: deadlines that cannot all be met."""

import math
from collections.abc import Callable
from fractions import Fraction

from ddlopt.models.contracts import Number
from ddlopt.models.scheduling.fair_time import fair_s
from ddlopt.models.scheduling.instance import SchedulingInstance
from ddlopt.models.scheduling.times.works import Works
from ddlopt.models.tolerances import ROUNDING

TESTS = 40
"""Ratios tried: each halves what is open, and many jobs in many slots have some 2^20 ratios."""


class Ratios:
    """The ratios that a schedule may have: whole slots from arrival to end over the time with a fair share.

    Parameters
    ----------
    instance : SchedulingInstance
    number : type
        Arithmetic: floats, which allow for their own rounding, or rational numbers.
    """

    def __init__(self, instance: SchedulingInstance, number: type[float] | type[Fraction] = float) -> None:
        self._slack = number(0) if number is Fraction else ROUNDING
        jobs = range(len(instance.jobs))
        self._fair = [fair_s(instance, job, number) / number(instance.slot_s) for job in jobs]
        self._arrival = [job.arrival for job in instance.jobs]
        self._last = [instance.last_slot(job) for job in jobs]
        self.largest = max(self.of(job, last) for job, last in enumerate(self._last))
        """At which every job may take all of its window."""

    def of(self, job: int, end: int) -> Number:
        """The ratio of a job that ends before slot ``end``."""
        return (end - self._arrival[job]) / self._fair[job]

    def due(self, ratio: Number) -> list[int]:
        """(I,) slot before which each job has to end for its ratio to be no larger."""
        return [min(last, start + self._slots(ratio, job)) for job, (start, last) in enumerate(self._windows)]

    def next(self, ratio: Number) -> Number:
        """The least ratio that is larger."""
        return min(
            ((self._slots(ratio, job) + 1) / self._fair[job] for job in range(len(self._fair))), default=self.largest
        )

    @property
    def _windows(self) -> zip:  # type: ignore[type-arg]
        return zip(self._arrival, self._last, strict=True)

    def _slots(self, ratio: Number, job: int) -> int:
        return math.floor(ratio * self._fair[job] * (1 + self._slack) + self._slack)


def least_ratio(
    ratios: Ratios, excluded: Callable[[list[int]], bool], lowest: Number, tests: int, highest: Number | None = None
) -> Number:
    """The largest ratio found, by halving, that no schedule stays below.

    Parameters
    ----------
    excluded : callable
        Whether deadlines (I,) are proven not to be met, all of them.
    lowest : float or Fraction
        A ratio that no schedule stays below.
    tests : int
    highest : float or Fraction, optional
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


def ratio_bound(works: Works, number: type[float] | type[Fraction] = float) -> Number:
    r"""A ratio that no schedule stays below, by the lengths of jobs and by what they take together.

    In a schedule of ratio :math:`\rho` job i ends :math:`\rho` times its time with a fair share after its arrival.
    Between the least ratio that every job by itself allows and the largest one, bisection finds deadlines that
    :meth:`~ddlopt.models.scheduling.times.works.Works.excludes` proves not to be met.

    Parameters
    ----------
    works : Works
        In the arithmetic of ``number``.
    """
    ratios = Ratios(works.instance, number)
    ends = [job.arrival + count for job, count in zip(works.instance.jobs, works.slots, strict=True)]
    lowest = max(ratios.of(job, end) for job, end in enumerate(ends))
    return least_ratio(ratios, works.excludes, lowest, TESTS)
