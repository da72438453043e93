"""Schedules by lists: a width for each job by a rule, then jobs one after the other."""

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

from ddlopt.models.cluster.jobs.bounds import first_start, shortest_s
from ddlopt.models.cluster.jobs.evaluate import evaluate_jobs
from ddlopt.models.cluster.jobs.instance import ClusterJob, JobsInstance, JobsSchedule, Stretch
from ddlopt.solvers.heuristic import Clock, Heuristic


def efficient(job: ClusterJob) -> int:
    """The width with the fewest server-seconds; of several the narrowest."""
    return min(job.widths, key=lambda width: (width * job.length_s(width), width))


def fastest(job: ClusterJob) -> int:
    """The width with the least time; of several the narrowest."""
    return min(job.widths, key=lambda width: (job.length_s(width), width))


WIDTHS: dict[str, Callable[[ClusterJob], int]] = {
    "efficient": efficient,
    "fastest": fastest,
    "narrowest": lambda job: job.widths[0],
}
_ORDERS: tuple[Callable[[ClusterJob], Any], ...] = (
    lambda job: job.arrival_s,
    lambda job: -shortest_s(job),
    lambda job: shortest_s(job) / Fraction(job.weight) if job.weight else float("inf"),
    lambda job: (job.deadline_s is None, job.deadline_s or 0.0),
)
"""First come, longest first, Smith's ratio, earliest deadline."""


@dataclass(frozen=True)
class ListJobs(Heuristic, uses=()):
    """The best of twelve lists: widths by efficiency, by speed or narrow; jobs by four orders.

    A rigid job begins as early as its servers are free for all its time. Where there are slots, a slot's servers are
    given to jobs in the order, each its width as long as they last.

    References
    ----------
    R. L. Graham, "Bounds on multiprocessing timing anomalies", SIAM J. Appl. Math. 17 (1969), and W. E. Smith,
    "Various optimizers for single-stage production", Naval Research Logistics Quarterly 3 (1956).
    """

    name: ClassVar[str] = "list-jobs"
    covers: ClassVar[type[JobsInstance]] = JobsInstance

    def answer(self, instance: JobsInstance, seed: int, clock: Clock, start: Any) -> Any:
        """The schedule."""
        return best_list(instance)[1], {}


def best_list(instance: JobsInstance) -> tuple[Fraction, JobsSchedule]:
    """The value of the best list, and its schedule."""
    made = _rigid if instance.mode == "rigid" else _slots
    found = []
    for rule in WIDTHS.values():
        widths = [rule(job) for job in instance.jobs]
        for key in _ORDERS:
            order = sorted(range(len(widths)), key=lambda place: key(instance.jobs[place]))
            answer = JobsSchedule(instance=instance.name, runs=made(instance, order, widths))
            value = evaluate_jobs(instance, answer, exact=True).objective
            assert value is not None
            found.append((Fraction(value), answer))
    return min(found, key=lambda pair: pair[0])


def _rigid(instance: JobsInstance, order: list[int], widths: list[int]) -> tuple[tuple[Stretch, ...], ...]:
    busy: list[tuple[Fraction, Fraction, int]] = []
    runs: list[tuple[Stretch, ...]] = [()] * len(order)
    for place in order:
        job, width = instance.jobs[place], widths[place]
        length, arrival = job.length_s(width), Fraction(job.arrival_s)
        start = min(
            moment
            for moment in {arrival, *(end for _, end, _ in busy if end > arrival)}
            if _fits(busy, moment, moment + length, instance.servers - width)
        )
        busy.append((start, start + length, width))
        runs[place] = (Stretch(start=str(start), servers=width),)
    return tuple(runs)


def _fits(busy: list[tuple[Fraction, Fraction, int]], start: Fraction, end: Fraction, most: int) -> bool:
    moments = [start, *(begun for begun, _, _ in busy if start < begun < end)]
    return all(sum(count for a, b, count in busy if a <= moment < b) <= most for moment in moments)


def _slots(instance: JobsInstance, order: list[int], widths: list[int]) -> tuple[tuple[Stretch, ...], ...]:
    slot = Fraction(instance.slot_s or 0)
    left = [Fraction(job.iterations) for job in instance.jobs]
    runs: list[list[Stretch]] = [[] for _ in order]
    number = 0
    while any(left):
        servers = instance.servers
        waiting = [first_start(instance, instance.jobs[place], Fraction(0)) / slot for place in order if left[place]]
        number = max(number, int(min(waiting)))
        for place in order:
            job, width = instance.jobs[place], widths[place]
            if left[place] and width <= servers and Fraction(job.arrival_s) <= number * slot:
                runs[place].append(Stretch(start=str(number), servers=width))
                left[place] = max(Fraction(0), left[place] - slot * Fraction(job.iterations) / job.length_s(width))
                servers -= width
        number += 1
    return tuple(map(tuple, runs))
