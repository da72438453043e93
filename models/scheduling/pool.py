"""Clusters in which widths alone decide what fits, and the way from widths to a schedule."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from ddlopt.models.errors import SolverError
from ddlopt.models.scheduling.instance import SchedulingInstance, most_workers
from ddlopt.models.scheduling.solution import Run, Schedule

Workers = tuple[tuple[int, int], ...]
"""(server, number of workers) by server."""


@dataclass(frozen=True)
class Pool:
    """Widths w fit in a slot if ``demand.T @ w <= capacity``.

    Parameters
    ----------
    demand : (I, R) array
        What a worker of each job takes.
    capacity : (R,) array
    exact : bool
        Whether widths that fit can always be placed on the servers; if not, the pool is a relaxation.
    """

    demand: npt.NDArray[np.float64]
    capacity: npt.NDArray[np.float64]
    exact: bool


def pool(instance: SchedulingInstance) -> Pool:
    """The cluster as one pool of resources.

    It is exact for a single server, and where every worker takes the same: a server then has a whole number of places,
    and any workers can take any places. A network, contention and the power of idle servers make places matter.
    """
    demand, capacity = instance.demand, instance.capacity
    matters = (
        instance.needs_rings
        or instance.contention is not None
        or bool(
            instance.energy_price_per_j
            and (np.ptp(instance.worker_w) or instance.idle_w.any())
            and instance.server_count > 1
        )
    )
    if instance.server_count > 1 and (demand == demand[0]).all():
        places = float(most_workers(capacity, demand[0]).sum())
        return Pool(np.ones((len(instance.jobs), 1)), np.array([places]), not matters)
    return Pool(demand, capacity.sum(axis=0), instance.server_count == 1)


@dataclass
class Placer:
    """Puts widths of an exact pool on servers, slot after slot, and moves a job only when its width changes."""

    instance: SchedulingInstance
    free: npt.NDArray[np.float64] = field(init=False)
    placed: dict[int, Workers] = field(init=False, default_factory=dict)
    _first: int = field(init=False, default=0)

    def __post_init__(self) -> None:
        self.free = self.instance.capacity.copy()

    def place(self, widths: Mapping[int, int]) -> dict[int, Workers]:
        """Workers of every job in the next slot, for positive widths by job.

        Raises
        ------
        SolverError
            If the widths do not fit.
        """
        for job in [job for job, workers in self.placed.items() if widths.get(job, 0) != _width(workers)]:
            for server, count in self.placed.pop(job):
                self.free[server] += count * self.instance.demand[job]
                self._first = min(self._first, server)
        for job, width in sorted(widths.items(), key=lambda item: (-item[1], item[0])):
            if width and job not in self.placed:
                self.placed[job] = self._put(job, width)
        return dict(self.placed)

    def _put(self, job: int, width: int) -> Workers:
        demand = self.instance.demand[job]
        start = self._first
        room = most_workers(self.free[start:] + 1e-9, demand)
        whole = np.flatnonzero(room >= width)
        if len(whole):  # the fullest server that holds them all
            chosen = [int(whole[np.argmin(room[whole])])]
        else:
            chosen = [int(server) for server in np.argsort(-room, kind="stable")]
        workers, left = [], width
        for server in chosen:
            count = min(left, int(room[server]))
            if count:
                workers.append((start + server, count))
                self.free[start + server] -= count * demand
                left -= count
            if not left:
                break
        if left:
            raise SolverError(f"'{self.instance.name}': {width} workers of job {job} do not fit; {left} are left over")
        while self._first < len(self.free) - 1 and (self.free[self._first] <= 1e-9).all():
            self._first += 1
        return tuple(sorted(workers))


def _width(workers: Workers) -> int:
    return sum(count for _, count in workers)


def schedule_of_widths(instance: SchedulingInstance, widths: Sequence[Mapping[int, int]]) -> Schedule:
    """The schedule of an exact pool that gives ``widths[t][job]`` workers in slot t."""
    placer = Placer(instance)
    return schedule_of_places(instance, [placer.place(here) for here in widths])


def schedule_of_places(
    instance: SchedulingInstance,
    places: Sequence[Mapping[int, Workers]],
    rings: Sequence[Mapping[int, tuple[int, ...]]] | None = None,
) -> Schedule:
    """The schedule with ``places[t][job]`` and ``rings[t][job]`` in slot t; equal neighbours become one run."""
    runs: list[Run] = []
    current: dict[int, tuple[int, Workers, tuple[int, ...]]] = {}

    def close(job: int, end: int) -> None:
        start, workers, ring = current.pop(job)
        runs.append(Run(job=job, start=start, slots=end - start, workers=workers, ring=ring))

    for slot, here in enumerate(places):
        for job in [job for job in current if job not in here]:
            close(job, slot)
        for job, workers in here.items():
            ring = rings[slot].get(job, ()) if rings is not None else ()
            if job in current and current[job][1:] != (workers, ring):
                close(job, slot)
            current.setdefault(job, (slot, workers, ring))
    for job in list(current):
        close(job, len(places))
    runs.sort(key=lambda run: (run.start, run.job))
    return Schedule(instance=instance.name, instance_digest=instance.digest, runs=tuple(runs))
