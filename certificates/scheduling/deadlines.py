"""A ratio of finish-time fairness as deadlines: below it, every job has to end in time."""

import math
from fractions import Fraction

from ddlopt.models.scheduling.fair_time import fair_s
from ddlopt.models.scheduling.instance import SchedulingInstance
from ddlopt.models.scheduling.utility import AllOrNothing


def in_time(instance: SchedulingInstance, ratio: Fraction) -> SchedulingInstance:
    """The jobs with the latest ends at which their ratios are less, and each worth 1 where it meets that.

    Where a job would have to end with its arrival, it has one slot: more than it may take.
    """
    jobs = []
    for place, job in enumerate(instance.jobs):
        slots = math.ceil(ratio * fair_s(instance, place, Fraction) / Fraction(instance.slot_s)) - 1
        end = min(instance.last_slot(place), job.arrival + max(1, slots))
        jobs.append(job.model_copy(update={"deadline": end, "utility": AllOrNothing()}))
    return instance.changed(jobs=tuple(jobs), objective="utility")
