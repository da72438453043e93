"""The independent check of a partition, from the problem statement."""

import math
from collections.abc import Hashable, Iterable, Mapping
from fractions import Fraction
from graphlib import CycleError, TopologicalSorter
from typing import TypeVar

from ddlopt.models.contracts import Evaluation, Number, Violation
from ddlopt.models.deployment.partition.instance import Partition, PartitionInstance
from ddlopt.models.tolerances import let_pass

_Place = TypeVar("_Place", bound=Hashable)
_Unit = tuple[int, int]
"""A set of nodes that runs as one: device and subgraph on it, or -1 and the node, for one on a processor."""


def evaluate_partition(instance: PartitionInstance, solution: Partition, exact: bool = False) -> Evaluation:
    """Largest load or latency in seconds, and what the partition violates.

    Details are ``accelerator_load_s`` and ``processor_load_s`` (the largest ones), ``transfer_s`` (of all
    accelerators together) and ``largest_memory_bytes``.
    """
    broken = _malformed(instance, solution)
    if broken:
        return Evaluation(None, tuple(broken))
    check = _Check(instance, solution, exact)
    violations = [*check.support(), *check.colours(), *check.memory()]
    if any(violation.kind == "node runs on its device" for violation in violations):
        return Evaluation(None, tuple(violations))
    if instance.goal == "latency":
        objective, late = check.latency()
        violations += late
    else:
        objective = check.largest_load()
        violations += check.contiguity()
    return Evaluation(objective, tuple(violations), check.details())


def _malformed(instance: PartitionInstance, solution: Partition) -> list[Violation]:
    found = []
    count = len(instance.nodes)
    if len(solution.devices) != count:
        return [Violation("every node has a device", "devices", len(solution.devices), count)]
    if solution.subgraphs and len(solution.subgraphs) != count:
        return [Violation("every node has a subgraph", "subgraphs", len(solution.subgraphs), count)]
    for place, device in enumerate(solution.devices):
        if not 0 <= device < instance.devices:
            found.append(Violation("device exists", f"devices[{place}]", device, instance.devices - 1))
    for place, number in enumerate(solution.subgraphs):
        most = instance.subgraphs - 1 if solution.devices[place] < instance.accelerators else 0
        if not 0 <= number <= most:
            found.append(Violation("subgraph exists", f"subgraphs[{place}]", number, most))
    return found


