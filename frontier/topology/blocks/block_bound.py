r"""What blocks of servers have among themselves and with others, and links that are whole: a bound for every design.

**Theorem.** Let z be the bytes on the busiest link and let the servers be partitioned into blocks. Of all-reduce
groups inside one block server s has :math:`R_s` hop bytes, and it sends :math:`T_s` bytes of traffic to its own block.
Let I be the bytes that must leave blocks: traffic between blocks, and for each group k that meets :math:`j_k \ge 2`
blocks :math:`j_k` times its hop bytes. Let H be the least bytes times hops of everything, C the directions of links.
Then for every :math:`0 \le \mu \le 1`

.. math::
    \mu\, C z + \sum_s \max_{x_s} \bigl[ (1 - \mu) (d - x_s)\, z - 2 (1 - \mu)\, t_s - (2 - \mu)\, r_s \bigr]
    \ \ge\ (1 - \mu)\, I + \mu H

where :math:`x_s \in \{0, \dots, d\}` (below the size of the block, if links are not parallel),
:math:`t_s = \min(T_s, (R_s + T_s - x_s z)^+)` and :math:`r_s = (R_s + T_s - x_s z)^+ - t_s`.

*Proof.* Take any design, and let :math:`x_s` be the links of s that lead into its own block, which is a whole number.
They carry at most :math:`x_s z` of the :math:`R_s + T_s` bytes that s sends to its block. The rest, t of traffic and
r of rings, leaves s over a link to another block and enters the block again over a link from one: it is carried at
least twice by links between blocks. A ring of a group that meets :math:`j \ge 2` blocks changes its block at least j
times, as it is closed and gets to each of them, and a hop or a route from one block to another takes at least one link
between blocks. There are :math:`\sum_s (d - x_s)` of these, so that

.. math:: \textstyle\sum_s (d - x_s)\, z \ge I + 2 \sum_s (t_s + r_s) .

All links together carry at least H, in which each hop of a ring counts as one link, and one link more for each of the
r bytes, as these take at least two: :math:`C z \ge H + \sum_s r_s`. The sum of both, weighted with :math:`1 - \mu` and
μ, is the inequality for the design's own x, t and r. Given :math:`x_s`, the bracket is largest where t + r is as small
as it can be and as much of it as possible is traffic, :math:`2 (1 - \mu) \le 2 - \mu`. ∎

The left-hand side grows with z for each x, therefore also its maximum, and bisection finds the least z that is not
excluded. With :math:`\mu = 1` this is the volume bound, where only r is new; with :math:`\mu = 0` the bound of the cut
between all blocks at once. It is strong where a block needs one link and a half: whichever way it is rounded, links are
idle or bytes take detours through links that all other groups need, too.
"""

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from ddlopt.models.tolerances import ROUNDING
from ddlopt.models.topology.instance import TopologyInstance

Array = npt.NDArray[np.float64]
Labels = npt.NDArray[np.int64]

_WEIGHTS = (0.0, 0.25, 0.5, 0.75, 1.0)
"""Any would do: between two of these the bound hardly changes."""
_MOST_PARTITIONS = 24
"""Enough for all sizes of blocks and strides; arbitrary groups may make as many as there are groups."""
_BISECTIONS = 50
"""Halvings of a load: near the last digit of a double; every load that is excluded is a bound."""


def block_bound(instance: TopologyInstance, least_hop_bytes: float, capacity: int, known: float) -> float:
    """Bytes on the busiest link of every design: the best of all blocks of servers that groups make.

    Parameters
    ----------
    instance : TopologyInstance
    least_hop_bytes : float
        H: bytes times hops of traffic, of each ring with one link a hop, and bytes of ports that stay idle.
    capacity : int
        C.
    known : float
        A bound; at least this is returned.
    """
    best = known
    for labels in partitions(instance):
        sums = _Sums(instance, labels)
        for weight in _WEIGHTS:
            best = sums.least_bytes(weight, least_hop_bytes, capacity, best)
    return best


class _Sums:
    """Bytes inside and between the blocks of one partition; servers with the same figures are one row."""

    def __init__(self, instance: TopologyInstance, labels: Labels) -> None:
        n, d = instance.servers, instance.degree
        same = labels[:, None] == labels
        rings, self.leaving = np.zeros(n), float(instance.traffic_bytes[~same].sum())
        for group in instance.allreduce_groups:
            members = list(group.members)
            met = len(np.unique(labels[members]))
            if met == 1:
                rings[members] += group.hop_bytes
            else:
                self.leaving += met * group.hop_bytes
        traffic = np.where(same, instance.traffic_bytes, 0).sum(axis=1)
        most = np.full(n, d) if instance.parallel_links else np.minimum(d, same.sum(axis=1) - 1)
        rows, self.count = np.unique(np.column_stack([rings, traffic, most]), axis=0, return_counts=True)
        self.inside, self.traffic = rows[:, :2].sum(axis=1)[:, None], rows[:, 1:2]
        self.inward = np.arange(d + 1)[None, :]
        self.possible = self.inward <= rows[:, 2:]
        self.outward = d - self.inward

    def least_bytes(self, weight: float, hop_bytes: float, capacity: int, known: float) -> float:
        """The least z >= ``known`` that is not excluded."""
        needed = (1 - weight) * self.leaving + weight * hop_bytes

        def excluded(z: float) -> bool:
            short = np.maximum(self.inside - self.inward * z, 0)
            of_traffic = np.minimum(short, self.traffic)
            rest = (1 - weight) * (self.outward * z - 2 * of_traffic) - (2 - weight) * (short - of_traffic)
            most = np.where(self.possible, rest, -np.inf).max(axis=1)
            return weight * capacity * z + float(most @ self.count) < needed * (1 - ROUNDING)

        return least_possible(excluded, known, max(2 * known, needed))


def least_possible(excluded: Callable[[float], bool], known: float, high: float) -> float:
    """By bisection the least load >= ``known`` that is not excluded; no larger one is. ``high`` is tried first."""
    if not excluded(known):
        return known
    low = known
    while excluded(high):
        low, high = high, 2 * high
    for _ in range(_BISECTIONS):
        middle = (low + high) / 2
        low, high = (middle, high) if excluded(middle) else (low, middle)
    return low


def partitions(instance: TopologyInstance) -> list[Labels]:
    """Blocks that groups of one size make, as far as they are disjoint, and what groups up to a size connect.

    Each partition is an (n,) array with the number of each server's block.
    """
    groups = sorted((group.members for group in instance.allreduce_groups), key=len)
    alone = np.arange(instance.servers)
    connected = alone
    of_size: list[tuple[int, Labels]] = []
    for place, members in enumerate(groups):
        inside = list(members)
        free = (labels for size, labels in of_size if size == len(inside) and (labels[inside] < 0).all())
        labels = next(free, None)
        if labels is None:
            labels = -1 - alone
            of_size.append((len(inside), labels))
        labels[inside] = inside[0]
        connected = np.where(np.isin(connected, connected[inside]), connected[inside].min(), connected)
        if place + 1 == len(groups) or len(groups[place + 1]) > len(inside):
            of_size.append((0, connected))
    found = {numbered(labels).tobytes(): numbered(labels) for _, labels in of_size}
    return [labels for labels in found.values() if labels.any()][:_MOST_PARTITIONS]


def numbered(labels: Labels) -> Labels:
    """The same blocks, numbered from 0."""
    return np.asarray(np.unique(labels, return_inverse=True)[1], dtype=np.int64)
