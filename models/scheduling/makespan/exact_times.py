"""The bound in rational numbers of what is minimised in time: makespans and ratios of times."""

from fractions import Fraction

from ddlopt.models.scheduling.instance import SchedulingInstance
from ddlopt.models.scheduling.makespan.exact_bounds import exact_makespan_bound
from ddlopt.models.scheduling.makespan.ratio_bounds import exact_ratio_bound


def exact_time_bound(instance: SchedulingInstance) -> Fraction:
    """What no schedule gets below, in rational numbers: its makespan, or its largest ratio of times.

    Raises
    ------
    NotApplicableError
        If the objective is another one, bandwidth is shared, or a job's speed is no rational number.
    """
    if instance.objective == "finish_time_fairness":
        return exact_ratio_bound(instance)
    return exact_makespan_bound(instance)
