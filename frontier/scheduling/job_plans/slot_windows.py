"""Some slots of a schedule at a time, given their best widths together, beside what all others hold."""

import numpy as np

from ddlopt.frontier.scheduling.horizon import window
from ddlopt.frontier.scheduling.job_plans.slot_sweeps import SlotSweeps
from ddlopt.models.scheduling import Run, Schedule, SchedulingInstance
from ddlopt.models.scheduling.formulations.time_indexed.time_indexed import TimeIndexed
from ddlopt.solvers.backends.highs import Highs
from ddlopt.solvers.contracts import Limits, Status
from ddlopt.solvers.exact import build_model
from ddlopt.solvers.heuristic import Clock
from ddlopt.solvers.scheduling.slot.rates import Ints

# Of a utility: their error is far below the gap of a window.
_TANGENTS = 60
_CHOICES = 600
"""Choices of a width in the first window; later ones grow where that was easy."""
# A window that takes longer was too large; the next one is smaller.
_WINDOW_S = 3.0
# A window that takes less could have been larger.
_EASY_S = 0.7
# A tenth of the relative gap at which solvers stop by default: a window's loss is the schedule's.
_GAP = 1e-5


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
        self.size = float(np.clip(_CHOICES * instance.slots / choices, 2, instance.slots))
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
        formulation = TimeIndexed(done=part.done, tangents=_TANGENTS)
        model = build_model("scheduling", formulation, part.instance)
        block = model.component("scheduling")
        formulation.start(block, part.instance, part.of(_runs(widths, chosen)))
        limits = Limits(time_s=max(1e-3, min(_WINDOW_S, clock.left_s)), gap=_GAP)
        with clock.lending_ctrl_c():
            outcome = Highs().solve(model, limits, int(self._rng.integers(2**31)), warm=True)
        clock.interrupted |= outcome.interrupted
        if outcome.status is not Status.OPTIMAL:
            self.size = max(2.0, self.size * 0.9)
        elif outcome.runtime_s < _EASY_S:
            self.size = min(float(self._instance.slots), self.size * 1.1)
        if outcome.objective is None:
            return widths
        better = widths.copy()
        better[chosen] = 0
        found: Schedule = formulation.read(block, part.instance)
        for run in part.back(found):
            better[run.start, run.job] = run.width
        return better if self._slots.worth(better) > self._slots.worth(widths) else widths


def _runs(widths: Ints, slots: Ints) -> list[Run]:
    """Runs of one slot each with all workers on server 0: where they are makes no difference to a pool."""
    return [
        Run(job=int(i), start=int(t), slots=1, workers=((0, int(widths[t, i])),))
        for t in slots
        for i in np.flatnonzero(widths[t])
    ]
