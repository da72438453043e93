"""One iteration as tasks on a network: what engines are given.

A ring all-reduce over k members sends its part of the gradient in k chunks, in 2 (k - 1) steps: a member sends in each
step what it received, and added to its own, in the one before. All else of an iteration is sent at once.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from ddlopt.models.tolerances import ZERO_TOL
from ddlopt.models.topology.instance import TopologyInstance
from ddlopt.models.topology.solution import Path, TopologyDesign


@dataclass(frozen=True)
class Task:
    """A message along a path, or time that passes.

    Parameters
    ----------
    after : tuple of int
        Tasks that must have ended, by their places; all are earlier ones.
    channel : int or None
        Place of its path in the replay's ``paths``; messages on one path go one after the other. None: it takes
        ``seconds``.
    bytes, seconds : float
        Of the message, or of what only takes time.
    """

    after: tuple[int, ...] = ()
    channel: int | None = None
    bytes: float = 0.0
    seconds: float = 0.0


@dataclass(frozen=True)
class Replay:
    """Tasks on a network.

    Parameters
    ----------
    nodes : int
        Numbered from 0.
    rates : mapping
        Directed link -> bytes per second, of all parallel links together.
    paths : tuple of tuple of int
        Nodes that messages visit; a path may occur more than once, as several connections.
    tasks : tuple of Task
        In an order in which they could be done one by one.
    both_ways : bool
        Whether a link has another one the other way (duplex optics), on which acknowledgements go back among the data.
    """

    nodes: int
    rates: dict[tuple[int, int], float]
    paths: tuple[Path, ...]
    tasks: tuple[Task, ...]
    both_ways: bool = False

    @property
    def link_bytes(self) -> dict[tuple[int, int], float]:
        """Bytes that every link carries."""
        sent = [0.0] * len(self.paths)
        for task in self.tasks:
            if task.channel is not None:
                sent[task.channel] += task.bytes
        load = dict.fromkeys(self.rates, 0.0)
        for path, amount in zip(self.paths, sent, strict=True):
            for link in pairwise(path):
                load[link] += amount
        return load

    @property
    def link_time_s(self) -> float:
        """The busiest link's bytes over its rate: no engine can be done with the messages sooner."""
        return max((load / self.rates[link] for link, load in self.link_bytes.items()), default=0.0)

    def scaled(self, size: float, time: float) -> "Replay":
        """The same with messages ``size`` times as large, in ``time`` times the time."""
        rates = {link: rate * size / time for link, rate in self.rates.items()}
        tasks = tuple(replace(task, bytes=task.bytes * size, seconds=task.seconds * time) for task in self.tasks)
        return replace(self, rates=rates, tasks=tasks)


@dataclass(frozen=True)
class Built:
    """A replay, and for each iteration the tasks that end it."""

    replay: Replay
    ends: tuple[tuple[int, ...], ...]

    def iterations_s(self, finished: Sequence[float]) -> list[float]:
        """Seconds of each iteration, from the times at which the tasks ended."""
        marks = [0.0, *(max(finished[task] for task in ends) for ends in self.ends)]
        return [late - early for early, late in pairwise(marks)]


def replay_of(
    instance: TopologyInstance, design: TopologyDesign, *, steps: bool = True, compute: bool = True, iterations: int = 1
) -> Built:
    """Iterations of a design that the check found feasible, each after the one before.

    Parameters
    ----------
    steps : bool
        Whether rings go step by step; if not, every member sends all that it ever sends at once.
    compute : bool
        Whether to begin with the computation; with overlap ``full`` it goes on beside the messages.
    """
    rates = {pair: count * instance.link_bandwidth_bytes_per_s for pair, count in design.link_counts(instance).items()}
    paths: list[Path] = []
    tasks: list[Task] = []
    ends: list[tuple[int, ...]] = []
    before: tuple[int, ...] = ()
    for _ in range(iterations):
        first = len(tasks)
        if compute and instance.compute_s:
            tasks.append(Task(before, seconds=instance.compute_s))
        ready = (first,) if len(tasks) > first and instance.overlap == "none" else before
        count = len(paths)
        _rings(instance, design, steps, ready, paths, tasks)
        _routes(instance, design, ready, paths, tasks)
        if ends:  # the same connections as in the first iteration
            tasks[first:] = [_moved(task, count) for task in tasks[first:]]
            del paths[count:]
        followed = {place for task in tasks[first:] for place in task.after}
        before = tuple(place for place in range(first, len(tasks)) if place not in followed)
        ends.append(before)
    both_ways = instance.optics == "duplex"
    return Built(Replay(instance.servers, rates, tuple(paths), tuple(tasks), both_ways), tuple(ends))


def _moved(task: Task, count: int) -> Task:
    return task if task.channel is None else replace(task, channel=task.channel - count)


def _rings(
    instance: TopologyInstance,
    design: TopologyDesign,
    steps: bool,
    ready: tuple[int, ...],
    paths: list[Path],
    tasks: list[Task],
) -> None:
    for ring in design.rings:
        group, k = instance.allreduce_groups[ring.group], len(ring.members)
        channels = range(len(paths), len(paths) + k)
        paths += ring.paths
        if not steps:
            tasks += [Task(ready, channel, ring.share * group.hop_bytes) for channel in channels]
            continue
        chunk = ring.share * group.gradient_bytes / k
        for step in range(2 * (k - 1)):
            last = len(tasks) - k
            for place, channel in enumerate(channels):
                after = (last + (place - 1) % k, last + place) if step else ready
                tasks.append(Task(after, channel, chunk))


def _routes(
    instance: TopologyInstance, design: TopologyDesign, ready: tuple[int, ...], paths: list[Path], tasks: list[Task]
) -> None:
    for route in design.routes:
        amount = float(instance.traffic_bytes[route.source, route.target])
        for path, fraction in zip(route.paths, route.fractions, strict=True):
            if amount * fraction > 0 and fraction > ZERO_TOL:
                tasks.append(Task(ready, len(paths), amount * fraction))
                paths.append(path)
