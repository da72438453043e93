"""Our search for many rigid jobs: lists and widths are changed step by step, and a relaxation bounds what is left."""

import math
from bisect import bisect_right
from dataclasses import dataclass
from fractions import Fraction
from time import perf_counter
from typing import Any, ClassVar

import numpy as np

from ddlopt.models.cluster.jobs.bounds import jobs_bound
from ddlopt.models.cluster.jobs.instance import JobsInstance, JobsSchedule, Stretch
from ddlopt.solvers.certify import MethodOutput
from ddlopt.solvers.cluster.jobs.exchange_kernel import exchange
from ddlopt.solvers.cluster.jobs.relaxation import Relaxed, relaxed, useful
from ddlopt.solvers.contracts import Limits, relative_gap
from ddlopt.solvers.heuristic import CertifiedMethod, Clock


@dataclass(frozen=True)
class Effort:
    """What a search spends, and why so much."""

    work: int = 2_000_000
    """Placements in a round: a second or two, the time between looks at the clock."""
    each: int = 20_000
    """Changes for each job in a round: few jobs need no more."""
    rounds: int = 8
    """Rounds without a better schedule before the search ends; each begins anew from the best one."""
    heats: tuple[float, ...] = (0.02, 0.1, 0.3)
    """Part of the objective by which a change may be worse at first, in turn, as the best one depends on the
    instance."""
    few: int = 20
    """Jobs up to which that part holds; of more jobs one move changes a smaller part of the objective."""


_EFFORT = Effort()

GOALS = ("makespan", "weighted_completion", "weighted_tardiness")
"""By what kernels call them: 0, 1, 2."""


@dataclass(frozen=True)
class ListExchange(CertifiedMethod, uses=("seed",)):
    """Lists of jobs, each placed as early as its servers are free for all its time; order and widths are searched.

    It begins with jobs by Smith's ratio and widths of least work, or with the relaxation rounded; then a job is moved
    in the list, or gets another width, and what is a little worse is kept for a while.

    Parameters
    ----------
    rounds : int
        Without improvement.

    References
    ----------
    Ours. The relaxation in intervals is that of A. S. Schulz and M. Skutella, "Scheduling unrelated machines by
    randomized rounding", SIAM J. Discrete Math. 15 (2002), with widths in place of machines.
    """

    rounds: int = _EFFORT.rounds

    name: ClassVar[str] = "list-exchange"
    covers: ClassVar[type[JobsInstance]] = JobsInstance
    kernels: ClassVar[tuple[str, ...]] = ("ddlopt.solvers.cluster.jobs.exchange_kernel",)

    def refuses(self, instance: JobsInstance) -> str | None:
        """Slots."""
        return None if instance.mode == "rigid" else "it has rigid jobs, and this instance has slots"

    def find(self, instance: JobsInstance, limits: Limits, seed: int, clock: Clock, start: Any) -> MethodOutput:
        """The best schedule found, and the bound of the relaxation."""
        search = ListSearch(instance, seed)
        clock.report(search.value, solution=search.schedule)
        search.run(1, clock.left_s)
        clock.report(search.value, solution=search.schedule)
        bound = jobs_bound(instance)
        if not clock.expired:
            loose = relaxed(instance, search.end_s, clock.left_s)
            bound = max(bound, loose.value)
            search.round_off(loose)
        idle = 0
        while not clock.expired and idle < self.rounds:
            if (relative_gap(search.value, bound) or 0.0) <= limits.gap:
                break
            idle = 0 if search.run(1, clock.left_s) else idle + 1
            clock.report(search.value, bound, search.schedule)
        return MethodOutput(search.schedule(), {"rounds": float(search.rounds)}, bound)


