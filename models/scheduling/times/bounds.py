"""Lower bounds on makespans, completion times and ratios of times, from the lengths of jobs and the room they take."""

import math
from collections.abc import Sequence
from fractions import Fraction

from ddlopt.models.contracts import Number
from ddlopt.models.errors import InfeasibleError, NotApplicableError
from ddlopt.models.scheduling.fair_time import fair_s
from ddlopt.models.scheduling.instance import SchedulingInstance
from ddlopt.models.scheduling.times.works import Works
from ddlopt.models.tolerances import BOUND_MARGIN, ROUNDING


def time_bound(instance: SchedulingInstance) -> float:
    """What no schedule gets below of an objective that is minimised.

    A job takes its fewest slots at least; of a makespan that all share the servers counts besides.

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
        weighted = zip(works.instance.jobs, works.slots, strict=True)
        return whole_seconds(instance, sum(job.utility.value * slots for job, slots in weighted))
    return float(_largest_ratio(works, float)) * (1 - ROUNDING)


def exact_time_bound(instance: SchedulingInstance) -> Fraction:
    """What no schedule gets below, in rational numbers: its makespan, or its largest ratio of times.

    Raises
    ------
    NotApplicableError
        If the objective is another one, or bandwidth is shared.
    """
    if instance.goal.counts_ratios:
        return Fraction(_largest_ratio(Works(instance, Fraction), Fraction))
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


def _largest_ratio(works: Works, number: type[float] | type[Fraction]) -> Number:
    """The largest ratio of a job's fewest slots to those with its fair share alone, in the arithmetic of ``works``."""
    slot_s, slots = number(works.instance.slot_s), enumerate(works.slots)
    return max(count * slot_s / fair_s(works.instance, job, number) for job, count in slots)


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
