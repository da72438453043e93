"""What overlaps in time: peaks of use, who competes with whom, and energy; for the check of a schedule."""

from collections import defaultdict
from collections.abc import Hashable, Iterable, Iterator
from fractions import Fraction
from typing import Any, NamedTuple

from ddlopt.models.contracts import Number
from ddlopt.models.scheduling.instance import SchedulingInstance
from ddlopt.models.scheduling.solution import Run, Schedule


class Peak(NamedTuple):
    """The most that is used of something at a time, and the first slot in which it is."""

    key: Any
    slot: int
    amount: Number


def _steps(events: Iterable[tuple[int, Number]]) -> list[tuple[int, Number]]:
    """(slot, sum of the changes there), by slot."""
    changes: dict[int, Number] = {}
    for slot, change in events:
        changes[slot] = changes.get(slot, 0) + change
    return sorted(changes.items())


def peaks(uses: Iterable[tuple[Hashable, int, int, Number]], number: type[Fraction] | type[float]) -> list[Peak]:
    """The peak of every key, of uses (key, first slot, slot after the last, amount)."""
    events: dict[Hashable, list[tuple[int, Number]]] = defaultdict(list)
    for key, start, end, amount in uses:
        events[key] += [(start, amount), (end, -amount)]
    found = []
    for key, changes in events.items():
        level, worst = number(0), Peak(key, 0, number(0))
        for slot, change in _steps(changes):
            level += change
            if level > worst.amount:
                worst = Peak(key, slot, level)
        found.append(worst)
    return found


def contention_levels(instance: SchedulingInstance, schedule: Schedule) -> Iterator[tuple[Run, int, int, int]]:
    """(run, first slot, slots, split jobs on its most crowded server): runs cut where their rate may change.

    The last figure is 0 for a run on one server, and without contention, where runs are not cut at all.
    """
    if instance.contention is None:
        yield from ((run, run.start, run.slots, 0) for run in schedule.runs)
        return
    split = [run for run in schedule.runs if len(run.workers) > 1]
    cuts = sorted({slot for run in split for slot in (run.start, run.end)})
    crowd: dict[tuple[int, int], int] = defaultdict(int)
    place = {slot: index for index, slot in enumerate(cuts)}
    for run in split:
        for index in range(place[run.start], place[run.end]):
            for server, _ in run.workers:
                crowd[server, index] += 1
    for run in schedule.runs:
        if len(run.workers) == 1:
            yield run, run.start, run.slots, 0
            continue
        for index in range(place[run.start], place[run.end]):
            slots = cuts[index + 1] - cuts[index]
            yield run, cuts[index], slots, max(crowd[server, index] for server, _ in run.workers)


def energy_j(instance: SchedulingInstance, schedule: Schedule, number: type[Fraction] | type[float]) -> Number:
    """Energy of all servers in use and of all workers, in joules."""
    if not (instance.idle_w.any() or instance.worker_w.any()):
        return number(0)
    slot_s = number(instance.slot_s)
    total = number(0)
    spans: dict[int, list[tuple[int, int]]] = defaultdict(list)
    for run in schedule.runs:
        for server, count in run.workers:
            total += count * run.slots * number(float(instance.worker_w[server])) * slot_s
            spans[server].append((run.start, run.end))
    for server, taken in spans.items():
        on, until = 0, 0
        for start, end in sorted(taken):
            on += max(0, end - max(start, until))
            until = max(until, end)
        total += on * number(float(instance.idle_w[server])) * slot_s
    return total
