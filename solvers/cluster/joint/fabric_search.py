"""Lists of jobs in a fabric: each gets hosts, near one another, and rates on the uplinks that it crosses.

A job is placed where it ends first: on the hosts that are free for all its time in the smallest group with room, and as
fast as its plan, or slower where less of an uplink is left, which may be sooner than waiting. Order and widths are
searched as :class:`~ddlopt.solvers.cluster.jobs.list_exchange.ListSearch` does.
"""

import math
from fractions import Fraction
from functools import cached_property
from time import perf_counter
from typing import Any

import numpy as np

from ddlopt.models.cluster.jobs.instance import JobsInstance, JobsSchedule
from ddlopt.models.cluster.joint.fabric import Fabric
from ddlopt.models.cluster.joint.instance import JointInstance, Run
from ddlopt.solvers.cluster.jobs.list_exchange import GOALS, ListSearch
from ddlopt.solvers.cluster.jobs.relaxation import Resource
from ddlopt.solvers.cluster.jobs.start_order import with_widths
from ddlopt.solvers.cluster.joint.fabric_kernel import exchange_in_fabric

_KEPT = 1e-8
"""Part of every uplink that is not handed out: in fractions rates must add up to no more than all of it."""


class FabricSearch(ListSearch):
    """A list of jobs with widths in a fabric, which gets better round by round.

    Parameters
    ----------
    instance : JobsInstance
        With times of plans, and no time below :meth:`JointInstance.crossing_s`.
    joint : JointInstance
    seed : int
    """

    def __init__(self, instance: JobsInstance, joint: JointInstance, seed: int) -> None:
        assert joint.fabric is not None
        self.joint, self.fabric = joint, joint.fabric
        groups = self.fabric.groups
        self._above = np.array([-1 if each.inside is None else each.inside for each in groups], np.int64)
        self._hosts = np.array(self.fabric.sizes, np.int64)
        self._uplinks = np.array([each.uplink_bytes_per_s for each in groups]) * (1 - _KEPT)
        # What the kernel tells apart is a part of a job's time, of which seconds of a calendar leave nothing.
        self._begins = min(job.arrival_s for job in instance.jobs)
        self._plain = ListSearch(instance, seed)
        super().__init__(instance, seed)

    @cached_property
    def _sent(self) -> np.ndarray[Any, np.dtype[np.float64]]:
        """Bytes over each uplink that is crossed, by job and place in its menu."""
        sent = np.zeros(self._lengths.shape)
        for place, menu in enumerate(self.menus):
            sent[place, : len(menu)] = [self.joint.sent_bytes(place, width) for width, _ in menu]
        return sent

    def _improved(self, order: Any, chosen: Any, tries: int, seed: int) -> float:
        return self._placed(order, chosen, tries, seed)[0]

    def _placed(self, order: Any, chosen: Any, tries: int, seed: int) -> tuple[float, Any, Any, Any]:
        """The objective; starts and ends from the first arrival on, and hosts in each group."""
        many, goal = len(self.menus), GOALS.index(self.instance.objective)
        before = self._begins * (1.0, float(self._jobs[1].sum()), 0.0)[goal]
        jobs = self._jobs - self._begins * np.array([[1.0], [0.0], [1.0]])
        groups = self._above, self._hosts, self._uplinks
        told = self._widths, self._lengths, self._sent, self._counts, jobs, *groups
        effort = goal, self.first, tries, self._heat(), seed
        found = np.zeros(many), np.zeros(many), np.zeros((many, len(self._above)))
        return before + float(exchange_in_fabric(order, chosen, *told, *effort, *found)), *found

    def _tries(self) -> int:
        return max(1, super()._tries() // (1 + len(self._above)))

    def follow_starts(self, schedule: JobsSchedule) -> None:
        """Go on from a schedule that was made without a fabric, where that is better: jobs by its starts."""
        self.follow(by_starts(schedule), [run.servers for (run,) in schedule.runs])

    def run(self, rounds: int, left_s: float = math.inf) -> bool:
        """As for lists; each time the best list without the fabric, which is soon found, is gone on from as well."""
        before, began = self.value, perf_counter()
        for _ in range(rounds):
            self._plain.run(1, (left_s - (perf_counter() - began)) / 2)
            self.follow_starts(self._plain.schedule())
            super().run(1, left_s - (perf_counter() - began))
        return self.value < before

    @property
    def end_s(self) -> float:
        """When the last job of the best schedule ends."""
        return self._begins + float(self._placed(self.order.copy(), self.chosen.copy(), 0, self.seed)[2].max())

    def runs(self) -> tuple[Run, ...]:
        """The best list exactly, with all step times."""
        _, starts, ends, places = self._placed(self.order.copy(), self.chosen.copy(), 0, self.seed)
        exact = _Exact(self.fabric)
        made: dict[int, Run] = {}
        # In the order of starts, so that a start that moves by a rounding pushes those after it.
        for place in np.argsort(starts, kind="stable"):
            job, width = self.instance.jobs[place], self.widths[place]
            step, length = job.step_s[width - 1], float(job.length_s(width))
            assert step is not None
            # Half: who is slowed down by what is kept of an uplink alone is slowed down by just that.
            if ends[place] - starts[place] > length * (1 + _KEPT / 2):
                step = max(step, float(ends[place] - starts[place]) / job.iterations)
            given = {rack: round(places[place, rack]) for rack in self.fabric.racks if places[place, rack] > 0}
            choice = self.joint.workloads[self.joint.jobs[place].workload].choice(width)
            sent = Fraction(choice.crossing_bytes if choice else 0)
            soonest = Fraction(self._begins) + Fraction(float(starts[place]) * (1 - _KEPT))
            earliest = max(Fraction(job.arrival_s), soonest)
            start = exact.start(
                Fraction(job.arrival_s),
                earliest,
                Fraction(job.iterations) * Fraction(step),
                given,
                sent / Fraction(step),
            )
            made[int(place)] = Run(start=str(start), servers=width, step_s=step, places=tuple(sorted(given.items())))
        return tuple(made[place] for place in range(len(made)))


class _Exact:
    """Jobs with given hosts and rates, one after the other, in fractions."""

    def __init__(self, fabric: Fabric) -> None:
        self.fabric = fabric
        self.most = [Fraction(group.uplink_bytes_per_s) for group in fabric.groups]
        self.busy: list[tuple[Fraction, Fraction, dict[int, int], dict[int, Fraction]]] = []

    def start(
        self, arrival: Fraction, earliest: Fraction, length: Fraction, places: dict[int, int], rate: Fraction
    ) -> Fraction:
        """The first moment, of ends of others and the arrival, from which on everything is free for so long."""
        servers, totals = sum(places.values()), self.fabric.totals(places)
        rates = {group: rate for group, count in enumerate(totals) if 0 < count < servers and rate}
        moments = sorted({arrival, *(end for _, end, *_ in self.busy if end > arrival)})
        # What is before is taken, as far as floats say.
        later = [moment for moment in moments if moment >= earliest] or moments[-1:]
        start = next((each for each in later if self._free(each, each + length, places, rates)), moments[-1])
        self.busy.append((start, start + length, places, rates))
        return start

    def _free(self, start: Fraction, end: Fraction, places: dict[int, int], rates: dict[int, Fraction]) -> bool:
        near = [each for each in self.busy if each[0] < end and each[1] > start]
        for moment in {start, *(each[0] for each in near if each[0] > start)}:
            now = [each for each in near if each[0] <= moment < each[1]]
            for rack, count in places.items():
                if count + sum(each[2].get(rack, 0) for each in now) > self.fabric.groups[rack].hosts:
                    return False
            for group, rate in rates.items():
                if rate + sum(each[3].get(group, Fraction(0)) for each in now) > self.most[group]:
                    return False
        return True


def fitted(high: JobsInstance, joint: JointInstance, schedule: JobsSchedule) -> tuple[Run, ...]:
    """Runs in the fabric of a schedule that was made without it: jobs by its starts, each with its width."""
    widths = {job.name: run.servers for job, (run,) in zip(high.jobs, schedule.runs, strict=True)}
    search = FabricSearch(with_widths(high, lambda job: widths[job.name]), joint, 0)
    search.order = by_starts(schedule)
    return search.runs()


def by_starts(schedule: JobsSchedule) -> Any:
    """Places of jobs, in the order in which they start."""
    return np.argsort([float(Fraction(run.start)) for (run,) in schedule.runs], kind="stable").astype(np.int64)


def uplinks(joint: JointInstance) -> tuple[Resource, ...]:
    """The uplinks of every cut together, and what jobs send over them at least, for a relaxation."""
    if joint.fabric is None:
        return ()
    slowest = min(group.uplink_bytes_per_s for group in joint.fabric.groups)
    found = []
    for load in joint.fabric.loads(joint.widths):
        sent = [{width: joint.sent_bytes(place, width) for width in joint.widths} for place in range(len(joint.jobs))]
        used = tuple({width: load.least[width] * own[width] for width in own} for own in sent)
        found.append(Resource(load.rate, used, sum(max(own.values()) for own in sent) / slowest))
    return tuple(found)
