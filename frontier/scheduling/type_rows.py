"""What fits into a slot where accelerators are of several types: choices of a class and a width for every job."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.sparse import coo_array
from scipy.sparse.csgraph import maximum_flow

from ddlopt.frontier.scheduling.prices.offers import typed_pool
from ddlopt.models.errors import SolverError
from ddlopt.models.scheduling.instance import SchedulingInstance, most_workers
from ddlopt.models.scheduling.pool import Workers

_MOST_STATES = 100_000
"""Of what may be left of all capacities: a table over them is a megabyte for each job."""


@dataclass(frozen=True)
class TypeRows:
    r"""Capacities of sets of types, which say what fits.

    Workers of a class may be on any of its types. By Hall's theorem workers of several classes have places if and only
    if, for every union S of classes,

    .. math::
        \sum_{c \subseteq S} n_c \le \sum_{k \in S} C_k ,

    :math:`n_c` the workers of class c and :math:`C_k` the places on type k. Of classes that hold each other, as those
    of types that all jobs have in the same order, there are no more unions than classes.

    Parameters
    ----------
    capacity : tuple of int
        Places on each union of classes.
    rows : tuple of tuple of tuple of int
        By job and class, the unions that hold the class.
    types : tuple of tuple of tuple of int
        By job and class, its types.
    rooms : tuple of int
        Places on each type.
    """

    capacity: tuple[int, ...]
    rows: tuple[tuple[tuple[int, ...], ...], ...]
    types: tuple[tuple[tuple[int, ...], ...], ...]
    rooms: tuple[int, ...]

    @classmethod
    def of(cls, instance: SchedulingInstance) -> "TypeRows | str":
        """The rows of an instance with types, or, in words, why it has none."""
        cluster = typed_pool(instance)
        if not cluster.exact:
            return "where workers are decides more than their types"
        if not (instance.demand == instance.demand[0]).all():
            return "on types of accelerators patterns are of workers that all take the same, and here they do not"
        if len(set(cluster.worker_cost.tolist())) > 1:
            return "workers take another power on each type, and a pattern does not say on which they are"
        # A single server holds as many workers as servers of its type together.
        held = most_workers(instance.capacity, instance.demand[0])
        accelerators = instance.accelerators
        rooms = tuple(int(held[accelerators.of_server == k].sum()) for k in range(len(cluster.names)))
        jobs = range(len(instance.jobs))
        types = tuple(tuple(each.types for each in accelerators.classes(job)) for job in jobs)
        unions: set[frozenset[int]] = set()
        for one in {frozenset(each) for mine in types for each in mine}:
            unions |= {one} | {one | other for other in unions}
        kept = sorted(map(sorted, _needed(unions, {frozenset(each) for mine in types for each in mine})))
        capacity = tuple(sum(rooms[k] for k in union) for union in kept)
        if math.prod(room + 1 for room in capacity) > _MOST_STATES:
            return f"what may be left of {len(capacity)} sets of types has more than {_MOST_STATES} states"
        rows = tuple(
            tuple(tuple(row for row, union in enumerate(kept) if set(each) <= set(union)) for each in mine)
            for mine in types
        )
        return cls(capacity, rows, types, rooms)

    def weights(self, job: int, k: int, width: int) -> tuple[int, ...]:
        """What a width of class k takes of each capacity."""
        mine = self.rows[job][k]
        return tuple(width if row in mine else 0 for row in range(len(self.capacity)))

    def places(self, instance: SchedulingInstance, chosen: Sequence[tuple[int, int, int]]) -> dict[int, Workers]:
        """Workers on servers of (job, class, width) that fit.

        Raises
        ------
        SolverError
            If they do not.
        """
        if not chosen:
            return {}
        jobs, kinds = len(chosen), len(self.rooms)
        arcs = [(0, 1 + place, width) for place, (_, _, width) in enumerate(chosen)]
        arcs += [
            (1 + place, 1 + jobs + kind, width)
            for place, (job, k, width) in enumerate(chosen)
            for kind in self.types[job][k]
        ]
        arcs += [(1 + jobs + kind, 1 + jobs + kinds, room) for kind, room in enumerate(self.rooms)]
        tails, heads, rooms = (np.array(column, dtype=np.int32) for column in zip(*arcs, strict=True))
        size = 2 + jobs + kinds
        found = maximum_flow(coo_array((rooms, (tails, heads)), shape=(size, size)).tocsr(), 0, size - 1)
        if found.flow_value != sum(width for _, _, width in chosen):
            raise SolverError(f"'{instance.name}': workers of {jobs} jobs do not fit on the types of their classes")
        flow = found.flow.toarray()
        of_server = instance.accelerators.of_server.tolist()
        free = most_workers(instance.capacity, instance.demand[0])
        placed: dict[int, Workers] = {}
        for place, (job, _, _) in enumerate(chosen):
            where = []
            for kind in range(kinds):
                left = int(flow[1 + place, 1 + jobs + kind])
                for server, own in enumerate(of_server):
                    taken = min(left, int(free[server])) if own == kind else 0
                    if taken > 0:
                        where.append((server, taken))
                        free[server] -= taken
                        left -= taken
            placed[job] = tuple(where)
        return placed


def _needed(unions: set[frozenset[int]], single: set[frozenset[int]]) -> set[frozenset[int]]:
    """Unions but those of parts with no type in common, which say nothing that the parts do not."""

    def joined(union: frozenset[int]) -> bool:
        parts = [each for each in single if each <= union]
        reached = set(parts[0])
        while more := [each for each in parts if each & reached and not each <= reached]:
            reached |= more[0]
        return reached == union

    return {union for union in unions if union in single or joined(union)}
