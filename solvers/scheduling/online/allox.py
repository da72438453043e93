"""AlloX: which job next, by an assignment problem of jobs to places from the last on every machine."""

from dataclasses import dataclass
from math import ceil

import numpy as np
from scipy.optimize import linear_sum_assignment

from ddlopt.models.scheduling import SchedulingInstance
from ddlopt.models.scheduling.refusals import refusal
from ddlopt.solvers.scheduling.online.baselines import Online
from ddlopt.solvers.scheduling.online.engine import Choice, Policy, State


@dataclass(frozen=True)
class AlloX(Online, uses=()):
    r"""Every job on one worker, in the order of least average completion time; a job that has started runs on.

    A job that is the k-th from the last on its machine delays k jobs by its running time p, itself included; so
    :math:`\min \sum (k\,p_i + d_i)` over assignments of jobs to pairs (machine, k) gives the least total completion
    time of jobs that have waited :math:`d_i`. Machines are equal here, so that the waiting time is a constant, and only
    the oldest jobs are considered, as AlloX does for fairness.

    Parameters
    ----------
    considered : float
        Part of the waiting jobs, oldest first, that is considered; at least as many as there are free workers.

    References
    ----------
    T. N. Le et al., "AlloX: compute allocation in hybrid clusters", EuroSys 2020; Gavel's ``policies/allox.py`` (MIT)
    for the part of the jobs considered.
    """

    considered: float = 0.3

    @property
    def name(self) -> str:
        """See the class."""
        return "allox"

    def refuses(self, instance: SchedulingInstance) -> str | None:
        """Jobs that cannot run on one worker; workers that take different amounts."""
        if (reason := refusal(instance)) is not None:
            return reason
        wide = next((job for job in instance.jobs if job.min_workers > 1), None)
        if wide is not None:
            return f"it gives every job one worker, but job '{wide.name}' needs {wide.min_workers}"
        if (instance.demand != instance.demand[0]).any():
            return "its machines are equal, but workers of different jobs take different amounts"
        return None

    def policy(self, instance: SchedulingInstance) -> Policy:
        """The heuristic has no memory and is its own policy."""
        return self

    def choose(self, state: State) -> Choice:
        """Running jobs go on; free workers get the first jobs of the assignment."""
        running = state.active[state.width[state.active] > 0]
        chosen = dict.fromkeys(running.tolist(), 1)
        need = state.pool.demand[0]
        wanted = need > 0
        free = int((state.room[wanted] // need[wanted]).min()) - len(chosen)
        waiting = state.active[state.width[state.active] == 0]
        if free <= 0 or not len(waiting):
            return chosen
        arrivals = np.array([state.instance.jobs[job].arrival for job in waiting])
        oldest = waiting[np.argsort(arrivals, kind="stable")]
        oldest = oldest[: max(free, int(self.considered * len(oldest)))]
        chosen.update(dict.fromkeys(self._first(state, oldest, free), 1))
        return chosen

    def _first(self, state: State, jobs: np.ndarray, machines: int) -> list[int]:
        """The jobs that are first on their machine."""
        if len(jobs) <= machines:
            return [int(job) for job in jobs]
        slots = (state.wanted[jobs] - state.done[jobs]) / state.rates(jobs, np.ones(len(jobs), dtype=np.int64))
        places = np.tile(np.arange(1, ceil(len(jobs) / machines) + 1), (machines, 1))
        _, column = linear_sum_assignment(np.outer(slots, places.ravel()))
        first: dict[int, tuple[int, int]] = {}
        for job, taken in zip(jobs.tolist(), column.tolist(), strict=True):
            machine, from_last = taken // places.shape[1], taken % places.shape[1]
            if machine not in first or from_last > first[machine][0]:
                first[machine] = from_last, job
        return [job for _, job in first.values()]
