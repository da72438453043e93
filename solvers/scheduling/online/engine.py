"""The simulation that all online heuristics share: a policy chooses widths slot by slot, the engine does the rest."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
import numpy.typing as npt

from ddlopt.models.errors import NotApplicableError, SolverError
from ddlopt.models.scheduling.instance import SchedulingInstance
from ddlopt.models.scheduling.pool import Placer, Pool, Record, Workers, pool
from ddlopt.models.scheduling.solution import Schedule
from ddlopt.models.scheduling.utility import DONE
from ddlopt.models.tolerances import left_let_pass
from ddlopt.solvers.heuristic import Clock
from ddlopt.solvers.scheduling.online.type_places import TypePlaces
from ddlopt.solvers.scheduling.slot.packing import Packer, Place
from ddlopt.solvers.scheduling.slot.rates import ContendedRates, Floats, Ints, Rates

ENOUGH = float(DONE)
Choice = Mapping[int, int | Place]
"""Width by job, those first that are to be placed first; or a place instead of a width."""


class UnfinishedError(SolverError, NotApplicableError):
    """A heuristic left jobs over although all of them must be finished: it does not suit the instance."""


@dataclass
class State:
    """What a policy sees at the start of a slot; it must not change the arrays.

    Parameters
    ----------
    instance : SchedulingInstance
    rates : Rates
        Mini-batches per slot by job and width.
    pool : Pool
        The cluster as one pool of resources; a relaxation unless ``pool.exact``.
    wanted, done : (I,) arrays
        Mini-batches.
    served : (I,) array
        Worker-slots that each job has had.
    width : (I,) array
        Workers in the slot before.
    arrival, last : (I,) arrays
        First slot in which a job may run, and first in which it may no longer.
    after_change : (I,) array, optional
        Part of a slot that each job works in which it changes; None where changes cost nothing.
    slot : int
    active : (A,) array
        Jobs to choose for, in increasing order: arrived, not finished, before their deadline; if the instance is not
        preemptive, only those that have not started.
    capacity : array
        What the pool has left for them.
    held : mapping
        Places of jobs that run on and cannot be changed (not preemptive).
    types : TypePlaces, optional
        Where speeds depend on the type of accelerators: what places there are; choices are then places.
    """

    instance: SchedulingInstance
    rates: Rates
    pool: Pool
    wanted: Floats
    done: Floats
    served: Floats
    width: Ints
    arrival: Ints
    last: Ints
    after_change: Floats | None = None
    slot: int = 0
    active: Ints = field(default_factory=lambda: np.empty(0, dtype=np.int64))
    capacity: Floats = field(default_factory=lambda: np.empty(0))
    held: Mapping[int, Place] = field(default_factory=dict)
    types: TypePlaces | None = None

    @property
    def room(self) -> Floats:
        """(R,) ``capacity`` with what the check lets pass: widths whose sum is at most that fit."""
        return left_let_pass(self.capacity, self.pool.capacity)

    @property
    def fastest(self) -> Floats:
        """(A,) mini-batches per slot of the active jobs at full width, on their fastest type."""
        rates = self.rates(self.active, self.rates.widest[self.active])
        return rates if self.types is None else rates * self.types.paces[self.active].max(axis=1)

    @property
    def left(self) -> Floats:
        """(A,) mini-batches that the active jobs still want."""
        return self.wanted[self.active] - self.done[self.active]

    def progress(self, jobs: Ints, widths: Ints) -> Floats:
        """Mini-batches of each of ``jobs`` at its width in this slot, less what is lost if the width is another one."""
        rates = self.rates(jobs, widths)
        if self.after_change is None:
            return rates
        changed = (self.width[jobs] != widths) & (self.served[jobs] > 0)
        return rates * np.where(changed, self.after_change[jobs], 1.0)

    def admit(
        self, jobs: Iterable[int], widths: Iterable[int], skip: bool = True, shrink: bool = False
    ) -> dict[int, int]:
        """The widths of jobs, in this order, as far as they fit into the pool.

        Parameters
        ----------
        skip : bool
            Whether jobs behind one that does not fit are still considered.
        shrink : bool
            Whether a job that does not fit gets a smaller width that does.
        """
        room = self.room
        demand = self.pool.demand
        least = demand.min(axis=0)
        chosen: dict[int, int] = {}
        for job, width in zip(map(int, jobs), map(int, widths), strict=True):
            if not width:
                continue
            need = demand[job]
            fits = int(min(room[k] // need[k] for k in range(len(need)) if need[k] > 0))
            if fits >= width or (shrink and fits >= self.rates.narrowest[job]):
                chosen[job] = min(width, fits)
                room -= chosen[job] * need
                if (room < least).any():
                    break
            elif not skip:
                break
        return chosen


class Policy(Protocol):
    """What makes one online heuristic different from another."""

    def choose(self, state: State) -> Choice:
        """Widths (or places) of active jobs in this slot; jobs that are not named get none."""


@dataclass(frozen=True)
class Simulated:
    """What came of a policy: the schedule, mini-batches done by job, slots simulated, whether time was up."""

    schedule: Schedule
    done: Floats
    slots: int
    cut_short: bool


def simulate(
    instance: SchedulingInstance, policy: Policy, clock: Clock, name: str, done: Floats | None = None
) -> Simulated:
    """Let ``policy`` choose in every slot in which a job is there, place its choice, and advance.

    Where the pool is exact, widths have to fit; otherwise :class:`~ddlopt.solvers.scheduling.slot.packing.Packer` makes
    those smaller that do not. Jobs that are not preemptive keep their width and place once they have started. With an
    objective that counts ends, everything must be finished by the end of the horizon.

    Parameters
    ----------
    name : str
        Of the heuristic, for messages.
    done : (I,) array, optional
        Mini-batches that were done before the first slot; default: none.

    Raises
    ------
    SolverError
        If the policy's widths are not allowed or do not fit.
    UnfinishedError
        If a job is left that must be finished.
    """
    run = _Simulation(instance, policy, name)
    if done is not None:
        run.state.done += done
    while run.advance_to_work() and not clock.expired:
        run.slot()
    cut_short = clock.expired and run.state.slot < instance.slots and bool(run.unfinished.any())
    if instance.goal.must_finish and run.unfinished.any():
        left = np.flatnonzero(run.unfinished)
        first = f"{len(left)} are left, the first is jobs[{left[0]}] '{instance.jobs[left[0]].name}'"
        why = "in the time limit" if cut_short else f"within the horizon of {instance.slots} slots"
        raise UnfinishedError(f"{name} on '{instance.name}' does not finish all jobs {why}; {first}")
    return Simulated(run.record.schedule(run.state.slot), run.state.done, run.state.slot, cut_short)


def _parts(place: Place | Workers) -> tuple[Workers, tuple[int, ...]]:
    """Workers and ring of a place, or of the workers of an exact pool."""
    return (place.workers, place.ring) if isinstance(place, Place) else (place, ())


class _Simulation:
    """The state and the bookkeeping around it."""

    def __init__(self, instance: SchedulingInstance, policy: Policy, name: str) -> None:
        count = len(instance.jobs)
        self.instance, self.policy, self.name = instance, policy, name
        self.state = State(
            instance,
            Rates(instance),
            pool(instance),
            wanted=np.array([job.minibatches for job in instance.jobs]),
            done=np.zeros(count),
            served=np.zeros(count),
            width=np.zeros(count, dtype=np.int64),
            after_change=(
                np.array([instance.changes.left(job) for job in range(count)]) if instance.changes.cost_time else None
            ),
            arrival=np.array([job.arrival for job in instance.jobs]),
            last=np.array([instance.last_slot(job) for job in range(count)]),
            types=TypePlaces(instance) if instance.accelerators.matter else None,
        )
        self.record = Record(instance)
        self._order = np.argsort(self.state.arrival, kind="stable")
        self._arrivals = self.state.arrival[self._order]
        self._next = 0
        self._present = np.empty(0, dtype=np.int64)
        self._held: dict[int, int] = {}
        self._before: Mapping[int, list[tuple[int, int]]] = {}
        self._contended = None if instance.contention is None else ContendedRates(instance)
        self._places: Placer | Packer = Placer(instance) if self.state.pool.exact else Packer(instance)

    @property
    def unfinished(self) -> npt.NDArray[np.bool_]:
        """(I,) jobs without all their mini-batches."""
        return self.state.done < self.state.wanted * ENOUGH

    def advance_to_work(self) -> bool:
        """Go to the next slot in which a job is there, and set the active ones; False at the end."""
        state = self.state
        here = self._present
        here = here[(state.last[here] > state.slot) & (state.done[here] < state.wanted[here] * ENOUGH)]
        if not len(here):
            self.record.note(state.slot, {})
            if self._next == len(self._order):
                return False
            state.slot = max(state.slot, int(self._arrivals[self._next]))
        until = int(np.searchsorted(self._arrivals, state.slot, side="right"))
        if until > self._next:
            here = np.sort(np.concatenate((here, self._order[self._next : until])))
            here = here[(state.last[here] > state.slot) & (state.done[here] < state.wanted[here] * ENOUGH)]
            self._next = until
        self._present = here
        return state.slot < self.instance.slots

    def slot(self) -> None:
        """Choose, place, advance."""
        state = self.state
        state.capacity, state.active = state.pool.capacity, self._present
        if not self.instance.preemptive:
            self._hold()
        chosen = self.policy.choose(state) if len(state.active) else {}
        self._refuse_bad_widths(chosen)
        places = self._placed(chosen)
        self.record.note(state.slot, {job: _parts(place) for job, place in places.items()})
        jobs = np.fromiter(places, dtype=np.int64, count=len(places))
        widths = np.array([_width(place) for place in places.values()], dtype=np.int64)
        if self._contended is None:
            rates = state.rates(jobs, widths)
        else:
            by_job = self._contended.of({job: _parts(place)[0] for job, place in places.items()})
            rates = np.array([by_job[job] for job in places])
        if state.types is not None:
            rates = rates * [state.types.pace(job, _parts(place)[0]) for job, place in places.items()]
        if state.after_change is not None:
            rates = rates * self._parts_worked(places, state.after_change)
        state.done[jobs] += rates
        state.served[jobs] += widths
        state.width[self._present] = 0
        state.width[jobs] = widths
        state.slot += 1

    def _parts_worked(self, places: Mapping[int, Place | Workers], after_change: Floats) -> Floats:
        """The part of the slot that each job works: all of it if it starts, or goes on with the same workers."""
        before, self._before = self._before, {job: sorted(_parts(place)[0]) for job, place in places.items()}
        kept = [not self.state.served[job] or before.get(job) == here for job, here in self._before.items()]
        return np.where(kept, 1.0, after_change[list(places)])

    def _placed(self, chosen: Choice) -> Mapping[int, Place | Workers]:
        """Where everybody is, those that run on included."""
        if isinstance(self._places, Packer):
            return self._places.place({**self._held, **chosen})
        widths = {job: _width(one) if isinstance(one, tuple) else one for job, one in chosen.items()}  # any places do
        return self._places.place({**self._held, **widths})

    def _hold(self) -> None:
        """Jobs that ran in the slot before and are still there go on."""
        state = self.state
        running = self._present[state.width[self._present] > 0]
        placed = self._places.placed
        state.held = {job: Place(*_parts(placed[job])) for job in running.tolist()}
        self._held = {job: place.width for job, place in state.held.items()}
        state.active = self._present[state.width[self._present] == 0]
        taken = state.width[running] @ state.pool.demand[running]
        state.capacity = np.maximum(state.pool.capacity - taken, 0.0)

    def _refuse_bad_widths(self, chosen: Choice) -> None:
        state = self.state
        jobs = np.fromiter(chosen, dtype=np.int64, count=len(chosen))
        widths = np.array([_width(one) if isinstance(one, tuple) else one for one in chosen.values()], dtype=np.int64)
        bad = (widths > state.rates.widest[jobs]) | ((widths < state.rates.narrowest[jobs]) & (widths != 0))
        bad |= ~np.isin(jobs, state.active, assume_unique=True)
        if bad.any():
            job, width = int(jobs[bad][0]), int(widths[bad][0])
            raise SolverError(f"{self.name}, slot {state.slot}: {width} workers for job {job} are not allowed")


def _width(place: Place | Workers) -> int:
    return sum(count for _, count in _parts(place)[0])
