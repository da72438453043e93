"""Lower bounds on the largest ratio of times by what excludes deadlines best: intervals, and prices on slots."""

import numpy as np

from ddlopt.frontier.scheduling.makespan.bounds import Deadlines
from ddlopt.frontier.scheduling.prices.lagrangian import quick_bound
from ddlopt.models.scheduling.instance import SchedulingInstance
from ddlopt.models.scheduling.times.ratios import TESTS, Ratios, least_ratio
from ddlopt.models.scheduling.utility import DONE
from ddlopt.models.tolerances import ROUNDING

_PRICED_TESTS = 8
"""Of them by prices, which take the most time."""
_PRICED_PAIRS = 40_000
"""Of a job and a slot of its window up to which prices take a second or two."""


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
    lowest = max(float(ratios.of(job, end)) for job, end in enumerate(ends))
    bound = float(least_ratio(ratios, lambda due: deadlines.excluded(np.array(due)), lowest, TESTS))
    if int((jobs.last - jobs.arrival).sum()) <= _PRICED_PAIRS:

        def priced(due: list[int]) -> bool:
            return quick_bound(_in_time(instance, due)).bound < float(DONE) * (1 - ROUNDING)

        bound = float(least_ratio(ratios, priced, bound, _PRICED_TESTS, min(float(ratios.largest), 2 * bound)))
    return bound * (1 - ROUNDING)


def _in_time(instance: SchedulingInstance, due: list[int]) -> SchedulingInstance:
    """The same jobs with deadlines, of which the smallest part done is asked for."""
    jobs = tuple(job.model_copy(update={"deadline": each}) for job, each in zip(instance.jobs, due, strict=True))
    return instance.changed(jobs=jobs, objective="max_min")
