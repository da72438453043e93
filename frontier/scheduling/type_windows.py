"""Schedules on several types of accelerators: a greedy over slots that chooses types, then windows solved exactly."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from ddlopt.frontier.scheduling.horizon import window
from ddlopt.models.scheduling import Run, Schedule, SchedulingInstance, evaluate
from ddlopt.models.scheduling.formulations.time_indexed.time_indexed import TimeIndexed
from ddlopt.models.scheduling.instance import workers_within
from ddlopt.models.scheduling.pool import Workers, schedule_of_places
from ddlopt.models.scheduling.utility import AllOrNothing
from ddlopt.models.scheduling.variants.accelerators import Class
from ddlopt.models.tolerances import let_pass_at_least
from ddlopt.solvers.contracts import Limits
from ddlopt.solvers.heuristic import Answer, Clock, Heuristic


@dataclass(frozen=True)
class Effort:
    """What the greedy goes by, and when passes end."""

    least_part: float = 0.05
    """Added to parts done before they are inverted: those who have done least go first, and nobody infinitely."""
    least_gain: float = 1e-7
    """Part of the value by which a pass over all windows must gain for another one, and to which windows are solved:
    a thousandth of the gap at which solvers stop by default."""


EFFORT = Effort()


@dataclass(frozen=True)
class TypeWindows(Heuristic, uses=("seed", "start")):
    r"""Types by worth per worker, slot after slot; then a few slots at a time by an exact model, over and over.

    Within a slot every move gives a job its first workers on a class of types, or one worker more there; the next one
    is always that of the greatest

    .. math::
        \bigl(u_i(p_i + \Delta p_i) - u_i(p_i)\bigr) / \Delta w,

    with :math:`\Delta p_i` at the pace of the class, less what the energy of its workers costs. Workers go to the
    slowest types of the class that have room. For ``max_min``, :math:`-1 / (p + 0.05)` stands for utilities. Windows
    of slots are then planned anew by
    :class:`~ddlopt.models.scheduling.formulations.time_indexed.time_indexed.TimeIndexed` after what is done in all
    other slots, and kept where ``evaluate`` finds the schedule better. All this is ours.

    Parameters
    ----------
    slots : int
        Of a window, which overlap by half; 0: the greedy alone.
    window_s : float
        Time limit of a window.
    ignore : bool
        Whether the greedy takes every job to have its mean speed everywhere: what a scheduler loses without types.
    """

    slots: int = 4
    window_s: float = 2.0
    ignore: bool = False

    @property
    def name(self) -> str:
        """``type-windows``."""
        return "type-windows"

    def refuses(self, instance: SchedulingInstance) -> str | None:
        """Instances without types, objectives that need all jobs finished, and slots that are coupled."""
        if not instance.accelerators.matter:
            return "the speed of no job depends on the type of accelerators; use job-plans or lp-guided"
        if instance.sense == "minimize":
            return f"the objective is {instance.objective!r}, but it need not finish all jobs"
        if not instance.preemptive:
            return "jobs run in one piece, and each window is filled apart"
        if instance.changes.must_wait:
            return "jobs may not change in every slot, and each window is filled apart; use time-indexed"
        if instance.changes.cost_time:
            return "changes cost time, and each window is filled apart"
        return TimeIndexed().refuses(instance)

    def answer(self, instance: SchedulingInstance, seed: int, clock: Clock, start: Any) -> Answer[Schedule]:
        """The better of the start and the greedy, improved; windows that were solved and those that gained."""
        best = _Greedy(instance, self.ignore).schedule(clock)
        worth = _worth(instance, best)
        if isinstance(start, Schedule) and _worth(instance, start) > worth:
            best, worth = start, _worth(instance, start)
        clock.report(worth)
        tried = gained = 0
        improving = self.slots > 0
        while improving:
            before = worth
            for chosen in self._windows(instance):
                if clock.expired:
                    return best, {"windows": tried, "windows_gained": gained}
                other = self._replanned(instance, best, chosen, seed, clock)
                tried += 1
                if other is not None and (found := _worth(instance, other)) > worth:
                    best, worth, gained = other, found, gained + 1
                    clock.report(worth)
            improving = worth - before > EFFORT.least_gain * max(1.0, abs(before))
        return best, {"windows": tried, "windows_gained": gained}

    def _windows(self, instance: SchedulingInstance) -> Iterator[range]:
        for first in range(0, instance.slots, max(1, self.slots // 2)):
            yield range(first, min(first + self.slots, instance.slots))

    def _replanned(
        self, instance: SchedulingInstance, schedule: Schedule, slots: range, seed: int, clock: Clock
    ) -> Schedule | None:
        """The schedule with other places in some slots; None if there is nothing to plan."""
        runs = [
            run.model_copy(update={"start": t, "slots": 1}) for run in schedule.runs for t in range(run.start, run.end)
        ]
        others = [run for run in runs if run.start not in slots]
        done = np.zeros(len(instance.jobs))
        for run in others:
            done[run.job] += _progress(instance, run.job, run.workers)
        part = window(instance, slots, done.tolist())
        if part is None:
            return None
        limits = Limits(clock.part(most_s=self.window_s), gap=EFFORT.least_gain)
        found = part.replanned(runs, limits, seed, clock)
        return None if found is None else _joined(instance, [*others, *found])


class _Greedy:
    """Slot after slot, by worth per worker."""

    def __init__(self, instance: SchedulingInstance, ignore: bool) -> None:
        self.instance = instance
        self.classes = [_classes(instance, job, ignore) for job in range(len(instance.jobs))]
        self.done = np.zeros(len(instance.jobs))
        self.worth_of = [_worth_of(instance, job) for job in range(len(instance.jobs))]
        self.price = instance.energy_price_per_j * instance.slot_s * instance.worker_w

    def schedule(self, clock: Clock) -> Schedule:
        """Of the whole horizon, or up to the end of the time."""
        slots: list[dict[int, Workers]] = []
        for slot in range(self.instance.slots):
            slots.append({} if clock.expired else self._slot(slot))
            for job, workers in slots[-1].items():
                self.done[job] += _progress(self.instance, job, workers)
        return schedule_of_places(self.instance, slots)

    def _slot(self, slot: int) -> dict[int, Workers]:
        instance, free = self.instance, let_pass_at_least(self.instance.capacity)
        active = [i for i, job in enumerate(instance.jobs) if job.arrival <= slot < instance.last_slot(i)]
        chosen: dict[int, int] = {}
        placed: dict[int, dict[int, int]] = {}
        while True:
            moves = [
                (score, -i, -k, server)
                for i in active
                for k in ([chosen[i]] if i in chosen else range(len(self.classes[i])))
                for score, server in self._moves(i, k, sum(placed.get(i, {}).values()), free)
            ]
            score, i, k, _ = max(moves, default=(0.0, 0, 0, 0))
            if score <= 0:
                return {job: tuple(sorted(where.items())) for job, where in placed.items()}
            i, k = -i, -k
            chosen[i] = k
            here = placed.setdefault(i, {})
            for _ in range(instance.jobs[i].min_workers if not here else 1):
                server = self._place(i, self.classes[i][k], free)
                assert server is not None
                here[server] = here.get(server, 0) + 1
                free[server] -= instance.demand[i]

    def _moves(self, job: int, k: int, now: int, free: Any) -> Iterator[tuple[float, int]]:
        """(worth per worker, server of the first one) of more workers in a class, if they fit."""
        instance, each = self.instance, self.classes[job][k]
        more = 1 if now else instance.jobs[job].min_workers
        servers = list(each.servers)
        if now + more > instance.jobs[job].max_workers:
            return
        if workers_within(free[servers], instance.demand[job]).sum() < more:
            return
        server = self._place(job, each, free)
        assert server is not None
        have = self.done[job] + each.pace * instance.progress(job, now)
        gain = self.done[job] + each.pace * instance.progress(job, now + more)
        worth = self.worth_of[job]
        yield (worth(gain) - worth(have)) / more - float(self.price[server]), server

    def _place(self, job: int, each: Class, free: Any) -> int | None:
        """The slowest server of a class with room for a worker, of these the fullest."""
        room = workers_within(free, self.instance.demand[job])
        fitting = [s for s in each.servers if room[s]]
        accelerators = self.instance.accelerators
        speeds = accelerators.speeds[job, accelerators.of_server]
        return min(fitting, key=lambda s: (speeds[s], room[s], s), default=None)


def _classes(instance: SchedulingInstance, job: int, ignore: bool) -> list[Class]:
    """Classes of servers of a job; with ``ignore`` all at its mean speed."""
    accelerators = instance.accelerators
    found = accelerators.classes(job)
    if not ignore or not accelerators.matter_to(job):
        return found
    paces = accelerators.speeds[job, accelerators.of_server]
    mean = float(paces[paces > 0].mean())
    return [each._replace(pace=mean) for each in (found[-1:] if accelerators.mixed else found)]


def _worth_of(instance: SchedulingInstance, job: int) -> Callable[[float], float]:
    """What the mini-batches that a job has done are worth to the greedy."""
    data = instance.jobs[job]
    utility = data.utility

    def worth(done: float) -> float:
        part = min(1.0, done / data.minibatches)
        if instance.goal.counts_least_part:
            return -1.0 / (part + EFFORT.least_part)
        return utility.value * part if isinstance(utility, AllOrNothing) else float(utility.of(part))

    return worth


def _progress(instance: SchedulingInstance, job: int, workers: Workers) -> float:
    """Mini-batches of a slot, at the pace of the slowest server."""
    width = sum(count for _, count in workers)
    return instance.progress(job, width) * instance.accelerators.pace(job, (server for server, _ in workers))


def _worth(instance: SchedulingInstance, schedule: Schedule) -> float:
    found = evaluate(instance, schedule)
    return float(found.objective) if found.feasible and found.objective is not None else -np.inf


def _joined(instance: SchedulingInstance, runs: list[Run]) -> Schedule:
    """The schedule of runs of one slot each."""
    slots: list[dict[int, Workers]] = [{} for _ in range(instance.slots)]
    for run in runs:
        slots[run.start][run.job] = tuple(sorted(run.workers))
    return schedule_of_places(instance, slots)
