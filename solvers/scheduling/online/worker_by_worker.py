"""Baselines that hand out one worker after the other: dominant resource fairness, and Optimus' marginal gains."""

import heapq
from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from math import inf

import numpy as np

from ddlopt.models.scheduling import SchedulingInstance
from ddlopt.solvers.scheduling.online.baselines import Online
from ddlopt.solvers.scheduling.online.engine import Choice, Policy, State

Urgency = Callable[[int, int, int], float]
"""(place of the job in ``state.active``, width, next width): what is gained by the step; the largest goes first."""


class _Filling(Online):
    """Widths grow step by step, at each step those of the job with the most urgent next one.

    The first step leads to a job's least width, every other adds one worker. A job whose next step does not fit, or
    gains nothing, is left as it is.
    """

    def policy(self, instance: SchedulingInstance) -> Policy:
        """The heuristic has no memory and is its own policy."""
        return self

    def choose(self, state: State) -> Choice:
        """Fill the cluster."""
        urgency = self.urgency(state)
        room = state.room
        widths: dict[int, int] = {}
        queue: list[tuple[float, int, int]] = []

        def ask(place: int, width: int) -> None:
            job = int(state.active[place])
            following = width + 1 if width else int(state.rates.narrowest[job])
            gain = urgency(place, width, following) if following <= state.rates.widest[job] else -inf
            if gain > -inf:
                heapq.heappush(queue, (-gain, place, following))

        for place in range(len(state.active)):
            ask(place, 0)
        least = state.pool.demand[state.active].min(axis=0)
        while queue and (room >= least).all():
            _, place, width = heapq.heappop(queue)
            job = int(state.active[place])
            need = (width - widths.get(job, 0)) * state.pool.demand[job]
            if (need <= room).all():
                room -= need
                widths[job] = width
                ask(place, width)
        return widths

    @abstractmethod
    def urgency(self, state: State) -> Urgency:
        """The gains in this slot; minus infinity for a step that is not wanted."""


@dataclass(frozen=True)
class DominantResourceFairness(_Filling, uses=()):
    """The job with the smallest dominant share, per unit of its utility's ``value``, gets the next worker.

    References
    ----------
    A. Ghodsi et al., "Dominant resource fairness: fair allocation of multiple resource types", NSDI 2011.
    """

    @property
    def name(self) -> str:
        """See the class."""
        return "drf"

    def urgency(self, state: State) -> Urgency:
        """Minus the dominant share that the job has."""
        share = (state.pool.demand[state.active] / state.pool.capacity).max(axis=1)
        weight = np.array([state.instance.jobs[job].utility.value for job in state.active])
        return lambda place, width, _: -width * float(share[place] / weight[place])


@dataclass(frozen=True)
class Optimus(_Filling, uses=()):
    """The worker goes where it shortens the remaining time most, per dominant share that it takes.

    Every job is offered its least width first. With a ring all-reduce the second worker gains less than later ones,
    and may even gain nothing; this rule then leaves a job where it is, as it looks one worker ahead.

    References
    ----------
    Y. Peng et al., "Optimus: an efficient dynamic resource scheduler for deep learning clusters", EuroSys 2018 (the
    rule of marginal gains; there for parameter servers, and with estimated running times).
    """

    @property
    def name(self) -> str:
        """See the class."""
        return "optimus"

    def urgency(self, state: State) -> Urgency:
        """Fall of the remaining slots per share; the first step in the order of the shortest remaining time."""
        share = (state.pool.demand[state.active] / state.pool.capacity).max(axis=1)
        left = state.left

        def gain(place: int, width: int, following: int) -> float:
            rates = state.rates.row(int(state.active[place]))
            after = left[place] / rates[following]
            if width == 0:  # before all others: what does not run yet has infinitely much to gain
                return float(1e12 / (1 + after * share[place] * following))
            fall = left[place] / rates[width] - after
            return float(fall / share[place]) if fall > 0 else -inf

        return gain
