r"""Whole links out of blocks, what finds none, and pairs that are left without one: a bound for every design.

**Theorem.** Let z be the bytes on the busiest link, let the servers be partitioned into blocks B, and each block into
cells U. Let :math:`L_B` be the bytes that must leave B: traffic, and once the hop bytes of every group with members
inside and outside. Of a cell let :math:`S_U` be the hop bytes of those of these groups whose members in B are all in U,
and :math:`D_U(x)` the most bytes that :math:`d |U| - x` pieces of its traffic into B and x pieces of that out of B
have. Let :math:`T_U` be all traffic that U sends, H the least bytes times hops of everything, but for traffic that is
under way after exactly one hop, and C the directions of links. Then

.. math::
    C z \ \ge\ H + \sum_B \min \Bigl\{ \sum_{U \subseteq B} \bigl( (S_U - x_U z)^+ + T_U - D_U(x_U) \bigr)
    \ :\ x_U \in \{0, \dots, d |U|\},\ z \sum_{U \subseteq B} x_U \ge L_B \Bigr\} .

*Proof.* Take any design, and let :math:`x_U` be the links that lead from U out of its block. A ring is closed, so that
it leaves every block which has some of its members and not all; therefore the links out of B carry :math:`L_B`. A group
whose members in B are all in U has, in each of its rings, a hop from U to a member outside B. At most :math:`x_U z`
bytes of such hops take one link, which is one out of U and B; all others take two at least. Of the pairs of servers
with the first in U at most :math:`x_U` have a link out of B, and at most :math:`d |U| - x_U` one inside. What the
others exchange takes two links at least, so that :math:`T_U - D_U(x_U)` bytes are under way after one hop. All loads
together are at most C z, and they are at least the hops of rings, those that the :math:`(S_U - x_U z)^+` take in
addition, and for every h the traffic under way after h hops. ∎

The right-hand side falls as z grows, so that bisection finds the least z that is not excluded. With 70 bytes that must
leave a block of eight servers and z = 7.8 these are nine links and a bit: ten lead out, and of the 56 pairs in the
block 22 have a link, not 32.
"""

from collections import Counter

import numpy as np
import numpy.typing as npt

from ddlopt.frontier.topology.blocks.block_bound import Labels, least_possible, numbered, partitions
from ddlopt.models.tolerances import ROUNDING
from ddlopt.models.topology.instance import TopologyInstance

Array = npt.NDArray[np.float64]
Cell = tuple[float, tuple[float, ...]]
"""S, and for each number of links out of the block the bytes under way after one hop."""

_DIGITS = 12
"""Significant digits in which two sums of bytes agree that are the same."""


def cell_bound(instance: TopologyInstance, traffic: Array, rest: float, capacity: int, known: float) -> float:
    """Bytes on the busiest link of every design: the best of all blocks and cells that groups make.

    Parameters
    ----------
    instance : TopologyInstance
    traffic : (n, n) array
        That of the instance, or as its receivers see it: all links, rings and routes may be turned round.
    rest : float
        H, with bytes of ports that stay idle.
    capacity : int
        C.
    known : float
        A bound; at least this is returned.
    """
    best, alone = known, np.arange(instance.servers)
    found = partitions(instance)
    for blocks in found:
        tried: set[bytes] = set()
        for finer in (np.zeros_like(alone), *found, alone):
            cells = numbered(blocks * (len(alone) + 1) + finer)
            if cells.tobytes() not in tried:
                tried.add(cells.tobytes())
                best = _least_bytes(_kinds(instance, traffic, blocks, cells), rest, capacity, best)
    return best


def _least_bytes(kinds: Counter[tuple[float, tuple[Cell, ...]]], rest: float, capacity: int, known: float) -> float:
    """The least z >= ``known`` that is not excluded."""

    def excluded(z: float) -> bool:
        return capacity * z < (rest + sum(count * _least(*kind, z) for kind, count in kinds.items())) * (1 - ROUNDING)

    return least_possible(excluded, known, 2 * known)


def _least(leaving: float, cells: tuple[Cell, ...], z: float) -> float:
    """What the best numbers of links out of a block leave: bytes that take a hop more."""
    least = np.zeros(1)
    for direct, later in cells:
        own = np.maximum(direct - np.arange(len(later)) * z, 0) + np.array(later)
        after = np.full(len(least) + len(own) - 1, np.inf)
        for links, value in enumerate(own.tolist()):
            window = after[links : links + len(least)]
            np.minimum(window, least + value, out=window)
        least = after
    enough = np.arange(len(least)) * z >= leaving * (1 - ROUNDING)
    return float(least[enough].min(initial=np.inf))


def _kinds(
    instance: TopologyInstance, traffic: Array, blocks: Labels, cells: Labels
) -> Counter[tuple[float, tuple[Cell, ...]]]:
    """Blocks by L and their cells."""
    same = blocks[:, None] == blocks
    leaving = np.bincount(blocks, weights=np.where(same, 0, traffic).sum(axis=1))
    direct = np.zeros(int(cells.max()) + 1)
    for group in instance.allreduce_groups:
        members = np.array(group.members)
        met = np.unique(blocks[members])
        if len(met) == 1:
            continue
        leaving[met] += group.hop_bytes
        for block in met:
            found = np.unique(cells[members[blocks[members] == block]])
            if len(found) == 1:
                direct[found] += group.hop_bytes
    of_block: dict[int, list[Cell]] = {}
    for cell in range(len(direct)):
        here = np.flatnonzero(cells == cell)
        ports = instance.degree * len(here)
        inside, outside = (_largest(traffic[here][where[here]], ports) for where in (same, ~same))
        later = traffic[here].sum() - (inside[::-1] + outside)
        rounded = tuple(float(f"{max(0.0, value):.{_DIGITS}g}") for value in later.tolist())
        of_block.setdefault(int(blocks[here[0]]), []).append((float(f"{direct[cell]:.{_DIGITS}g}"), rounded))
    return Counter(
        (float(f"{leaving[block]:.{_DIGITS}g}"), tuple(sorted(of_cells))) for block, of_cells in of_block.items()
    )


def _largest(pieces: Array, most: int) -> Array:
    """(most + 1,) bytes of the 0, 1, … largest pieces."""
    found = np.zeros(most + 1)
    descending = -np.sort(-pieces)[:most]
    found[1 : len(descending) + 1] = descending
    return np.cumsum(found)
