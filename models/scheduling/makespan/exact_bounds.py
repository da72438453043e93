"""Lower bounds on times in rational numbers, from the jobs' own data: the longest job, and areas."""

import math
from collections.abc import Iterator
from fractions import Fraction

from ddlopt.models.errors import NotApplicableError
from ddlopt.models.scheduling.instance import Job, SchedulingInstance
from ddlopt.models.scheduling.types import at_their_fastest
from ddlopt.models.scheduling.utility import DONE


def exact_makespan_bound(instance: SchedulingInstance) -> Fraction:
    r"""Seconds before which no schedule ends that finishes all jobs.

    Two of the arguments of :func:`~ddlopt.models.scheduling.makespan.bounds.makespan_bound_slots`, with nothing
    rounded. No job is faster than at its best width with all bandwidth to itself, so job j takes :math:`p_j` slots at
    least and ends after :math:`r_j + p_j`. And what jobs that arrive from slot a on take of a resource, at the width
    that takes least of it for a mini-batch, is no more than all servers together have in the slots from a to the end.
    Where speeds depend on types of accelerators, every job is on its fastest.

    Raises
    ------
    NotApplicableError
        If the objective is another one, bandwidth is shared, or a job's speed is no rational number.
    """
    if instance.objective != "makespan" or instance.bandwidth == "shared":
        raise NotApplicableError("bounds on schedules are recomputed in rational numbers for makespans and ratios only")
    works = Works(instance)
    bound = max(job.arrival + count for job, count in zip(instance.jobs, works.slots, strict=True))
    for work, capacity in works.resources:
        for arrival in {job.arrival for job in instance.jobs}:
            since = sum((w for job, w in zip(instance.jobs, work, strict=True) if job.arrival >= arrival), Fraction(0))
            bound = max(bound, arrival + math.ceil(since / capacity))
    return bound * Fraction(instance.slot_s)


class Works:
    """What all jobs take at least, in rational numbers.

    Parameters
    ----------
    instance : SchedulingInstance

    Attributes
    ----------
    slots : list of int
        Fewest slots of each job.
    resources : list of (list of Fraction, Fraction)
        What each job takes of a resource in all, and what all servers have of it in a slot.

    Raises
    ------
    NotApplicableError
        If bandwidth is shared, or a job's speed is no rational number.
    """

    def __init__(self, instance: SchedulingInstance) -> None:
        if instance.bandwidth == "shared":
            raise NotApplicableError("where bandwidth is shared, no speed of a job is known")
        instance = at_their_fastest(instance)
        self._arrivals = [job.arrival for job in instance.jobs]
        rates = [dict(_rates(instance, job)) for job in instance.jobs]
        wanted = [Fraction(job.minibatches) * DONE for job in instance.jobs]
        self.slots = [max(1, math.ceil(each / max(rate.values()))) for each, rate in zip(wanted, rates, strict=True)]
        self.resources: list[tuple[list[Fraction], Fraction]] = []
        for resource, name in enumerate(instance.resources):
            work = []
            for job, each, rate, count in zip(instance.jobs, wanted, rates, self.slots, strict=True):
                taken = {width: Fraction(job.demand.get(name, 0.0)) * width for width in rate}
                # A job of one width takes whole slots.
                whole = taken[job.min_workers] * count if len(rate) == 1 else Fraction(0)
                work.append(max(whole, min(taken[width] / rate[width] for width in rate) * each))
            if any(work):
                self.resources.append((work, _capacity(instance, resource, name)))

    def refute(self, due: list[int]) -> bool:
        """Whether not every job can end before its slot of ``due`` (I,), by its length or by what jobs take together.

        Jobs that arrive in or after a slot a and are due before a slot b take no more than all servers have between.
        """
        jobs = range(len(due))
        if any(due[job] - self._arrivals[job] < self.slots[job] for job in jobs):
            return True
        order = sorted(jobs, key=lambda job: due[job])
        for work, capacity in self.resources:
            for begin in set(self._arrivals):
                inside = Fraction(0)
                for place, job in enumerate(order):
                    inside += work[job] if self._arrivals[job] >= begin else 0
                    last = place + 1 == len(order) or due[order[place + 1]] > due[job]
                    if last and inside > capacity * max(0, due[job] - begin):
                        return True
        return False


def _rates(instance: SchedulingInstance, job: Job) -> Iterator[tuple[int, Fraction]]:
    """Mini-batches per slot by width, wherever the workers are and whoever runs beside them."""
    rules = instance.contention
    for width in job.widths:
        if rules is None:
            seconds = job.timing.iteration_s(width, None, Fraction)
        else:
            overhead = Fraction(rules.server_overhead_s)
            times = [job.timing.iteration_s(width, Fraction(rules.within_server_bytes_per_s), Fraction) + overhead]
            if width > 1:
                between = Fraction(rules.between_servers_bytes_per_s)
                times.append(job.timing.iteration_s(width, between, Fraction) + 2 * overhead)
            seconds = min(times)
        if not isinstance(seconds, Fraction):
            raise NotApplicableError(f"the speed of job '{job.name}' is no rational number")
        yield width, width / seconds * Fraction(instance.slot_s)


def _capacity(instance: SchedulingInstance, resource: int, name: str) -> Fraction:
    """What all servers together have; no more than what whole workers can take, where all of them take the same."""
    held = [Fraction(each) for each in instance.capacity[:, resource].tolist()]
    taken = {job.demand.get(name, 0.0) for job in instance.jobs}
    if len(taken) == 1 and (each := Fraction(taken.pop())):
        held = [have // each * each for have in held]
    return sum(held, Fraction(0))
