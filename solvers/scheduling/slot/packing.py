"""Widths onto servers where widths alone do not decide what fits: several resources, networks, contention, energy."""

from collections import Counter
from collections.abc import Iterable, Mapping
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from ddlopt.models.scheduling.instance import SchedulingInstance, workers_within
from ddlopt.models.scheduling.pool import Workers
from ddlopt.models.scheduling.rings.rings import find_ring, ring_rate
from ddlopt.models.tolerances import left_let_pass, let_pass_at_least
from ddlopt.solvers.scheduling.slot.rates import Floats, Ints

SEEDS = 6
"""Servers around which a job that needs several is tried, besides the emptiest ones."""


class Place(NamedTuple):
    """Where a job runs: (server, number of workers) by server, and its ring through the network."""

    workers: Workers
    ring: tuple[int, ...] = ()

    @property
    def width(self) -> int:
        """Workers in all."""
        return sum(count for _, count in self.workers)


class Packer:
    """Packs jobs one by one into what is left of servers and links, slot after slot.

    A job goes to the server that it fills best, else to as few servers as hold it: the emptiest ones, or those nearest
    to one of them, such that a ring with the job's bandwidth is still found. With contention, servers that few split
    jobs use come first. A job whose width stays keeps its place.

    Parameters
    ----------
    instance : SchedulingInstance
    """

    def __init__(self, instance: SchedulingInstance) -> None:
        self.instance = instance
        self.placed: dict[int, Place] = {}
        self.free: Floats = let_pass_at_least(instance.capacity)
        """(S, R) what is left of the resources, of what the check lets pass."""
        network = instance.network if instance.needs_rings else None
        self.residual: dict[tuple[int, int], float] = {} if network is None else dict(network.arcs)
        """Bandwidth left by arc, bytes/s; empty without a network."""
        self._split: Ints = np.zeros(instance.server_count, dtype=np.int64)
        self._busy: Ints = np.zeros(instance.server_count, dtype=np.int64)
        self._hops = _server_hops(instance) if network is not None else None
        self._wakes = bool(instance.energy_price_per_j and instance.idle_w.any())

    def place(self, widths: Mapping[int, int | Place]) -> dict[int, Place]:
        """Places in the next slot; what is given first is placed first, given places and unchanged widths before all.

        A width that does not fit is made smaller, down to the job's smallest, and the job is left out where even that
        does not fit. Given places are taken as they are.
        """
        for job, place in list(self.placed.items()):
            wanted = widths.get(job, 0)
            if wanted != (place if isinstance(wanted, Place) else place.width):
                self.remove(job)
        for job, wanted in widths.items():
            if isinstance(wanted, Place) and job not in self.placed:
                self.put(job, wanted)
        for job, wanted in widths.items():
            if not isinstance(wanted, Place) and wanted and job not in self.placed:
                found = self.largest(job, wanted)
                if found is not None:
                    self.put(job, found)
        return dict(self.placed)

    def largest(self, job: int, width: int) -> Place | None:
        """A place for as many workers as fit, at most ``width``; None if not even the job's smallest width fits."""
        room = self._room(job)
        width = min(width, int(room.sum()))
        while width >= self.instance.jobs[job].min_workers:
            place = self.find(job, width, room)
            if place is not None:
                return place
            width -= 1
        return None

    def find(self, job: int, width: int, room: Ints | None = None) -> Place | None:
        """A place for exactly ``width`` workers; None if none is found.

        Parameters
        ----------
        room : (S,) array, optional
            Workers of the job that each server still holds.
        """
        room = self._room(job) if room is None else room
        whole = np.flatnonzero(room >= width)
        if len(whole):
            asleep = (self._busy[whole] == 0) if self._wakes else np.zeros(len(whole))
            best = whole[np.lexsort((whole, room[whole], asleep))[0]]
            return Place(((int(best), width),))
        if room.sum() < width:
            return None
        if not self.instance.needs_rings:
            return Place(_gather(self._order(room), room, width))
        return self._with_ring(job, width, room)

    def fits(self, job: int, place: Place) -> bool:
        """Whether a place, ring included, is still free."""
        room = self._room(job)
        if any(room[server] < count for server, count in place.workers):
            return False
        rate = ring_rate(self.instance.jobs[job]) if place.ring else 0.0
        return all(self._left(arc) >= passes * rate for arc, passes in _passes(place.ring))

    def energy_w(self, place: Place) -> float:
        """Power that a place adds: its workers, and the servers that nobody else uses now."""
        instance = self.instance
        workers = sum(count * float(instance.worker_w[server]) for server, count in place.workers)
        return workers + sum(float(instance.idle_w[server]) for server, _ in place.workers if not self._busy[server])

    def put(self, job: int, place: Place) -> None:
        """Take what a place needs."""
        self._change(job, place, 1)
        self.placed[job] = place

    def remove(self, job: int) -> Place:
        """Give back what the job's place took."""
        place = self.placed.pop(job)
        self._change(job, place, -1)
        return place

    def _change(self, job: int, place: Place, sign: int) -> None:
        for server, count in place.workers:
            self.free[server] -= sign * count * self.instance.demand[job]
            self._busy[server] += sign
            self._split[server] += sign * (len(place.workers) > 1)
        if place.ring:
            rate = ring_rate(self.instance.jobs[job])
            for arc, passes in _passes(place.ring):
                self.residual[arc] -= sign * passes * rate

    def _left(self, arc: tuple[int, int]) -> float:
        """Bandwidth left, with what the check lets pass."""
        network = self.instance.network
        assert network is not None
        return left_let_pass(self.residual[arc], network.arcs[arc])

    def _room(self, job: int) -> Ints:
        return workers_within(self.free, self.instance.demand[job])

    def _order(self, room: Ints) -> Iterable[int]:
        """Servers for a job that needs several: little contention first, then those in use, then the emptiest."""
        asleep = (self._busy == 0) if self._wakes else np.zeros(len(room))
        crowd = self._split if self.instance.contention is not None else np.zeros(len(room))
        return map(int, np.lexsort((-room, asleep, crowd)))

    def _with_ring(self, job: int, width: int, room: Ints) -> Place | None:
        """Several servers that a ring can join: the emptiest, or those around one of the emptiest."""
        rate = ring_rate(self.instance.jobs[job])
        room = np.where(self._reachable(rate), room, 0)
        if room.sum() < width:
            return None
        order = list(self._order(room))
        assert self._hops is not None
        orders = [order]
        for seed in order[:SEEDS]:
            hops = self._hops[seed]
            orders.append(sorted(order, key=lambda server, hops=hops: hops[server]))  # type: ignore[misc]
        tried: set[Workers] = set()
        for one in orders:
            workers = _gather(one, room, width)
            if workers not in tried:
                tried.add(workers)
                ring = find_ring(self.instance, [server for server, _ in workers], self.residual, rate)
                if ring is not None:
                    return Place(workers, tuple(ring))
        return None

    def _reachable(self, rate: float) -> npt.NDArray[np.bool_]:
        """(S,) servers with an arc in and an arc out that have the bandwidth left."""
        leave, enter = np.zeros((2, self.instance.server_count), dtype=bool)
        for u, v in self.residual:
            if self._left((u, v)) >= rate:
                if u < len(leave):
                    leave[u] = True
                if v < len(enter):
                    enter[v] = True
        return leave & enter


