"""The sets of blocks that an accelerator may run as one."""

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from ddlopt.frontier.deployment.partition.formulations.convex_sets_kernel import pieces
from ddlopt.models.deployment.partition.blocks import Blocks, Key
from ddlopt.models.deployment.partition.ideals import kernels
from ddlopt.models.deployment.partition.ideals.ideals import costs_of, ideals_of
from ddlopt.models.deployment.partition.instance import PartitionInstance
from ddlopt.models.deployment.partition.latency import ordered
from ddlopt.models.tolerances import let_pass

# With more of them there are more sets than below anyway.
MOST_IDEALS = 20_000
# A binary variable each. Many pairs of ideals are the same set: forty times as many are looked at.
MOST_SETS = 60_000


@dataclass(frozen=True)
class Pieces:
    """Convex sets of blocks that fit into an accelerator's memory.

    Parameters
    ----------
    blocks : Blocks
        Colours, and those that wait for each other together.
    members : tuple of tuple of int
        Blocks of each set, ascending.
    load_s : (sets,) array
        Fetching, computing and sending.
    """

    blocks: Blocks
    members: tuple[tuple[int, ...], ...]
    load_s: npt.NDArray[np.float64]


def pieces_of(instance: PartitionInstance) -> Pieces | None:
    """All sets; None if there are too many."""
    return _pieces(Key(instance))


@lru_cache(maxsize=4)
def _pieces(key: Key) -> Pieces | None:
    instance = key.instance
    blocks = ordered(instance)
    bits = ideals_of(blocks.count, blocks.order, MOST_IDEALS)
    if bits is None:
        return None
    costs = costs_of(blocks)
    sets = kernels.sums(bits, costs)
    small, large, load_s = pieces(sets, costs.transfer, let_pass(instance.memory_bytes), 40 * MOST_SETS)
    if len(small) > 40 * MOST_SETS:
        return None
    inside = bits[large] & ~bits[small]
    _, first = np.unique(inside, axis=0, return_index=True)
    if len(first) > MOST_SETS:
        return None
    first.sort()
    members = tuple(
        tuple(block for block in range(blocks.count) if (int(row[block >> 6]) >> (block & 63)) & 1)
        for row in inside[first]
    )
    return Pieces(blocks, members, load_s[first])
