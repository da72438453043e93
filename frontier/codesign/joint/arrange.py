"""Where servers stand on closed rings of links, so that traffic that has no ring finds short ways."""

from dataclasses import dataclass, replace

import numpy as np

from ddlopt.frontier.codesign.closed_columns import RingStart, rings_on
from ddlopt.frontier.codesign.joint.arrange_kernels import anneal_orders
from ddlopt.models.topology import TopologyInstance
from ddlopt.solvers.topology.balance.path_kernels import Floats


@dataclass(frozen=True)
class Effort:
    """What annealing the orders of servers spends."""

    scans: float = 1e8
    """Links looked at in one annealing, about: a move looks at all of them from every server."""
    most_moves: int = 20000
    """For few servers more moves find nothing better."""
    hot: float = 2e-3
    """First temperature, as a part of the volume."""


_EFFORT = Effort()

_LEAST_LENGTH = 0.1
"""Part of the mean length that links have at least, so that few hops are better than many even where there is room."""


def column_lengths(start: RingStart, length: Floats) -> Floats:
    """(d,) mean lengths by column, given those of the (n * d,) links in a balance; their mean is 1."""
    by_column = length.reshape(start.heads.shape)
    usable = np.isfinite(by_column) & (start.heads >= 0)
    sums = np.where(usable, by_column, 0.0).sum(axis=0) / np.maximum(usable.sum(axis=0), 1)
    mean = float(sums.mean())
    return np.asarray(np.maximum(sums / mean, _LEAST_LENGTH) if mean > 0 else np.ones(len(sums)))


def arranged(instance: TopologyInstance, start: RingStart, lengths: Floats) -> RingStart:
    """The same rings with other orders, found by annealing traffic times distance; kernels must have been seeded.

    All-reduces of groups that have no ring count as traffic among their members.
    """
    cycles = start.on_links
    rows = [(place, *stretch) for place, cycle in enumerate(cycles) for stretch in cycle.stretches if stretch[1] > 1]
    traffic = instance.traffic_bytes.copy()
    closed = {group for cycle in cycles for group, _, _ in cycle.groups}
    for number, group in enumerate(instance.allreduce_groups):
        if number not in closed:
            members = list(group.members)
            traffic[np.ix_(members, members)] += group.hop_bytes / (len(members) - 1)
    np.fill_diagonal(traffic, 0.0)
    if not rows or not traffic.any():
        return start
    orders = np.full((len(cycles), max(len(cycle.order) for cycle in cycles)), -1, dtype=np.int64)
    for row, cycle in zip(orders, cycles, strict=True):
        row[: len(cycle.order)] = cycle.order
    heads = start.heads.copy()
    duplex = instance.optics == "duplex"
    anneal_orders(
        heads,
        orders,
        np.array([len(cycle.order) for cycle in cycles], dtype=np.int64),
        np.array([cycle.column for cycle in cycles], dtype=np.int64),
        np.array(rows, dtype=np.int64),
        lengths,
        np.ascontiguousarray(traffic),
        duplex,
        int(min(_EFFORT.most_moves, _EFFORT.scans / (heads.size * instance.servers))),
        _EFFORT.hot,
    )
    moved = tuple(
        replace(cycle, order=tuple(row[: len(cycle.order)].tolist())) for row, cycle in zip(orders, cycles, strict=True)
    )
    return replace(start, heads=heads, rings=rings_on(moved, duplex), on_links=moved)
