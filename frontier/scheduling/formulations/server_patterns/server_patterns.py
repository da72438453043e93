"""What servers can hold: all multisets of widths and parts of jobs that fit."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import inf
from typing import Any, NamedTuple

from ddlopt.models.scheduling.formulations.slot_embedding.widths import SlotData
from ddlopt.models.scheduling.instance import SchedulingInstance, most_workers
from ddlopt.models.tolerances import let_pass

MOST_PATTERNS = 3000
"""Patterns of all classes together beyond which servers are better modelled one by one."""

Pattern = tuple[Any, ...]


class ServerClass(NamedTuple):
    """Servers of one group that have equal places, links and power.

    ``solos`` are the multisets of widths that fit on such a server, ``shares`` those of (workers, kind of job) of jobs
    that are on other servers besides.
    """

    servers: tuple[int, ...]
    places: int
    bandwidth_bytes_per_s: float
    worker_cost: float
    idle_cost: float
    solos: tuple[Pattern, ...]
    shares: tuple[Pattern, ...]


@dataclass(frozen=True)
class Patterns:
    """Groups of servers, their classes, and the jobs by what they take of a link.

    Parameters
    ----------
    groups : tuple of tuples of ServerClass
        What is in one group is not told apart by any link but the servers' own.
    kind : mapping
        Job with a ring -> number of its kind; jobs of one kind take of a link the same, as far as it matters.
    """

    groups: tuple[tuple[ServerClass, ...], ...]
    kind: Mapping[int, int]

    @property
    def group_of(self) -> dict[int, int]:
        """Group of each server."""
        return {s: r for r, group in enumerate(self.groups) for one in group for s in one.servers}

    def most(self, group: int) -> int:
        """Places of the largest server of a group."""
        return max(one.places for one in self.groups[group])

    def parts(self, job: int, group: int, width: int) -> list[int]:
        """Parts of fewer workers than ``width`` that a job may have on a server of a group."""
        kind = self.kind[job]
        found = {m for one in self.groups[group] for share in one.shares for m, k in share if k == kind}
        return sorted(m for m in found if m < width)


def server_patterns(
    instance: SchedulingInstance,
    data: SlotData,
    groups: Sequence[Sequence[int]],
    bandwidth: Mapping[int, float],
    rings: bool,
) -> Patterns | str:
    """The patterns of servers, or why there are none: workers take different amounts, or there are too many patterns.

    Parameters
    ----------
    groups : sequence of sequences of int
        Every server is in one.
    bandwidth : mapping
        Of the link of each server whose link may run short.
    rings : bool
        Whether jobs need a ring at all.
    """
    jobs = list(data.gains)
    if not jobs or not (instance.demand[jobs] == instance.demand[jobs[0]]).all():
        return "workers take different amounts"
    places = most_workers(instance.capacity, instance.demand[jobs[0]]).tolist()
    ringed = [i for i in jobs if rings and data.rate[i] > 0]
    rates = sorted({float(data.rate[i]) for i in ringed if data.most(i) > 1})
    identical = all(len({_times(rate, limit) for rate in rates}) <= 1 for limit in bandwidth.values())
    number = {rate: 0 if identical else k for k, rate in enumerate(rates)}
    widths = sorted({w for i in ringed for w in data.gains[i]})
    largest = max((data.most(i) - 1 for i in ringed), default=0)
    made, left = [], MOST_PATTERNS
    for group in groups:
        equal: dict[tuple[int, float, float, float], list[int]] = defaultdict(list)
        for s in group:
            equal[places[s], bandwidth.get(s, inf), float(data.worker_cost[s]), float(data.idle_cost[s])].append(s)
        classes = []
        for (room, limit, worker_cost, idle_cost), servers in sorted(equal.items()):
            solos = _multisets([(w, 0.0, w) for w in widths if w <= room], room, inf, left)
            kinds = {k: rate for rate, k in number.items()}
            items = [(m, rate, (m, k)) for m in range(1, min(room, largest) + 1) for k, rate in kinds.items()]
            shares = _multisets(items, room, limit, left)
            left -= len(solos) + len(shares)
            if left < 0:
                return f"servers have more than {MOST_PATTERNS} patterns"
            classes.append(
                ServerClass(tuple(servers), room, limit, worker_cost, idle_cost, tuple(solos), tuple(shares))
            )
        made.append(tuple(classes))
    return Patterns(tuple(made), {i: number.get(float(data.rate[i]), 0) for i in ringed})


def _times(rate: float, limit: float) -> int:
    return int(let_pass(limit) // rate)


def _multisets(items: Sequence[tuple[int, float, Any]], room: int, limit: float, most: int) -> list[Pattern]:
    """All multisets of (size, load, what) of total size and load within room and limit; cut off after ``most``."""
    found: list[Pattern] = []
    stack: list[tuple[int, int, float, Pattern]] = [(0, room, let_pass(limit), ())]
    while stack and len(found) <= most:
        first, space, band, chosen = stack.pop()
        found.append(chosen)
        for k in range(first, len(items)):
            size, load, what = items[k]
            if size <= space and load <= band:
                stack.append((k, space - size, band - load, (*chosen, what)))
    return found
