"""A bound on the objective of every schedule, found without a solver."""

import math
import weakref
from fractions import Fraction
from typing import NamedTuple

from ddlopt.models.scheduling.instance import SchedulingInstance
from ddlopt.models.scheduling.prices.lagrangian import Answer, quick_bound
from ddlopt.models.scheduling.types import at_their_fastest
from ddlopt.models.scheduling.utility import AllOrNothing
from ddlopt.models.tolerances import ROUNDING


class _Found(NamedTuple):
    bound: float
    answer: Answer | None


_KNOWN: dict[int, tuple[weakref.ref[SchedulingInstance], _Found]] = {}
"""By identity: the digest of an instance with many jobs takes longer than looking it up should."""


def bound(instance: SchedulingInstance) -> float:
    """Bound on the objective of every schedule: from above for utility and fairness, from below for times.

    Placement, rings and contention are relaxed to the resources of all servers together, with the fastest progress that
    any placement and any type of accelerators allow. Utilities are bounded by prices
    (:mod:`~ddlopt.models.scheduling.prices.lagrangian`). It is calculated once for an instance; with 200 jobs in 100
    slots that takes a tenth of a second, with 80 000 jobs in 2 600 slots some ten seconds.

    Raises
    ------
    InfeasibleError
        If it proves that jobs that must finish cannot: one of them by itself, or all in the slots that there are, as
        of :func:`~ddlopt.models.scheduling.makespan.bounds.makespan_bound_slots`. Jobs that may stay idle prove none.
    """
    return _known(instance).bound


def prices(instance: SchedulingInstance) -> Answer:
    """The prices for objectives that are maximised, and the bound that they certify with widths in fractions."""
    answer = _known(instance).answer
    if answer is None:
        raise ValueError(f"objective '{instance.objective}' is not maximised")
    return answer


def _known(instance: SchedulingInstance) -> _Found:
    known = _KNOWN.get(id(instance))
    if known is not None and known[0]() is instance:
        return known[1]
    found = _bound(instance)
    key = id(instance)
    _KNOWN[key] = weakref.ref(instance, lambda _: _KNOWN.pop(key, None)), found
    return found


def _bound(instance: SchedulingInstance) -> _Found:
    instance = at_their_fastest(instance)
    match instance.objective:
        case "makespan":
            from ddlopt.models.scheduling.makespan.bounds import makespan_bound

            return _Found(makespan_bound(instance), None)
        case "completion":
            from ddlopt.models.scheduling.makespan.bounds import completion_bound

            return _Found(completion_bound(instance), None)
        case "finish_time_fairness":
            from ddlopt.models.scheduling.makespan.ratio_bounds import ratio_bound

            return _Found(ratio_bound(instance), None)
        case _:
            answer = quick_bound(instance)
            return _Found(on_grid(instance, answer.bound), answer)


def on_grid(instance: SchedulingInstance, bound: float) -> float:
    """The largest utility that an upper bound allows: where only finished jobs count, it is a sum of their values.

    All sums are multiples of the greatest common divisor of the values.
    """
    if instance.energy_price_per_j or not all(isinstance(job.utility, AllOrNothing) for job in instance.jobs):
        return bound
    values = [Fraction(job.utility.value) for job in instance.jobs]
    below = math.lcm(*(value.denominator for value in values))
    step = Fraction(math.gcd(*(int(value * below) for value in values)), below)
    return min(bound, float(step * math.floor(Fraction(bound) / step)) * (1 + ROUNDING))


def work_of_plans(instance: SchedulingInstance) -> int:
    """Of finding the best plan of every job, roughly in units of 25 ns; in long windows there are more to compare."""
    windows = ((instance.last_slot(i) - job.arrival, len(job.widths)) for i, job in enumerate(instance.jobs))
    return sum(slots * widths * (100 + slots) for slots, widths in windows)
