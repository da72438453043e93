"""Where gangs may be and how fast they then are: servers, contention levels, and what is interchangeable."""

import itertools
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from ddlopt.models.scheduling.instance import SchedulingInstance, most_workers
from ddlopt.models.scheduling.solution import Run

SPREAD = 2
"""Number of servers that stands for all from two on, where it makes no difference."""


class Mode(NamedTuple):
    """Servers that a job is on (:data:`SPREAD`: two or more, where that is all that counts) and contention level."""

    servers: int
    level: int


@dataclass(frozen=True)
class GangPlaces:
    """What the model is made of, for one instance."""

    instance: SchedulingInstance
    horizon: int

    @property
    def jobs(self) -> range:
        """All jobs."""
        return range(len(self.instance.jobs))

    @property
    def servers(self) -> range:
        """All servers."""
        return range(self.instance.server_count)

    @cached_property
    def room(self) -> list[list[int]]:
        """Workers of each job that each server holds at most."""
        return [
            np.minimum(most_workers(self.instance.capacity, self.instance.demand[j]), self.width(j)).tolist()
            for j in self.jobs
        ]

    def width(self, job: int) -> int:
        """G_j."""
        return self.instance.jobs[job].max_workers

    def slots(self, job: int) -> range:
        """Slots in which a job may run."""
        return range(self.instance.jobs[job].arrival, min(self.instance.last_slot(job), self.horizon))

    def hosts(self, job: int) -> list[int]:
        """Numbers of servers that a job may be on."""
        room = sorted(self.room[job], reverse=True)
        fewest = next(n for n in range(1, len(room) + 1) if sum(room[:n]) >= self.width(job))
        most = min(sum(count > 0 for count in room), self.width(job))
        if self.hosts_matter:
            return list(range(fewest, most + 1))
        return [1] * (fewest == 1) + [SPREAD] * (most > 1)

    @property
    def hosts_matter(self) -> bool:
        """Whether it makes a difference on how many servers a split job is."""
        rules = self.instance.contention
        return rules is not None and rules.server_overhead_s > 0

    @cached_property
    def splittable(self) -> list[int]:
        """Jobs that may be on several servers."""
        return [j for j in self.jobs if max(self.hosts(j)) > 1]

    def modes(self, job: int) -> list[Mode]:
        """All that a job's rate depends on."""
        if self.instance.contention is None:
            return [Mode(n, 0) for n in self.hosts(job)]
        levels = range(1, len(self.splittable) + 1)
        return [Mode(n, k) for n in self.hosts(job) for k in (levels if n > 1 else [0])]

    def part(self, job: int, mode: Mode) -> float:
        """The part of a job's mini-batches that it does in a slot."""
        instance = self.instance
        rules, width = instance.contention, self.width(job)
        if rules is None:
            rate = instance.progress(job, width)
        else:
            bandwidth = rules.within_server_bytes_per_s
            if mode.level:
                at_once = max(1.0, rules.share * mode.level)
                bandwidth = rules.between_servers_bytes_per_s / (at_once + rules.degradation * (at_once - 1))
            iteration_s = float(instance.jobs[job].timing.iteration_s(width, bandwidth))
            rate = width / (iteration_s + mode.servers * rules.server_overhead_s) * instance.slot_s
        return min(1.0, rate / instance.jobs[job].minibatches)


def widest(places: GangPlaces) -> int:
    """The first of the jobs of most workers."""
    return max(places.jobs, key=places.width)


def equal_servers(places: GangPlaces) -> Iterator[tuple[int, int]]:
    """Neighbours within a group of servers."""
    first = 0
    for group in places.instance.servers:
        yield from itertools.pairwise(range(first, first + group.count))
        first += group.count


def equal_jobs(places: GangPlaces) -> Iterator[tuple[int, int]]:
    """Jobs that only their names tell apart, each with the next of its kind; the widest fixes servers and is none."""
    alike: dict[Any, list[int]] = defaultdict(list)
    for j, job in enumerate(places.instance.jobs):
        if j != widest(places):
            key = tuple(sorted(job.demand.items()))
            alike[job.arrival, job.deadline, job.max_workers, job.timing, job.minibatches, key, job.utility].append(j)
    for jobs in alike.values():
        yield from itertools.pairwise(jobs)


def renumbered(places: GangPlaces, runs: Mapping[int, Run]) -> dict[int, Run]:
    """The same schedule with equal servers and equal jobs in the order that the model wants."""
    held = dict(runs[widest(places)].workers)
    number: dict[int, int] = {}
    first = 0
    for group in places.instance.servers:
        own = range(first, first + group.count)
        number.update(zip(sorted(own, key=lambda s: -held.get(s, 0)), own, strict=True))
        first += group.count
    found = {}
    for j, run in runs.items():
        workers = tuple(sorted((number[s], count) for s, count in run.workers))
        found[j] = run.model_copy(update={"workers": workers})
    chains: list[list[int]] = []
    for j, following in equal_jobs(places):
        if chains and chains[-1][-1] == j:
            chains[-1].append(following)
        else:
            chains.append([j, following])
    for chain in chains:
        for j, run in zip(chain, sorted((found[j] for j in chain), key=lambda run: run.start), strict=True):
            found[j] = run.model_copy(update={"job": j})
    return found
