"""Baselines that order jobs and give each all the workers it wants: first come, shortest, least service first."""

from abc import abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from ddlopt.models.scheduling import Schedule, SchedulingInstance
from ddlopt.models.scheduling.refusals import refusal
from ddlopt.solvers.heuristic import Answer, Clock, Heuristic
from ddlopt.solvers.scheduling.online.engine import Choice, Policy, State, simulate
from ddlopt.solvers.scheduling.online.type_places import refusal as type_refusal
from ddlopt.solvers.scheduling.slot.rates import Floats


class Online(Heuristic):
    """A heuristic that is a policy, asked slot by slot."""

    def refuses(self, instance: SchedulingInstance) -> str | None:
        """Types of accelerators: the simulation places workers anywhere."""
        return refusal(instance)

    @abstractmethod
    def policy(self, instance: SchedulingInstance) -> Policy:
        """A fresh policy for one simulation."""

    def answer(self, instance: SchedulingInstance, seed: int, clock: Clock, start: Any) -> Answer[Schedule]:
        """Simulate the policy."""
        found = simulate(instance, self.policy(instance), clock, self.name)
        return found.schedule, {"slots_simulated": found.slots}


class _Ordered(Online):
    """Jobs at their full width in the order of a priority, lowest first; ties go to who came first."""

    skip: ClassVar[bool] = True
    """Whether jobs behind one that does not fit may overtake it."""

    def refuses(self, instance: SchedulingInstance) -> str | None:
        """With types of accelerators, what whole gangs on one type do not cover."""
        return type_refusal(instance) if instance.accelerators.matter else refusal(instance)

    def policy(self, instance: SchedulingInstance) -> Policy:
        """The heuristic has no memory and is its own policy."""
        return self

    def choose(self, state: State) -> Choice:
        """Admit in the order of the priority; each job on the fastest type with room for it, where there are types."""
        arrivals = state.arrival[state.active]
        order = state.active[np.lexsort((state.active, arrivals, self.priority(state)))]
        if state.types is not None:
            return state.types.admit_fastest(order.tolist(), state.held, self.skip)
        return state.admit(order, state.rates.widest[order], skip=self.skip)

    @abstractmethod
    def priority(self, state: State) -> Floats:
        """(A,) lower goes first."""


@dataclass(frozen=True)
class Fifo(_Ordered, uses=()):
    """First in, first out: nobody overtakes a job that waits for room."""

    skip: ClassVar[bool] = False

    @property
    def name(self) -> str:
        """See the class."""
        return "fifo"

    def priority(self, state: State) -> Floats:
        """None but the arrival."""
        return np.zeros(len(state.active))


@dataclass(frozen=True)
class ShortestRemainingTime(_Ordered, uses=()):
    """The job that would be done soonest at full width goes first (SRTF); it may push others aside in each slot."""

    @property
    def name(self) -> str:
        """See the class."""
        return "srtf"

    def priority(self, state: State) -> Floats:
        """Slots that are left at full width, on the fastest type."""
        return state.left / state.fastest


@dataclass(frozen=True)
class LeastAttainedService(_Ordered, uses=()):
    """The job that has had the fewest worker-seconds goes first, as in Tiresias; no running times are needed.

    Parameters
    ----------
    thresholds_s : tuple of float
        Worker-seconds at which a job falls into the next queue, increasing; within a queue the first come goes first.
        Empty: service itself is the priority.

    References
    ----------
    J. Gu et al., "Tiresias: a GPU cluster manager for distributed deep learning", NSDI 2019 (two-dimensional least
    attained service).
    """

    thresholds_s: tuple[float, ...] = ()

    @property
    def name(self) -> str:
        """See the class."""
        return "las"

    def priority(self, state: State) -> Floats:
        """Worker-seconds had, or the queue."""
        had = state.served[state.active] * state.instance.slot_s
        if not self.thresholds_s:
            return had
        queue: Floats = np.searchsorted(np.array(self.thresholds_s), had, side="right").astype(np.float64)
        return queue
