"""Clusters in which widths alone decide what fits, and the way from widths to a schedule."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ddlopt.models.errors import SolverError
from ddlopt.models.scheduling.instance import SchedulingInstance, most_workers, workers_within
from ddlopt.models.scheduling.solution import Run, Schedule
from ddlopt.models.tolerances import let_pass_at_least

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
    and any workers can take any places. A network, contention, types and the power of idle servers make places matter;
    contention does so even on a single server, where a job's ring has another bandwidth than its own.
    """
    demand, capacity = instance.demand, instance.capacity
    matters = (
        instance.needs_rings
        or instance.contention is not None
        or instance.accelerators.matter
        or bool(
            instance.energy_price_per_j
            and (np.ptp(instance.worker_w) or instance.idle_w.any())
            and instance.server_count > 1
        )
    )
    if instance.server_count > 1 and (demand == demand[0]).all():
        places = float(most_workers(instance.capacity, instance.demand[0]).sum())
        return Pool(np.ones((len(instance.jobs), 1)), np.array([places]), not matters)
    return Pool(demand, capacity.sum(axis=0), instance.server_count == 1 and not matters)


def on_few_servers(room: npt.NDArray[np.int64], width: int) -> Workers | None:
    """Workers on the fullest server that holds them all, else on the emptiest ones; None if there is too little room.

    Parameters
    ----------
    room : (S,) array
        Workers that each server still holds.
    """
    whole = np.flatnonzero(room >= width)
    workers, left = [], width
    for server in whole[[np.argmin(room[whole])]] if len(whole) else np.argsort(-room, kind="stable"):
        if count := min(left, int(room[server])):
            workers.append((int(server), count))
            left -= count
    return None if left else tuple(sorted(workers))


class Placer:
    """Puts widths of an exact pool on servers, slot after slot, and moves a job only when its width changes."""

    def __init__(self, instance: SchedulingInstance) -> None:
        self.instance = instance
        self.placed: dict[int, Workers] = {}
        self._widths: dict[int, int] = {}
        self._demand, self._free = instance.demand, let_pass_at_least(instance.capacity)
        if (self._demand == self._demand[0]).all():
            # Places in whole numbers: sums of what workers take would be rounded from slot to slot.
            places = most_workers(instance.capacity, self._demand[0])
            self._demand, self._free = np.ones((len(self._demand), 1)), places[:, None].astype(np.float64)

    def place(self, widths: Mapping[int, int]) -> dict[int, Workers]:
        """Workers of every job in the next slot, for positive widths by job.

        Raises
        ------
        SolverError
            If the widths do not fit.
        """
        for job in [job for job, width in self._widths.items() if widths.get(job, 0) != width]:
            del self._widths[job]
            self._change(job, self.placed.pop(job), 1)
        fresh = [(-width, job) for job, width in widths.items() if width and job not in self._widths]
        for less, job in sorted(fresh):
            workers = on_few_servers(workers_within(self._free, self._demand[job]), -less)
            if workers is None:
                raise SolverError(f"'{self.instance.name}': {-less} workers of job {job} do not fit beside the others")
            self._change(job, workers, -1)
            self.placed[job], self._widths[job] = workers, -less
        return dict(self.placed)

    def _change(self, job: int, workers: Workers, sign: int) -> None:
        for server, count in workers:
            self._free[server] += sign * count * self._demand[job]


def schedule_of_widths(instance: SchedulingInstance, widths: Sequence[Mapping[int, int]]) -> Schedule:
    """The schedule of an exact pool that gives ``widths[t][job]`` workers in slot t."""
    placer = Placer(instance)
    return schedule_of_places(instance, [placer.place(here) for here in widths])


def schedule_of_places(
    instance: SchedulingInstance,
    places: Sequence[Mapping[int, Workers]],
    rings: Sequence[Mapping[int, tuple[int, ...]]] | None = None,
) -> Schedule:
    """The schedule with ``places[t][job]`` and ``rings[t][job]`` in slot t."""
    record = Record(instance)
    for slot, here in enumerate(places):
        ring = rings[slot] if rings is not None else {}
        record.note(slot, {job: (workers, ring.get(job, ())) for job, workers in here.items()})
    return record.schedule(len(places))


class Record:
    """The runs of a schedule, slot by slot: equal neighbours become one run.

    Where bandwidth is shared, rings have that of their job's timing.
    """

    def __init__(self, instance: SchedulingInstance) -> None:
        self._instance = instance
        self._runs: list[Run] = []
        self._open: dict[int, tuple[int, tuple[Workers, tuple[int, ...]]]] = {}

    def note(self, slot: int, places: Mapping[int, tuple[Workers, tuple[int, ...]]]) -> None:
        """(workers, ring) by job from this slot on; jobs that are not named run no more."""
        for job in [job for job, (_, place) in self._open.items() if places.get(job) != place]:
            self._close(job, slot)
        for job, place in places.items():
            if job not in self._open:
                self._open[job] = slot, place

    def _close(self, job: int, end: int) -> None:
        start, (workers, ring) = self._open.pop(job)
        timing, bandwidth = self._instance.jobs[job].timing, None
        if self._instance.bandwidth == "shared" and len(workers) > 1 and timing.kind == "ring":
            bandwidth = timing.bandwidth_bytes_per_s
        self._runs.append(
            Run(job=job, start=start, slots=end - start, workers=workers, ring=ring, bandwidth_bytes_per_s=bandwidth)
        )

    def schedule(self, end: int) -> Schedule:
        """The schedule up to slot ``end``."""
        for job in list(self._open):
            self._close(job, end)
        self._runs.sort(key=lambda run: (run.start, run.job))
        return Schedule(instance=self._instance.name, instance_digest=self._instance.digest, runs=tuple(self._runs))
