"""What fits into a slot, for the check of prices: what the pattern costs that costs most, in whole numbers."""

import itertools
import math
from collections.abc import Sequence

import numpy as np

from ddlopt.certificates.scheduling.relaxed import Cluster, Ints, offered
from ddlopt.certificates.scheduling.ring_rows import RingRow
from ddlopt.models.errors import NotApplicableError
from ddlopt.models.scheduling.instance import SchedulingInstance

Options = list[tuple[tuple[int, ...], int]]
"""Of one job: types that its workers may be on, and how many there are."""
_MOST_CELLS = 2**26
"""Looked at for one slot: a second."""


def options_of(instance: SchedulingInstance, cluster: Cluster, place: int) -> Options:
    """What a job may have in a slot, in the order in which a proof charges for it; without types all are of one."""
    return [(option.types, option.width) for option in offered(instance, cluster, place)]


def rooms_of(cluster: Cluster) -> tuple[int, ...]:
    """Places on each type.

    Raises
    ------
    NotApplicableError
        Unless every worker takes one place.
    """
    if any(each != 1 for row in cluster.demand for each in row):
        raise NotApplicableError("patterns are of workers that take one place each, and here they do not")
    if len(cluster.capacity) != len(cluster.worker_cost):
        raise NotApplicableError("patterns are of workers that take a place only, and here they take more")
    return tuple(math.floor(room) for room in cluster.capacity)


def dearest(
    rooms: tuple[int, ...], jobs: Sequence[tuple[int, Options, Sequence[int]]], rows: Sequence[RingRow] = ()
) -> int:
    """The most that one option or none of each job, which fit together, cost; of jobs their options and their costs.

    A table over places of each type, and units of each row of rings, has what the jobs so far cost at most in them. The
    workers of an option are on its types in any way.

    Raises
    ------
    NotApplicableError
        If there are too many ways.
    """
    limits = (*rooms, *(row.capacity for row in rows))
    shape = tuple(limit + 1 for limit in limits)
    table: Ints = np.zeros(shape, dtype=np.int64)
    cells = 0
    for place, options, costs in jobs:
        before = table
        table = before.copy()
        for (types, width), cost in zip(options, costs, strict=True):
            units = [int(row.units[place, width]) for row in rows]
            if cost <= 0 or any(each > row.capacity for each, row in zip(units, rows, strict=True)):
                continue
            ways = math.prod(min(width, rooms[k]) + 1 for k in types[1:]) if types else 0
            cells += ways * table.size
            if cells > _MOST_CELLS:
                raise NotApplicableError("there are too many ways for workers to be on types")
            for rest in itertools.product(*(range(min(width, rooms[k]) + 1) for k in types[1:])):
                taken = dict(zip(types, (width - sum(rest), *rest), strict=True))
                if 0 <= taken[types[0]] <= rooms[types[0]]:
                    each = (*(taken.get(k, 0) for k in range(len(rooms))), *units)
                    there = tuple(slice(less, None) for less in each)
                    left = tuple(slice(0, limit + 1 - less) for limit, less in zip(limits, each, strict=True))
                    np.maximum(table[there], before[left] + cost, out=table[there])
    return int(table[limits])
