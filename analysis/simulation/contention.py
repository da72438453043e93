"""Jobs of a schedule that share servers' network cards, as flows: how long iterations are beside the contention model.

Each server has a card of ``between_servers_bytes_per_s`` in each direction to a switch that is never in the way. A ring
goes once through the servers of its job, from worker to worker within a server at ``within_server_bytes_per_s`` and
from the last worker there over both cards to the next server. Flows share a card with max-min fairness; nothing is
lost by sharing, so that ``degradation`` has no counterpart here.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from ddlopt.analysis.simulation.fair_flows import finish_times
from ddlopt.analysis.simulation.replay import Replay, Task
from ddlopt.models.errors import NotApplicableError
from ddlopt.models.scheduling.instance import SchedulingInstance
from ddlopt.models.scheduling.network import Contention
from ddlopt.models.scheduling.solution import Run, Schedule
from ddlopt.models.scheduling.timing import RingTiming

LONGEST = 8
"""Iterations of the slowest job that are simulated."""


@dataclass(frozen=True)
class Contended:
    """A job that meets others.

    Parameters
    ----------
    job : str
    competitors : int
        Split jobs on its most crowded server, itself included.
    predicted_s, simulated_s : float
        An iteration; simulated the mean over those that ended while all jobs ran.
    """

    job: str
    competitors: int
    predicted_s: float
    simulated_s: float


def busiest_slot(schedule: Schedule) -> int:
    """The first of the slots in which the most split jobs run."""
    split = [run for run in schedule.runs if len(run.workers) > 1]
    return max(sorted({run.start for run in split}), key=lambda slot: len(_running(split, slot)), default=0)


def contended(instance: SchedulingInstance, schedule: Schedule, slot: int) -> list[Contended]:
    """The split jobs of a slot, predicted and simulated together.

    Raises
    ------
    NotApplicableError
        If the instance has no contention.
    """
    rules = instance.contention
    if rules is None:
        raise NotApplicableError(f"'{instance.name}' has no contention, so that there is nothing to compare")
    runs = _running([run for run in schedule.runs if len(run.workers) > 1], slot)
    if not runs:
        return []
    crowds = [max(sum(server in dict(other.workers) for other in runs) for server, _ in run.workers) for run in runs]
    predicted = [_predicted_s(instance, rules, run, crowd) for run, crowd in zip(runs, crowds, strict=True)]
    horizon_s = LONGEST * max(predicted)
    counts = [math.ceil(horizon_s / seconds) for seconds in predicted]
    replay, marks = _replay(instance, rules, runs, counts)
    finished = finish_times(replay)
    ends = [[float(max(finished[task] for task in ends)) for ends in each] for each in marks]
    until = min(each[-1] for each in ends)
    found = []
    for run, crowd, model_s, own in zip(runs, crowds, predicted, ends, strict=True):
        done = max(1, sum(end <= until for end in own))
        found.append(Contended(instance.jobs[run.job].name, crowd, model_s, own[done - 1] / done))
    return found


def _running(runs: Sequence[Run], slot: int) -> list[Run]:
    return [run for run in runs if run.start <= slot < run.end]


def _timing(instance: SchedulingInstance, run: Run) -> RingTiming:
    timing = instance.jobs[run.job].timing
    assert isinstance(timing, RingTiming)  # the instance has seen to it, as it has contention
    return timing


def _predicted_s(instance: SchedulingInstance, rules: Contention, run: Run, crowd: int) -> float:
    at_once = max(1.0, rules.share * crowd)
    bandwidth = rules.between_servers_bytes_per_s / (at_once + rules.degradation * (at_once - 1))
    timing = _timing(instance, run)
    return float(timing.iteration_s(run.width, bandwidth)) + len(run.workers) * rules.server_overhead_s


def _replay(
    instance: SchedulingInstance, rules: Contention, runs: Sequence[Run], counts: Sequence[int]
) -> tuple[Replay, list[list[tuple[int, ...]]]]:
    """The tasks of ``counts`` iterations of each run, and those that end its iterations."""
    servers = sorted({server for run in runs for server, _ in run.workers})
    node = {server: 1 + place for place, server in enumerate(servers)}  # 0 is the switch
    rates = {arc: rules.between_servers_bytes_per_s for own in node.values() for arc in ((own, 0), (0, own))}
    nodes = 1 + len(servers)
    paths: list[tuple[int, ...]] = []
    tasks: list[Task] = []
    marks: list[list[tuple[int, ...]]] = []
    for run, count in zip(runs, counts, strict=True):
        first = len(paths)
        stops = [server for server, workers in run.workers for _ in range(workers)]
        for here, there in zip(stops, [*stops[1:], stops[0]], strict=True):
            if here != there:
                paths.append((node[here], 0, node[there]))
            else:  # a channel within the server that nobody shares
                rates[nodes, nodes + 1] = rules.within_server_bytes_per_s
                paths.append((nodes, nodes + 1))
                nodes += 2
        marks.append(_iterations(instance, rules, run, count, first, tasks))
    return Replay(nodes, rates, tuple(paths), tuple(tasks)), marks


def _iterations(
    instance: SchedulingInstance, rules: Contention, run: Run, count: int, first: int, tasks: list[Task]
) -> list[tuple[int, ...]]:
    timing, w = _timing(instance, run), run.width
    # All that takes no bandwidth: what an iteration takes when no byte is to be moved over the ring.
    alone = (
        float(timing.model_copy(update={"gradient_bytes": 0.0}).iteration_s(w))
        + len(run.workers) * rules.server_overhead_s
    )
    if timing.reduction_bytes_per_s is not None:
        alone += timing.gradient_bytes * (w - 1) / w / timing.reduction_bytes_per_s
    ends: list[tuple[int, ...]] = []
    before: tuple[int, ...] = ()
    for _ in range(count):
        tasks.append(Task(before, seconds=alone))
        before = (len(tasks) - 1,)
        for step in range(2 * (w - 1)):
            last = len(tasks) - w
            for place in range(w):
                after = (last + (place - 1) % w, last + place) if step else before
                tasks.append(Task(after, first + place, timing.gradient_bytes / w))
        before = tuple(range(len(tasks) - w, len(tasks)))
        ends.append(before)
    return ends
