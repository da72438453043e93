"""What one of several symmetric blocks of servers sends."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ddlopt.frontier.topology.blocks.block_bound import Labels
from ddlopt.models.tolerances import FEASIBILITY_TOL
from ddlopt.models.topology.instance import TopologyInstance

_MOST_SERVERS = 8
"""Of a block: of nine there are too many digraphs."""

Group = tuple[tuple[int, ...], float]
"""Members in a block, and bytes of each hop."""


@dataclass(frozen=True)
class Block:
    """What one of the blocks has to send; servers are numbered within it.

    Parameters
    ----------
    servers, blocks, degree : int
        In a block, how many blocks, and links of each server.
    cells : tuple of tuples of int
        A cell is the members in the block of groups that have one or two there, and others elsewhere. Every server is
        in one cell, by itself where there are no such groups.
    inner : tuple of (members, bytes)
        Groups in the block, with bytes of each hop.
    leaving : tuple of (members, bytes)
        Members in the block of groups that have others, too, with bytes of each hop.
    traffic : tuple of tuples of float
        From each server of the block to each.
    between : float
        Traffic that leaves the block; as much enters it.
    """

    servers: int
    blocks: int
    degree: int
    cells: tuple[tuple[int, ...], ...]
    inner: tuple[Group, ...]
    leaving: tuple[Group, ...]
    traffic: tuple[tuple[float, ...], ...]
    between: float


def block_of(instance: TopologyInstance, labels: Labels) -> Block | None:
    """The block of a partition; None where blocks differ or are too large, or classes of cells overlap."""
    servers = [np.flatnonzero(labels == label) for label in range(int(labels.max()) + 1)]
    k = len(servers[0])
    if not 2 < k <= _MOST_SERVERS or len(servers) < 2 or any(len(each) != k for each in servers):
        return None
    blocks = [instance.traffic_bytes[np.ix_(each, each)] for each in servers]
    between = np.where(labels[:, None] == labels, 0, instance.traffic_bytes)
    leaving = np.concatenate([np.bincount(labels, weights=between.sum(axis=axis)) for axis in (0, 1)])
    if any(not np.array_equal(each, blocks[0]) for each in blocks):
        return None
    if leaving.max() - leaving.min() > FEASIBILITY_TOL * leaving.max():
        return None
    found = [_sent(instance, labels, number, each) for number, each in enumerate(servers)]
    if found[0] is None or any(each != found[0] for each in found):
        return None
    traffic = tuple(tuple(row) for row in blocks[0].tolist())
    return Block(k, len(servers), instance.degree, *found[0], traffic, float(leaving.min()))


_Sent = tuple[tuple[tuple[int, ...], ...], tuple[Group, ...], tuple[Group, ...]]


def _sent(instance: TopologyInstance, labels: Labels, number: int, servers: npt.NDArray[np.int64]) -> _Sent | None:
    """Cells and inner groups of a block; None where classes of cells are not disjoint."""
    place = {server: u for u, server in enumerate(servers.tolist())}
    inner: list[Group] = []
    leaving: list[Group] = []
    meeting: list[tuple[tuple[int, ...], frozenset[int]]] = []
    for group in instance.allreduce_groups:
        members = tuple(place[m] for m in group.members if m in place)
        if len(members) == len(group.members):
            inner.append((members, group.hop_bytes))
            continue
        if members:
            leaving.append((members, group.hop_bytes))
        if 0 < len(members) <= 2:
            meeting.append((members, frozenset(group.members)))
    of_server: dict[int, tuple[int, ...]] = {}
    for members, _ in sorted(meeting, key=lambda each: (-len(each[0]), each[0])):
        if all(of_server.get(u, members) == members for u in members):
            of_server.update(dict.fromkeys(members, members))
    cells = sorted({of_server.get(u, (u,)) for u in range(len(servers))})
    classes = [frozenset().union(*(all_ for members, all_ in meeting if set(members) <= set(cell))) for cell in cells]
    if sum(len(each) for each in classes) > len(frozenset().union(*classes)):
        return None
    return tuple(cells), tuple(sorted(inner)), tuple(sorted(leaving))
