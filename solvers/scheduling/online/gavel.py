"""Gavel's policies on one type of accelerator: time shares from a linear program, kept by rounds."""

from dataclasses import dataclass
from typing import Literal

import numpy as np

from ddlopt.models.scheduling import SchedulingInstance
from ddlopt.solvers.names import spelled
from ddlopt.solvers.scheduling.online.baselines import Online
from ddlopt.solvers.scheduling.online.engine import Choice, Policy, State
from ddlopt.solvers.scheduling.online.time_shares import makespan_shares, max_min_shares
from ddlopt.solvers.scheduling.slot.rates import Floats, Ints


@dataclass(frozen=True)
class Gavel(Online, uses=()):
    """Every job at full width, for the share of the time that Gavel's policy gives it.

    Shares are those of :mod:`~ddlopt.solvers.scheduling.online.time_shares`, anew whenever a job comes or goes. In
    every slot a job earns its share, and those with the largest balance run, each paying one: what a job has had stays
    near its share of the time. Gavel's own rounds rank jobs by share over time had, to the same end.

    Parameters
    ----------
    goal : {"max_min", "makespan"}

    References
    ----------
    D. Narayanan et al., "Heterogeneity-aware cluster scheduling policies for deep learning workloads", OSDI 2020.
    """

    goal: Literal["max_min", "makespan"] = "max_min"

    @property
    def name(self) -> str:
        """``gavel``, with its goal."""
        return spelled("gavel", self, "goal")

    def policy(self, instance: SchedulingInstance) -> Policy:
        """Balances of one simulation."""
        return _Rounds(instance, self.goal)


class _Rounds:
    def __init__(self, instance: SchedulingInstance, goal: str) -> None:
        self._goal = goal
        self._balance = np.zeros(len(instance.jobs))
        self._weights = np.array([job.utility.value for job in instance.jobs])
        self._known: Ints = np.empty(0, dtype=np.int64)
        self._shares: Floats = np.empty(0)

    def choose(self, state: State) -> Choice:
        """Those with the largest balance, as far as they fit."""
        jobs = state.active
        if not np.array_equal(jobs, self._known):
            self._shares, self._known = self._shares_of(state), jobs.copy()
        self._balance[jobs] += self._shares
        order = jobs[np.lexsort((jobs, -self._balance[jobs]))]
        chosen = state.admit(order, state.rates.widest[order])
        self._balance[list(chosen)] -= 1
        return chosen

    def _shares_of(self, state: State) -> Floats:
        """(A,) part of the time for every active job; with several resources by dominant share."""
        jobs = state.active
        widest = state.rates.widest[jobs]
        throughputs = state.rates(jobs, widest)[:, None]
        size = widest * (state.pool.demand[jobs] / state.pool.capacity).max(axis=1)
        # Where nothing of a resource is left a share is next to none, and the program still has one.
        whole = np.array([max(1e-9, float((state.capacity / state.pool.capacity).min()))])
        if self._goal == "makespan":
            return makespan_shares(throughputs, size, whole, state.left).shares[:, 0]
        return max_min_shares(throughputs, size, whole, self._weights[jobs]).shares[:, 0]