def _passes(ring: tuple[int, ...]) -> Iterable[tuple[tuple[int, int], int]]:
    """How often a ring passes each of its arcs."""
    return Counter(pairwise((*ring, ring[0]))).items() if ring else ()


def _gather(order: Iterable[int], room: Ints, width: int) -> Workers:
    """Workers on servers in this order; the last of them is the one that is filled best."""
    workers: list[tuple[int, int]] = []
    left = width
    order = [server for server in order if room[server]]
    for place, server in enumerate(order):
        if room[server] >= left:
            rest = [other for other in order[place:] if room[other] >= left]
            last = min(rest, key=lambda other: int(room[other]))
            workers.append((last, left))
            break
        workers.append((server, int(room[server])))
        left -= int(room[server])
    return tuple(sorted(workers))


def _server_hops(instance: SchedulingInstance) -> Ints:
    """(S, S) links between servers on a shortest way through the network."""
    network = instance.network
    assert network is not None
    count = instance.server_count
    hops = np.full((count, count), count + network.switches, dtype=np.int64)
    for server in range(count):
        seen, frontier, distance = {server}, [server], 0
        while frontier:
            for node in frontier:
                if node < count:
                    hops[server, node] = distance
            following = {other for node in frontier for other in network.neighbours.get(node, ())} - seen
            seen |= following
            frontier, distance = sorted(following), distance + 1
    return hops
