"""Linear relaxation of all slots, rounded slot by slot: each slot's best widths beside what all others hold."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import count
from typing import Any, ClassVar

import numpy as np

from ddlopt.models.scheduling import Schedule, SchedulingInstance
from ddlopt.models.scheduling.pool import schedule_of_widths
from ddlopt.models.scheduling.time_indexed import TimeIndexed
from ddlopt.solvers.backends.highs import Highs
from ddlopt.solvers.contracts import Limits, Status
from ddlopt.solvers.exact import build_model
from ddlopt.solvers.heuristic import Clock, Heuristic
from ddlopt.solvers.scheduling.oracles import PoolBound, knapsack_is_exact
from ddlopt.solvers.scheduling.rates import Floats, Ints, Rates
from ddlopt.solvers.scheduling.worth import Gains, Utilities

_TANGENTS = 40
_LARGEST = 400_000
"""Choices of a width in a slot beyond which the relaxation is left out."""
_LEAST_GAIN = 1e-7
"""Relative gain of a sweep below which sweeps end."""


@dataclass(frozen=True)
class LpGuided(Heuristic):
    r"""Sweeps over slots that begin at the optimum of the linear relaxation.

    The relaxation of :class:`~ddlopt.models.scheduling.time_indexed.TimeIndexed` says what each job does in each slot,
    in fractions. Then slot after slot is given its best whole widths, by the exact knapsack, for the gains

    .. math::
        u_i\Bigl(\tfrac{1}{F_i} \bigl(\varphi_i(w) + \textstyle\sum_{t' \ne t} z_{it'}\bigr)\Bigr)
        - u_i\Bigl(\tfrac{1}{F_i} \textstyle\sum_{t' \ne t} z_{it'}\Bigr),

    z being what all other slots hold, whole or in fractions. Sweeps in both directions go on while they gain: from the
    second on, none makes the schedule worse. The rounding runs forward and backward, and from a given start besides;
    the best is the answer. Without the relaxation (too large, or no time) the first sweep is the greedy over slots.

    All-or-nothing utilities are v p in the first sweep.

    Parameters
    ----------
    sweeps : int
        Most sweeps from each beginning.
    """

    sweeps: int = 100

    family: ClassVar[str] = "scheduling"
    kernels: ClassVar[tuple[str, ...]] = ("ddlopt.models.scheduling.knapsack_kernels",)

    @property
    def name(self) -> str:
        """``lp-guided``."""
        return "lp-guided"

    def refuses(self, instance: SchedulingInstance) -> str | None:
        """Whatever is not a sum of utilities over jobs that the knapsack of widths places."""
        if instance.objective != "utility":
            return f"the objective is {instance.objective!r}, not 'utility'"
        if not instance.preemptive:
            return "jobs run in one piece, and each slot is filled apart"
        if instance.energy_price_per_j and instance.idle_w.any():
            return "servers have a power of their own, so that it matters which ones are used"
        return knapsack_is_exact(instance) or TimeIndexed().refuses(instance)

    def answer(
        self, instance: SchedulingInstance, seed: int, clock: Clock, start: Any
    ) -> tuple[Schedule, Mapping[str, Any]]:
        """The best schedule of all beginnings; how many sweeps it took."""
        slots = SlotSweeps(instance)
        beginnings: list[tuple[Floats, bool]] = []
        planned = self._relaxation(instance, slots, seed, clock)
        if planned is not None:
            beginnings += [(planned, False), (planned, True)]
        if start is not None:
            beginnings.append((slots.progress_of(start), False))
        if not beginnings:
            beginnings.append((np.zeros((instance.slots, len(instance.jobs))), False))
        best, widths, sweeps = -np.inf, np.zeros((instance.slots, len(instance.jobs)), dtype=np.int64), 0
        for number, (progress, backward) in enumerate(beginnings):
            if number and clock.expired:
                break
            for worth, found in slots.sweeps(progress, backward, self.sweeps):
                sweeps += 1
                if worth > best:
                    best, widths = worth, found.copy()
                    clock.report(best)
                if clock.expired:
                    break
        schedule = schedule_of_widths(instance, [{int(i): int(row[i]) for i in np.flatnonzero(row)} for row in widths])
        return schedule, {"sweeps": sweeps, "guided": planned is not None}

    def _relaxation(self, instance: SchedulingInstance, slots: "SlotSweeps", seed: int, clock: Clock) -> Floats | None:
        """(T, I) mini-batches by slot and job in the relaxation; None if there was no time for it."""
        choices = sum((instance.last_slot(i) - job.arrival) * 2 for i, job in enumerate(instance.jobs))
        if choices > _LARGEST or clock.expired:
            return None
        model = build_model(self.family, TimeIndexed(widths="envelope", tangents=_TANGENTS), instance)
        left = None if clock.left_s == np.inf else max(1e-3, clock.left_s / 2)
        outcome = Highs({"solve_relaxation": True}).solve(model, Limits(time_s=left), seed)
        if outcome.status is not Status.OPTIMAL:
            return None
        progress = np.zeros((instance.slots, len(instance.jobs)))
        for (i, w, t), variable in model.component(self.family).running.items():
            if variable.value:
                progress[t, i] += variable.value * slots.rates(np.array([i]), np.array([w]))[0]
        return progress


class SlotSweeps:
    """The jobs of each slot, what their widths do, and the knapsack over them."""

    def __init__(self, instance: SchedulingInstance) -> None:
        self.instance = instance
        self.rates = Rates(instance)
        self.wanted: Floats = np.array([job.minibatches for job in instance.jobs])
        self._true = Utilities([job.utility for job in instance.jobs])
        self._smooth = Utilities([job.utility for job in instance.jobs], envelope=True)
        self._knapsack = PoolBound(instance)
        arrival = np.array([job.arrival for job in instance.jobs])
        last = np.array([instance.last_slot(i) for i in range(len(instance.jobs))])
        self._present = [np.flatnonzero((arrival <= t) & (t < last)) for t in range(instance.slots)]

    def progress_of(self, schedule: Schedule) -> Floats:
        """(T, I) mini-batches that each job does in each slot."""
        progress = np.zeros((self.instance.slots, len(self.instance.jobs)))
        for run in schedule.runs:
            progress[run.start : run.end, run.job] = self.rates(np.array([run.job]), np.array([run.width]))[0]
        return progress

    def progress_at(self, widths: Ints) -> Floats:
        """(T, I) mini-batches that each job does in each slot at (T, I) widths."""
        everybody = np.broadcast_to(np.arange(widths.shape[1]), widths.shape)
        return self.rates(everybody, widths)

    def worth(self, widths: Ints) -> float:
        """Objective of (T, I) widths."""
        return self._worth(widths, self.progress_at(widths))

    def sweeps(
        self, progress: Floats, backward: bool, most: int, order: Ints | None = None
    ) -> Iterable[tuple[float, Ints]]:
        """Objective and (T, I) widths after each sweep, for as long as it gains; ``order``: slots of the first one."""
        progress = progress.copy()
        widths = np.zeros(progress.shape, dtype=np.int64)
        before = -np.inf
        for number in count():
            done = progress.sum(axis=0)
            for t in self._order(backward) if number or order is None else order.tolist():
                jobs = self._present[t]
                if len(jobs):
                    done[jobs] -= progress[t, jobs]
                    widths[t, jobs] = self._best(jobs, done, self._true if number else self._smooth)
                    progress[t, jobs] = self.rates(jobs, widths[t, jobs])
                    done[jobs] += progress[t, jobs]
            worth = self._worth(widths, progress)
            yield worth, widths
            if number + 1 >= most or (number and worth - before <= _LEAST_GAIN * abs(worth)):
                return
            before, backward = worth, not backward

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

    def _worth(self, widths: Ints, progress: Floats) -> float:
        everybody = np.arange(len(self.wanted))
        utility = self._true.of(everybody, progress.sum(axis=0) / self.wanted).sum()
        return float(utility - self._knapsack.worker_cost * widths.sum())
