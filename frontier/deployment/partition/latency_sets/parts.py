"""Parts of the graph of a latency instance, and what each takes at least with a few sets that run as one."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from ddlopt.frontier.deployment.partition.latency_sets import kernels
from ddlopt.frontier.deployment.partition.latency_sets.kernels import Graph, Ideals, Sets
from ddlopt.models.deployment.partition.blocks import Key
from ddlopt.models.deployment.partition.ideals.ideals import ideals_of, rows_of
from ddlopt.models.deployment.partition.instance import PartitionInstance
from ddlopt.models.deployment.partition.latency import ordered
from ddlopt.models.tolerances import let_pass_at_most

Ints = npt.NDArray[np.int64]
Bits = npt.NDArray[np.uint64]
Floats = npt.NDArray[np.float64]

MOST_NODES = 64
"""One word of bits."""
MOST_IDEALS = 1000
"""A table of pairs of them is 8 megabytes."""


@dataclass(frozen=True)
class Effort:
    """What a search spends, and why so much."""

    most_looks: float = 1e9
    """At a set for a part, which take a few seconds."""
    portion: int = 5_000_000
    """Of these looks between looks at the clock: a fifth of a second at most."""


_EFFORT = Effort()


@dataclass(frozen=True)
class GraphParts:
    """Nodes in a topological order, ideals, sets, and pairs of ideals of which the second has more.

    Parameters
    ----------
    order : (nodes,)
        Nodes of the instance.
    graph, ideals, sets
        As kernels take them.
    low, high : (parts,)
        In ascending size of what the second has more.
    """

    order: Ints
    graph: Graph
    ideals: Ideals
    sets: Sets
    low: Ints
    high: Ints


def parts_of(instance: PartitionInstance) -> GraphParts | None:
    """All parts; None where they are too many, or where nodes must be together."""
    return _parts(Key(instance))


@lru_cache(maxsize=2)
def _parts(key: Key) -> GraphParts | None:
    instance = key.instance
    if len(instance.nodes) > MOST_NODES:
        return None
    blocks = ordered(instance)
    if blocks.count < len(instance.nodes):
        return None
    found = ideals_of(blocks.count, blocks.order, MOST_IDEALS)
    if found is None:
        return None
    order = np.array([members[0] for members in blocks.members])
    graph = _graph(instance, order)
    needed, needing = _closure(graph.needs_of), _closure(graph.users_of)
    bits = np.sort(found[:, 0].astype(np.uint64))
    low, high = np.nonzero((bits[:, None] & ~bits[None, :]) == 0)
    low, high = low[low != high], high[low != high]
    inside = bits[high] & ~bits[low]
    by_size = np.argsort(np.bitwise_count(inside), kind="stable")
    ideals = Ideals(
        bits,
        np.searchsorted(bits, bits[:, None] & bits[None, :]),
        np.searchsorted(bits, bits[:, None] | bits[None, :]),
        np.searchsorted(bits, needed),
        np.searchsorted(bits, bits[-1] & ~needing),
    )
    sets = _sets(instance, order, graph, bits, np.unique(inside), needed, needing)
    if len(inside) * len(sets.bits) * max(1, instance.accelerators - 2) > _EFFORT.most_looks:
        return None
    return GraphParts(order, graph, ideals, sets, low[by_size], high[by_size])


def least_times(parts: GraphParts, most: int, expired: Callable[[], bool]) -> Floats | None:
    """(sets + 1, ideals, ideals) least times of parts with at most that number of sets; None if the time is up.

    With all sets that of everything alone, with one less those of ideals and of what they leave: nobody asks for more.
    """
    count = len(parts.ideals.bits)
    found = np.zeros((most + 1, count, count))
    ends = (parts.low == 0) | (parts.high == count - 1)
    everything = (parts.low == 0) & (parts.high == count - 1)
    portion = 1 + _EFFORT.portion // (1 + len(parts.sets.bits))
    for sets in range(most + 1):
        wanted = everything if sets == most > 0 else ends if sets == most - 1 > 0 else np.ones(len(ends), bool)
        low, high = parts.low[wanted], parts.high[wanted]
        for first in range(0, len(low), portion):
            if expired():
                return None
            own = slice(first, first + portion)
            kernels.fill(parts.graph, parts.ideals, parts.sets, low[own], high[own], sets, found)
    return found


def _graph(instance: PartitionInstance, order: Ints) -> Graph:
    place = {int(node): k for k, node in enumerate(order)}
    edges = sorted({(place[maker], place[user]) for maker, user in instance.edges})
    count, nodes = len(order), [instance.nodes[node] for node in order]
    needs_of, users_of = np.zeros(count, np.uint64), np.zeros(count, np.uint64)
    for maker, user in edges:
        needs_of[user] |= np.uint64(1 << maker)
        users_of[maker] |= np.uint64(1 << user)

    def seconds(times: list[float | None], there: int) -> Floats:
        return np.array([math.inf if time_s is None or not there else time_s for time_s in times])

    return Graph(
        *rows_of(count, [(user, maker) for maker, user in edges]),
        *rows_of(count, edges),
        needs_of,
        users_of,
        seconds([node.accelerator_s for node in nodes], instance.accelerators),
        seconds([node.processor_s for node in nodes], instance.processors),
        np.array([node.transfer_s for node in nodes]),
    )


def _closure(near: Bits) -> Bits:
    """Of each node all that is reached."""
    found = near.copy()
    for _ in near:
        before = found.copy()
        for node in range(len(near)):
            found |= np.where((found >> np.uint64(node)) & np.uint64(1) != 0, found[node], np.uint64(0))
        if (found == before).all():
            break
    return found


def _sets(
    instance: PartitionInstance, order: Ints, graph: Graph, ideals: Bits, inside: Bits, needed: Bits, needing: Bits
) -> Sets:
    nodes = np.arange(len(order), dtype=np.uint64)
    holds = (inside[:, None] >> nodes) & np.uint64(1) != 0
    memory = np.array([instance.nodes[node].memory_bytes for node in order])
    work_s = np.where(holds, graph.accelerator_s, 0.0).sum(axis=1)
    fits = (holds @ memory <= let_pass_at_most(instance.memory_bytes)) & np.isfinite(work_s)
    inside, holds = inside[fits], holds[fits]
    nothing = np.uint64(0)
    before = np.bitwise_or.reduce(np.where(holds, needed, nothing), axis=1) & ~inside
    after = np.bitwise_or.reduce(np.where(holds, needing, nothing), axis=1) & ~inside
    everything = ideals[-1]
    return Sets(
        inside,
        np.searchsorted(ideals, before),
        np.searchsorted(ideals, before | inside),
        np.searchsorted(ideals, everything & ~after),
        np.searchsorted(ideals, everything & ~after & ~inside),
        work_s[fits],
    )
