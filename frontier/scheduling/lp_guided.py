"""Linear relaxation of all slots, rounded slot by slot: each slot's best widths beside what all others hold."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from ddlopt.frontier.scheduling.job_plans.slot_sweeps import CellSweeps
from ddlopt.models.scheduling import Schedule, SchedulingInstance
from ddlopt.models.scheduling.formulations.time_indexed.time_indexed import TimeIndexed
from ddlopt.models.scheduling.pool import schedule_of_widths
from ddlopt.models.scheduling.refusals import refusal
from ddlopt.solvers.backends.highs import Highs
from ddlopt.solvers.certify import MethodOutput
from ddlopt.solvers.contracts import Limits, Status
from ddlopt.solvers.exact import build_model
from ddlopt.solvers.heuristic import Answer, Clock, Heuristic
from ddlopt.solvers.scheduling.slot.oracles import knapsack_is_exact
from ddlopt.solvers.scheduling.slot.rates import Floats


@dataclass(frozen=True)
class Effort:
    """How large the linear relaxations are."""

    tangents: int = 40
    """Of a utility: the linear program is a guide, and need not be exact."""
    coarse: int = 8_000
    """Choices of a width up to which one relaxation is enough; before a larger one there is a coarse one."""
    most_together: int = 10
    """Slots that this coarse relaxation takes together at most."""
    largest: int = 400_000
    """Choices of a width in a slot beyond which the relaxation is left out: it then takes minutes."""


_EFFORT = Effort()


@dataclass(frozen=True)
class LpGuided(Heuristic, uses=("seed", "start")):
    r"""Sweeps over slots that begin at the optimum of the linear relaxation.

    The relaxation of :class:`~ddlopt.models.scheduling.formulations.time_indexed.time_indexed.TimeIndexed` says what
    each job does in each slot, in fractions. Then slot after slot is given its best whole widths, by the exact
    knapsack, for the gains

    .. math::
        u_i\Bigl(\tfrac{1}{F_i} \bigl(\varphi_i(w) + \textstyle\sum_{t' \ne t} z_{it'}\bigr)\Bigr)
        - u_i\Bigl(\tfrac{1}{F_i} \textstyle\sum_{t' \ne t} z_{it'}\Bigr),

    z being what all other slots hold, whole or in fractions. Sweeps in both directions go on while they gain: from the
    second on, none makes the schedule worse. The rounding runs forward and backward, and from a given start besides;
    the best is the answer. A large instance first has the relaxation of neighbouring slots taken together, which is far
    smaller and comes near, so that little is lost where no time is left for the other one. Without either (too large,
    or no time) the first sweep is the greedy over slots.

    All-or-nothing utilities are v p in the first sweep.

    Parameters
    ----------
    sweeps : int
        Most sweeps from each beginning.
    """

    sweeps: int = 100

    kernels: ClassVar[tuple[str, ...]] = ("ddlopt.solvers.scheduling.slot.knapsack_kernels",)

    @property
    def name(self) -> str:
        """``lp-guided``."""
        return "lp-guided"

    def refuses(self, instance: SchedulingInstance) -> str | None:
        """Whatever is not a sum of utilities over jobs that the knapsack of widths places."""
        if (reason := refusal(instance)) is not None:
            return reason
        if not instance.goal.counts_utilities:
            return f"the objective is {instance.objective!r}, not 'utility'"
        if not instance.preemptive:
            return "jobs run in one piece, and each slot is filled apart"
        if instance.changes.cost_time:
            return "changes cost time, and each slot is filled apart; use kept-runs"
        if instance.energy_price_per_j and instance.idle_w.any():
            return "servers have a power of their own, so that it matters which ones are used"
        return knapsack_is_exact(instance) or TimeIndexed().refuses(instance)

    def find(self, instance: SchedulingInstance, limits: Limits, seed: int, clock: Clock, start: Any) -> MethodOutput:
        """See :meth:`answer`; says so where the relaxation was left out for its size."""
        found = super().find(instance, limits, seed, clock, start)
        choices = choices_of_relaxation(instance)
        if choices <= _EFFORT.largest:
            return found
        reason = f"the linear relaxation is left out: {choices} widths in slots, more than {_EFFORT.largest}"
        return replace(found, message=reason)

    def answer(self, instance: SchedulingInstance, seed: int, clock: Clock, start: Any) -> Answer[Schedule]:
        """The best schedule of all beginnings; how many sweeps it took."""
        slots = CellSweeps(instance)
        best, widths, sweeps = -np.inf, np.zeros(len(slots.job), dtype=np.int64), 0
        guided = False
        for progress, backward, plans, most in self._beginnings(instance, slots, seed, clock, start):
            if sweeps and clock.expired:
                break
            guided |= plans
            for worth, found in slots.sweeps(progress, backward, most, clock=clock):
                sweeps += 1
                if worth > best:
                    best, widths = worth, found.copy()
                    clock.report(best)
        schedule = schedule_of_widths(instance, list(slots.by_slot(widths)))
        return schedule, {"sweeps": sweeps, "guided": guided}

    def _beginnings(
        self, instance: SchedulingInstance, slots: CellSweeps, seed: int, clock: Clock, start: Any
    ) -> Iterator[tuple[Floats, bool, bool, int]]:
        """(progress, backward, whether it is that of a relaxation, most sweeps), the quickest first."""
        choices = choices_of_relaxation(instance)
        factors = [1] if choices <= _EFFORT.largest else []
        if factors and choices > _EFFORT.coarse:
            factors.insert(0, min(_EFFORT.most_together, -(-choices // _EFFORT.coarse)))
            yield np.zeros(len(slots.job)), False, False, 1
        found = False
        for factor in factors:
            progress = self._relaxation(instance, slots, seed, clock, factor)
            if progress is not None:
                found = True
                yield progress, False, True, self.sweeps
                yield progress, True, True, self.sweeps
        if start is not None:
            yield slots.progress_of(start), False, False, self.sweeps
        elif not found:
            yield np.zeros(len(slots.job)), False, False, self.sweeps

    def _relaxation(
        self, instance: SchedulingInstance, slots: CellSweeps, seed: int, clock: Clock, factor: int
    ) -> Floats | None:
        """(E,) mini-batches by cell in the relaxation of ``factor`` slots at a time; None if there was no time."""
        if clock.expired:
            return None
        merged = instance if factor == 1 else _merged(instance, factor)
        model = build_model(self.family, TimeIndexed(widths="envelope", tangents=_EFFORT.tangents), merged)
        # The last relaxation may have nearly all: what comes before it is a schedule already.
        limits = Limits(clock.part(0.8 if factor == 1 else 0.5))
        outcome = Highs({"solve_relaxation": True}).solve(model, limits, seed)
        if outcome.status is not Status.OPTIMAL:
            return None
        blocks = np.zeros((-(-instance.slots // factor), len(instance.jobs)))
        for (i, w, t), variable in model.component(self.family).running.items():
            if variable.value:
                blocks[t, i] += variable.value * factor * slots.rates(np.array([i]), np.array([w]))[0]
        together = slots.slot // factor * len(instance.jobs) + slots.job
        shared = np.bincount(together, minlength=blocks.size)
        progress: Floats = blocks.ravel()[together] / shared[together]
        return progress


def _merged(instance: SchedulingInstance, factor: int) -> SchedulingInstance:
    """The instance with ``factor`` slots at a time as one; a job may run in all that its window touches."""
    jobs = tuple(
        job.model_copy(update={"arrival": job.arrival // factor, "deadline": -(-instance.last_slot(i) // factor)})
        for i, job in enumerate(instance.jobs)
    )
    return instance.changed(slots=-(-instance.slots // factor), slot_s=instance.slot_s * factor, jobs=jobs)


def choices_of_relaxation(instance: SchedulingInstance) -> int:
    """Widths in slots that the relaxation chooses among: two for each slot that a job may run in."""
    return 2 * sum(instance.last_slot(i) - job.arrival for i, job in enumerate(instance.jobs))
