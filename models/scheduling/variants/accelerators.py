"""Types of accelerators: where a job may be, and how fast it is there."""

import math
from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from ddlopt.models.scheduling.parts import Job, ServerGroup


class Class(NamedTuple):
    """Servers on which a job may be together, and the pace at which it then goes at least.

    ``pace`` is relative to the job's timing, ``types`` are places in :attr:`Accelerators.names`, increasing.
    """

    pace: float
    servers: tuple[int, ...]
    types: tuple[int, ...]


class Accelerators:
    """What the types of a cluster's accelerators mean for its jobs.

    Parameters
    ----------
    servers : sequence of ServerGroup
    jobs : sequence of Job
    mixed : bool
        Whether a job with ``speeds`` may be on several types at once.

    Attributes
    ----------
    matter : bool
        Whether the speed of some job depends on its type.
    names : tuple of str
        K types, in the order of the servers.
    of_server : (S,) array
        Type of each server, a place in ``names``.
    """

    def __init__(self, servers: Sequence[ServerGroup], jobs: Sequence[Job], mixed: bool) -> None:
        self._jobs = jobs
        self.mixed = mixed
        self.matter = any(job.speeds for job in jobs)
        self.names = tuple(dict.fromkeys(group.type for group in servers))
        kinds = [self.names.index(group.type) for group in servers]
        self.of_server: npt.NDArray[np.int64] = np.repeat(kinds, [group.count for group in servers])

    @cached_property
    def speeds(self) -> npt.NDArray[np.float64]:
        """(I, K) how fast each job is on each type, relative to its timing; 0: it cannot run there."""
        if not self.matter:
            return np.ones((len(self._jobs), len(self.names)))
        return np.array([[job.speeds.get(name, 1.0) for name in self.names] for job in self._jobs])

    def type_of(self, server: int) -> str:
        """The name of a server's type."""
        return self.names[int(self.of_server[server])]

    def matter_to(self, job: int) -> bool:
        """Whether the speed of a job depends on its type."""
        return bool(self._jobs[job].speeds)

    def fastest(self, job: int) -> float:
        """How fast a job is on its best type, relative to its timing."""
        return max(self._jobs[job].speeds.values(), default=1.0)

    def pace(self, job: int, servers: Iterable[int]) -> float:
        """How fast a job is on these servers, where all its workers wait for the slowest; 0: it cannot run there."""
        speeds = self._jobs[job].speeds
        return min(speeds[self.type_of(server)] for server in servers) if speeds else 1.0

    def classes(self, job: int) -> list[Class]:
        """The classes of servers that a job may be on, the fastest first.

        Where types mix, class k are all servers that are no slower than the k-th pace, so that each holds the one
        before it; else the servers of one type. Where types make no difference to the job, there is one class.
        """
        speeds = self._jobs[job].speeds
        if not speeds:
            return [self._class(1.0, range(len(self.names)))]
        row = [speeds[name] for name in self.names]
        if self.mixed:
            paces = sorted({pace for pace in row if pace}, reverse=True)
            return [self._class(pace, [k for k, each in enumerate(row) if each >= pace]) for pace in paces]
        order = sorted(range(len(row)), key=lambda k: (-row[k], self.names[k]))
        return [self._class(row[k], [k]) for k in order if row[k]]

    def class_of(self, job: int, servers: Iterable[int]) -> int:
        """The first class that has all these servers; 0 if none has."""
        here = {int(self.of_server[server]) for server in servers}
        return next((k for k, each in enumerate(self.classes(job)) if here <= set(each.types)), 0)

    def _class(self, pace: float, types: Iterable[int]) -> Class:
        own = tuple(types)
        return Class(pace, tuple(np.flatnonzero(np.isin(self.of_server, own)).tolist()), own)

    def everywhere_fastest(self) -> tuple[Job, ...]:
        """The jobs without speeds, each everywhere as fast as on its best type.

        Fewer mini-batches are wanted instead, rounded down: each job does at least the part that it does with types, in
        exact arithmetic too.
        """
        jobs = []
        for place, job in enumerate(self._jobs):
            if job.speeds:
                wanted = math.nextafter(job.minibatches / self.fastest(place), 0.0)
                job = job.model_copy(update={"minibatches": wanted, "speeds": {}})
            jobs.append(job)
        return tuple(jobs)

    def room(self, job: int, held: npt.NDArray[np.int64], place: str) -> int:
        """The most workers of a job with speeds, of those ``held`` (S,) by each server, if its speeds make sense.

        Raises
        ------
        ValueError
            If they do not; ``place`` says where the job stands.
        """
        speeds, known = self._jobs[job].speeds, set(self.names)
        for name in sorted(known - set(speeds)):
            raise ValueError(
                f"{place}: speeds has no type '{name}', but servers have it; add it, 0 if it cannot run there"
            )
        for name in sorted(set(speeds) - known):
            raise ValueError(f"{place}: speeds names type '{name}', but the servers have {', '.join(sorted(known))}")
        for name, speed in speeds.items():
            if not (math.isfinite(speed) and speed >= 0):
                raise ValueError(f"{place}: speeds['{name}'] is {speed}; it must be finite and >= 0")
        rooms = [int(held[self.of_server == k].sum()) for k, name in enumerate(self.names) if speeds[name]]
        if not rooms:
            raise ValueError(f"{place}: speeds are all 0; it can run nowhere")
        return sum(rooms) if self.mixed else max(rooms)
