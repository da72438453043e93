"""Jobs as arrays for the kernels of the Lagrangian bound: envelopes of their progress, windows and utilities."""

import math
from collections.abc import Hashable
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from ddlopt.frontier.scheduling.prices import lagrangian_kernels as kernels
from ddlopt.models.scheduling.fastest import fastest_rates, upper_envelope
from ddlopt.models.scheduling.instance import Job, SchedulingInstance
from ddlopt.models.scheduling.utility import DONE, AllOrNothing, Capped, Fair, Logarithmic, LossCurve, Utility
from ddlopt.models.tolerances import FEASIBILITY_TOL

Floats = npt.NDArray[np.float64]
Row = tuple[tuple[int, int, int], int, Job, Floats, Floats]


def jobs_as_arrays(
    instance: SchedulingInstance, kind_of: npt.NDArray[np.int64]
) -> tuple[kernels.Jobs, list[int], float]:
    """The jobs, sorted by kind of worker and window, which ones they are, and the part that each of them can reach.

    Jobs that are worth nothing unless they finish, and cannot, are left out.
    """
    depends = not instance.widths_decide_speed
    hopeless = instance.goal.counts_utilities
    known: dict[Hashable, _Speed] = {}
    highest = 1.0
    rows = []
    for place, job in enumerate(instance.jobs):
        key = job.timing, job.min_workers, job.max_workers, int(kind_of[place]) if depends else 0
        speed = known.get(key)
        if speed is None:
            speed = known[key] = _Speed.of(job, np.array([0.0, *fastest_rates(instance, place)]))
        progress, workers = speed.progress, speed.workers
        if speed.fastest > job.minibatches:
            progress, workers = _segments(job, np.minimum(speed.rates, job.minibatches))
        start, end = job.arrival, instance.last_slot(place)
        alone = min(1.0, speed.fastest / job.minibatches) * (end - start)
        highest = min(highest, alone)
        if not (hopeless and isinstance(job.utility, AllOrNothing) and alone < float(DONE) - FEASIBILITY_TOL):
            rows.append(((int(kind_of[place]), start, end), place, job, progress, workers))
    rows.sort(key=lambda row: row[:2])
    return _as_arrays(rows), [row[1] for row in rows], highest


class _Speed(NamedTuple):
    """Rates at 0 and the widths of a job, the largest one, and the segments of their envelope."""

    rates: Floats
    fastest: float
    progress: Floats
    workers: Floats

    @classmethod
    def of(cls, job: Job, rates: Floats) -> "_Speed":
        """Of a job with these rates."""
        return cls(rates, float(rates.max()), *_segments(job, rates))


def _as_arrays(rows: list[Row]) -> kernels.Jobs:
    windows = [row[0] for row in rows]
    groups = [place for place in range(len(rows)) if place == 0 or windows[place] != windows[place - 1]]
    heads = np.array([windows[place] for place in groups], dtype=np.int64).reshape(-1, 3)
    worths = [kernel_utility(job.utility) for _, _, job, _, _ in rows]
    parts = [progress / job.minibatches for _, _, job, progress, _ in rows]
    wide = [row[4] for row in rows]
    return kernels.Jobs(
        firsts=np.cumsum([0, *(len(progress) for _, _, _, progress, _ in rows)]),
        amounts=np.concatenate([*parts, np.zeros(0)]),
        workers=np.concatenate([*wide, np.zeros(0)]) / np.concatenate([*parts, np.zeros(0)]),
        kinds=np.array([kind for kind, _, _, _ in worths], dtype=np.int64),
        values=np.array([value for _, value, _, _ in worths], dtype=np.float64),
        shapes=np.array([shape for _, _, shape, _ in worths], dtype=np.float64),
        offsets=np.array([offset for _, _, _, offset in worths], dtype=np.float64),
        groups=np.array([*groups, len(rows)], dtype=np.int64),
        group_worker=heads[:, 0].copy(),
        group_start=heads[:, 1].copy(),
        group_end=heads[:, 2].copy(),
    )


def _segments(job: Job, rates: Floats) -> tuple[Floats, Floats]:
    """Progress per slot and workers of each segment of the concave envelope of ``rates`` at 0 and the job's widths."""
    if len(rates) == 2:
        return rates[1:], np.array([float(job.min_workers)])
    widths = np.array([0, *job.widths])
    corners = upper_envelope(widths, rates)
    return np.diff(rates[corners]), np.diff(widths[corners]).astype(np.float64)


def kernel_utility(utility: Utility) -> tuple[int, float, float, float]:
    """A utility as the kernels have it: kind, value, shape, offset."""
    match utility:
        case Capped(value=value):
            return kernels.LINEAR, value, 0.0, 0.0
        case AllOrNothing(value=value):
            return kernels.LINEAR, value / float(DONE), 0.0, 0.0
        case Logarithmic(value=value, curvature=curvature):
            return kernels.LOGARITHM, value / math.log1p(curvature), curvature, 0.0
        case LossCurve(value=value, rate=rate):
            return kernels.HYPERBOLA, value, rate, 0.0
        case Fair(value=value, alpha=0.0):
            return kernels.LINEAR, value, 0.0, 0.0
        case Fair(value=value, alpha=1.0, epsilon=epsilon):
            return kernels.LOGARITHM, value, 1 / epsilon, 0.0
        case Fair(value=value, alpha=alpha, epsilon=epsilon):
            return kernels.POWER, value / (1 - alpha), 1 - alpha, epsilon