class ListSearch:
    """A list of rigid jobs with widths, which gets better round by round.

    Parameters
    ----------
    instance : JobsInstance
    seed : int
    first : int
        Jobs that stay first, in their order.
    """

    def __init__(self, instance: JobsInstance, seed: int, first: int = 0) -> None:
        self.instance, self.seed, self.first, self.rounds = instance, seed, first, 0
        self.menus = [useful(job) for job in instance.jobs]
        most = max(map(len, self.menus))
        self._widths = np.ones((len(self.menus), most), np.int64)
        self._lengths = np.ones((len(self.menus), most))
        for place, menu in enumerate(self.menus):
            self._widths[place, : len(menu)] = [width for width, _ in menu]
            self._lengths[place, : len(menu)] = [length for _, length in menu]
        self._counts = np.array([len(menu) for menu in self.menus], np.int64)
        jobs = instance.jobs
        self._jobs = np.array(
            [[job.arrival_s for job in jobs], [job.weight for job in jobs], [job.deadline_s or 0.0 for job in jobs]]
        )
        areas = [min(width * length for width, length in menu) for menu in self.menus]
        later = sorted(range(first, len(jobs)), key=lambda j: self._key(j, areas[j]))
        self.order = np.array([*range(first), *later], np.int64)
        # The width with the fewest server-seconds to begin with.
        self.chosen = np.array(
            [min(range(len(menu)), key=lambda k: (menu[k][0] * menu[k][1], k)) for menu in self.menus], np.int64
        )
        began = perf_counter()
        self.value = self._improved(self.order, self.chosen, 0, seed)
        self._try_s = perf_counter() - began

    def _key(self, job: int, area: float) -> float:
        arrival, weight, due = self._jobs[:, job]
        if self.instance.objective == "makespan":
            return -area
        # A job without weight comes last.
        return float(due if self.instance.objective == "weighted_tardiness" else arrival + area / max(weight, 1e-9))

    def _improved(self, order: Any, chosen: Any, tries: int, seed: int) -> float:
        goal = GOALS.index(self.instance.objective)
        told = self._widths, self._lengths, self._counts, self._jobs, self.instance.servers, goal
        return float(exchange(order, chosen, *told, self.first, tries, self._heat(), seed))

    def _heat(self) -> float:
        """Of many jobs one changes little."""
        return _EFFORT.heats[self.rounds % len(_EFFORT.heats)] * min(1.0, _EFFORT.few / len(self.menus))

    def _tries(self) -> int:
        """Of a round."""
        jobs = len(self.menus)
        return min(_EFFORT.each * jobs, max(1, _EFFORT.work // jobs))

    def follow(self, order: Any, widths: list[int]) -> None:
        """Go on from another list where that is better; a width that there is not: the nearest one."""
        order = order.copy()
        chosen = np.array(
            [
                min(range(len(menu)), key=lambda k: (abs(menu[k][0] - width), k))
                for menu, width in zip(self.menus, widths, strict=True)
            ],
            np.int64,
        )
        value = self._improved(order, chosen, 0, self.seed)
        if value < self.value:
            self.value, self.order, self.chosen = value, order, chosen

    def round_off(self, loose: Relaxed) -> None:
        """Go on from the relaxation where that is better: each job with its commonest width, in order of their ends."""
        if all(loose.shares):
            widths = [max(shares, key=lambda width: shares[width]) for shares in loose.shares]
            self.follow(np.argsort(loose.ends, kind="stable"), widths)

    def run(self, rounds: int, left_s: float = math.inf) -> bool:
        """Some rounds from the best list, within about a number of seconds; whether it got better."""
        before = self.value
        until = perf_counter() + left_s
        for _ in range(rounds):
            began = perf_counter()
            tries = int(min(self._tries(), max(0.0, until - began) / self._try_s))
            if tries == 0:
                break
            self.rounds += 1
            order, chosen = self.order.copy(), self.chosen.copy()
            value = self._improved(order, chosen, tries, self.seed + self.rounds)
            self._try_s = (perf_counter() - began) / tries
            if value < self.value:
                self.value, self.order, self.chosen = value, order, chosen
        return self.value < before

    @property
    def widths(self) -> list[int]:
        """Of each job."""
        return [self.menus[place][int(k)][0] for place, k in enumerate(self.chosen)]

    @property
    def end_s(self) -> float:
        """When the last job of the best schedule ends."""
        return float(max(Fraction(run.start) + job.length_s(run.servers) for job, run in self._runs()))

    def schedule(self) -> JobsSchedule:
        """The best one, in fractions."""
        return JobsSchedule(instance=self.instance.name, runs=tuple((run,) for _, run in self._runs()))

    def _runs(self) -> list[tuple[Any, Stretch]]:
        jobs, widths = self.instance.jobs, self.widths
        starts = list_starts(self.instance, [int(place) for place in self.order], widths)
        return [
            (job, Stretch(start=str(start), servers=width))
            for job, start, width in zip(jobs, starts, widths, strict=True)
        ]


def list_starts(instance: JobsInstance, order: list[int], widths: list[int]) -> list[Fraction]:
    """Starts, exactly, of jobs that are placed one after the other as early as servers are free for all their time.

    Each job looks through the moments after its arrival, so n jobs take O(n²) steps, on whole numbers of a unit.
    """
    arrivals = [Fraction(job.arrival_s) for job in instance.jobs]
    lengths = [job.length_s(width) for job, width in zip(instance.jobs, widths, strict=True)]
    unit = math.lcm(*(time.denominator for time in (*arrivals, *lengths)))
    whole = [[time.numerator * (unit // time.denominator) for time in each] for each in (arrivals, lengths)]
    # Moments, and the servers that are free from each to the next.
    times, free = [0], [instance.servers]
    starts = [Fraction(0)] * len(instance.jobs)
    for place in order:
        start, length, width = whole[0][place], whole[1][place], widths[place]
        k = bisect_right(times, start) - 1
        while True:
            if free[k] < width:
                # Behind the last moment all servers are free.
                k += 1
                start = times[k]
            elif k + 1 == len(times) or times[k + 1] >= start + length:
                break
            else:
                k += 1
        first, last = (_cut(times, free, moment) for moment in (start, start + length))
        for k in range(first, last):
            free[k] -= width
        starts[place] = Fraction(start, unit)
    return starts


def _cut(times: list[int], free: list[int], moment: int) -> int:
    """The place of a moment, which is put among the others if it is not there."""
    k = bisect_right(times, moment) - 1
    if times[k] == moment:
        return k
    times.insert(k + 1, moment)
    free.insert(k + 1, free[k])
    return k + 1
