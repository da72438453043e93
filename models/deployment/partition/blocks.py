"""What formulations and methods for partition instances share: nodes that go together, and who pays for an output."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from typing import Any

import networkx as nx
import numpy as np
import numpy.typing as npt

from ddlopt.models.deployment.partition.evaluate import evaluate_partition
from ddlopt.models.deployment.partition.instance import Partition, PartitionInstance
from ddlopt.models.errors import SolverError
from ddlopt.models.tolerances import INTEGRALITY_TOL, let_pass, let_pass_at_least
from ddlopt.models.units import between, in_units, unit_of

FULL_MEMORY = 1e4
"""Memory of an accelerator in rows: the tolerance of a solver is relative to it."""

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Blocks:
    """Sets of nodes that are on one device in every feasible partition, with their sums.

    An output is paid for by every accelerator that has some of its *pins*, the blocks of the node that makes it and of
    those that need it, but not all of them. With the other pins elsewhere, it fetches the output or sends it.

    Parameters
    ----------
    members : tuple of tuple of int
        Nodes of each of n blocks; blocks are in an order that ``order`` allows.
    accelerator_s, processor_s : (passes, n) array
        Infinite where a block cannot run. There is one pass unless the instance counts them apart.
    memory_bytes : (n,) array
    pins : tuple of tuple of int
        Blocks of each output, ascending, at least two; outputs with the same pins in the same pass are added up.
    transfer_s : (outputs,) array
    of_pass : (outputs,) int array
    order : tuple of (int, int)
        Blocks that must be on the same or an earlier device than others, if the instance is contiguous.
    """

    members: tuple[tuple[int, ...], ...]
    accelerator_s: Floats
    processor_s: Floats
    memory_bytes: Floats
    pins: tuple[tuple[int, ...], ...]
    transfer_s: Floats
    of_pass: npt.NDArray[np.int64]
    order: tuple[tuple[int, int], ...]

    @property
    def count(self) -> int:
        """Number of blocks."""
        return len(self.members)

    def devices_of_nodes(self, devices: Iterable[int]) -> tuple[int, ...]:
        """Device of each node, from that of each block."""
        found = [0] * sum(map(len, self.members))
        for device, nodes in zip(devices, self.members, strict=True):
            for node in nodes:
                found[node] = int(device)
        return tuple(found)

    def devices_of_blocks(self, devices: tuple[int, ...]) -> npt.NDArray[np.int64]:
        """Device of each block, from that of each node."""
        return np.array([devices[nodes[0]] for nodes in self.members], dtype=np.int64)


@lru_cache(maxsize=8)
def _blocks(key: "Key") -> Blocks:
    return _made(key.instance)


@dataclass(frozen=True, eq=False)
class Key:
    """An instance by identity: to compare instances takes a digest."""

    instance: PartitionInstance

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Key) and other.instance is self.instance

    def __hash__(self) -> int:
        return id(self.instance)


def blocks_of(instance: PartitionInstance) -> Blocks:
    """Colours, and in a contiguous instance also what no order of devices can take apart."""
    return _blocks(Key(instance))


def _made(instance: PartitionInstance) -> Blocks:
    colours = instance.colours
    colour_of = {node: number for number, nodes in enumerate(colours) for node in nodes}
    forward = [any(not instance.nodes[node].backward for node in nodes) for nodes in colours]
    graph = nx.DiGraph()
    graph.add_nodes_from(range(len(colours)))
    for maker, user in instance.edges:
        one, other = colour_of[maker], colour_of[user]
        back = instance.nodes[maker].backward
        if one == other or back != instance.nodes[user].backward:
            continue
        if not back:
            graph.add_edge(one, other)
        elif not (forward[one] and forward[other]):
            graph.add_edge(other, one)
    merged = nx.condensation(graph)
    if instance.contiguous:
        sets = [sorted(merged.nodes[each]["members"]) for each in _topological(merged)]
    else:
        # The order is for people and for heuristics only.
        sets = [[colour] for each in _topological(merged) for colour in sorted(merged.nodes[each]["members"])]
    members = tuple(tuple(sorted(node for colour in each for node in colours[colour])) for each in sets)
    block_of = {node: number for number, nodes in enumerate(members) for node in nodes}
    order = {(block_of[colours[one][0]], block_of[colours[other][0]]) for one, other in graph.edges}
    pins, transfer_s, of_pass = _outputs(instance, block_of)
    accelerator_s, processor_s = _times(instance, members)
    return Blocks(
        members,
        accelerator_s,
        processor_s,
        np.array([math.fsum(instance.nodes[node].memory_bytes for node in nodes) for nodes in members]),
        pins,
        transfer_s,
        of_pass,
        tuple(sorted((one, other) for one, other in order if one != other)) if instance.contiguous else (),
    )


def _topological(graph: nx.DiGraph) -> list[int]:
    """Depth first: what follows on a block comes soon after it, which keeps boundaries between devices small."""
    waiting = {each: graph.in_degree(each) for each in graph}
    first = {each: min(graph.nodes[each]["members"]) for each in graph}
    stack = sorted((each for each in graph if not waiting[each]), key=first.__getitem__, reverse=True)
    found = []
    while stack:
        each = stack.pop()
        found.append(each)
        ready = []
        for after in graph.successors(each):
            waiting[after] -= 1
            if not waiting[after]:
                ready.append(after)
        stack += sorted(ready, key=first.__getitem__, reverse=True)
    return found


def _outputs(
    instance: PartitionInstance, block_of: dict[int, int]
) -> tuple[tuple[tuple[int, ...], ...], Floats, npt.NDArray[np.int64]]:
    found: dict[tuple[tuple[int, ...], int], float] = {}
    for maker, users in enumerate(instance.consumers):
        node = instance.nodes[maker]
        pins = tuple(sorted({block_of[each] for each in (maker, *users)}))
        if len(pins) > 1 and node.transfer_s > 0:
            key = pins, int(instance.separate_passes and node.backward)
            found[key] = found.get(key, 0.0) + node.transfer_s
    return (
        tuple(pins for pins, _ in found),
        np.array(list(found.values()), dtype=np.float64),
        np.array([number for _, number in found], dtype=np.int64),
    )


def _times(instance: PartitionInstance, members: tuple[tuple[int, ...], ...]) -> tuple[Floats, Floats]:
    passes = 2 if instance.separate_passes else 1
    accelerator_s, processor_s = np.zeros((passes, len(members))), np.zeros((passes, len(members)))
    for block, nodes in enumerate(members):
        for node in nodes:
            data = instance.nodes[node]
            number = int(instance.separate_passes and data.backward)
            accelerator_s[number, block] += np.inf if data.accelerator_s is None else data.accelerator_s
            processor_s[number, block] += np.inf if data.processor_s is None else data.processor_s
    for times in (accelerator_s, processor_s):
        times[:, ~np.isfinite(times).all(axis=0)] = np.inf
    return accelerator_s, processor_s


def load_unit_s(instance: PartitionInstance) -> float:
    """Seconds of the unit of models, of which the largest load or the latency is about a thousand.

    Between the least that all devices together work, per device, and a simple partition (:func:`simple_s`).
    """
    return _scale(Key(instance))[0]


def simple_s(instance: PartitionInstance) -> float:
    """The largest load or the latency of the best of some simple partitions.

    All nodes, the connected parts of the graph or colours, one after the other, get the device that has least to do
    after it. Infinite if none of that is feasible.
    """
    return _scale(Key(instance))[1]


@lru_cache(maxsize=8)
def _scale(key: "Key") -> tuple[float, float]:
    """Both of these."""
    instance = key.instance
    accelerator_s = [node.accelerator_s if instance.accelerators else None for node in instance.nodes]
    processor_s = [node.processor_s if instance.processors else None for node in instance.nodes]
    quickest = [
        min((time for time in both if time is not None), default=0.0)
        for both in zip(accelerator_s, processor_s, strict=True)
    ]
    moved = math.fsum(node.transfer_s for node in instance.nodes)
    graph = nx.Graph(list(instance.edges))
    graph.add_nodes_from(range(len(instance.nodes)))
    graph.add_edges_from(pair for colour in instance.colours for pair in pairwise(colour))
    parts = [sorted(each) for each in nx.connected_components(graph)]
    found = [_listed(instance, lots) for lots in ([sorted(graph)], sorted(parts), instance.colours)]
    low, simple = math.fsum(quickest) / instance.devices, min(found)
    # Without a simple partition, each node where it is quickest, with all transfers.
    high = min(simple, math.fsum(quickest) + 2 * moved)
    return unit_of(between(low, high), moved, _sum_of(accelerator_s), _sum_of(processor_s)), simple


def _listed(instance: PartitionInstance, lots: Iterable[Sequence[int]]) -> float:
    """The objective if each lot gets the device that has least to do after it; infinite where that is not feasible."""
    devices = [0] * len(instance.nodes)
    load, memory = [0.0] * instance.devices, [0.0] * instance.devices
    most = let_pass_at_least(instance.memory_bytes)
    for lot in lots:
        need = math.fsum(instance.nodes[node].memory_bytes for node in lot)
        best, least = 0, math.inf
        for device in range(instance.devices):
            accelerator = device < instance.accelerators
            nodes = [instance.nodes[node] for node in lot]
            own = _sum_of([node.accelerator_s if accelerator else node.processor_s for node in nodes])
            if not (accelerator and memory[device] + need > most) and load[device] + own < least:
                best, least = device, load[device] + own
        if least == math.inf:
            return math.inf
        load[best], memory[best] = least, memory[best] + need
        for node in lot:
            devices[node] = best
    checked = evaluate_partition(instance, Partition(instance=instance.name, devices=tuple(devices)))
    return float(checked.objective) if checked.feasible and checked.objective is not None else math.inf


def seconds_in_units(seconds: npt.ArrayLike, instance: PartitionInstance) -> list[Any]:
    """Seconds in units, where no more of them matter than a simple partition takes."""
    found: list[Any] = in_units(seconds, load_unit_s(instance), simple_s(instance)).tolist()
    return found


def _sum_of(times_s: Iterable[float | None]) -> float:
    """Of all times; infinite where one of them is none."""
    return math.fsum(math.inf if time is None else time for time in times_s)


def memory_parts(memory_bytes: npt.ArrayLike, instance: PartitionInstance) -> list[float]:
    """What nodes or blocks need of an accelerator's memory, of which the check lets ``FULL_MEMORY`` pass.

    What does not fit by itself does not fit as well if it needs twice the memory.
    """
    part = FULL_MEMORY * np.asarray(memory_bytes, dtype=np.float64) / let_pass(instance.memory_bytes)
    found: list[float] = np.minimum(part, 2 * FULL_MEMORY).tolist()
    return found


def longest_s(instance: PartitionInstance) -> float:
    """A time in which every partition has done everything, one thing after the other.

    Every node runs once. What it makes is sent at most once, and fetched by the device of each node that needs it.
    """
    total = 0.0
    for node, users in zip(instance.nodes, instance.consumers, strict=True):
        total += max(node.processor_s or 0.0, node.accelerator_s or 0.0) + node.transfer_s * (1 + len(users))
    return total


def rounded_devices(on: Any, count: int, instance: PartitionInstance) -> tuple[int, ...]:
    """Device of each of ``count`` nodes or blocks by variables ``on[v, d]``.

    Raises
    ------
    SolverError
        If one is on a device in part.
    """
    devices = [-1] * count
    for (v, d), variable in on.items():
        value = variable.value or 0.0
        if INTEGRALITY_TOL < value < 1 - INTEGRALITY_TOL:
            raise SolverError(f"'{instance.name}': {v} is on device {d} in part: {value:g}")
        if value > 0.5:
            devices[v] = d
    if -1 in devices:
        raise SolverError(f"'{instance.name}': {devices.index(-1)} is on no device")
    return tuple(devices)


def as_contiguous(instance: PartitionInstance) -> PartitionInstance:
    """The same instance where partitions must be contiguous; loads are of both passes together."""
    if instance.contiguous and not instance.separate_passes:
        return instance
    return instance.changed(contiguous=True, separate_passes=False)
