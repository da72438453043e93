"""Places of whole gangs on one type of accelerators, slot after slot: for policies that know types."""

from collections.abc import Iterable, Mapping

import numpy as np

from ddlopt.models.scheduling.instance import SchedulingInstance, most_workers, workers_within
from ddlopt.models.scheduling.pool import Workers, on_few_servers
from ddlopt.models.scheduling.refusals import HASTY
from ddlopt.models.tolerances import let_pass_at_least
from ddlopt.solvers.scheduling.slot.packing import Place
from ddlopt.solvers.scheduling.slot.rates import Floats, Ints

Choice = tuple[int, int]
"""Job and type."""


def refusal(instance: SchedulingInstance) -> str | None:
    """Why gangs on one type do not cover an instance with types; None if they do."""
    if instance.changes.must_wait:
        return HASTY
    if instance.needs_rings:
        return "there are types of accelerators and a network, and it routes no rings; remove the network, or use exact"
    rooms = TypePlaces(instance).rooms
    for job, data in enumerate(instance.jobs):
        if not rooms[job].any():
            return (
                f"job '{data.name}' at its full width of {data.max_workers} is wider than any type of accelerators on "
                "which it can run; use exact"
            )
    return None


class TypePlaces:
    """The servers of each type, and who is where.

    Parameters
    ----------
    instance : SchedulingInstance

    Attributes
    ----------
    names : tuple of str
        K types, in the order of the servers.
    accelerators : (K, R) array
        What there is of each resource.
    paces : (I, K) array
        How fast each job is on each type; 0 where its full width does not fit, too.
    rooms : (I, K) array of bool
        Where a job can be at its full width.
    """

    def __init__(self, instance: SchedulingInstance) -> None:
        self.instance = instance
        self.names = instance.accelerators.names
        self._servers = [np.flatnonzero(instance.accelerators.of_server == k) for k in range(len(self.names))]
        self.accelerators: Floats = np.array([instance.capacity[own].sum(axis=0) for own in self._servers])
        paces = instance.accelerators.speeds
        held = np.array(
            [[int(most_workers(instance.capacity[own], row).sum()) for own in self._servers] for row in instance.demand]
        )
        self.rooms = (held >= np.array([job.max_workers for job in instance.jobs])[:, None]) & (paces > 0)
        self.paces: Floats = np.where(self.rooms, paces, 0.0)
        self._before: dict[int, Workers] = {}

    def pace(self, job: int, workers: Workers) -> float:
        """Of a job with workers on these servers."""
        return self.instance.accelerators.pace(job, (server for server, _ in workers))

    def admit(self, choices: Iterable[Choice], held: Mapping[int, Place]) -> dict[int, Place]:
        """Places of jobs at their full width on the types chosen, in this order, as far as there is room.

        A job that is chosen again, for another type, is passed over. It keeps its servers where they are free.

        Parameters
        ----------
        held : mapping
            Places that are taken already.
        """
        free, found = self._free(held), dict[int, Place]()
        for job, k in choices:
            if job not in found and (place := self._take(job, k, free)) is not None:
                found[job] = place
        self._before = {job: place.workers for job, place in found.items()}
        return found

    def admit_fastest(self, jobs: Iterable[int], held: Mapping[int, Place], skip: bool = True) -> dict[int, Place]:
        """The same, each job on the fastest type that has room for it.

        Parameters
        ----------
        skip : bool
            Whether those behind a job that does not fit are still considered.
        """
        free, found = self._free(held), dict[int, Place]()
        for job in jobs:
            types = np.argsort(-self.paces[job], kind="stable").tolist()
            place = next((place for k in types if (place := self._take(job, k, free)) is not None), None)
            if place is not None:
                found[job] = place
            elif not skip:
                break
        self._before = {job: place.workers for job, place in found.items()}
        return found

    def _free(self, held: Mapping[int, Place]) -> Floats:
        """(S, R) what is left of the servers."""
        free: Floats = let_pass_at_least(self.instance.capacity)
        for job, place in held.items():
            for server, count in place.workers:
                free[server] -= count * self.instance.demand[job]
        return free

    def _take(self, job: int, k: int, free: Floats) -> Place | None:
        """A place of a job on a type, which is taken from ``free``; None if there is too little room."""
        workers = self._workers(job, k, free) if self.rooms[job, k] else None
        if workers is None:
            return None
        for server, count in workers:
            free[server] -= count * self.instance.demand[job]
        return Place(workers)

    def _workers(self, job: int, k: int, free: Floats) -> Workers | None:
        """The servers of before, else the fullest that holds all, else the emptiest ones."""
        servers, demand = self._servers[k], self.instance.demand[job]
        room: Ints = workers_within(free[servers], demand)
        room_of = dict(zip(servers.tolist(), room.tolist(), strict=True))
        before = self._before.get(job, ())
        if before and all(room_of.get(server, 0) >= count for server, count in before):
            return before
        workers = on_few_servers(room, self.instance.jobs[job].max_workers)
        return workers and tuple((int(servers[place]), count) for place, count in workers)
