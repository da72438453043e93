"""Progress by job and width as arrays, and progress that depends on who else uses a server."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from ddlopt.models.scheduling.instance import SchedulingInstance
from ddlopt.models.scheduling.pool import Workers

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]


class Rates:
    """Mini-batches that a job does in one slot, by width; jobs of equal timing and widths share one row.

    With contention, these are the rates of a job that has all its workers on one server.

    Parameters
    ----------
    instance : SchedulingInstance
    """

    def __init__(self, instance: SchedulingInstance) -> None:
        self.narrowest: Ints = np.array([job.min_workers for job in instance.jobs], dtype=np.int64)
        """(I,) smallest positive width."""
        self.widest: Ints = np.array([job.max_workers for job in instance.jobs], dtype=np.int64)
        """(I,) largest width."""
        row_of: dict[Any, int] = {}
        rows: list[Floats] = []
        row: Ints = np.empty(len(instance.jobs), dtype=np.int64)
        for place, job in enumerate(instance.jobs):
            key = job.timing, job.max_workers
            if key not in row_of:
                row_of[key] = len(rows)
                rows.append(np.array([instance.rate(place, width) for width in range(job.max_workers + 1)]))
            row[place] = row_of[key]
        lengths = [len(one) for one in rows]
        self.row_of: Ints = row
        """(I,) which jobs have the same rates."""
        self._start: Ints = np.concatenate(([0], np.cumsum(lengths)))[row]
        self._all: Floats = np.concatenate(rows)
        self.fastest: Floats = np.array([self.row(k)[low:].max() for k, low in enumerate(self.narrowest.tolist())])
        """(I,) mini-batches per slot at the width that does most."""

    def __call__(self, jobs: Ints, widths: Ints) -> Floats:
        """Mini-batches per slot of each of ``jobs`` at its width; 0 at width 0."""
        found: Floats = self._all[self._start[jobs] + widths]
        return found

    def row(self, job: int) -> Floats:
        """(N + 1,) mini-batches per slot of a job at widths 0..N, those below its smallest width included."""
        start = self._start[job]
        return self._all[start : start + self.widest[job] + 1]


class ContendedRates:
    """Mini-batches per slot of jobs that share network cards; see Contention."""

    def __init__(self, instance: SchedulingInstance) -> None:
        self.instance = instance
        self._known: dict[tuple[int, int, int, int], float] = {}

    def of(self, workers: Mapping[int, Workers]) -> dict[int, float]:
        """Rate of every job, of the workers of all that run in a slot."""
        crowd = [0] * self.instance.server_count
        for placed in workers.values():
            if len(placed) > 1:
                for server, _ in placed:
                    crowd[server] += 1
        rates = {}
        for job, placed in workers.items():
            competitors = max(crowd[server] for server, _ in placed) if len(placed) > 1 else 0
            key = job, sum(count for _, count in placed), len(placed), competitors
            if key not in self._known:
                self._known[key] = self.instance.rate(*key)
            rates[job] = self._known[key]
        return rates
