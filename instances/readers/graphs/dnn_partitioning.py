"""Graphs in the JSON format of msr-fiddle/dnn-partitioning (MIT): published inputs and splits by hand.

An object of ``maxSizePerFPGA`` (bytes), ``maxFPGAs``, ``maxCPUs``, ``nodes`` and ``edges``. A node has ``id``,
``supportedOnFpga``, ``cpuLatency``, ``fpgaLatency`` (milliseconds), ``isBackwardNode``, and perhaps ``colorClass``,
``size`` (bytes) and ``name``; an edge ``sourceId``, ``destId`` and ``cost``, milliseconds of the transfer of its
source's output. A split is an object of ``fpgas`` and ``cpus``, each a list of objects with ``nodes``.
"""

from collections.abc import Mapping
from decimal import Decimal
from pathlib import Path
from typing import Any

from ddlopt.instances.options import at_least, checked, one_of
from ddlopt.instances.readers.text_files import object_of
from ddlopt.models.deployment.partition.instance import Partition, PartitionInstance
from ddlopt.models.errors import InstanceError, SolutionError

_OBJECT = "a JSON object"
_SAME = 1e-6
"""Milliseconds by which the costs of the edges of one node may differ, as in the released code."""


@checked
def read_dnn_partitioning(
    path: str | Path,
    *,
    goal: str = "throughput",
    contiguous: bool = False,
    separate_passes: bool = False,
    subgraphs: int = 1,
    accelerators: int | None = None,
    processors: int | None = None,
    name: str | None = None,
) -> PartitionInstance:
    """An instance of a published graph.

    Parameters
    ----------
    path : str or Path
        ``.json`` or ``.json.gz``.
    goal, contiguous, separate_passes, subgraphs
        Fields of the instance, which the file does not have.
    accelerators, processors : int, optional
        None: as in the file.
    name : str, optional
        None: the file's.

    Raises
    ------
    InstanceError
        If the file cannot be read or is no such graph.
    OptionError
        If an option is out of range.
    """
    one_of("goal", goal, ("throughput", "latency"))
    at_least("subgraphs", subgraphs, 1)
    path = Path(path)
    data = object_of(path, _OBJECT)
    nodes = _rows(path, data, "nodes")
    edges = _rows(path, data, "edges")
    places: dict[Any, int] = {}
    for place, node in enumerate(nodes):
        own = _get(path, f"nodes[{place}]", node, "id", int)
        if places.setdefault(own, place) != place:
            raise InstanceError(f"{path}: nodes[{place}] has id {own}, as nodes[{places[own]}]; ids must differ")
    transfer_ms: dict[int, Any] = {}
    pairs = []
    for place, edge in enumerate(edges):
        where = f"edges[{place}]"
        ends = [_get(path, where, edge, key, int) for key in ("sourceId", "destId")]
        for end in ends:
            if end not in places:
                raise InstanceError(f"{path}: {where} names node {end}, which there is not")
        source, user = (places[end] for end in ends)
        cost = _get(path, where, edge, "cost", float)
        if abs(transfer_ms.setdefault(source, cost) - cost) > _SAME:
            raise InstanceError(
                f"{path}: {where} has cost {cost:g}, but another edge of node {ends[0]} has "
                f"{transfer_ms[source]:g}; the edges of one node must have one cost"
            )
        pairs.append((source, user))
    return PartitionInstance.from_data(
        {
            "name": name or path.name.split(".json")[0].lower().replace("_", "-"),
            "source": f"{path.name}, in the format of msr-fiddle/dnn-partitioning",
            "nodes": [_node(path, place, node, transfer_ms.get(place, 0)) for place, node in enumerate(nodes)],
            "edges": pairs,
            "accelerators": _get(path, "the graph", data, "maxFPGAs", int) if accelerators is None else accelerators,
            "processors": _get(path, "the graph", data, "maxCPUs", int) if processors is None else processors,
            "memory_bytes": _get(path, "the graph", data, "maxSizePerFPGA", float),
            "goal": goal,
            "contiguous": contiguous,
            "separate_passes": separate_passes,
            "subgraphs": subgraphs,
        },
        str(path),
    )


def read_split(path: str | Path, graph: str | Path, instance: PartitionInstance) -> Partition:
    """The partition that a split by hand, or the output of the released code, describes.

    Nodes that it leaves out go where others of their colour are.

    Parameters
    ----------
    path : str or Path
        The split.
    graph : str or Path
        The file that ``instance`` was read from, for the ids of its nodes.
    instance : PartitionInstance

    Raises
    ------
    SolutionError
        If the file cannot be read or is no split of the graph.
    InstanceError
        If the graph's file cannot be read or is no graph.
    """
    path = Path(path)
    data = object_of(path, _OBJECT, SolutionError)
    graph = Path(graph)
    nodes = _rows(graph, object_of(graph, _OBJECT), "nodes")
    ids = {_get(graph, f"nodes[{place}]", node, "id", int): place for place, node in enumerate(nodes)}
    device: dict[int, int] = {}
    for key, first in (("fpgas", 0), ("cpus", instance.accelerators)):
        machines = data.get(key)
        if not isinstance(machines, list):
            raise SolutionError(f"{path}: expected an object with lists fpgas and cpus; {key} is none")
        for number, machine in enumerate(machines):
            for node in machine["nodes"] if isinstance(machine, Mapping) and "nodes" in machine else ():
                if node not in ids:
                    raise SolutionError(f"{path}: {key}[{number}] has node {node}, which the graph has not")
                device[ids[node]] = first + number
    for coloured in instance.colours:
        known = [device[node] for node in coloured if node in device]
        if not known:
            name = instance.nodes[coloured[0]].name
            raise SolutionError(f"{path}: node '{name}' is on no device, and neither is any of its colour")
        for node in coloured:
            device.setdefault(node, known[0])
    return Partition(instance=instance.name, devices=tuple(device[node] for node in range(len(instance.nodes))))


def _node(path: Path, place: int, node: Mapping[str, Any], transfer_ms: float) -> dict[str, Any]:
    where = f"nodes[{place}]"
    supported = _get(path, where, node, "supportedOnFpga", int)
    own = node["id"]
    return {
        "name": str(node.get("name", own)),
        "accelerator_s": _seconds(_get(path, where, node, "fpgaLatency", float)) if supported else None,
        "processor_s": _seconds(_get(path, where, node, "cpuLatency", float)),
        "transfer_s": _seconds(transfer_ms),
        "memory_bytes": _get(path, where, node, "size", float) if "size" in node else 0.0,
        "backward": bool(_get(path, where, node, "isBackwardNode", int)),
        "colour": _get(path, where, node, "colorClass", int) if "colorClass" in node else None,
    }


def _seconds(milliseconds: float) -> float:
    """Shifted in decimals, so that no digit changes."""
    return float(Decimal(repr(milliseconds)).scaleb(-3))


def _rows(path: Path, data: Mapping[str, Any], key: str) -> list[Mapping[str, Any]]:
    rows = data.get(key)
    if not isinstance(rows, list) or not all(isinstance(row, Mapping) for row in rows):
        raise InstanceError(f"{path}: expected an object with a list of objects {key}")
    return rows


def _get(path: Path, where: str, row: Mapping[str, Any], key: str, kind: type[int] | type[float]) -> Any:
    value = row.get(key)
    if not isinstance(value, int if kind is int else int | float):
        raise InstanceError(
            f"{path}: {where} has {key} {value!r}; expected a number" if key in row else f"{path}: {where} has no {key}"
        )
    return value
