"""Random tiny partition instances, and all partitions of one, tried by ``evaluate``."""

import random
from itertools import product
from typing import Any

import pytest

from ddlopt.models.deployment.partition.evaluate import evaluate_partition
from ddlopt.models.deployment.partition.instance import Partition, PartitionInstance
from ddlopt.models.errors import InstanceError
from ddlopt.solvers.contracts import Limits, Status
from ddlopt.solvers.exact import Exact

MOST = 3000
"""Partitions to try."""


def drawn(seed: int, most: int = MOST, **fields: Any) -> PartitionInstance | None:
    """A random graph with colours, unsupported nodes, little memory, and perhaps a backward pass; None if it is bad.

    Bad is also one with more than ``most`` partitions; latency has up to 8 nodes where more than usual are allowed.
    """
    draw = random.Random(seed)
    latency = fields.get("goal") == "latency"
    count = draw.randint(6, 8) if latency and most > MOST else draw.randint(2, 5 if latency else 6)
    edges = [(u, v) for v in range(count) for u in range(v) if draw.random() < 0.35]
    nodes = [node(draw, v) for v in range(count)]
    for v, each in enumerate(nodes):
        if draw.random() < 0.5:
            each["colour"] = v if draw.random() < 0.6 else draw.randint(0, count)
    if fields.get("goal") != "latency" and draw.random() < 0.4:
        add_backward(draw, nodes, edges, count)
    data = {
        "name": f"drawn-{seed}",
        "nodes": nodes,
        "edges": edges,
        "accelerators": draw.randint(0, 3),
        "processors": draw.randint(0, 2),
        "memory_bytes": draw.choice([4, 6, 100]),
        **fields,
    }
    try:
        instance = PartitionInstance.from_data(data)
    except InstanceError:
        return None
    return instance if _size(instance) <= most else None


def several(count: int, first: int = 0, most: int = MOST, **fields: Any) -> list[PartitionInstance]:
    """Good ones among the seeds from ``first`` on."""
    found: list[PartitionInstance] = []
    seed = first
    while len(found) < count:
        instance = drawn(seed, most, **fields)
        seed += 1
        if instance is not None:
            found.append(instance)
    return found


def optimum(instance: PartitionInstance) -> float | None:
    """The least objective of all feasible partitions; None if there is none."""
    best = None
    groups = _groups(instance)
    for choice in product(slots_of(instance), repeat=len(groups)):
        devices, subgraphs = [0] * len(instance.nodes), [0] * len(instance.nodes)
        for nodes, (device, number) in zip(groups, choice, strict=True):
            for node in nodes:
                devices[node], subgraphs[node] = device, number
        answer = Partition(instance=instance.name, devices=tuple(devices), subgraphs=tuple(subgraphs))
        found = evaluate_partition(instance, answer)
        if found.feasible and found.objective is not None and (best is None or found.objective < best):
            best = float(found.objective)
    return best


def _size(instance: PartitionInstance) -> int:
    return len(slots_of(instance)) ** len(_groups(instance))


def _groups(instance: PartitionInstance) -> tuple[tuple[int, ...], ...]:
    """What is decided at once: colours, but nodes of one may be in several subgraphs of a device."""
    return instance.colours if instance.subgraphs == 1 else tuple((node,) for node in range(len(instance.nodes)))


def slots_of(instance: PartitionInstance) -> list[tuple[int, int]]:
    """Devices, and sets of accelerators, as pairs of a device and a number."""
    accelerators = range(instance.accelerators)
    slots = [(device, number) for device in accelerators for number in range(instance.subgraphs)]
    return slots + [(device, 0) for device in range(instance.accelerators, instance.devices)]


def node(draw: random.Random, v: int) -> dict[str, Any]:
    """One of the forward pass, that may lack a time."""
    times = [0, 0, 1, 2, 3, 5, 7]
    return {
        "name": f"f{v}",
        "accelerator_s": draw.choice(times) if draw.random() < 0.85 else None,
        "processor_s": 2 * draw.choice(times) + 1 if draw.random() < 0.9 else None,
        "transfer_s": draw.choice([0, 0.5, 1, 2]),
        "memory_bytes": draw.choice([0, 1, 2, 3]),
    }


def add_backward(draw: random.Random, nodes: list[dict[str, Any]], edges: list[tuple[int, int]], count: int) -> None:
    """Twins of most nodes, most of them of their colour; the others stand alone in the backward pass."""
    twin = {}
    for v in reversed(range(count)):
        if draw.random() < 0.8:
            twin[v] = len(nodes)
            nodes.append({**node(draw, v), "name": f"b{v}", "backward": True})
            if draw.random() < 0.7:
                nodes[v].setdefault("colour", 100 + v)
                nodes[-1]["colour"] = nodes[v]["colour"]
    for u, v in list(edges):
        if u in twin and v in twin:
            edges.append((twin[v], twin[u]))
        if v in twin and draw.random() < 0.3:
            edges.append((u, twin[v]))


def alike(count: int, accelerators: int, **fields: Any) -> PartitionInstance:
    """A chain of equal layers that only accelerators take."""
    nodes = [{"name": f"n{v}", "accelerator_s": 1.0, "transfer_s": 0.1, "memory_bytes": 1} for v in range(count)]
    edges = [(v, v + 1) for v in range(count - 1)]
    data = {"name": "chain", "nodes": nodes, "edges": edges, "accelerators": accelerators, "memory_bytes": 100}
    return PartitionInstance.from_data({**data, **fields})


def solved(formulation: Any, instance: PartitionInstance, start: Any = None) -> Any:
    return Exact("model", "deployment", formulation).solve(instance, Limits(gap=1e-6), start=start)


def agrees(formulation: Any, instance: PartitionInstance, best: float | None) -> None:
    result = solved(formulation, instance)
    if best is None:
        assert result.status is Status.INFEASIBLE
        return
    assert result.objective == pytest.approx(best)
    assert result.bound == pytest.approx(best, rel=1e-5, abs=1e-7)
