"""What a job takes at least, in whole slots, wherever it is: for bounds and for jobs of fixed width."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ddlopt.models.scheduling.instance import SchedulingInstance
from ddlopt.models.scheduling.pool import pool
from ddlopt.models.scheduling.times.bounds import require_time
from ddlopt.models.scheduling.times.works import rates_of
from ddlopt.models.scheduling.utility import DONE
from ddlopt.models.tolerances import FEASIBILITY_TOL

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

_SCALES = (1, 2, 4, 5, 10, 100, 1000)
"""What amounts are multiplied by, the first that makes all of them whole; else they are rounded down by the last."""


def slots_needed(minibatches: float, per_slot: float) -> int:
    """Slots until a job at a constant rate has finished, as the check of a schedule counts them."""
    return max(1, math.ceil(minibatches * float(DONE) / per_slot))


@dataclass(frozen=True)
class Needs:
    """All jobs' needs as arrays.

    Parameters
    ----------
    arrival, last : (I,) arrays
        First slot in which each may run, and first in which it may no longer.
    slots : (I,) array
        Fewest slots in which it can be done.
    wanted : (I,) array
        Mini-batches at which it counts as finished.
    rates : sequence of I sequences
        Mini-batches per slot at best, by width.
    best : (I,) array
        Mini-batches per slot at the best width.
    narrowest, widest : (I,) arrays
    weight : (I,) array
        In the total completion time.
    preemptive : bool
    """

    arrival: Ints
    last: Ints
    slots: Ints
    wanted: Floats
    rates: Sequence[Sequence[float]]
    best: Floats
    narrowest: Ints
    widest: Ints
    weight: Floats
    preemptive: bool

    @property
    def rigid(self) -> npt.NDArray[np.bool_]:
        """(I,) jobs that have one width only."""
        same: npt.NDArray[np.bool_] = self.narrowest == self.widest
        return same


def needs(instance: SchedulingInstance) -> Needs:
    """The needs of all jobs.

    Raises
    ------
    InfeasibleError
        If a job that has to finish cannot between its arrival and its deadline, even alone: at the best rate that any
        width and place allows it needs more slots. No schedule gives it a better rate in a slot, and others only take.
    """
    rates = [[float(each) for each in row] for row in rates_of(instance, float)]
    best = [max(row) for row in rates]
    slots = [slots_needed(job.minibatches, most) for job, most in zip(instance.jobs, best, strict=True)]
    require_time(instance, slots)
    return Needs(
        arrival=np.array([job.arrival for job in instance.jobs], dtype=np.int64),
        last=np.array([instance.last_slot(place) for place in range(len(instance.jobs))], dtype=np.int64),
        slots=np.array(slots, dtype=np.int64),
        wanted=np.array([job.minibatches * float(DONE) for job in instance.jobs]),
        rates=rates,
        best=np.array(best),
        narrowest=np.array([job.min_workers for job in instance.jobs], dtype=np.int64),
        widest=np.array([job.max_workers for job in instance.jobs], dtype=np.int64),
        weight=np.array([job.utility.value for job in instance.jobs]),
        preemptive=instance.preemptive,
    )


@dataclass(frozen=True)
class WholeResource:
    """A resource of the whole cluster in whole units: what fits in truth fits here.

    Parameters
    ----------
    per_worker : (I,) array
    capacity : int
    """

    per_worker: Ints
    capacity: int


def whole_resources(instance: SchedulingInstance) -> list[WholeResource]:
    """The resources of the cluster as one pool, those apart that nobody takes."""
    cluster = pool(instance)
    found = []
    for demand, capacity in zip(cluster.demand.T, cluster.capacity.tolist(), strict=True):
        scale = next((k for k in _SCALES if _is_whole(demand * k) and demand.max() * k < 2**20), None)
        # A few units of very large amounts, such as bytes, are told apart well enough.
        factor = float(scale) if scale is not None else 1000 / float(demand.max())
        # What workers take is rounded to whole units beside it, so the capacity is raised for that and for the check.
        per_worker = np.floor(demand * factor * (1 + FEASIBILITY_TOL)).astype(np.int64)
        if per_worker.any():
            found.append(WholeResource(per_worker, math.floor(capacity * factor * (1 + 3 * FEASIBILITY_TOL))))
    return found


def _is_whole(values: Floats) -> bool:
    return bool((np.abs(values - values.round()) <= FEASIBILITY_TOL * np.maximum(1.0, values)).all())
