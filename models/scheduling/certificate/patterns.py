"""What fits into a slot, for the check of prices: what the pattern costs that costs most, in whole numbers."""

import itertools
import math
from collections.abc import Sequence

import numpy as np

from ddlopt.models.errors import NotApplicableError
from ddlopt.models.scheduling.certificate.relaxed import Cluster, Ints, choices
from ddlopt.models.scheduling.certificate.typed import TypedCluster, options_on_types
from ddlopt.models.scheduling.instance import SchedulingInstance

Options = list[tuple[tuple[int, ...], int]]
"""Of one job: types that its workers may be on, and how many there are."""
_MOST_CELLS = 2**26
"""Looked at for one slot: a second."""


def options_of(instance: SchedulingInstance, cluster: Cluster | TypedCluster, place: int) -> Options:
    """What a job may have in a slot, in the order in which a proof charges for it; without types all are of one."""
    if isinstance(cluster, TypedCluster):
        return [(types, width) for types, width, _ in options_on_types(instance, cluster, place)]
    return [((0,), width) for width in choices(instance, place, cluster)[0].tolist()]


def rooms_of(cluster: Cluster | TypedCluster) -> tuple[int, ...]:
    """Places on each type.

    Raises
    ------
    NotApplicableError
        Unless every worker takes one place.
    """
    if len({tuple(row) for row in cluster.demand}) > 1 or any(each != 1 for row in cluster.demand for each in row):
        raise NotApplicableError("patterns are of workers that take one place each, and here they do not")
    types = len(cluster.rooms[0]) if isinstance(cluster, TypedCluster) else 1
    if len(cluster.capacity) != types:
        raise NotApplicableError("patterns are of workers that take a place only, and here they take more")
    return tuple(math.floor(room) for room in cluster.capacity)


def dearest(rooms: tuple[int, ...], jobs: Sequence[tuple[Options, Sequence[int]]]) -> int:
    """The most that one option or none of each job, which fit together, cost; of each job its options and their costs.

    A table over places of each type has what the jobs so far cost at most in them. The workers of an option are on its
    types in any way.

    Raises
    ------
    NotApplicableError
        If there are too many ways.
    """
    shape = tuple(room + 1 for room in rooms)
    table: Ints = np.zeros(shape, dtype=np.int64)
    cells = 0
    for options, costs in jobs:
        before = table
        table = before.copy()
        for (types, width), cost in zip(options, costs, strict=True):
            if cost <= 0:
                continue
            ways = math.prod(min(width, rooms[k]) + 1 for k in types[1:]) if types else 0
            cells += ways * table.size
            if cells > _MOST_CELLS:
                raise NotApplicableError("there are too many ways for workers to be on types")
            for rest in itertools.product(*(range(min(width, rooms[k]) + 1) for k in types[1:])):
                taken = dict(zip(types, (width - sum(rest), *rest), strict=True))
                if 0 <= taken[types[0]] <= rooms[types[0]]:
                    there = tuple(slice(taken.get(k, 0), None) for k in range(len(rooms)))
                    left = tuple(slice(0, room + 1 - taken.get(k, 0)) for k, room in enumerate(rooms))
                    np.maximum(table[there], before[left] + cost, out=table[there])
    return int(table[rooms])
