"""Some slots of a schedule at a time, given their best widths together, beside what all others hold."""

from dataclasses import dataclass

import numpy as np

from ddlopt.frontier.scheduling.horizon import window
from ddlopt.frontier.scheduling.job_plans.slot_sweeps import SlotSweeps
from ddlopt.models.scheduling import Run, SchedulingInstance
from ddlopt.solvers.contracts import Limits, Status
from ddlopt.solvers.heuristic import Clock
from ddlopt.solvers.scheduling.slot.rates import Ints


@dataclass(frozen=True)
class Effort:
    """How large windows are, and how exactly they are solved."""

    tangents: int = 60
    """Of a utility: their error is far below the gap of a window."""
    choices: int = 600
    """Choices of a width in the first window, which HiGHS mostly solves in a second; the next ones are adapted."""
    window_s: float = 3.0
    """Seconds after which a window was too large: the next one has a tenth fewer slots."""
    easy_s: float = 0.7
    """Seconds within which a window could have been larger: the next one has a tenth more slots."""
    gap: float = 1e-5
    """A tenth of the gap at which solvers stop by default: a window's loss is the schedule's."""


EFFORT = Effort()


class SlotWindows:
    """Random windows, as large as the exact model of them is solved in some seconds.

    Parameters
    ----------
    instance : SchedulingInstance
        Preemptive, on an exact pool.
    slots : SlotSweeps
        Of the same instance.
    rng : numpy.random.Generator
    """

    def __init__(self, instance: SchedulingInstance, slots: SlotSweeps, rng: np.random.Generator) -> None:
        self._instance, self._slots, self._rng = instance, slots, rng
        choices = sum((instance.last_slot(i) - job.arrival) * len(job.widths) for i, job in enumerate(instance.jobs))
        self.size = float(np.clip(EFFORT.choices * instance.slots / choices, 2, instance.slots))
        """Slots of a window."""
        self.tried = 0

    def improved(self, widths: Ints, clock: Clock) -> Ints:
        """(T, I) widths, better than those given or the same."""
        count = min(self._instance.slots, round(self.size))
        chosen = np.sort(self._rng.choice(self._instance.slots, count, replace=False))
        others = np.setdiff1d(np.arange(self._instance.slots), chosen)
        done = self._slots.progress_at(widths)[others].sum(axis=0)
        part = window(self._instance, chosen.tolist(), done.tolist())
        self.tried += 1
        if part is None:
            return widths
        limits = Limits(time_s=max(1e-3, min(EFFORT.window_s, clock.left_s)), gap=EFFORT.gap)
        seed = int(self._rng.integers(2**31))
        outcome, runs = part.replanned(_runs(widths, chosen), limits, seed, clock, EFFORT.tangents)
        if outcome.status is not Status.OPTIMAL:
            self.size = max(2.0, self.size * 0.9)
        elif outcome.runtime_s < EFFORT.easy_s:
            self.size = min(float(self._instance.slots), self.size * 1.1)
        if runs is None:
            return widths
        better = widths.copy()
        better[chosen] = 0
        for run in runs:
            better[run.start, run.job] = run.width
        return better if self._slots.worth(better) > self._slots.worth(widths) else widths


def _runs(widths: Ints, slots: Ints) -> list[Run]:
    """Runs of one slot each with all workers on server 0: where they are makes no difference to a pool."""
    return [
        Run(job=int(i), start=int(t), slots=1, workers=((0, int(widths[t, i])),))
        for t in slots
        for i in np.flatnonzero(widths[t])
    ]