class _Check:
    def __init__(self, instance: PartitionInstance, solution: Partition, exact: bool) -> None:
        self._instance = instance
        self._device = solution.devices
        self._subgraph = solution.subgraphs or (0,) * len(instance.nodes)
        self._exact = exact
        self._loads: dict[_Unit, Number] = {}
        self._transfers: list[Number] = []

    def _sum(self, values: Iterable[float]) -> Number:
        if self._exact:
            return sum(map(Fraction, values), Fraction(0))
        return math.fsum(values)

    def _number(self, value: float) -> Number:
        return Fraction(value) if self._exact else value

    def _on_accelerator(self, node: int) -> bool:
        return self._device[node] < self._instance.accelerators

    def support(self) -> list[Violation]:
        """Nodes on devices on which they cannot run."""
        found = []
        for place, node in enumerate(self._instance.nodes):
            time_s = node.accelerator_s if self._on_accelerator(place) else node.processor_s
            if time_s is None:
                where = f"node {place} ('{node.name}') on device {self._device[place]}"
                found.append(Violation("node runs on its device", where, 0, 1))
        return found

    def colours(self) -> list[Violation]:
        """Colours on several devices."""
        found = []
        for nodes in self._instance.colours:
            devices = {self._device[node] for node in nodes}
            if len(devices) > 1:
                where = f"colour {self._instance.nodes[nodes[0]].colour}"
                found.append(Violation("nodes of one colour are on one device", where, len(devices), 1))
        return found

    def memory(self) -> list[Violation]:
        """Accelerators that hold too much."""
        found = []
        for device in range(self._instance.accelerators):
            used, limit = self._used(device), self._number(self._instance.memory_bytes)
            if used > let_pass(limit):
                found.append(Violation("accelerator's memory suffices", f"device {device}", used, limit))
        return found

    def _used(self, device: int) -> Number:
        nodes = self._instance.nodes
        return self._sum(nodes[node].memory_bytes for node, own in enumerate(self._device) if own == device)

    def _busy(self, members: set[int], accelerator: bool, backward: bool | None = None) -> Number:
        """How long a set of nodes keeps a device busy, with one pass alone where ``backward`` says which."""
        nodes = self._instance.nodes
        counted = [each for each in range(len(nodes)) if backward is None or nodes[each].backward is backward]
        if not accelerator:
            return self._sum(nodes[each].processor_s or 0.0 for each in counted if each in members)
        times = [nodes[each].accelerator_s or 0.0 for each in counted if each in members]
        moved = []
        for each in counted:
            pins = {each, *self._instance.consumers[each]}
            if members & pins and pins - members:
                moved.append(nodes[each].transfer_s)
        self._transfers.append(self._sum(moved))
        return self._sum(times + moved)

    def largest_load(self) -> Number:
        """The largest load, or the sum of the largest ones of both passes."""
        passes = (False, True) if self._instance.separate_passes else (None,)
        total: list[Number] = []
        for backward in passes:
            loads: list[Number] = [0]
            for device in range(self._instance.devices):
                members = {node for node, own in enumerate(self._device) if own == device}
                accelerator = device < self._instance.accelerators
                loads.append(self._busy(members, accelerator, backward))
                key = (device, int(bool(backward)))
                self._loads[key] = loads[-1]
            total.append(max(loads))
        return sum(total, Fraction(0)) if self._exact else float(sum(total))

    def contiguity(self) -> list[Violation]:
        """Devices that no order suits."""
        if not self._instance.contiguous:
            return []
        nodes, device = self._instance.nodes, self._device
        forward_colours = {self._colour(each) for each, node in enumerate(nodes) if not node.backward}
        before: dict[int, set[int]] = {}
        for maker, user in self._instance.edges:
            first, then = maker, user
            if nodes[maker].backward != nodes[user].backward:
                continue
            if nodes[maker].backward:
                if {self._colour(maker), self._colour(user)} <= forward_colours:
                    continue
                first, then = user, maker
            if device[first] != device[then]:
                before.setdefault(device[then], set()).add(device[first])
        cycle = _cycle(before)
        if not cycle:
            return []
        where = " -> ".join(f"device {each}" for each in cycle)
        return [Violation("each device is visited once", where, len(cycle) - 1, 0)]

    def _colour(self, node: int) -> tuple[bool, int]:
        colour = self._instance.nodes[node].colour
        return (True, node) if colour is None else (False, colour)

    def latency(self) -> tuple[Number | None, list[Violation]]:
        """When the last set of nodes is done."""
        units = [self._unit(node) for node in range(len(self._instance.nodes))]
        members: dict[_Unit, set[int]] = {}
        before: dict[_Unit, set[_Unit]] = {}
        for node, unit in enumerate(units):
            members.setdefault(unit, set()).add(node)
            before.setdefault(unit, set())
        for maker, user in self._instance.edges:
            if units[maker] != units[user]:
                before[units[user]].add(units[maker])
        for device, number in members:
            earlier = [unit for unit in members if unit[0] == device >= 0 and unit[1] < number]
            before[device, number].update(earlier)
        cycle = _cycle(before)
        if cycle:
            where = " -> ".join(self._told(unit) for unit in cycle)
            return None, [Violation("sets that run as one do not wait for each other", where, len(cycle) - 1, 0)]
        # Sets have an order of their own on a device, whatever is ready first: the latency is continuous in all times.
        done: dict[_Unit, Number] = {}
        for unit in TopologicalSorter(before).static_order():
            self._loads[unit] = self._busy(members[unit], unit[0] >= 0)
            done[unit] = max((done[each] for each in before[unit]), default=Fraction(0)) + self._loads[unit]
        return max(done.values()), []

    def _unit(self, node: int) -> _Unit:
        return (self._device[node], self._subgraph[node]) if self._on_accelerator(node) else (-1, node)

    def _told(self, unit: _Unit) -> str:
        if unit[0] < 0:
            return f"node '{self._instance.nodes[unit[1]].name}'"
        return f"subgraph {unit[1]} of device {unit[0]}"

    def details(self) -> dict[str, Number]:
        """Figures beside the objective."""
        per_device: dict[int, list[Number]] = {}
        for (device, _), load in self._loads.items():
            per_device.setdefault(device, []).append(load)
        largest: dict[bool, Number] = {True: Fraction(0), False: Fraction(0)}
        for device, loads in per_device.items():
            accelerator = 0 <= device < self._instance.accelerators
            total = sum(loads, Fraction(0)) if self._exact else math.fsum(map(float, loads))
            largest[accelerator] = max(largest[accelerator], total)
        return {
            "accelerator_load_s": largest[True],
            "processor_load_s": largest[False],
            "transfer_s": sum(self._transfers, Fraction(0)),
            "largest_memory_bytes": max(map(self._used, range(self._instance.accelerators)), default=0),
        }


def _cycle(before: Mapping[_Place, set[_Place]]) -> list[_Place]:
    try:
        TopologicalSorter(before).prepare()
    except CycleError as problem:
        return list(problem.args[1])
    return []
