"""Schedules in which changes cost time: widths of long blocks of slots first, then of shorter and shorter ones."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from ddlopt.frontier.scheduling.lp_guided import LpGuided
from ddlopt.models.scheduling import Schedule, SchedulingInstance
from ddlopt.models.scheduling.pool import schedule_of_widths
from ddlopt.models.scheduling.refusals import UNKNOWN
from ddlopt.models.scheduling.utility import DONE
from ddlopt.solvers.contracts import Limits
from ddlopt.solvers.heuristic import Answer, Clock, Heuristic
from ddlopt.solvers.scheduling.slot.oracles import PoolBound, knapsack_is_exact
from ddlopt.solvers.scheduling.slot.rates import Floats, Ints, Rates
from ddlopt.solvers.scheduling.slot.worth import Gains, Utilities


@dataclass(frozen=True)
class Effort:
    """How long blocks are, and when sweeps end."""

    largest: int = 400_000
    """Pairs of a job and a slot up to which sweeps over dense arrays take seconds."""
    longest: int = 16
    """Slots of the longest blocks: beyond them schedules of jobs that come and go only lost in our trials."""
    guide_share: float = 0.5
    """Part of the time for the schedule that ignores changes."""
    too_short: float = 1e3
    """How many times all gains together a run that is too short costs: none is taken where another width fits."""
    least_gain: float = 1e-7
    """Relative gain of a sweep below which sweeps end."""


_EFFORT = Effort()


@dataclass(frozen=True)
class KeptRuns(Heuristic, uses=("seed", "start")):
    r"""Sweeps over blocks of slots that count what every change loses.

    Jobs keep one width throughout a block of k slots, as far as they are there. Block after block is given its best
    widths by the exact knapsack, for the gains

    .. math::
        u_i\Bigl(\tfrac{1}{F_i} (\text{progress in the block at width } w + \text{in all other slots})\Bigr)
        - \text{the same for } w = 0,

    where both count changes: the one with which the block begins, and the one with which the job goes on after it. So
    no sweep makes the schedule worse. When sweeps gain no more, blocks are halved, down to single slots. The first
    sweep sees in the blocks ahead what a schedule does that ignores changes
    (:class:`~ddlopt.frontier.scheduling.lp_guided.LpGuided`). It is begun with blocks of 1, 2, 4, 8 and 16 slots, and
    from that schedule and the start as they are; the best is the answer. All this is ours.

    Parameters
    ----------
    sweeps : int
        Most sweeps with blocks of one length.
    """

    sweeps: int = 20

    kernels: ClassVar[tuple[str, ...]] = ("ddlopt.solvers.scheduling.slot.knapsack_kernels",)

    @property
    def name(self) -> str:
        """``kept-runs``."""
        return "kept-runs"

    def refuses(self, instance: SchedulingInstance) -> str | None:
        """Instances in which changes cost nothing, and those of which the knapsack of widths is no model."""
        if instance.accelerators.matter:
            return UNKNOWN
        if not instance.changes.matter:
            return "changes cost nothing, so that there is nothing to keep; use lp-guided"
        if not instance.goal.counts_utilities:
            return f"the objective is {instance.objective!r}, not 'utility'"
        if instance.energy_price_per_j and instance.idle_w.any():
            return "servers have a power of their own, so that it matters which ones are used"
        pairs = instance.slots * len(instance.jobs)
        if pairs > _EFFORT.largest:
            return f"it has {pairs} pairs of a job and a slot, more than {_EFFORT.largest}; use gadget"
        return knapsack_is_exact(instance)

    def answer(self, instance: SchedulingInstance, seed: int, clock: Clock, start: Any) -> Answer[Schedule]:
        """The best schedule of all beginnings; sweeps made, and slots of the blocks that it began with."""
        blocks = _Blocks(instance)
        guide = self._guide(instance, seed, clock)
        given = [widths_of(instance, one) for one in (start, guide) if one is not None]
        best, widths, sweeps, longest = -np.inf, np.zeros(blocks.shape, dtype=np.int64), 0, 0
        for one, length in self._beginnings(instance, given):
            if sweeps and clock.expired:
                break
            for worth, found in self._refined(blocks, one, length, clock):
                sweeps += 1
                if worth > best:
                    best, widths, longest = worth, found.copy(), length
                    clock.report(best)
        rows = ({int(i): int(row[i]) for i in np.flatnonzero(row)} for row in widths)
        return schedule_of_widths(instance, list(rows)), {"sweeps": sweeps, "longest_blocks": longest}

    def _guide(self, instance: SchedulingInstance, seed: int, clock: Clock) -> Schedule | None:
        """A schedule of the instance in which changes cost nothing; None if there is none."""
        if instance.changes.must_wait:
            return None  # it would change as it likes
        free = without_cost_of_change(instance)
        if LpGuided().refuses(free) is not None or clock.expired:
            return None
        with clock.lending_ctrl_c():
            found = LpGuided().solve(free, Limits(clock.part(_EFFORT.guide_share)), seed)
        return found.solution if isinstance(found.solution, Schedule) else None

    def _beginnings(self, instance: SchedulingInstance, given: list[Ints]) -> Iterator[tuple[Ints, int]]:
        """(widths, slots of a block); 0 slots: sweep them as they are."""
        for one in given:
            yield one, 0
        guide = given[-1] if given else np.zeros((instance.slots, len(instance.jobs)), dtype=np.int64)
        least = min(instance.slots, max(map(instance.changes.least, range(len(instance.jobs)))))
        guide = np.zeros_like(guide) if least > 1 else guide
        length = 1
        while length < 2 * least or length <= min(_EFFORT.longest, instance.slots):
            if length >= least:
                yield guide, length
            length *= 2

    def _refined(
        self, blocks: "_Blocks", guide: Ints, longest: int, clock: Clock
    ) -> Iterator[tuple[float, npt.NDArray[np.int64]]]:
        """(objective, widths) after each sweep, with shorter and shorter blocks."""
        widths, length = guide.copy(), max(longest, 1)
        if not longest:
            yield blocks.worth(widths), widths
        first = bool(longest)
        while length:
            before = -np.inf if first else blocks.worth(widths)
            for _ in range(self.sweeps):
                blocks.sweep(widths, length, guided=first, clock=clock)
                first = False
                worth = blocks.worth(widths)
                yield worth, widths
                if clock.expired:
                    return
                if worth - before <= _EFFORT.least_gain * abs(worth):
                    break
                before = worth
            length //= 2


class _Blocks:
    """(T, I) widths, the progress that they make, and the knapsack of a block."""

    def __init__(self, instance: SchedulingInstance) -> None:
        jobs = range(len(instance.jobs))
        self.shape = instance.slots, len(instance.jobs)
        self._rates = Rates(instance)
        self._after_change: Floats = np.array([instance.changes.left(job) for job in jobs])
        self._wanted: Floats = np.array([job.minibatches for job in instance.jobs])
        self._utilities = Utilities([job.utility for job in instance.jobs])
        self._smooth = Utilities([job.utility for job in instance.jobs], envelope=True)
        self._arrival: Ints = np.array([job.arrival for job in instance.jobs])
        self._last: Ints = np.array([instance.last_slot(job) for job in jobs])
        self._least = [instance.changes.least(job) for job in range(len(instance.jobs))]
        self._knapsack = PoolBound(instance)

    def progress(self, widths: Ints) -> Floats:
        """(T, I) mini-batches of (T, I) widths, less what changes lose."""
        jobs = np.arange(self.shape[1])
        gained: Floats = np.array([self._rates(jobs, row) for row in widths])
        return np.where(changes(widths), gained * self._after_change, gained)

    def worth(self, widths: Ints) -> float:
        """Objective of (T, I) widths."""
        done = self.progress(widths).sum(axis=0) / self._wanted
        utility = float(self._utilities.of(np.arange(len(done)), done).sum())
        return utility - self._knapsack.worker_cost * float(widths.sum())

    def sweep(self, widths: Ints, length: int, guided: bool, clock: Clock) -> None:
        """Give every block its best widths, in place.

        Parameters
        ----------
        guided : bool
            Whether the widths given are those of a guide, which need not be constant in blocks: all-or-nothing
            utilities then count as their envelopes. Widths that the sweep does not come to, as the time is up,
            become 0.
        """
        done = self.progress(widths).sum(axis=0)
        for begin in range(0, self.shape[0], length):
            end = min(begin + length, self.shape[0])
            jobs = np.flatnonzero((self._arrival < end) & (self._last > begin))
            if guided and clock.expired:
                widths[begin:] = 0
                return
            if len(jobs):
                self._choose(widths, done, jobs, (begin, end), guided)

    def _choose(self, widths: Ints, done: Floats, jobs: Ints, block: tuple[int, int], guided: bool) -> None:
        """The best widths of ``jobs`` in one block; ``done`` (I,) is kept up to date."""
        lengths = self._rates.widest[jobs] + 1
        starts = np.concatenate(([0], np.cumsum(lengths)))
        place = np.repeat(np.arange(len(jobs)), lengths)
        each = np.arange(starts[-1]) - starts[:-1][place]
        old = self._now(widths, jobs, block)
        new = self._with(widths, jobs, block, place, each)
        others = done[jobs] - old
        utilities = self._smooth if guided else self._utilities
        values = utilities.of(jobs[place], (others[place] + new) / self._wanted[jobs][place])
        values -= values[starts[:-1]][place]
        values[(each > 0) & (each < self._rates.narrowest[jobs][place])] = -np.inf
        short = self._short(widths, jobs, block, place, each)
        slots = np.minimum(block[1], self._last[jobs]) - np.maximum(block[0], self._arrival[jobs])
        # A worker that is there for the whole block takes its energy in every slot of it; the knapsack counts one.
        values -= self._knapsack.worker_cost * each * (slots[place] - 1)
        if short.any():
            # Widths that leave a run too short are taken by none, as what there is now leaves none.
            values[short] = -_EFFORT.too_short * (1 + float(np.abs(values[np.isfinite(values)]).sum()))
        found = self._knapsack.best(Gains(jobs, starts, values))[1]
        if short[starts[:-1] + found].any():
            return
        for job, width in zip(jobs.tolist(), found.tolist(), strict=True):
            widths[max(block[0], self._arrival[job]) : min(block[1], self._last[job]), job] = width
        done[jobs] = others + new[starts[:-1] + found]

    def _short(
        self, widths: Ints, jobs: Ints, block: tuple[int, int], place: Ints, each: Ints
    ) -> npt.NDArray[np.bool_]:
        """Whether width ``each`` of ``jobs[place]`` in the block leaves a run too short."""
        short = np.zeros(len(each), dtype=bool)
        for k, (here, width) in enumerate(zip(place.tolist(), each.tolist(), strict=True)):
            job = int(jobs[here])
            if self._least[job] > 1:
                column = widths[:, job].copy()
                column[max(block[0], self._arrival[job]) : min(block[1], self._last[job])] = width
                short[k] = not self._lasts(job, column)
        return short

    def _lasts(self, job: int, column: Ints) -> bool:
        """Whether the runs of a job are long enough, but for those that its end or that of its window cuts."""
        cuts = np.flatnonzero(np.diff(column, prepend=0, append=0))
        for start, end in zip(cuts[:-1].tolist(), cuts[1:].tolist(), strict=True):
            if column[start] and end - start < self._least[job] and end < self._last[job]:
                before = np.where(np.arange(len(column)) < end, column, 0)[:, None]
                gained = self._rates(np.full(len(column), job), before[:, 0])
                done = np.where(changes(before)[:, 0], gained * self._after_change[job], gained).sum()
                if done < self._wanted[job] * float(DONE):
                    return False
        return True

    def _now(self, widths: Ints, jobs: Ints, block: tuple[int, int]) -> Floats:
        """(J,) mini-batches of ``jobs`` in the block, and in the slot in which they go on after it."""
        part, begin = widths[:, jobs], block[0]
        gained: Floats = np.array([self._rates(jobs, row) for row in part[begin : block[1]]])
        changed = changes(part)
        gained = np.where(changed[begin : block[1]], gained * self._after_change[jobs], gained)
        following, width = _next(part, block[1])
        after = self._rates(jobs, width)
        lost = changed[np.minimum(following, self.shape[0] - 1), np.arange(len(jobs))] & (width > 0)
        total: Floats = gained.sum(axis=0) + np.where(lost, after * self._after_change[jobs], after)
        return total

    def _with(self, widths: Ints, jobs: Ints, block: tuple[int, int], place: Ints, each: Ints) -> Floats:
        """The same with width ``each`` of ``jobs[place]`` in the block."""
        part, (begin, end) = widths[:, jobs], block
        first = np.maximum(begin, self._arrival[jobs])
        slots = np.minimum(end, self._last[jobs]) - first
        ran = np.asarray((part[:begin] > 0).any(axis=0))
        before = part[begin - 1] if begin else np.zeros(len(jobs), dtype=np.int64)
        loses = 1 - self._after_change[jobs]
        gained = self._rates(jobs[place], each)
        changed = ran[place] & (before[place] != each)
        now = gained * (slots[place] - changed * loses[place])
        following, width = _next(part, end)
        stops = np.minimum(end, self._last[jobs])
        kept = (following[place] == stops[place]) & (width[place] == each)
        fresh = ~ran[place] & (each == 0)
        lost = ~kept & ~fresh
        after = self._rates(jobs, width)[place]
        total: Floats = now + after * np.where(lost, 1 - loses[place], 1.0)
        return total


def changes(widths: Ints) -> npt.NDArray[np.bool_]:
    """(T, I) whether a job changes in a slot: it runs, has run before, and had another width in the slot before."""
    before = np.vstack((np.zeros((1, widths.shape[1]), dtype=np.int64), widths[:-1]))
    ran = np.logical_or.accumulate(before > 0, axis=0)
    changed: npt.NDArray[np.bool_] = (widths > 0) & ran & (widths != before)
    return changed


def _next(widths: Ints, slot: int) -> tuple[Ints, Ints]:
    """(first slot from ``slot`` on in which a job runs, T if none; its width then), each (I,)."""
    running = widths[slot:] > 0
    if not len(running):
        return np.full(widths.shape[1], len(widths)), np.zeros(widths.shape[1], dtype=np.int64)
    found = running.argmax(axis=0)
    some = running.any(axis=0)
    width = np.where(some, widths[slot + found, np.arange(widths.shape[1])], 0)
    return np.where(some, slot + found, len(widths)), width


def widths_of(instance: SchedulingInstance, schedule: Schedule) -> Ints:
    """(T, I) widths of a schedule."""
    widths = np.zeros((instance.slots, len(instance.jobs)), dtype=np.int64)
    for run in schedule.runs:
        widths[run.start : run.end, run.job] = run.width
    return widths


def without_cost_of_change(instance: SchedulingInstance) -> SchedulingInstance:
    """The instance in which changes cost nothing; its bounds are bounds of the instance."""
    jobs = tuple(job.model_copy(update={"change_s": 0.0, "least_run_slots": 1}) for job in instance.jobs)
    return instance.changed(jobs=jobs)
