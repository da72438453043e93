"""What jobs may have in a slot, on one type of accelerators or several, and what that costs at prices by type."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from ddlopt.models.scheduling.fastest import fastest_rates, least_energy_j
from ddlopt.models.scheduling.instance import SchedulingInstance, most_workers
from ddlopt.models.scheduling.pool import pool

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]


@dataclass(frozen=True)
class TypedPool:
    """The servers of each type as one pool of resources: what fits on them fits here.

    Where speeds depend on no type, all servers are of one.

    Parameters
    ----------
    names : tuple of str
        K types, in the order of the servers.
    capacity : (K, R) array
        Where all workers take the same, the only resource is places for them, whole ones on each server.
    demand : (I, R) array
        What a worker of each job takes.
    rooms : (I, K) array
        Most workers of a job on the servers of a type.
    worker_cost : (K,) array
        Utility that the energy of a worker costs in a slot, at least.
    exact : bool
        Whether workers by type that fit can always be placed on the servers.
    """

    names: tuple[str, ...]
    capacity: Floats
    demand: Floats
    rooms: Ints
    worker_cost: Floats
    exact: bool


def typed_pool(instance: SchedulingInstance) -> TypedPool:
    """The pool of each type."""
    names = instance.accelerators.names
    masks = [instance.accelerators.of_server == k for k in range(len(names))]
    demand, capacity = instance.demand, instance.capacity
    same = bool((demand == demand[0]).all())
    held = np.array([most_workers(capacity, row) for row in (demand[:1] if same else demand)])
    rooms = np.array([[int(row[mask].sum()) for mask in masks] for row in held])
    single = all(mask.sum() == 1 for mask in masks)
    powered = bool(instance.energy_price_per_j) and any(
        instance.idle_w[mask].any() or np.ptp(instance.worker_w[mask]) for mask in masks
    )
    free = not (instance.needs_rings or instance.contention is not None or powered)
    cost = [instance.energy_price_per_j * least_energy_j(instance, mask) for mask in masks]
    if same:
        places = np.array([[float(room)] for room in rooms[0]])
        jobs = len(instance.jobs)
        return TypedPool(names, places, np.ones((jobs, 1)), np.repeat(rooms, jobs, axis=0), np.array(cost), free)
    summed = np.array([capacity[mask].sum(axis=0) for mask in masks])
    return TypedPool(names, summed, demand, rooms, np.array(cost), free and single)


def pools_of(instance: SchedulingInstance) -> TypedPool:
    """The pool of each type where speeds depend on it, else :func:`~ddlopt.models.scheduling.pool.pool`."""
    if instance.accelerators.matter:
        return typed_pool(instance)
    one, jobs = pool(instance), instance.jobs
    cost = np.array([instance.energy_price_per_j * least_energy_j(instance)])
    rooms = np.array([[job.max_workers] for job in jobs])
    return TypedPool(("",), one.capacity[None], one.demand, rooms, cost, one.exact)


class Offers(NamedTuple):
    """What one job may have in a slot: a width on a class of types.

    ``paces`` and ``types`` of the C classes, the latter as places in the pool's names; of O offers ``of_class``,
    ``widths`` (O,) and ``gains`` (O,), in mini-batches. Within a class, wider offers do more.
    """

    paces: tuple[float, ...]
    types: tuple[tuple[int, ...], ...]
    of_class: Ints
    widths: Ints
    gains: Floats


def offers_of(instance: SchedulingInstance, cluster: TypedPool, job: int) -> Offers:
    """The offers of a job, at the fastest progress that any placement allows."""
    rates = fastest_rates(instance, job)
    found = instance.accelerators.classes(job)
    # Where no speed depends on a type the pool may be of one.
    all_types = tuple(range(len(cluster.names)))
    types = [each.types if instance.accelerators.matter else all_types for each in found]
    of_class, widths, gains = [], [], []
    for place, (each, own) in enumerate(zip(found, types, strict=True)):
        room, most = int(cluster.rooms[job, list(own)].sum()), 0.0
        for width, rate in zip(instance.jobs[job].widths, rates, strict=True):
            if width <= room and each.pace * rate > most:
                most = each.pace * rate
                of_class.append(place)
                widths.append(width)
                gains.append(most)
    paces = tuple(each.pace for each in found)
    return Offers(paces, tuple(types), np.array(of_class), np.array(widths, dtype=np.int64), np.array(gains))


def costs_of(offers: Offers, rooms: Ints, prices: Floats) -> Floats:
    """(n, O) least cost of each offer in n slots, with ``prices`` (n, K) of a worker by type and ``rooms`` (K,)."""
    costs = np.zeros((len(prices), len(offers.widths)))
    for place, types in enumerate(offers.types):
        mine = offers.of_class == place
        for price, filled in _filled(types, rooms, prices, offers.widths[mine]):
            costs[:, mine] += price[:, None] * filled
    return costs


def workers_of(offers: Offers, rooms: Ints, prices: Floats, choice: Ints) -> Ints:
    """(n, K) workers by type, where each slot has the offer ``choice`` (n,), -1 for none, in its cheapest way."""
    workers = np.zeros((len(prices), len(rooms)), dtype=np.int64)
    for place, types in enumerate(offers.types):
        slots = np.flatnonzero((choice >= 0) & (offers.of_class[choice] == place))
        order = _by_price(types, prices[slots])
        left = offers.widths[choice[slots]]
        for rank in range(len(types)):
            here = order[:, rank]
            taken = np.minimum(left, rooms[here])
            workers[slots, here] = taken
            left = left - taken
    return workers


def _by_price(types: tuple[int, ...], prices: Floats) -> Ints:
    """(n, k) the types, the cheapest first."""
    own = np.array(types)
    order: Ints = own[np.argsort(prices[:, own], axis=1, kind="stable")]
    return order


def _filled(types: tuple[int, ...], rooms: Ints, prices: Floats, widths: Ints) -> list[tuple[Floats, Ints]]:
    """For the cheapest type, the next, …: (n,) its price, and (n, W) workers on it."""
    order = _by_price(types, prices)
    slots, before = np.arange(len(prices)), np.zeros(len(prices), dtype=np.int64)
    found = []
    for rank in range(len(types)):
        here = order[:, rank]
        filled = np.clip(widths[None, :] - before[:, None], 0, rooms[here][:, None])
        found.append((prices[slots, here], filled))
        before = before + rooms[here]
    return found
