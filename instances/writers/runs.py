"""What jobs of any queue need to know of a schedule: windows in whole seconds, servers in the order of the ring."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from ddlopt.models.errors import OptionError
from ddlopt.models.scheduling.instance import SchedulingInstance
from ddlopt.models.scheduling.solution import Run, Schedule

# Of a second: slots that are whole seconds but for rounding are not made longer by one.
_ROUNDING = 1e-6
# Seconds that a queue can give to a job, and that dates can be reckoned with.
_LONGEST_S = 10**9


@dataclass(frozen=True)
class Window:
    """A run as a queue has it.

    Parameters
    ----------
    place : int
        In the schedule's ``runs``.
    run : Run
    start_s, end_s : int
        After the schedule's beginning.
    servers : tuple of (int, int)
        (server, workers) in the order of the ring, so that ranks follow it.
    before : int or None
        Place of the same job's run before this one.
    """

    place: int
    run: Run
    start_s: int
    end_s: int
    servers: tuple[tuple[int, int], ...]
    before: int | None


def windows(instance: SchedulingInstance, schedule: Schedule) -> tuple[Window, ...]:
    """Runs in the order of their starts.

    Raises
    ------
    OptionError
        If slots are shorter than a second, or times too long for a queue.
    """
    if instance.slot_s < 1:
        raise OptionError(
            f"slot_s of '{instance.name}' is {instance.slot_s:g}; queues know whole seconds, so slots of at least one"
        )
    if instance.slots * instance.slot_s > _LONGEST_S:
        raise OptionError(f"'{instance.name}' lasts {instance.slots * instance.slot_s:g} s, too long for a queue")
    order = sorted(range(len(schedule.runs)), key=lambda place: (schedule.runs[place].start, place))
    last: dict[int, int] = {}
    found = []
    for place in order:
        run = schedule.runs[place]
        start, end = (_second(slot * instance.slot_s) for slot in (run.start, run.end))
        found.append(Window(place, run, start, end, _in_ring_order(run), last.get(run.job)))
        last[run.job] = place
    return tuple(found)


def amounts(demand: dict[str, float], known: Sequence[str]) -> tuple[dict[str, int], dict[str, float]]:
    """What a worker needs: of the known resources in whole numbers, and all else, which a queue cannot be told."""
    whole = {
        name: int(demand[name]) for name in known if demand.get(name, 0) >= 1 and demand[name] == int(demand[name])
    }
    return whole, {name: value for name, value in demand.items() if name not in whole and value}


def _second(time_s: float) -> int:
    return math.ceil(time_s - _ROUNDING)


def _in_ring_order(run: Run) -> tuple[tuple[int, int], ...]:
    workers = dict(run.workers)
    on_ring = [server for server in dict.fromkeys(run.ring) if server in workers]
    return tuple((server, workers[server]) for server in dict.fromkeys([*on_ring, *workers]))
