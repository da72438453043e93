"""Types of accelerators for the check of prices: what there is of each, and what jobs may have."""

import math
from collections.abc import Callable
from fractions import Fraction

import numpy as np

from ddlopt.certificates.scheduling.plans import Offers
from ddlopt.certificates.scheduling.relaxed import EXCESS, PARTS, Ints, least_power, workers_in
from ddlopt.models.errors import NotApplicableError
from ddlopt.models.scheduling.instance import SchedulingInstance

_MOST_OFFERS = 10_000
"""Widths on classes of types of one job."""


class TypedCluster:
    """All servers of each type together.

    Parameters
    ----------
    instance : SchedulingInstance

    Attributes
    ----------
    names : list of str
        K types, in the order of the servers.
    capacity : list of Fraction
        (K R,) by type and resource. Where workers all take the same, the only resource is places for workers.
    demand : list of list of Fraction
        (I, R) what a worker takes of each.
    rooms : list of list of int
        (I, K) workers of a job that the servers of a type hold.
    worker_cost : list of Fraction
        (K,) utility that the energy of a worker costs in a slot, at least.
    """

    def __init__(self, instance: SchedulingInstance) -> None:
        resources = instance.resources
        self.names = list(dict.fromkeys(group.type for group in instance.servers))
        taken = [[Fraction(job.demand.get(name, 0.0)) for name in resources] for job in instance.jobs]
        least = [min(column) for column in zip(*taken, strict=True)]
        alike = all(row == taken[0] for row in taken)
        self.demand = [[Fraction(1)]] * len(taken) if alike else taken
        self.rooms: list[list[int]] = [[] for _ in taken]
        self.capacity: list[Fraction] = []
        self.worker_cost: list[Fraction] = []
        for name in self.names:
            groups = [group for group in instance.servers if group.type == name]
            held = [[Fraction(group.capacity.get(each, 0.0)) * EXCESS for each in resources] for group in groups]
            pairs = list(zip(groups, held, strict=True))
            for mine, row in zip(self.rooms, taken, strict=True):
                mine.append(sum(group.count * workers_in(room, row) for group, room in pairs))
            if alike:
                self.capacity.append(Fraction(self.rooms[0][-1]))
            else:
                self.capacity += [
                    sum((g.count * row[r] for g, row in pairs), Fraction(0)) for r in range(len(resources))
                ]
            watts = [
                least_power(group, room, least) for group, room in pairs if any(workers_in(room, row) for row in taken)
            ]
            power = min(watts, default=Fraction(0))
            self.worker_cost.append(Fraction(instance.energy_price_per_j) * power * Fraction(instance.slot_s))


def typed_offer(
    instance: SchedulingInstance,
    cluster: TypedCluster,
    place: int,
    units: list[list[int]],
    worth: Callable[[Ints], Ints],
) -> Offers:
    """The widths of a job on classes of types, at (n, K) whole ``units`` for a worker on each type.

    Workers of a class go at the pace of its slowest type, and are on its cheapest types that have room.

    Raises
    ------
    NotApplicableError
        If there are too many, or where its workers are decides more than their types.
    """
    job, rooms = instance.jobs[place], cluster.rooms[place]
    gains, costs = [], []
    orders = [sorted(range(len(rooms)), key=row.__getitem__) for row in units]
    for own, width, pace in options_on_types(instance, cluster, place):
        done = Fraction(job.timing.minibatches_per_s(width, None, Fraction)) * Fraction(instance.slot_s) * pace
        gains.append(min(PARTS, math.ceil(done * PARTS / Fraction(job.minibatches))))
        costs.append([_cost(row, order, own, rooms, width) for row, order in zip(units, orders, strict=True)])
    slots = np.array(costs, dtype=np.int64).reshape(len(gains), -1).T
    return Offers(np.array(gains, dtype=np.int64), slots, worth, ordered=False)


def options_on_types(
    instance: SchedulingInstance, cluster: TypedCluster, place: int
) -> list[tuple[tuple[int, ...], int, Fraction]]:
    """The classes of types and widths that a job may have in a slot, and its pace there.

    Raises
    ------
    NotApplicableError
        If there are too many, or where its workers are decides more than their types.
    """
    if instance.contention is not None or instance.bandwidth == "shared":
        raise NotApplicableError("prices say nothing where bandwidth depends on other jobs or is chosen")
    job, rooms = instance.jobs[place], cluster.rooms[place]
    paces = [Fraction(job.speeds[name]) if job.speeds else Fraction(1) for name in cluster.names]
    kinds = range(len(paces))
    if instance.mixed_types or not job.speeds:
        classes = [tuple(k for k in kinds if paces[k] >= pace) for pace in sorted(set(paces)) if pace]
    else:
        classes = [(k,) for k in kinds if paces[k]]
    if len(classes) * len(job.widths) > _MOST_OFFERS:
        raise NotApplicableError(f"job {place} has more than {_MOST_OFFERS} widths on classes of types")
    return [
        (own, width, min(paces[k] for k in own))
        for own in classes
        for width in job.widths
        if width <= sum(rooms[k] for k in own)
    ]


def _cost(units: list[int], order: list[int], own: tuple[int, ...], rooms: list[int], width: int) -> int:
    cost, left = 0, width
    for k in order:
        if k in own:
            taken = min(left, rooms[k])
            cost, left = cost + taken * units[k], left - taken
    return cost
