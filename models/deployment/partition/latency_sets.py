"""The sets of blocks that an accelerator may run as one."""

from dataclasses import dataclass
from functools import lru_cache

import networkx as nx
import numpy as np
import numpy.typing as npt

from ddlopt.models.deployment.partition.blocks import Blocks, Key, blocks_of
from ddlopt.models.deployment.partition.ideals import kernels
from ddlopt.models.deployment.partition.ideals.ideals import costs_of, ideals_of
from ddlopt.models.deployment.partition.instance import PartitionInstance

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


def ordered(instance: PartitionInstance) -> Blocks:
    """Blocks of a latency instance, in an order that its edges allow."""
    return blocks_of(instance.changed(goal="throughput", contiguous=True, subgraphs=1))


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
    small, large, load_s = kernels.pieces(sets, costs.transfer, instance.memory_bytes, 40 * MOST_SETS)
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


def critical_path_s(instance: PartitionInstance) -> float:
    """The longest path if every node is where it takes the least time, and nothing is transferred."""
    times = [_least(instance, node) for node in range(len(instance.nodes))]
    return longest_path(instance, times)


def longest_path(instance: PartitionInstance, times_s: list[float]) -> float:
    """Of all paths, the largest sum of times of its nodes."""
    graph = nx.DiGraph()
    graph.add_nodes_from(range(len(times_s)))
    graph.add_edges_from(instance.edges)
    done: dict[int, float] = {}
    for node in nx.topological_sort(graph):
        done[node] = times_s[node] + max((done[each] for each in graph.predecessors(node)), default=0.0)
    return max(done.values())


def _least(instance: PartitionInstance, node: int) -> float:
    data = instance.nodes[node]
    times = []
    if data.accelerator_s is not None and instance.accelerators:
        times.append(data.accelerator_s)
    if data.processor_s is not None and instance.processors:
        times.append(data.processor_s)
    return min(times)
