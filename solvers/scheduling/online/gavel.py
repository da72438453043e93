"""Gavel's policies: time shares from a linear program, kept by rounds."""

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np

from ddlopt.models.errors import OptionError
from ddlopt.models.scheduling import SchedulingInstance
from ddlopt.models.scheduling.refusals import refusal
from ddlopt.solvers.names import spelled
from ddlopt.solvers.scheduling.online.baselines import Online
from ddlopt.solvers.scheduling.online.engine import Choice, Policy, State
from ddlopt.solvers.scheduling.online.time_shares import makespan_shares, max_min_shares
from ddlopt.solvers.scheduling.online.type_places import refusal as type_refusal
from ddlopt.solvers.scheduling.online.typed_rounds import RESET_S, TypedRounds
from ddlopt.solvers.scheduling.slot.rates import Floats, Ints


@dataclass(frozen=True)
class Gavel(Online, uses=()):
    """Every job at full width, for the share of the time that Gavel's policy gives it.

    Shares are those of :mod:`~ddlopt.solvers.scheduling.online.time_shares`, anew whenever a job comes or goes. In
    every slot a job earns its share, and those with the largest balance run, each paying one: what a job has had stays
    near its share of the time. Gavel's own rounds rank jobs by share over time had, to the same end.

    Where speeds depend on the type of accelerators shares are of each type, a gang is on one, and the rounds are
    Gavel's own (:class:`~ddlopt.solvers.scheduling.online.typed_rounds.TypedRounds`).

    Parameters
    ----------
    goal : {"max_min", "makespan", "finish_time", "cost"}
        The last two on several types only; ``cost`` takes the price of the energy of workers for the cost of a type.
    reset_s : float
        On several types, seconds between new shares at least; Gavel has 1920, and 0 is whenever a job comes or goes.

    References
    ----------
    D. Narayanan et al., "Heterogeneity-aware cluster scheduling policies for deep learning workloads", OSDI 2020.
    """

    goal: Literal["max_min", "makespan", "finish_time", "cost"] = "max_min"
    reset_s: float = RESET_S

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0 <= self.reset_s < math.inf:
            raise OptionError(f"reset_s is {self.reset_s}; it must be at least 0")

    @property
    def name(self) -> str:
        """``gavel``, with its goal."""
        return spelled("gavel", self, "goal", "reset_s")

    def refuses(self, instance: SchedulingInstance) -> str | None:
        """On one type, goals that are about several; on several, what whole gangs on one type do not cover."""
        if not instance.accelerators.matter:
            if self.goal in ("finish_time", "cost"):
                return f"goal={self.goal} is for several types of accelerators, but types make no difference here"
            if self.reset_s != RESET_S:
                return "reset_s is for several types of accelerators, but types make no difference here"
            return refusal(instance)
        if len(instance.resources) > 1:
            return "Gavel's shares of types are of accelerators, but workers take several resources; use exact"
        if self.goal == "cost" and not (instance.energy_price_per_j and instance.worker_w.all()):
            return "goal=cost takes the price of energy for the cost of a type, but workers use none that has a price"
        return type_refusal(instance)

    def policy(self, instance: SchedulingInstance) -> Policy:
        """Rounds of one simulation."""
        if instance.accelerators.matter:
            return TypedRounds(instance, self.goal, self.reset_s)
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
