"""Some slots of an instance as an instance of their own, while all others stay as they are."""

from collections.abc import Sequence
from dataclasses import dataclass

from ddlopt.models.scheduling.formulations.time_indexed.time_indexed import TimeIndexed
from ddlopt.models.scheduling.instance import SchedulingInstance
from ddlopt.models.scheduling.solution import Run, Schedule
from ddlopt.solvers.backends.highs import Highs
from ddlopt.solvers.contracts import Limits
from ddlopt.solvers.exact import build_model
from ddlopt.solvers.heuristic import Clock


@dataclass(frozen=True)
class Window:
    """Slots of an instance, pushed together, with the jobs that may run in them.

    Parameters
    ----------
    instance : SchedulingInstance
        Slot t is slot ``slots[t]`` of the whole, and job i its job ``jobs[i]``.
    slots, jobs : tuple of int
        Both increasing.
    done : tuple of float
        Mini-batches of each of the jobs that are done in other slots; see the option of
        :class:`~ddlopt.models.scheduling.formulations.time_indexed.time_indexed.TimeIndexed`.
    """

    instance: SchedulingInstance
    slots: tuple[int, ...]
    jobs: tuple[int, ...]
    done: tuple[float, ...]

    def back(self, schedule: Schedule) -> list[Run]:
        """Runs of the whole, one slot each, for a schedule of the window."""
        return [
            run.model_copy(update={"job": self.jobs[run.job], "start": self.slots[t], "slots": 1})
            for run in schedule.runs
            for t in range(run.start, run.end)
        ]

    def of(self, runs: Sequence[Run]) -> Schedule:
        """What runs of the whole do in the window."""
        job_of = {job: place for place, job in enumerate(self.jobs)}
        mine = [
            run.model_copy(update={"job": job_of[run.job], "start": t, "slots": 1})
            for run in runs
            if run.job in job_of
            for t, slot in enumerate(self.slots)
            if run.start <= slot < run.end
        ]
        return Schedule(instance=self.instance.name, instance_digest=self.instance.digest, runs=tuple(mine))

    def replanned(self, runs: Sequence[Run], limits: Limits, seed: int, clock: Clock) -> list[Run] | None:
        """The best runs in its slots by the exact model, from ``runs`` of the whole; None if none are found in time."""
        model = TimeIndexed(done=self.done)
        filled = build_model("scheduling", model, self.instance)
        block = filled.component("scheduling")
        model.start(block, self.instance, self.of(runs))
        with clock.lending_ctrl_c():
            outcome = Highs().solve(filled, limits, seed, warm=True)
        clock.interrupted |= outcome.interrupted
        return None if outcome.objective is None else self.back(model.read(block, self.instance))


def window(instance: SchedulingInstance, slots: Sequence[int], done: Sequence[float]) -> Window | None:
    """The window of ``slots``, in increasing order, after ``done`` (I,) mini-batches in others; None without jobs.

    Jobs that are finished, or may run in none of the slots, are not in it. Slots need not follow each other, so that it
    is no window onto jobs in one piece.
    """
    jobs, places, before = [], [], []
    for place, job in enumerate(instance.jobs):
        first = sum(slot < job.arrival for slot in slots)
        last = sum(slot < instance.last_slot(place) for slot in slots)
        if first < last and done[place] < job.minibatches:
            jobs.append(job.model_copy(update={"arrival": first, "deadline": last}))
            places.append(place)
            before.append(float(done[place]))
    if not jobs:
        return None
    part = instance.changed(slots=len(slots), jobs=tuple(jobs))
    return Window(part, tuple(slots), tuple(places), tuple(before))
