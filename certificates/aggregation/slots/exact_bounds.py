"""The longest time of jobs that share switches, from below and without any rounding."""

from fractions import Fraction
from math import ceil

from ddlopt.models.aggregation.slots.instance import SlotJob, SlotsInstance
from ddlopt.models.errors import NotApplicableError

_HALVINGS = 60
"""Of the interval with the bound: as many as a double has digits, and some for where it begins."""
_NARROW = Fraction(1, 2**30)
"""Relative width of the interval at which halving ends: far below any gap that is asked for."""
_RATE_BITS = 40
"""After the point of a rate in bytes per second; it is rounded down, so that sums have short fractions."""


def exact_slots_bound(instance: SlotsInstance) -> Fraction:
    """Seconds that some job takes in every plan.

    A job that takes less than t sends at a rate of more than :math:`g / (t / W - c)`, with buckets of more than each of
    them asks for, and so all of these together must fit into memory, links and aggregation rates, but for jobs whose
    fallback is as fast. Where they do not, t is a bound; the largest is found by bisection.

    Raises
    ------
    NotApplicableError
        With goal ``total``.
    """
    if instance.goal != "slowest":
        raise NotApplicableError(
            f"the bound of '{instance.name}' cannot be recomputed in rational numbers, because it is a sum"
        )
    low = max(Fraction(job.weight) * Fraction(job.iterations) * Fraction(job.compute_s) for job in instance.jobs)
    high = 2 * low + 1
    for _ in range(_HALVINGS):
        if not _is_passed(instance, high):
            break
        low, high = high, 4 * high
    for _ in range(_HALVINGS):
        middle = Fraction(float(low + high) / 2)
        if not low < middle < high or high - low <= _NARROW * low:
            break
        low, high = (middle, high) if _is_passed(instance, middle) else (low, middle)
    return low


def _needed(job: SlotJob, iteration: Fraction) -> Fraction | None:
    """Rate at which an iteration takes a given time, rounded down; None where none is enough."""
    if iteration <= Fraction(job.compute_s):
        return None
    # No bucket is ready after the computation.
    rate = max(size / (iteration - Fraction(ready)) for ready, size in job.left_to_send)
    return Fraction(int(rate * 2**_RATE_BITS), 2**_RATE_BITS)


def _is_passed(instance: SlotsInstance, limit: Fraction) -> bool:
    """Whether in no plan all jobs take less than ``limit`` seconds."""
    needs: list[_Needs] = []
    for job in instance.jobs:
        iteration = limit / (Fraction(job.weight) * Fraction(job.iterations))
        rate = _needed(job, iteration)
        if rate is None:
            return True
        if job.fallback_bytes_per_s is not None and rate <= Fraction(job.fallback_bytes_per_s):
            needs.append([])
            continue
        if rate > Fraction(job.nic_bytes_per_s) * job.sent_once:
            return True
        needs.append(_needs(instance, job, rate))
    limits = _limits(instance)
    return any(_is_too_much(instance, needs, limits, time_s) for time_s in instance.begins_s)


_Resource = tuple[str, int]
_Needs = list[tuple[_Resource, Fraction]]


def _needs(instance: SlotsInstance, job: SlotJob, rate: Fraction) -> _Needs:
    """What a job takes of slots, in bytes, of aggregation rates and of links."""
    found: _Needs = []
    for number, s in enumerate(job.switches):
        flying = rate * job.hold_exact(number, up=False)
        payload = Fraction(instance.switches[s].payload_bytes)
        # In bytes, so that nothing is divided by.
        found.append((("slots", s), max(1, ceil(flying / payload)) * payload if instance.whole else flying))
        found.append((("sums", s), rate))
    return found + [(("link", link), rate) for link in job.links]


def _limits(instance: SlotsInstance) -> dict[_Resource, Fraction]:
    found: dict[_Resource, Fraction] = {}
    for s, switch in enumerate(instance.switches):
        found["slots", s] = switch.slots * Fraction(switch.payload_bytes)
        if switch.aggregation_bytes_per_s is not None:
            found["sums", s] = Fraction(switch.aggregation_bytes_per_s)
    return found | {("link", e): Fraction(link.bandwidth_bytes_per_s) for e, link in enumerate(instance.links)}


def _is_too_much(
    instance: SlotsInstance, needs: list[_Needs], limits: dict[_Resource, Fraction], time_s: float
) -> bool:
    """Whether jobs that are there at a time need more than there is."""
    left = dict(limits)
    for job, own in zip(instance.jobs, needs, strict=True):
        for resource, need in own if job.is_there(time_s) else []:
            if resource in left:
                left[resource] -= need
    return any(each < 0 for each in left.values())
