"""What widths of jobs in a slot keep to because rings have to leave servers, racks and pods."""

import math
from collections import defaultdict
from collections.abc import Iterator, Sequence
from fractions import Fraction
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from ddlopt.certificates.scheduling.relaxed import EXCESS
from ddlopt.models.scheduling.instance import SchedulingInstance
from ddlopt.models.scheduling.rings.rings import ring_rate


class RingRow(NamedTuple):
    """In every slot the ``units[job, width]`` of all jobs, (I, W + 1) whole numbers, are ``capacity`` at most."""

    units: npt.NDArray[np.int64]
    capacity: int


class _Group(NamedTuple):
    """Servers with the switches that they hang on: what there is room for in units, and rings that can leave."""

    nodes: frozenset[int]
    room: int
    rings: int


def ring_rows(instance: SchedulingInstance) -> list[RingRow]:
    r"""Rows on the widths in a slot, of servers, then of racks and so on; none where they would say nothing.

    Workers all take the same, so that a server has C places, and bandwidth is reserved. At most R rings, each of the
    least bandwidth of a job, leave a server; let :math:`R \le C`. A job that is wholly on it, with x workers, counts
    :math:`g(x) = \max(0, x - (C - R))` there, and one that is partly on it, and so has a ring that leaves it, counts 1.

    **Lemma.** All jobs on a server count R at most. *Proof.* Let X be the workers of jobs that are wholly on it. As g
    is superadditive these jobs count :math:`g(X)` at most, and there are no more others than R, nor than the
    :math:`C - X` places left. If :math:`X \le C - R`, that is R in all; else
    :math:`X - (C - R) + C - X = R`. ∎

    A job with w workers therefore takes :math:`u(w) = \min\{\min_s g_s(w), n(w)\}` *units* at least of the
    :math:`\sum_s R_s` that there are, with n(w) >= 2 the least number of servers that hold w workers; the first is for
    servers that hold them all. That is a row, and units are to racks what workers are to servers: a rack has room for
    the units of its servers, a job that is wholly in it has u(w) units there at least, and one that is partly in it has
    one, as each of its servers counts 1. A rack is a switch with all servers that have links to it alone, a pod a
    switch with all racks that have links to it alone. A job whose timing names no bandwidth counts nothing.

    Returns
    -------
    list of RingRow
        Whole numbers that follow from rational ones, with what the check of a schedule lets pass.
    """
    rate = min((Fraction(each) for job in instance.jobs if (each := ring_rate(job)) > 0), default=Fraction(0))
    identical = bool((instance.demand == instance.demand[0]).all())
    if not (instance.needs_rings and instance.bandwidth == "reserved" and identical and rate):
        return []
    widest = max(job.max_workers for job in instance.jobs)
    takes = np.array([ring_rate(job) > 0 for job in instance.jobs], dtype=np.int64)
    units, rows = list(range(widest + 1)), []
    for groups in _levels(instance, rate):
        if all(group.rings == group.room for group in groups):
            continue  # links are no limit
        total = sum(group.rings for group in groups)
        units = [min(total, _least(each, width, groups)) for width, each in enumerate(units)]
        if any(units):
            rows.append(RingRow(np.outer(takes, units).astype(np.int64), total))
    return rows


def _least(units: int, width: int, groups: Sequence[_Group]) -> int:
    """The least number of units of a level that a job takes, given those of the level below."""
    inside = [max(0, units - (group.room - group.rings)) for group in groups if group.room >= units]
    rooms = np.cumsum(sorted((group.room for group in groups), reverse=True))
    across = max(2, int(np.searchsorted(rooms, units)) + 1)
    return min([*inside, across] if width > 1 else inside, default=0)


def _levels(instance: SchedulingInstance, rate: Fraction) -> Iterator[list[_Group]]:
    """Servers, then groups of them that hang on one switch, for as long as there are several that do."""
    network = instance.network
    assert network is not None
    arcs: dict[tuple[int, int], Fraction] = defaultdict(Fraction)
    for u, v, bandwidth in network.links:
        for arc in ((u, v), (v, u)) if network.duplex else ((u, v),):
            arcs[arc] += Fraction(bandwidth)

    def group(nodes: frozenset[int], room: int) -> _Group:
        out = sum((each for (u, v), each in arcs.items() if u in nodes and v not in nodes), Fraction(0))
        into = sum((each for (u, v), each in arcs.items() if v in nodes and u not in nodes), Fraction(0))
        return _Group(nodes, room, min(room, math.floor(min(out, into) * EXCESS / rate)))

    taken = [Fraction(each) for each in instance.demand[0].tolist()]
    rooms = [
        min(math.floor(Fraction(held) * EXCESS / each) for held, each in zip(row, taken, strict=True) if each)
        for row in instance.capacity.tolist()
    ]
    groups = [group(frozenset({server}), room) for server, room in enumerate(rooms)]
    while len(groups) > 1:
        yield groups
        inside = frozenset().union(*(each.nodes for each in groups))
        hanging: dict[int, list[_Group]] = defaultdict(list)
        apart = []
        for each in groups:
            beyond = {v for arc in arcs for u, v in (arc, arc[::-1]) if u in each.nodes and v not in each.nodes}
            switch = next(iter(beyond)) if len(beyond) == 1 else -1
            if switch in inside or switch < 0:
                apart.append(each)
            else:
                hanging[switch].append(each)
        if not hanging:
            return
        merged = [
            group(frozenset({switch}).union(*(each.nodes for each in some)), sum(each.rings for each in some))
            for switch, some in hanging.items()
        ]
        groups = merged + [group(each.nodes, each.rings) for each in apart]
