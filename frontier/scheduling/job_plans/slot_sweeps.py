"""Slot after slot the best widths beside what all other slots hold, over and over while that gains."""

from collections.abc import Iterable, Iterator
from itertools import count

import numpy as np

from ddlopt.models.scheduling import Schedule, SchedulingInstance
from ddlopt.solvers.heuristic import Clock
from ddlopt.solvers.scheduling.slot.oracles import PoolBound
from ddlopt.solvers.scheduling.slot.rates import Floats, Ints, Rates
from ddlopt.solvers.scheduling.slot.worth import Gains, Utilities

_LEAST_GAIN = 1e-7
"""Relative gain of a sweep below which sweeps end."""


class CellSweeps:
    """The jobs of each slot, what their widths do, and the knapsack over them.

    Arrays are over the *cells*: the E pairs of a slot and a job that may run in it, slot by slot and in each by job.
    Of a trace of months they are a few in a thousand of all pairs.

    Parameters
    ----------
    instance : SchedulingInstance
    """

    def __init__(self, instance: SchedulingInstance) -> None:
        self.instance = instance
        self.rates = Rates(instance)
        self.wanted: Floats = np.array([job.minibatches for job in instance.jobs])
        self._true = Utilities([job.utility for job in instance.jobs])
        self._smooth = Utilities([job.utility for job in instance.jobs], envelope=True)
        self._knapsack = PoolBound(instance)
        arrival = np.array([job.arrival for job in instance.jobs])
        lengths = np.array([instance.last_slot(i) for i in range(len(instance.jobs))]) - arrival
        job = np.repeat(np.arange(len(lengths)), lengths)
        slot = np.arange(len(job)) + np.repeat(arrival - np.cumsum(lengths) + lengths, lengths)
        by_slot = np.argsort(slot, kind="stable")
        self.job: Ints = job[by_slot]
        """(E,)."""
        self.slot: Ints = slot[by_slot]
        """(E,)."""
        self.start: Ints = np.searchsorted(self.slot, np.arange(instance.slots + 1))
        """(T + 1,) where the cells of each slot begin."""

    def progress_of(self, schedule: Schedule) -> Floats:
        """(E,) mini-batches that each job does in each slot."""
        progress = np.zeros(len(self.job))
        for run in schedule.runs:
            for t in range(run.start, run.end):
                first, last = self.start[t], self.start[t + 1]
                here = first + np.searchsorted(self.job[first:last], run.job)
                progress[here] = self.rates(self.job[here : here + 1], np.array([run.width]))[0]
        return progress

    def worth(self, widths: Ints) -> float:
        """Objective of (E,) widths."""
        return self._worth(widths, self.rates(self.job, widths))

    def sweeps(
        self, progress: Floats, backward: bool, most: int, order: Ints | None = None, clock: Clock | None = None
    ) -> Iterable[tuple[float, Ints]]:
        """Objective and (E,) widths after each sweep, for as long as it gains.

        Parameters
        ----------
        progress : (E,) array
            Mini-batches that jobs do in the slots that the first sweep has not come to.
        order : (T,) array, optional
            Slots of the first sweep.
        clock : Clock, optional
            When it has expired, the sweep ends with what it has, in the first one with slots left empty.
        """
        progress = progress.copy()
        widths = np.zeros(len(self.job), dtype=np.int64)
        before = -np.inf
        for number in count():
            done = self._done(progress)
            cut_short = False
            for t in self._order(backward) if number or order is None else order.tolist():
                mine = slice(self.start[t], self.start[t + 1])
                jobs = self.job[mine]
                if clock is not None and clock.expired:
                    cut_short = True
                    progress = self.rates(self.job, widths)
                    break
                if len(jobs):
                    done[jobs] -= progress[mine]
                    widths[mine] = self._best(jobs, done, self._true if number else self._smooth)
                    progress[mine] = self.rates(jobs, widths[mine])
                    done[jobs] += progress[mine]
            worth = self._worth(widths, progress)
            yield worth, widths
            if cut_short or number + 1 >= most or (number and worth - before <= _LEAST_GAIN * abs(worth)):
                return
            before, backward = worth, not backward

    def by_slot(self, widths: Ints) -> Iterator[dict[int, int]]:
        """The positive ones of (E,) widths by job, slot after slot."""
        used = np.flatnonzero(widths)
        start = np.searchsorted(used, self.start)
        jobs, positive = self.job[used].tolist(), widths[used].tolist()
        for first, last in zip(start[:-1].tolist(), start[1:].tolist(), strict=True):
            yield dict(zip(jobs[first:last], positive[first:last], strict=True))

    def _order(self, backward: bool) -> Iterable[int]:
        slots = range(self.instance.slots)
        return reversed(slots) if backward else slots

    def _best(self, jobs: Ints, done: Floats, utilities: Utilities) -> Ints:
        """The widths of largest gain in a slot, beside what is done in all others."""
        lengths = self.rates.widest[jobs] + 1
        starts = np.concatenate(([0], np.cumsum(lengths)))
        each = np.repeat(jobs, lengths)
        widths = np.arange(starts[-1]) - np.repeat(starts[:-1], lengths)
        values = utilities.of(each, (done[each] + self.rates(each, widths)) / self.wanted[each])
        values -= np.repeat(utilities.of(jobs, done[jobs] / self.wanted[jobs]), lengths)
        values[(widths > 0) & (widths < self.rates.narrowest[each])] = -np.inf
        return self._knapsack.best(Gains(jobs, starts, values))[1]

    def _done(self, progress: Floats) -> Floats:
        return np.asarray(np.bincount(self.job, weights=progress, minlength=len(self.wanted)), dtype=np.float64)

    def _worth(self, widths: Ints, progress: Floats) -> float:
        utility = self._true.of(np.arange(len(self.wanted)), self._done(progress) / self.wanted).sum()
        return float(utility - self._knapsack.worker_cost * widths.sum())


class SlotSweeps:
    """:class:`CellSweeps` with arrays over all slots and jobs, for instances small enough for them.

    Parameters
    ----------
    instance : SchedulingInstance
    """

    def __init__(self, instance: SchedulingInstance) -> None:
        self._cells = CellSweeps(instance)
        self._shape = instance.slots, len(instance.jobs)
        self._where = self._cells.slot, self._cells.job
        self.rates = self._cells.rates

    def progress_of(self, schedule: Schedule) -> Floats:
        """(T, I) mini-batches that each job does in each slot."""
        progress = np.zeros(self._shape)
        progress[self._where] = self._cells.progress_of(schedule)
        return progress

    def progress_at(self, widths: Ints) -> Floats:
        """(T, I) mini-batches that each job does in each slot at (T, I) widths."""
        progress = np.zeros(self._shape)
        progress[self._where] = self.rates(self._cells.job, widths[self._where])
        return progress

    def worth(self, widths: Ints) -> float:
        """Objective of (T, I) widths."""
        return self._cells.worth(widths[self._where])

    def sweeps(
        self, progress: Floats, backward: bool, most: int, order: Ints | None = None
    ) -> Iterable[tuple[float, Ints]]:
        """Objective and (T, I) widths after each sweep; see :meth:`CellSweeps.sweeps`."""
        for worth, found in self._cells.sweeps(progress[self._where], backward, most, order):
            widths = np.zeros(self._shape, dtype=np.int64)
            widths[self._where] = found
            yield worth, widths
