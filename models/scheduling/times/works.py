"""The least time and the least resources that jobs need, in floating point or in rational numbers."""

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import NamedTuple

from ddlopt.models.contracts import Number
from ddlopt.models.errors import NotApplicableError
from ddlopt.models.scheduling.fastest import fastest_rates
from ddlopt.models.scheduling.instance import SchedulingInstance
from ddlopt.models.scheduling.utility import DONE
from ddlopt.models.tolerances import let_pass_at_most


class Resource(NamedTuple):
    """What jobs need of one resource.

    Parameters
    ----------
    work : sequence of I numbers
        The least that each job uses until it is done, in amounts times slots.
    capacity : float or Fraction
        What all servers have in a slot, with what the check of a schedule lets pass.
    """

    work: Sequence[Number]
    capacity: Number


class Works:
    """The fewest slots and the least work of every job, each with the number of workers and the servers best for it.

    Where speeds depend on types of accelerators, every job runs on its fastest type.

    Parameters
    ----------
    instance : SchedulingInstance
    number : type
        Arithmetic: floats or rational numbers.

    Attributes
    ----------
    slots : list of I int
        Fewest slots of each job.
    resources : list of Resource
        Those that some job takes.

    Raises
    ------
    NotApplicableError
        In rational numbers, if bandwidth is shared.
    """

    def __init__(self, instance: SchedulingInstance, number: type[float] | type[Fraction] = float) -> None:
        if number is Fraction and instance.bandwidth == "shared":
            raise NotApplicableError("where bandwidth is shared, no speed of a job is known")
        self.instance = instance = instance.at_their_fastest()
        self._number = number
        rates = rates_of(instance, number)
        done = DONE if number is Fraction else float(DONE)
        wanted = [number(job.minibatches) * done for job in instance.jobs]
        self.slots = [max(1, math.ceil(each / max(rate))) for each, rate in zip(wanted, rates, strict=True)]
        found = (self._resource(name, rates, wanted) for name in instance.resources)
        self.resources = [resource for resource in found if any(resource.work)]

    def _resource(self, name: str, rates: list[Sequence[Number]], wanted: list[Number]) -> Resource:
        number, work = self._number, []
        for job, rate, each, slots in zip(self.instance.jobs, rates, wanted, self.slots, strict=True):
            amount = number(job.demand.get(name, 0.0))
            least = min(width * amount / pace for width, pace in zip(job.widths, rate, strict=True)) * each
            # A job of one width takes whole slots.
            work.append(max(least, job.min_workers * amount * slots) if len(rate) == 1 else least)
        return Resource(work, self._capacity(name))

    def _capacity(self, name: str) -> Number:
        """What all servers have; no more than whole workers can take of each, where all of them take the same."""
        number = self._number
        slack = let_pass_at_most(number(1))
        held = [(number(group.capacity.get(name, 0.0)) * slack, group.count) for group in self.instance.servers]
        taken = {job.demand.get(name, 0.0) for job in self.instance.jobs}
        if len(taken) == 1 and (each := number(taken.pop())):
            held = [(math.floor(amount / each) * each * slack, count) for amount, count in held]
        return sum((amount * count for amount, count in held), number(0))

    def area_slots(self) -> int:
        """A lower bound on the makespan in slots: what arrives later needs all servers for so long."""
        jobs = self.instance.jobs
        latest = sorted(range(len(jobs)), key=lambda job: -jobs[job].arrival)
        bound = 0
        for resource in self.resources:
            since = self._number(0)
            for job in latest:
                since += resource.work[job]
                bound = max(bound, jobs[job].arrival + math.ceil(since / resource.capacity))
        return bound


def rates_of(instance: SchedulingInstance, number: type[float] | type[Fraction]) -> list[Sequence[Number]]:
    """Best rates of all jobs by width; traces have many identical jobs."""
    known: dict[object, Sequence[Number]] = {}
    found = []
    for place, job in enumerate(instance.jobs):
        key = job.timing, job.min_workers, job.max_workers, tuple(job.demand.items())
        if key not in known:
            known[key] = fastest_rates(instance, place, number)
        found.append(known[key])
    return found
