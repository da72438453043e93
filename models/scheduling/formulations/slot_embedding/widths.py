"""What the jobs of one slot gain at the widths that are worth considering."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from ddlopt.models.scheduling.instance import SchedulingInstance, most_workers
from ddlopt.models.scheduling.rings.rings import ring_rate


@dataclass(frozen=True)
class SlotData:
    """The figures that models of one slot are made of.

    Parameters
    ----------
    gains : mapping
        Job -> width -> gain, for widths that gain more than every smaller one; jobs without such are left out.
    room : (I, S) array
        Workers of each job that each server holds, at most the largest width considered.
    rate : (I,) array
        Bandwidth in bytes/s of each job's ring.
    worker_cost : (S,) array
        What the energy of a worker costs.
    idle_cost : (S,) array
        What the energy of a server in use costs besides.
    """

    gains: Mapping[int, Mapping[int, float]]
    room: npt.NDArray[np.int64]
    rate: npt.NDArray[np.float64]
    worker_cost: npt.NDArray[np.float64]
    idle_cost: npt.NDArray[np.float64]

    def most(self, job: int) -> int:
        """Its largest width that is worth considering."""
        return max(self.gains[job])

    def holds(self, job: int, servers: Sequence[int]) -> int:
        """Workers of a job that these servers hold, at most its largest width."""
        return min(int(self.room[job, list(servers)].sum()), self.most(job))


def slot_data(
    instance: SchedulingInstance,
    done: Sequence[float] = (),
    gains: Sequence[Sequence[float]] | None = None,
) -> SlotData:
    """Figures of an instance with one slot.

    Parameters
    ----------
    done : (I,) sequence, optional
        Mini-batches that jobs have done before.
    gains : sequence of (N_i + 1,) sequences, optional
        Gain of each job by width, in place of what its utility grows by (of its part done, for ``max_min``).
    """
    jobs = range(len(instance.jobs))
    rows = [width_gains(instance, i, done[i] if len(done) else 0.0) if gains is None else gains[i] for i in jobs]
    useful = {i: found for i in jobs if (found := _useful(instance.jobs[i].widths, rows[i]))}
    room = np.zeros((len(instance.jobs), instance.server_count), dtype=np.int64)
    known: dict[Any, npt.NDArray[np.int64]] = {}
    for i, found in useful.items():
        key = instance.demand[i].tobytes()
        if key not in known:
            known[key] = most_workers(instance.capacity, instance.demand[i])
        room[i] = np.minimum(known[key], max(found))
    price = instance.energy_price_per_j * instance.slot_s
    rate = np.array([ring_rate(job) for job in instance.jobs])
    return SlotData(useful, room, rate, price * instance.worker_w, price * instance.idle_w)


def width_gains(instance: SchedulingInstance, job: int, done: float = 0.0) -> list[float]:
    """What a job gains in one slot by width 0..N, after ``done`` mini-batches; -inf below its smallest width.

    In its utility, or in the part done where the objective is ``max_min``.
    """
    this = instance.jobs[job]

    def worth(minibatches: float) -> float:
        return instance.goal.worth(this, min(1.0, minibatches / this.minibatches))

    before = worth(done)
    rows = [0.0] + [-np.inf] * this.max_workers
    for width in this.widths:
        rows[width] = worth(done + instance.progress(job, width)) - before
    return rows


def _useful(widths: range, row: Sequence[float]) -> dict[int, float]:
    """Widths that gain more than all smaller ones; a smaller width fits wherever a larger one does."""
    found: dict[int, float] = {}
    best = 0.0
    for width in widths:
        if row[width] > best:
            best = found[width] = float(row[width])
    return found
